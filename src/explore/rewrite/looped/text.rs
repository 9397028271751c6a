//! The lines that statements stand on.

use super::row::Row;
use crate::kernel::ast::Stmt;
use crate::rules::{Edit, apply_edits};
use crate::syntax::Span;

impl<'a> Row<'a> {
    pub(super) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    /// The space before the first word of a line; `None` where something else stands before it.
    pub(super) fn indent_at(&self, at: usize) -> Option<&'a str> {
        let start = self.line_start(at);
        let indent = self.slice(Span::new(start, at));
        indent.trim().is_empty().then_some(indent)
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |end| at + end)
    }

    /// The whole lines of a statement; `None` where there is more on them than the statement and a comment.
    pub(super) fn lines_of(&self, stmt: &Stmt) -> Option<Span> {
        let span = stmt.span;
        self.indent_at(span.start)?;
        let lines = Span::new(self.line_start(span.start), self.line_end(span.end));
        let rest = self.slice(Span::new(span.end, lines.end)).trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(lines)
    }

    /// The same for a statement that is moved to the right.
    pub(super) fn movable_lines_of(&self, stmt: &Stmt) -> Option<Span> {
        let text = |lines: &Span| self.slice(*lines);
        self.lines_of(stmt).filter(|lines| !["\"\"\"", "'''", "\\\n"].iter().any(|word| text(lines).contains(word)))
    }

    /// The empty lines and comments above a statement.
    pub(super) fn above(&self, stmt: &Stmt) -> Span {
        let end = self.line_start(stmt.span.start);
        let mut start = end;
        while start > 0 {
            let line = Span::new(self.line_start(start - 1), start);
            let text = self.slice(line).trim();
            if !text.is_empty() && !text.starts_with('#') {
                break;
            }
            start = line.start;
        }
        Span::new(start, end)
    }

    /// The text there with edits within it.
    pub(super) fn edited(&self, span: Span, mut edits: Vec<Edit>) -> String {
        for edit in &mut edits {
            edit.span = Span::new(edit.span.start - span.start, edit.span.end - span.start);
        }
        apply_edits(self.slice(span), &edits)
    }
}
