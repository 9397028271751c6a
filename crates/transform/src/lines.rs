//! The source lines of statements.

use model::kernel::ast::Stmt;
use model::syntax::Span;

use crate::words::indent_of;

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// The whole lines of a statement; `None` where there is more on them than the statement and a comment.
pub(super) fn lines_of(text: &str, stmt: &Stmt) -> Option<Span> {
    let span = stmt.span;
    indent_of(text, span.start)?;
    let lines = Span::new(line_start(text, span.start), line_end(text, span.end));
    let rest = text[span.end..lines.end].trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(lines)
}

/// The same, with the comments directly above.
pub(super) fn lines_with_comments(text: &str, stmt: &Stmt) -> Option<Span> {
    let mut lines = lines_of(text, stmt)?;
    while lines.start > 0 {
        let start = line_start(text, lines.start - 1);
        if !text[start..lines.start].trim_start().starts_with('#') {
            break;
        }
        lines.start = start;
    }
    Some(lines)
}
