//! The worker's modules of Python, by their own tests. They need the torch of `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The worker as the binary carries it, unpacked into `cache`.
fn worker(cache: &Path) -> PathBuf {
    // The recorder unpacks it for whoever has something to record.
    let file = cache.join("file.py");
    let text = "import triton\n@triton.jit\ndef k(): pass\ndef f():\n    k[(1,)]()\n";
    std::fs::write(&file, text).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_warpsmith"))
        .args(["record", "--", "python"])
        .arg(file)
        .current_dir(cache)
        .env("WARPSMITH_FAKE_DEVICE", "toy")
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    let mut found = std::fs::read_dir(cache.join("warpsmith/worker")).into_iter().flatten();
    found.next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr))).unwrap().path()
}

fn run(module: &str) {
    run_with(module, None);
}

fn run_with(module: &str, worker: Option<&Path>) {
    let python = std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker");
    let ran = Command::new(python)
        .args(["-B", "-m", "unittest", "-v", module])
        .current_dir(tests)
        .env("OMP_NUM_THREADS", "1")
        .env("WARPSMITH_TEST_WORKER", worker.unwrap_or(Path::new("")))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}{told}", String::from_utf8_lossy(&ran.stdout));
    // Without tests `unittest` may be content.
    assert!(told.contains("\nOK"), "{told}");
}

#[test]
fn results_are_compared_by_the_error_of_the_original() {
    run("test_compare");
}

#[test]
fn great_tensors_are_kept_once() {
    run("test_bits");
}

#[test]
fn right_kernels_are_accepted_and_wrong_ones_refused() {
    run("test_kernels");
}

#[test]
fn without_torch_the_same_is_said() {
    let cache = tempfile::tempdir().unwrap();
    run_with("test_raw", Some(&worker(cache.path())));
}

#[test]
fn inputs_hold_what_they_are_asked_to() {
    run("test_inputs");
}

#[test]
fn what_a_call_needs_is_what_its_results_depend_on() {
    run("test_needs");
}
