//! The findings in a file.

use model::syntax::Source;
use rules::Diagnostic;

/// A checked file.
pub(super) struct Report {
    /// The path for output.
    pub(super) path: String,
    /// The text of the findings; absent when there are none or when nothing had to be parsed.
    pub(super) source: Option<Source>,
    pub(super) findings: Vec<Diagnostic>,
    /// The number of applied fixes.
    pub(super) fixed: usize,
    pub(super) outcome: Outcome,
}

/// The outcome of checking a file.
pub(super) enum Outcome {
    Checked,
    /// The file is not readable, not UTF-8 or the like. This is reported on standard error, and the command does not
    /// fail.
    Skipped(String),
    /// There is a defect in Warpsmith, or a file could not be written.
    Failed(String),
}

impl Report {
    pub(super) fn without_findings(path: &str, outcome: Outcome) -> Self {
        Self { path: path.to_owned(), source: None, findings: Vec::new(), fixed: 0, outcome }
    }
}

/// The findings, each with its file.
pub(super) fn findings(reports: &[Report]) -> impl Iterator<Item = (&Report, &Source, &Diagnostic)> {
    reports
        .iter()
        .filter_map(|report| Some((report, report.source.as_ref()?)))
        .flat_map(|(report, source)| report.findings.iter().map(move |finding| (report, source, finding)))
}
