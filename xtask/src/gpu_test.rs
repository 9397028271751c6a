//! `cargo xtask gpu-test`: optimizing on a real GPU, from the command line and from Neovim.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use crate::process::{self, cargo, say};
use crate::python;

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let interpreter = python::interpreter()?;
    ensure!(
        python::has(&interpreter, &["torch", "triton"]),
        "{} has no torch or no Triton: activate an environment that has both",
        interpreter.display()
    );
    say("Building");
    process::run(&mut cargo("build --release"))?;
    say("Neovim");
    let nvim = root.join("target/neovim-gpu");
    if !nvim.join("complete").exists() {
        process::run(Command::new("bash").arg(root.join("tests/neovim/install.sh")).arg(&nvim).arg("forky"))?;
    }
    say("On the GPU");
    let results = root.join("target/gpu-results.json");
    process::run(
        Command::new(&interpreter)
            .arg(root.join("tests/gpu/run.py"))
            .arg("--warpsmith")
            .arg(root.join("target/release/warpsmith"))
            .arg("--nvim")
            .arg(nvim.join("nvim"))
            .arg("--out")
            .arg(&results),
    )?;
    say(&format!("Results in {}: keep those that count in docs/results/", results.display()));
    Ok(())
}
