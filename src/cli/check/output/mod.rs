//! The formats in which findings are written: one file a format.

mod github;
mod json;
mod sarif;
mod text;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use model::syntax::{Encoding, Source, Span};
use rules::Diagnostic;

use super::Report;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// The findings in their source lines, with help
    #[default]
    Text,
    /// A JSON list
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

pub(super) fn write(format: Format, reports: &[Report], colour: bool, out: &mut impl Write) -> anyhow::Result<()> {
    match format {
        Format::Text => text::write(reports, colour, out),
        Format::Json => json::write(reports, out),
        Format::Github => github::write(reports, out),
        Format::Sarif => sarif::write(reports, out),
    }
}

/// The findings with the file they are in.
fn findings(reports: &[Report]) -> impl Iterator<Item = (&Report, &Source, &Diagnostic)> {
    reports
        .iter()
        .filter_map(|report| Some((report, report.source.as_ref()?)))
        .flat_map(|(report, source)| report.findings.iter().map(move |finding| (report, source, finding)))
}

/// A span as people count: lines and columns from 1, columns in code points, the end one past the last column.
#[derive(Clone, Copy, Debug, Serialize)]
struct Region {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

impl Region {
    fn of(source: &Source, span: Span) -> Self {
        let start = source.position(span.start, Encoding::Utf32);
        let end = source.position(span.end, Encoding::Utf32);
        Self { line: start.line + 1, column: start.column + 1, end_line: end.line + 1, end_column: end.column + 1 }
    }
}
