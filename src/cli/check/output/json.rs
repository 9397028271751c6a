//! A JSON list of findings.

use std::io::Write;

use serde::Serialize;

use model::syntax::Source;
use rules::{Diagnostic, Fix, Severity};

use super::region::Region;
use crate::cli::check::report::{Report, findings};

#[derive(Serialize)]
struct Finding<'a> {
    path: &'a str,
    #[serde(flatten)]
    region: Region,
    code: &'a str,
    name: &'a str,
    severity: Severity,
    message: &'a str,
    url: Option<String>,
    fix: Option<FixOf<'a>>,
}

#[derive(Serialize)]
struct FixOf<'a> {
    title: &'a str,
    edits: Vec<EditOf<'a>>,
}

#[derive(Serialize)]
struct EditOf<'a> {
    #[serde(flatten)]
    region: Region,
    text: &'a str,
}

pub(super) fn write(reports: &[Report], out: &mut impl Write) -> anyhow::Result<()> {
    let all: Vec<_> = findings(reports).map(|(report, source, finding)| entry(report, source, finding)).collect();
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)?;
    Ok(())
}

fn entry<'a>(report: &'a Report, source: &Source, finding: &'a Diagnostic) -> Finding<'a> {
    Finding {
        path: &report.path,
        region: Region::of(source, finding.span),
        code: finding.code,
        name: finding.name,
        severity: finding.severity,
        message: &finding.message,
        url: rules::url(finding.code),
        fix: finding.fix.as_ref().map(|fix| fix_of(source, fix)),
    }
}

fn fix_of<'a>(source: &Source, fix: &'a Fix) -> FixOf<'a> {
    let edits = fix.edits.iter().map(|edit| EditOf { region: Region::of(source, edit.span), text: &edit.text });
    FixOf { title: &fix.title, edits: edits.collect() }
}
