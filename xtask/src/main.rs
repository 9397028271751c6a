//! Chores of the repository: `cargo xtask --help` lists them.

mod api;
mod demo;
mod dist;
mod generate;
mod gpu_test;
mod installed;
mod picture;
mod process;
mod python;
mod test;
mod vscode;

use std::path::Path;

use anyhow::Context;
use clap::Parser;
use generate::Mode;

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
    Api(api::Args),
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
        Chore::Generate { check } => generate::run(root, if check { Mode::Check } else { Mode::Write }),
        Chore::Api(args) => api::run(&args),
        Chore::Test => test::run(root),
        Chore::GpuTest => gpu_test::run(root),
        Chore::Dist { r#try } => dist::run(root, r#try),
        Chore::Demo => demo::run(root),
    }
}
