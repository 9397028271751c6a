//! Tests of `warpsmith doctor` with a real Triton.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_doctor_asks_triton_and_counts_false_alarms() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let state = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let set = |text: &str| std::fs::write(folder.path().join("warpsmith.toml"), text).unwrap();
    set(&format!("python = '{python}'\n"));
    let doctor = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpsmith"));
        command.arg("doctor").args(arguments).current_dir(folder.path()).env("XDG_STATE_HOME", state.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let ran = doctor(&[]);
    assert!(ran.contains("Compiling       works: Triton 3."), "{ran}");
    assert!(ran.contains("False alarms    none\n"), "{ran}");
    assert!(ran.contains("Fence           complete: ") || ran.contains("Fence           incomplete; "), "{ran}");
    let file = state.path().join("warpsmith/false-alarms.jsonl");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let alarm = r#"{"rule":"L002","message":"","kernel":"def k(): pass","triton":"3.6.0","warpsmith":"0.1.0","date":"2026-01-01"}"#;
    std::fs::write(&file, format!("{alarm}\n")).unwrap();
    let facts: Value = serde_json::from_str(&doctor(&["--json"])).unwrap();
    assert_eq!(facts["false_alarms"]["count"], 1);
    assert!(facts["compiler"]["milliseconds"][1].as_u64().unwrap() < 60_000, "{facts}");
    let store = file.with_file_name("store.db");
    assert!(doctor(&[]).contains(&format!("False alarms    1, in {}", store.display())));
    assert!(!file.exists(), "it was taken over");
    set("python = 'gone'\n");
    let ran = doctor(&[]);
    assert!(ran.contains("gone does not exist") && ran.contains("set `python`"), "{ran}");
    set("compiler.enabled = false\n");
    assert!(doctor(&[]).contains("Compiling       off: "));
}
