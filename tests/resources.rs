//! Tests of the resources that kernels use, printed by the command line with the real Triton of
//! `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/folder.rs"]
mod folder;

use folder::Folder;
use serde_json::Value;

/// A folder with a kernel, compiled for compute capability 9.0 unless the command line says otherwise.
fn folder_of(text: &str) -> Folder {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let settings = format!("select = ['C']\npython = '{python}'\ncompiler.target = 'cuda:90'\n");
    Folder::new(&[("warpsmith.toml", &settings), ("k.py", text)])
}

/// The first Python block in a section of the page of C002.
fn example(heading: &str) -> String {
    let doc = rules::find("C002").unwrap().declaration.doc;
    let section = doc.split("## ").find(|section| section.starts_with(heading)).unwrap();
    section.split("```").nth(1).unwrap().strip_prefix("python\n").unwrap().to_owned()
}

#[test]
fn the_examples_of_the_rule_are_right() {
    let bad = example("Bad");
    let marked = bad.lines().position(|line| line.contains("^^^")).unwrap();
    assert_eq!(folder_of(&bad).found(&["--compile"]), [format!("k.py:{marked}")]);
    assert_eq!(folder_of(&example("Good")).found(&["--compile"]), [""; 0]);
}

#[test]
fn a_kernel_is_flagged_only_on_targets_with_too_little_shared_memory() {
    let folder = folder_of(&example("Bad"));
    assert_eq!(folder.found(&[]), [""; 0], "it was not compiled");
    assert_eq!(folder.found(&["--compile", "--target", "cuda:89"]), ["k.py:9"]);
    let ran = folder.run(&["check", "--compile", "--target", "sm_90"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `cuda:90`?"), "{}", ran.err);
    // With guessed types the result may be different.
    let guessed = folder_of(&example("Bad").replace("# warpsmith:", "#"));
    assert_eq!(guessed.found(&["--compile"]), [""; 0]);
}

#[test]
fn a_launch_without_a_tuner_is_found_too() {
    let bad = example("Bad");
    let (start, end) = (bad.find("@triton.autotune").unwrap(), bad.find("@triton.jit").unwrap());
    let launch = "product[(1,)](x, y, z, 4096, BM=128, BN=128, BK=64, num_stages=5, num_warps=8)";
    let signed = bad[..start].replace("K=i32=4096", "K=i32=4096 BM=128 BN=128 BK=64");
    let text = format!("{signed}{}\n\ndef run(x, y, z):\n    {launch}\n", &bad[end..]);
    assert_eq!(folder_of(&text).found(&["--compile"]), ["k.py:7"]);
    assert_eq!(folder_of(&text.replace("num_stages=5", "num_stages=2")).found(&["--compile"]), [""; 0]);
    assert_eq!(folder_of(&text.replace("num_stages=5", "num_stages=x")).found(&["--compile"]), [""; 0]);
}

#[test]
fn the_resources_command_prints_registers_and_shared_memory() {
    let folder = folder_of(&example("Bad"));
    let ran = folder.run(&["resources", "k.py"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "product on sm_90", "{}", ran.err);
    let first =
        "  BM=128, BN=128, BK=32, num_warps=8, num_stages=3: 110 registers, no spills, 96 KiB shared, occupancy 25 %";
    assert!(lines[1].starts_with(first), "{lines:?}");
    assert!(lines[2].ends_with("needs 327,680 bytes of shared memory; sm_90 has 232,448 for a program"), "{lines:?}");
    let ran = folder.run(&["resources", "k.py", "--kernel", "product", "--format", "json"]);
    let rows: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(rows[0]["shared"], 98_304);
    assert_eq!((&rows[0]["occupancy"], &rows[0]["limit"]), (&25.0.into(), &"registers".into()));
    assert_eq!((&rows[0]["certain"], &rows[1]["occupancy"]), (&true.into(), &Value::Null));
    let ran = folder.run(&["resources", "k.py", "--kernel", "gone"]);
    assert!(ran.code == 2 && ran.err.contains("there is no such kernel"), "{}", ran.err);
}
