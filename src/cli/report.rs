//! `warpsmith report RUN`: shows what a search did.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;

use search::{Report, delete_transcripts, runs};

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// The run, such as `softmax-3`; `last` is the latest one
    #[arg(default_value = "last")]
    run: String,
    /// The format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: Format,
    /// Write it to a file
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// List the runs of this workspace, the latest first
    #[arg(long)]
    list: bool,
    /// Delete the transcripts of language models of this workspace's runs
    #[arg(long, conflicts_with_all = ["list", "output"])]
    delete_transcripts: bool,
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

pub(super) fn run(args: &ReportArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let workspace = crate::settings::load(&here)?.project(&here);
    if args.list {
        for run in runs(&workspace) {
            writeln!(out, "{run}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.delete_transcripts {
        let count = delete_transcripts(&workspace).context("a transcript cannot be deleted")?;
        writeln!(out, "{count} transcript{} deleted", if count == 1 { "" } else { "s" })?;
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
