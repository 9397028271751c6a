//! The source lines of statements.

use model::kernel::ast::Stmt;
use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::super::lines::{line_start, lines_of};
use super::row::Row;
use crate::words::indent_of;

impl<'a> Row<'a> {
    pub(super) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    /// The indentation of a line; `None` where other text precedes `at`.
    pub(super) fn indent_at(&self, at: usize) -> Option<&'a str> {
        indent_of(self.text, at)
    }

    /// The whole lines of a statement; `None` where there is more on them than the statement and a comment.
    pub(super) fn lines_of(&self, stmt: &Stmt) -> Option<Span> {
        lines_of(self.text, stmt)
    }

    /// The same for a statement that is indented further.
    pub(super) fn movable_lines_of(&self, stmt: &Stmt) -> Option<Span> {
        let text = |lines: &Span| self.slice(*lines);
        self.lines_of(stmt).filter(|lines| !["\"\"\"", "'''", "\\\n"].iter().any(|word| text(lines).contains(word)))
    }

    /// The empty lines and comments above a statement.
    pub(super) fn above(&self, stmt: &Stmt) -> Span {
        let end = line_start(self.text, stmt.span.start);
        let mut start = end;
        while start > 0 {
            let line = Span::new(line_start(self.text, start - 1), start);
            let text = self.slice(line).trim();
            if !text.is_empty() && !text.starts_with('#') {
                break;
            }
            start = line.start;
        }
        Span::new(start, end)
    }

    /// The text of the span with the edits inside it.
    pub(super) fn edited(&self, span: Span, mut edits: Vec<Edit>) -> String {
        for edit in &mut edits {
            edit.span = Span::new(edit.span.start - span.start, edit.span.end - span.start);
        }
        apply_edits(self.slice(span), &edits)
    }
}
