//! `warpsmith record -- COMMAND …`: runs a program and records the calls that launch kernels.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

use judge::devices;
use runtime::python::environment::PythonEnvironment;
use workload::RecordRequest;

use super::exit_status::{FAILED, FOUND};

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
pub(super) struct RecordArgs {
    /// The command: `python FILE …`, `python -m MODULE …` or `pytest …`
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &RecordArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let loaded = crate::settings::load(&folder)?;
    let workspace = loaded.project(&folder);
    let python = PythonEnvironment::of_project(&loaded, &folder).map_or_else(|| "python3".into(), |found| found.python);
    let device = devices().name().unwrap_or_default();
    let limits = store::RetentionLimits::from(&loaded.settings.workloads);
    let to_record = RecordRequest {
        workspace,
        folder,
        command: args.command.clone(),
        python,
        device,
        quiet: false,
        limits,
        entry: None,
    };
    let recorded = workload::record(&to_record, &|| true)?;
    learn::learn_from(&to_record.python, &learn::crashed(&recorded.failed), "recording", &loaded.settings.memory);
    for workload in &recorded.workloads {
        writeln!(out, "recorded {}", workload::describe(workload))?;
    }
    for left_out in &recorded.left_out {
        writeln!(out, "{left_out}")?;
    }
    if recorded.workloads.is_empty() && recorded.left_out.is_empty() {
        writeln!(out, "no call of a function that launches a kernel was seen")?;
    }
    Ok(match recorded.status {
        Some(0) if !recorded.workloads.is_empty() => ExitCode::SUCCESS,
        Some(0) => ExitCode::from(FOUND),
        // The status is that of the program, or the one that shells use for a signal.
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
        None => ExitCode::from(recorded.signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(FAILED)),
    })
}
