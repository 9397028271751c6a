//! What was found in a file.

use model::syntax::Source;
use rules::Diagnostic;

/// One file, checked.
pub(super) struct Report {
    /// As it is shown.
    pub(super) path: String,
    /// The text that the findings are in; absent when nothing was found or nothing needed to be parsed.
    pub(super) source: Option<Source>,
    pub(super) findings: Vec<Diagnostic>,
    /// Number of fixes made.
    pub(super) fixed: usize,
    pub(super) outcome: Outcome,
}

/// How checking a file ended.
pub(super) enum Outcome {
    Checked,
    /// Not readable, not UTF-8 and the like: said on standard error, no reason to fail.
    Skipped(String),
    /// A defect of ours or a file that could not be written.
    Failed(String),
}

impl Report {
    pub(super) fn without_findings(path: &str, outcome: Outcome) -> Self {
        Self { path: path.to_owned(), source: None, findings: Vec::new(), fixed: 0, outcome }
    }
}

/// The findings with the file they are in.
pub(super) fn findings(reports: &[Report]) -> impl Iterator<Item = (&Report, &Source, &Diagnostic)> {
    reports
        .iter()
        .filter_map(|report| Some((report, report.source.as_ref()?)))
        .flat_map(|(report, source)| report.findings.iter().map(move |finding| (report, source, finding)))
}
