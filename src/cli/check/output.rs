//! The formats in which findings are written: one file per format.

mod github;
mod json;
mod region;
mod sarif;
mod text;

use std::io::Write;

use clap::ValueEnum;

use super::report::Report;

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
