//! What a rule reports.

use model::syntax::Span;

use super::declaration::{Declaration, Severity};

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// The rule's code.
    pub code: &'static str,
    /// The rule's name.
    pub name: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What is wrong, why, what to do; one or two sentences.
    pub message: String,
    /// Places that explain it.
    pub related: Vec<Related>,
    /// A change that certainly mends it, if there is one.
    pub fix: Option<Fix>,
}

/// A place that explains a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What is to be seen there.
    pub message: String,
}

/// A change that mends a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// What it does, as a menu entry.
    pub title: String,
    /// The edits; they do not overlap.
    pub edits: Vec<Edit>,
}

/// The replacement of one span.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Diagnostic {
    /// A finding of the rule declared, without related places or a fix.
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

    /// Adds a place that explains it.
    #[must_use]
    pub fn with_related(mut self, span: Span, message: impl Into<String>) -> Self {
        self.related.push(Related { span, message: message.into() });
        self
    }

    /// Adds the change that mends it.
    #[must_use]
    pub fn with_fix(mut self, title: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.fix = Some(Fix { title: title.into(), edits });
        self
    }
}

impl Fix {
    /// `text` with the edits made.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        apply_edits(text, &self.edits)
    }
}

/// `text` with non-overlapping `edits` made, whatever their order.
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
