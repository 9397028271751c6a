//! The worker's modules of Python, by their own tests. They need the torch of `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::Path;
use std::process::Command;

fn run(module: &str) {
    let python = std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker");
    let ran = Command::new(python)
        .args(["-B", "-m", "unittest", "-v", module])
        .current_dir(tests)
        .env("OMP_NUM_THREADS", "1")
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
fn right_kernels_are_accepted_and_wrong_ones_refused() {
    run("test_kernels");
}

#[test]
fn inputs_hold_what_they_are_asked_to() {
    run("test_inputs");
}

#[test]
fn what_a_call_needs_is_what_its_results_depend_on() {
    run("test_needs");
}
