//! `warpsmith rules`: the list of the rules.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::Format;
use crate::rules::{self, Severity};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How to write the list
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    code: &'static str,
    name: &'static str,
    family: String,
    severity: Severity,
    summary: &'static str,
    since: &'static str,
    fixable: bool,
    url: String,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let entries: Vec<Entry> = rules::all().iter().map(|rule| Entry::of(&rule.declaration)).collect();
    match args.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &entries)?;
            writeln!(out)?;
        }
        Format::Text => {
            let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
            for entry in &entries {
                let fix = if entry.fixable { "fix" } else { "" };
                let severity = entry.severity.to_string();
                writeln!(out, "{}  {:width$}  {severity:7}  {fix:3}  {}", entry.code, entry.name, entry.summary)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Entry {
    fn of(declaration: &rules::Declaration) -> Self {
        Self {
            code: declaration.code,
            name: declaration.name,
            family: declaration.family().to_string(),
            severity: declaration.severity,
            summary: declaration.summary,
            since: declaration.since,
            fixable: declaration.fixable,
            url: declaration.url(),
        }
    }
}
