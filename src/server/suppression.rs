//! Suppression comments, `# warpsmith: ignore[CODE]`: finds the code under the cursor, and writes new ones.

use tree_sitter::Node;

use model::syntax::{Source, Span, node_span};
use rules::Edit;

const MARK: &str = "warpsmith: ignore";

/// The code at byte `offset` of a suppression comment, with its span. In a comment with a single code, any offset
/// selects it.
pub(crate) fn code_at(source: &Source, offset: usize) -> Option<(&str, Span)> {
    let comment = comment_at(source, offset)?;
    let list = list(source, comment)?;
    let text = source.slice(list);
    let mut codes = text.split(',').map(|code| {
        let start = list.start + (code.as_ptr() as usize - text.as_ptr() as usize) + leading(code);
        (code.trim(), Span::new(start, start + code.trim().len()))
    });
    let only = codes.clone().count() == 1;
    codes.find(|(_, span)| only || span.touches(offset)).filter(|(code, _)| !code.is_empty())
}

/// The edit that suppresses `code` for a finding at `span`: an addition to the comment at the line's end, or a new
/// comment. `None` where no comment is possible, or where one covers all codes already.
pub(crate) fn edit(source: &Source, span: Span, code: &str) -> Option<Edit> {
    let line_end = |offset: usize| {
        let lines = source.lines();
        lines.range(source.text(), lines.line_of(offset)).end
    };
    // A comment covers findings that start or end on its line.
    [line_end(span.start), line_end(span.end)].into_iter().find_map(|end| edit_at(source, end, code))
}

fn edit_at(source: &Source, line_end: usize, code: &str) -> Option<Edit> {
    if let Some(comment) = comment_at(source, line_end) {
        if let Some(list) = list(source, comment) {
            let at = list.start + source.slice(list).trim_end().len();
            let separator = if at == list.start { "" } else { ", " };
            return Some(Edit { span: Span::new(at, at), text: format!("{separator}{code}") });
        }
        if source.slice(comment).contains(MARK) {
            return None; // it covers everything already
        }
    }
    let in_string = || {
        let mut at = source.node_at(Span::new(line_end, line_end));
        while let Some(node) = at {
            if node.kind() == "string" && node.start_byte() < line_end && line_end < node.end_byte() {
                return true;
            }
            at = node.parent();
        }
        false
    };
    let line = &source.text()[..line_end];
    if line.ends_with('\\') || in_string() {
        return None;
    }
    let end = line.trim_end_matches([' ', '\t']).len();
    Some(Edit { span: Span::new(end, line_end), text: format!("  # {MARK}[{code}]") })
}

/// The comment that contains byte `offset` or ends there.
fn comment_at(source: &Source, offset: usize) -> Option<Span> {
    let at = |offset| source.node_at(Span::new(offset, offset)).filter(|node: &Node<'_>| node.kind() == "comment");
    at(offset).or_else(|| at(offset.checked_sub(1)?)).map(node_span)
}

/// The span between the brackets of a suppression comment.
fn list(source: &Source, comment: Span) -> Option<Span> {
    let text = source.slice(comment);
    let after_mark = text.find(MARK)? + MARK.len();
    let rest = text[after_mark..].strip_prefix("-file").unwrap_or(&text[after_mark..]);
    let inner = rest.trim_start().strip_prefix('[')?;
    let length = inner.find(']')?;
    let start = comment.start + (inner.as_ptr() as usize - text.as_ptr() as usize);
    Some(Span::new(start, start + length))
}

fn leading(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::apply_edits;

    fn suppressed(text: &str, at: &str) -> Option<String> {
        let source = Source::parse(text);
        let start = text.find(at).unwrap();
        let edit = edit(&source, Span::new(start, start + at.len()), "L001")?;
        Some(apply_edits(text, &[edit]))
    }

    #[test]
    fn a_suppression_is_added_only_where_a_comment_is_possible() {
        for (text, at, expected) in [
            ("x = y\r\nz\r\n", "y", Some("x = y  # warpsmith: ignore[L001]\r\nz\r\n")),
            ("x = y  ", "y", Some("x = y  # warpsmith: ignore[L001]")),
            ("x = y  # note\n", "y", Some("x = y  # note  # warpsmith: ignore[L001]\n")),
            ("x = y # warpsmith: ignore[M002]\n", "y", Some("x = y # warpsmith: ignore[M002, L001]\n")),
            ("x = y # warpsmith: ignore[]\n", "y", Some("x = y # warpsmith: ignore[L001]\n")),
            ("x = y # warpsmith: ignore\n", "y", None),
            ("x = y + \\\n  z\n", "y", None),
            ("f('''\n a\n''')\n", "'''\n a\n'''", Some("f('''\n a\n''')  # warpsmith: ignore[L001]\n")),
            ("f('''\n a\n''')\n", " a", None),
            (
                "s = '# warpsmith: ignore[M002]'\n",
                "s",
                Some("s = '# warpsmith: ignore[M002]'  # warpsmith: ignore[L001]\n"),
            ),
        ] {
            assert_eq!(suppressed(text, at).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_code_under_the_cursor_is_read() {
        let text = "x  # warpsmith: ignore[L001, M002]\ny  # warpsmith: ignore-file[N003]\nz  # warpsmith: ignore\n";
        let source = Source::parse(text);
        let code = |at: &str| code_at(&source, text.find(at).unwrap()).map(|(code, _)| code);
        assert_eq!(code("001"), Some("L001"));
        assert_eq!(code("002"), Some("M002"));
        assert_eq!(code("# w"), None);
        assert_eq!(code("ignore-file"), Some("N003"));
        assert_eq!(code("z"), None);
        assert_eq!(code_at(&source, text.len() - 2), None);
    }
}
