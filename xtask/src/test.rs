//! `cargo xtask test`: every check and every test, on a machine with Rust and Python alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo, output, say};
use crate::python;

/// Tests that need torch and Triton find the interpreter that has them here.
const TEST_PYTHON: &str = "WARPSMITH_TEST_PYTHON";

/// Tests that ask further releases of Triton find them here, each in a folder called after its version.
const TEST_TRITONS: &str = "WARPSMITH_TEST_TRITONS";

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let target = root.join("target");
    say("Format");
    process::run(&mut cargo("fmt --all --check"))?;
    say("Lints");
    process::run(&mut cargo("clippy --workspace --all-targets --all-features -- --deny warnings"))?;
    say("Licences, bans and sources of the dependencies");
    deny(&target)?;
    let test_python = match std::env::var_os(TEST_PYTHON) {
        Some(python) => PathBuf::from(python),
        None => {
            say("Python with torch and Triton for the tests (a download of 2.7 GB, once)");
            python::environment(&target.join("test-venv"), &[python::TORCH, python::TRITON, python::NUMPY])?
        }
    };
    say("Triton 3.4 and 3.9 for the tests (downloads of 0.5 GB, once)");
    let tritons = target.join("tritons");
    for version in ["3.4.0", "3.9.0"] {
        python::unpack(&test_python, &[&format!("triton=={version}"), python::NUMPY], &tritons.join(version))?;
    }
    say("Examples in the documentation");
    process::run(cargo("test --workspace --doc").env(TEST_PYTHON, &test_python))?;
    say("Tests");
    let nextest = output(&mut cargo("nextest --version")).is_ok();
    let words = if nextest { "nextest run --workspace" } else { "test --workspace --all-targets" };
    process::run(cargo(words).env(TEST_PYTHON, &test_python).env(TEST_TRITONS, &tritons))
}

fn deny(target: &Path) -> anyhow::Result<()> {
    const CHECK: [&str; 4] = ["check", "licenses", "bans", "sources"];
    if output(&mut cargo("deny --version")).is_ok() {
        return process::run(cargo("deny").args(CHECK));
    }
    let tools = target.join("tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        say("cargo-deny is missing: installing it (some minutes, once)");
        // Without optimizing it, which takes most of the time.
        process::run(cargo("install cargo-deny --locked --debug --quiet --root").arg(&tools))?;
    }
    process::run(Command::new(program).args(CHECK))
}
