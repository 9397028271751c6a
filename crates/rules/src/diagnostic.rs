//! Findings of rules: diagnostics, fixes and edits.

use model::syntax::Span;

use super::declaration::{Declaration, Severity};

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The rule's code.
    pub code: &'static str,
    /// The rule's name.
    pub name: &'static str,
    /// The severity of the finding.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What is wrong, why, and what to do, in one or two sentences.
    pub message: String,
    /// Places that explain the finding.
    pub related: Vec<Related>,
    /// A change that certainly fixes the problem, if there is one.
    pub fix: Option<Fix>,
}

/// A place that explains a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What the place shows.
    pub message: String,
}

/// A change that fixes a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// The title of the fix in a menu.
    pub title: String,
    /// The edits; they do not overlap.
    pub edits: Vec<Edit>,
}

/// The replacement of one span.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    /// The span to replace; empty for an insertion.
    pub span: Span,
    /// The text to put in place of the span.
    pub text: String,
}

impl Diagnostic {
    /// A finding of the declared rule, without related places or a fix.
    #[must_use]
    pub fn new(declaration: &Declaration, span: Span, message: impl Into<String>) -> Self {
        Self {
            code: declaration.code,
            name: declaration.name,
            severity: declaration.severity,
            span,
            message: message.into(),
            related: Vec::new(),
            fix: None,
        }
    }

    /// Adds a place that explains the finding.
    #[must_use]
    pub fn with_related(mut self, span: Span, message: impl Into<String>) -> Self {
        self.related.push(Related { span, message: message.into() });
        self
    }

    /// Adds the change that fixes the problem.
    #[must_use]
    pub fn with_fix(mut self, title: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.fix = Some(Fix { title: title.into(), edits });
        self
    }
}

impl Fix {
    /// Applies the edits to `text`.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        apply_edits(text, &self.edits)
    }
}

/// Applies `edits` to `text`. They must not overlap, and may be in any order.
#[must_use]
pub fn apply_edits(text: &str, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        out.push_str(&text[done..edit.span.start]);
        out.push_str(&edit.text);
        done = edit.span.end;
    }
    out.push_str(&text[done..]);
    out
}
