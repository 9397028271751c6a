//! `cargo xtask test`: every check and every test, on a machine with only Rust and Python.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, cargo, output, say};
use crate::python;

/// The variable with the interpreter for tests that need torch and Triton.
const TEST_PYTHON: &str = "WARPSMITH_TEST_PYTHON";

/// The variable with the folder of further Triton releases for tests, with a subfolder for each version.
const TEST_TRITONS: &str = "WARPSMITH_TEST_TRITONS";

/// How many of the slowest tests are listed at the end.
const SLOWEST: usize = 30;

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let target = root.join("target");
    say("Format");
    process::run(&mut cargo("fmt --all --check"))?;
    // The downloads and the dependency check leave the processors to the compiler.
    let (built, brought, denied) = std::thread::scope(|scope| {
        let bringing = scope.spawn(|| bring(root, &target));
        let denying = scope.spawn(|| deny(&target));
        let built = build(&target);
        (built, bringing.join(), denying.join())
    });
    built?;
    let test_python = brought.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    denied.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    say("Tests");
    let mut tests = nextest(&target);
    tests.env(TEST_PYTHON, &test_python).env(TEST_TRITONS, tritons(&target));
    // One more than processors: editors, Ray and time limits keep tests waiting that need no processor meanwhile.
    tests.arg("--test-threads").arg((std::thread::available_parallelism()?.get() + 1).to_string());
    let passed = process::run(&mut tests);
    let report = target.join("nextest/ci/junit.xml");
    if let Err(error) = slowest(&report) {
        eprintln!("{} cannot be read: {error:#}", report.display());
    }
    passed
}

/// Checks the code and builds the tests.
fn build(target: &Path) -> anyhow::Result<()> {
    say("Lints");
    process::run(&mut cargo("clippy --workspace --all-targets --all-features -- --deny warnings"))?;
    say("Builds of the tests");
    install(target, "cargo-nextest", "nextest")?;
    process::run(nextest(target).arg("--no-run"))
}

/// The test runner; its settings are in `.config/nextest.toml`.
fn nextest(target: &Path) -> Command {
    let tools = target.join("tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)));
    let mut command = cargo("nextest run --workspace --profile ci");
    if let Ok(path) = path {
        command.env("PATH", path);
    }
    command
}

/// Lists the slowest tests, from the JUnit report of the run.
fn slowest(report: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(report)?;
    let document = roxmltree::Document::parse(&text)?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let timed = cases.filter_map(|case| {
        let seconds: f64 = case.attribute("time")?.parse().ok()?;
        Some((seconds, case.attribute("classname")?, case.attribute("name")?))
    });
    let mut timed: Vec<_> = timed.collect();
    timed.sort_by(|one, other| other.0.total_cmp(&one.0));
    let all: f64 = timed.iter().map(|(seconds, ..)| seconds).sum();
    say(&format!("The {SLOWEST} slowest of {} tests, which took {all:.0} s one after the other", timed.len()));
    for (seconds, binary, name) in timed.iter().take(SLOWEST) {
        eprintln!("{seconds:8.1} s  {binary} {name}");
    }
    // The runner's own summary is above the list; this one is for programs that read the end of the output.
    let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    let failed = count("failure") + count("error");
    eprintln!("\n{} passed, {failed} failed", timed.len().saturating_sub(failed));
    Ok(())
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

/// Downloads VS Code for its tests, so that none of them waits for it. The tests report a failure, and how to do
/// without.
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

/// Checks licences, bans and sources of the dependencies.
fn deny(target: &Path) -> anyhow::Result<()> {
    const CHECK: [&str; 4] = ["check", "licenses", "bans", "sources"];
    install(target, "cargo-deny", "deny")?;
    let installed = target.join("tools/bin/cargo-deny");
    let mut command = if installed.exists() { Command::new(installed) } else { cargo("deny") };
    process::run(command.args(CHECK))
}

/// Installs a program of Cargo's below `target/tools` if there is none.
fn install(target: &Path, package: &str, subcommand: &str) -> anyhow::Result<()> {
    let tools = target.join("tools");
    let is_there = tools.join("bin").join(package).exists();
    if is_there || output(cargo(subcommand).arg("--version")).is_ok() {
        return Ok(());
    }
    say(&format!("{package} is missing: installing it (some minutes, once)"));
    // It is built without optimization and debug information, which take most of the time.
    let install = format!("install {package} --locked --debug --quiet --root");
    process::run(cargo(&install).arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "0"))
}
