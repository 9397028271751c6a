//! Chores of the repository: `cargo xtask --help` lists them.

mod api;

use clap::Parser;

#[derive(Parser)]
#[command(about = "Chores of the repository")]
enum Task {
    /// Writes `config/api/`: what each Triton release offers, read from its published wheel.
    Api(api::Args),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Api(args) => api::run(&args),
    }
}
