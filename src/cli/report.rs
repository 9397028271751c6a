//! `warpsmith report RUN`: what a search did.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;

use crate::explore::{Report, runs};
use crate::settings;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, such as `softmax-3`; `last` is the latest one
    #[arg(default_value = "last")]
    run: String,
    /// In which form
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: Format,
    /// Write it to a file
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// List the runs of this workspace, the latest first
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// Text for a pull request
    #[default]
    Md,
    /// One page with pictures
    Html,
    /// Everything, for programs
    Json,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let workspace = settings::load(&here)?.project(&here);
    if args.list {
        for run in runs(&workspace) {
            writeln!(out, "{run}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = Report::of(&workspace, &args.run)?;
    let text = match args.format {
        Format::Md => report.markdown(),
        Format::Html => report.html(),
        Format::Json => format!("{:#}\n", serde_json::to_value(&report)?),
    };
    match &args.output {
        Some(path) => fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?,
        None => out.write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
