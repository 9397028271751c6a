//! The list of what rules find.

use super::diagnostic::Diagnostic;

/// The list to which rules add their findings.
#[derive(Debug)]
pub struct Findings<'a> {
    pub(super) out: &'a mut Vec<Diagnostic>,
}

impl Findings<'_> {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    /// Adds several findings.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.out.extend(diagnostics);
    }
}
