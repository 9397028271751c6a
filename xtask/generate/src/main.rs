//! Writes what is made from the code. `cargo xtask generate` and `cargo xtask api` run it.

mod api;
mod files;
mod picture;
mod vscode;

use std::path::Path;

use anyhow::Context;
use clap::Parser;
use files::FileMode;

/// Writes what is made from the code
#[derive(Parser)]
enum Chore {
    /// The generated files
    Files {
        /// Only say which are stale
        #[arg(long)]
        check: bool,
    },
    /// The tables of `config/api/`
    Api(api::ApiArgs),
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("this lies in the repository")?;
    std::env::set_current_dir(root)?;
    match Chore::parse() {
        Chore::Files { check } => files::run(root, if check { FileMode::Check } else { FileMode::Write }),
        Chore::Api(args) => api::run(root, &args),
    }
}
