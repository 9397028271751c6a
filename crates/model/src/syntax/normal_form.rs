//! The normal form of a text: its tokens without comments, blank lines and the spaces between them.

use tree_sitter::Node;

use super::Source;

/// A form of `text` that two texts share when Python parses them alike. A text with syntax errors is its own normal form.
#[must_use]
pub fn normal_form(text: &str) -> String {
    let source = Source::parse(text);
    if source.has_error() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for root in source.roots() {
        write_form(root, &mut out, &is_nothing, &mut |node, out| {
            out.push_str(text.get(node.byte_range()).unwrap_or_default());
        });
    }
    out
}

/// Writes the tokens below `root` with `word`, and marks where their parents begin and end. Skips the nodes for which
/// `is_nothing` holds.
///
/// The walk is iterative, because the trees of hostile files are deeper than the stack.
pub fn write_form<'t>(
    root: Node<'t>,
    out: &mut String,
    is_nothing: &dyn Fn(Node<'_>) -> bool,
    word: &mut dyn FnMut(Node<'t>, &mut String),
) {
    let mut cursor = root.walk();
    let mut depth = 0_usize;
    loop {
        let node = cursor.node();
        if !is_nothing(node) {
            // The text of a string lies between its tokens, so a string is written as one token.
            if node.kind() != "string" && cursor.goto_first_child() {
                // Where the segments begin depends on comments, so the roots of their trees get no marks.
                out.push_str(if depth > 0 { "\u{1}" } else { "" });
                depth += 1;
                continue;
            }
            word(node, out);
            out.push('\0');
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            depth -= 1;
            out.push_str(if depth > 0 { "\u{2}" } else { "" });
        }
    }
}

/// Whether Python ignores a node: a comment, a line continuation, or a node without text.
pub fn is_nothing(node: Node<'_>) -> bool {
    matches!(node.kind(), "comment" | "line_continuation") || node.start_byte() == node.end_byte()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "import a\n\n\n# one\ndef f(x):\n    y = x + 1  # two\n    if y:\n        return '# three'\n    return y\n";

    #[test]
    fn comments_and_spacing_do_not_change_the_normal_form() {
        for same in [
            TEXT.replace("# one\n", ""),
            TEXT.replace("  # two", ""),
            TEXT.replace("\n\n\n", "\n"),
            TEXT.replace("x + 1", "x+1"),
            TEXT.replace("x + 1", "x + \\\n        1"),
            TEXT.replace('\n', "\r\n"),
            format!("# before\n\n{TEXT}\n\n# behind\n"),
        ] {
            assert_eq!(normal_form(&same), normal_form(TEXT), "{same}");
        }
    }

    #[test]
    fn other_edits_change_the_normal_form() {
        let others = [
            TEXT.replace("x + 1", "x + 2"),
            TEXT.replace("x + 1", "(x + 1)"),
            TEXT.replace("# three", "#  three"),
            TEXT.replace("    return y\n", "        return y\n"),
            TEXT.replace("f(x)", "g(x)"),
            TEXT.replace("'# three'", "\"# three\""),
            format!("{TEXT}f(1)\n"),
            // A syntax error: the text is its own normal form, whatever Python would make of it.
            format!("{TEXT}f((\n"),
            format!("{TEXT}f((  \n"),
        ];
        let forms: std::collections::HashSet<String> =
            others.iter().map(String::as_str).chain([TEXT]).map(normal_form).collect();
        assert_eq!(forms.len(), others.len() + 1);
    }
}
