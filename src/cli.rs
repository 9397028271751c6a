//! The command line: one file per command. Code that several commands share has a file of its own, so that no command
//! imports from another.
//!
//! Exit status: 0 for success, 1 if something was found (or if the request failed), 2 if the command could not run.

mod adapt;
mod bench;
mod check;
mod color;
mod compiler_setup;
mod doctor;
mod exit_status;
mod explain;
mod inspect;
mod interrupt;
mod list_format;
mod memory;
mod optimize;
mod pool;
mod record;
mod report;
mod resources;
mod rules;
mod send_consent;
mod skills;
mod verify;
mod worker;
mod workloads;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use color::Color;
use exit_status::ended;

/// A language server for people who write Triton GPU kernels
#[derive(Debug, Parser)]
#[command(name = "warpsmith", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Whether to colour the output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check Python files with Triton kernels
    Check(check::CheckArgs),
    /// Show the page of a rule
    Explain(explain::ExplainArgs),
    /// List the rules
    Rules(rules::RulesArgs),
    /// Show the resources that kernels use: registers, spills, shared memory, occupancy
    Resources(resources::ResourcesArgs),
    /// Show what works on this machine and what is missing
    Doctor(doctor::DoctorArgs),
    /// Run a program and record the calls that launch its kernels
    Record(record::RecordArgs),
    /// List, show or remove recorded calls
    Workloads(workloads::WorkloadsArgs),
    /// Search for a faster version of a kernel, on the local GPU
    Optimize(optimize::OptimizeArgs),
    /// Optimize the tasks of a benchmark and report its figures
    Bench(bench::BenchArgs),
    /// Learn rules from synthetic and mutated kernels that Triton rejects
    Adapt(adapt::AdaptArgs),
    /// Show what a search did: what was tried, what was measured, and why
    Report(report::ReportArgs),
    /// List the changes that the search can make to a kernel, and what it has learned about them
    Skills(skills::SkillsArgs),
    /// List, show, import or forget what was learned from kernels that Triton refused
    Memory(memory::MemoryArgs),
    /// Check whether a file is correct and faster compared with another
    Verify(verify::VerifyArgs),
    /// Inspect the GPU pool of the setting `evaluator.pool`
    Pool(pool::PoolArgs),
    /// Judge candidates for a Warpsmith on another machine (`evaluator.command` starts this)
    Worker(worker::WorkerArgs),
    /// Show Triton's compiler output for a kernel
    Inspect(inspect::InspectArgs),
    /// Run the language server on standard input and output (editors start this)
    Serve,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    crate::log::start();
    // One TLS provider for the process; a second call would only say that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match Cli::parse() {
        // The server owns standard output.
        Cli { command: Command::Serve, .. } => ended(crate::server::serve()),
        // The worker writes to standard output from other threads.
        Cli { command: Command::Worker(args), .. } => ended(worker::run(&args)),
        cli => {
            let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
            ended(run(cli, out).and_then(|code| Ok(out.flush().map(|()| code)?)))
        }
    }
}

/// What a command line, such as `["check", "examples"]`, writes to standard output.
///
/// # Errors
/// When the arguments cannot be parsed or the command cannot run.
pub fn capture(arguments: &[&str]) -> anyhow::Result<String> {
    let mut out = Vec::new();
    run(Cli::try_parse_from(["warpsmith"].iter().chain(arguments))?, &mut out)?;
    Ok(String::from_utf8(out)?)
}

fn run(Cli { command, color }: Cli, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check(args) => check::run(&args, color.enabled(), out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Rules(args) => rules::run(&args, out),
        Command::Resources(args) => resources::run(&args, out),
        Command::Doctor(args) => doctor::run(&args, out),
        Command::Bench(args) => bench::run(&args, out),
        Command::Record(args) => record::run(&args, out),
        Command::Workloads(args) => workloads::run(&args, out),
        Command::Optimize(args) => optimize::run(&args, out),
        Command::Adapt(args) => adapt::run(&args, out),
        Command::Report(args) => report::run(&args, out),
        Command::Skills(args) => skills::run(&args, out),
        Command::Memory(args) => memory::run(&args, out),
        Command::Inspect(args) => inspect::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Pool(args) => pool::run(&args, out),
        Command::Worker(args) => worker::run(&args),
        Command::Serve => crate::server::serve(),
    }
}
