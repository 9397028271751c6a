//! `cargo xtask test`: every check and every test, on a machine with Rust and Python alone.

use std::fs::{self, File};
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
    let nextest = output(&mut cargo("nextest --version")).is_ok();
    let words = if nextest { "nextest run --workspace" } else { "test --workspace --all-targets" };
    // Downloads leave the processors to the compiler.
    let (built, brought) = std::thread::scope(|scope| {
        let bringing = scope.spawn(|| bring(root, &target));
        let built = check(&target).and_then(|()| {
            say("Builds of the tests");
            process::run(cargo(words).arg("--no-run"))
        });
        (built, bringing.join())
    });
    built?;
    let test_python = brought.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    say("Examples in the documentation");
    process::run(cargo("test --workspace --doc").env(TEST_PYTHON, &test_python))?;
    say("Tests");
    process::run(cargo(words).env(TEST_PYTHON, &test_python).env(TEST_TRITONS, tritons(&target)))
}

/// What is checked without running it.
fn check(target: &Path) -> anyhow::Result<()> {
    say("Lints");
    process::run(&mut cargo("clippy --workspace --all-targets --all-features -- --deny warnings"))?;
    say("Licences, bans and sources of the dependencies");
    deny(target)
}

/// Downloads what the tests need; returns their interpreter.
fn bring(root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let test_python = match std::env::var_os(TEST_PYTHON) {
        Some(python) => PathBuf::from(python),
        None => {
            say("Meanwhile: Python with torch and Triton for the tests (a download of 2.7 GB, once)");
            python::environment(&target.join("test-venv"), &[python::TORCH, python::TRITON, python::NUMPY])?
        }
    };
    say("Meanwhile: Triton 3.4 and 3.9 for the tests (downloads of 0.5 GB, once)");
    for version in ["3.4.0", "3.9.0"] {
        let folder = tritons(target).join(version);
        python::unpack(&test_python, &[&format!("triton=={version}"), python::NUMPY], &folder)?;
    }
    vscode(root, target)?;
    Ok(test_python)
}

fn tritons(target: &Path) -> PathBuf {
    target.join("tritons")
}

/// VS Code, which nothing else could run beside if its tests brought it. They say what went wrong, and what can be done without it.
fn vscode(root: &Path, target: &Path) -> anyhow::Result<()> {
    let work = target.join("tmp");
    let prefix = work.join("vscode");
    if std::env::var_os("WARPSMITH_SKIP_VSCODE").is_none() {
        fs::create_dir_all(&work)?;
        let installing = File::create(work.join("vscode.lock"))?;
        installing.lock()?;
        if !prefix.join("complete").exists() {
            say("Meanwhile: VS Code for the tests");
            let _ = output(Command::new("bash").arg(root.join("tests/vscode/install.sh")).arg(&prefix));
        }
    }
    Ok(())
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
        // Without optimizing it and without what debuggers read, which take most of the time.
        let install = "install cargo-deny --locked --debug --quiet --root";
        process::run(cargo(install).arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    }
    process::run(Command::new(program).args(CHECK))
}
