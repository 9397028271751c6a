//! `cargo xtask demo`: shows Warpsmith at work on the examples, from a fresh checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::process::{self, cargo, output, say};
use crate::python;

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    say("Building the release (some minutes the first time)");
    process::run(&mut cargo("build --release"))?;
    let warpsmith = root.join("target/release/warpsmith");

    let device = device(&warpsmith)?;
    match &device {
        Some(name) => say(&format!("Found {name}: installing torch too, which optimizing needs")),
        None => say("Found no CUDA device: installing Triton alone; optimizing needs a device and torch"),
    }
    let python = environment(root, device.is_some())?;
    // This is what an activated environment sets.
    let warpsmith = || {
        let mut command = Command::new(&warpsmith);
        if let Some(folder) = python.parent().and_then(Path::parent).filter(|folder| folder.join("pyvenv.cfg").exists())
        {
            command.env("VIRTUAL_ENV", folder);
        }
        command
    };

    say("What works here: warpsmith doctor");
    process::run(warpsmith().arg("doctor"))?;
    say("Checking: warpsmith check examples/");
    show(warpsmith().args(["check", "examples/"]))?;

    if device.is_none() {
        say("Optimizing is skipped: it runs and measures kernels, and this machine has no CUDA device.");
        eprintln!(
            "    On a machine with one, `cargo xtask demo` continues with `warpsmith optimize examples/matmul.py`."
        );
        return Ok(());
    }
    say("Optimizing: warpsmith optimize examples/matmul.py");
    show(warpsmith().args(["optimize", "examples/matmul.py"]))
}

/// Runs a command that may exit with status 1, for findings or for a search without a result.
fn show(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status()?;
    anyhow::ensure!(matches!(status.code(), Some(0 | 1)), "it failed ({status})");
    Ok(())
}

/// The name of the first CUDA device.
fn device(warpsmith: &Path) -> anyhow::Result<Option<String>> {
    let facts = output(Command::new(warpsmith).args(["doctor", "--json"]))?;
    let facts: serde_json::Value = serde_json::from_str(&facts).context("`warpsmith doctor --json` wrote no JSON")?;
    Ok(facts["devices"][0]["name"].as_str().map(str::to_owned))
}

/// An interpreter with Triton, and with torch if kernels can be run: the machine's own if it has them, else that in
/// `.venv`.
fn environment(root: &Path, with_torch: bool) -> anyhow::Result<PathBuf> {
    let (modules, packages): (&[&str], &[&str]) = if with_torch {
        (&["triton", "torch"], &[python::TORCH, python::TRITON, python::NUMPY])
    } else {
        (&["triton"], &[python::TRITON])
    };
    let own = python::interpreter()?;
    if python::has(&own, modules) {
        eprintln!("    {} has them already", own.display());
        return Ok(own);
    }
    python::environment(&root.join(".venv"), packages)
}
