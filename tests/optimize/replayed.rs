//! Tests that recorded editor sessions can be replayed by the script that replays them on a GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{test_python, text};

fn replay(session: &Path, results: &Path) -> Output {
    let python = test_python();
    Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/replay.py"))
        .arg(session)
        .args(["--warpsmith", env!("CARGO_BIN_EXE_warpsmith"), "--device", "toy", "--python"])
        .arg(python)
        .arg("--traffic")
        .arg(results.with_extension("jsonl"))
        .arg("--out")
        .arg(results)
        .output()
        .unwrap()
}

fn recorded(editor: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/gpu/sessions/{editor}.jsonl"))
}

/// A session from the finding to the edit with its measured speedup, which the judge accepts.
fn ends_in_a_measured_edit(editor: &str) {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.json");
    let output = replay(&recorded(editor), &results);
    assert!(output.status.success(), "{}", text(&output.stdout));
    let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(&results).unwrap()).unwrap();
    assert_eq!(seen["findings"][0], "P003", "{seen}");
    assert!(seen["title"].as_str().unwrap().starts_with("layer_norm_kernel: 1.33× faster"), "{seen}");
    assert!(seen["diff"].as_str().unwrap().contains("ROWS=16"), "{seen}");
    assert_eq!(seen["verdict"]["verdict"], "accepted", "{seen}");
    let said = std::fs::read_to_string(results.with_extension("jsonl")).unwrap();
    let from = |who: &str| said.lines().filter(|line| line.contains(&format!(r#""from": "{who}""#))).count();
    assert!(from("client") > 15 && from("server") > 15, "{said}");
    assert!(said.contains("file://${folder}/layer_norm.py"), "{said}");
}

#[test]
fn a_session_of_neovim_ends_in_a_measured_edit() {
    ends_in_a_measured_edit("neovim");
}

#[test]
fn a_session_of_vscode_ends_in_a_measured_edit() {
    ends_in_a_measured_edit("vscode");
}

/// A session that cannot be replayed is a failure.
#[test]
fn a_session_of_another_server_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (session, results) = (folder.path().join("session.jsonl"), folder.path().join("results.json"));
    let before = std::fs::read_to_string(recorded("neovim")).unwrap();
    assert!(before.contains("Run it once"));
    std::fs::write(&session, before.replace("Run it once", "Run it twice")).unwrap();
    let output = replay(&session, &results);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("took 'Run it twice'; offered are ['Run it once', 'Cancel']"), "{said}");
}

/// Requests keep their numbers whatever the server asks meanwhile.
#[test]
fn tests_of_the_replaying_editor_in_python_pass() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gpu/test_editor.py");
    let ran = Command::new(test_python()).args(["-B", script]).output().unwrap();
    assert!(ran.status.success() && text(&ran.stderr).contains("\nOK"), "{}", text(&ran.stderr));
}
