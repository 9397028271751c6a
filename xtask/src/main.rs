//! Chores of the repository: `cargo xtask --help` lists them.

mod demo;
mod dist;
mod gpu_test;
mod installed;
mod process;
mod python;
mod test;

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Context;
use clap::Parser;
use process::cargo;

/// Chores of the repository
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Write the generated files: schema, defaults, rule pages, the picture of the README
    Generate {
        /// Only say which are stale
        #[arg(long)]
        check: bool,
    },
    /// Write `config/api/`: what each Triton release offers, read from its published wheel
    Api {
        /// Releases to read, such as 3.6.0; those that have a table when none is named
        releases: Vec<String>,
    },
    /// Install what the tests need, then run every check and every test
    Test,
    /// Optimize on this machine's GPU, from the command line and from Neovim, and write what was measured
    GpuTest,
    /// Build what users install, for Linux on x86-64, in `target/dist/`
    Dist {
        /// Install each in a clean place, and use it there
        #[arg(long)]
        r#try: bool,
    },
    /// Build a release, make a Python environment and show Warpsmith at work on `examples/`
    Demo,
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the repository")?;
    std::env::set_current_dir(root)?;
    match Chore::parse() {
        Chore::Generate { check } => generate(if check { &["files", "--check"] } else { &["files"] }),
        Chore::Api { releases } => generate(&[&["api".to_owned()], &*releases].concat()),
        Chore::Test => test::run(root),
        Chore::GpuTest => gpu_test::run(root),
        Chore::Dist { r#try } => dist::run(root, r#try),
        Chore::Demo => demo::run(root),
    }
}

/// Runs the generator, a program that is built with the library; the other chores do not wait for that.
fn generate(args: &[impl AsRef<OsStr>]) -> anyhow::Result<()> {
    process::run(cargo("run --quiet --package generate --").args(args))
}
