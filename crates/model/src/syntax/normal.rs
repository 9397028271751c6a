//! A text without what means nothing to Python: comments, blank lines, spaces between tokens.

use tree_sitter::Node;

use super::Source;

/// A form of `text` that two texts share when Python reads them alike; a text that cannot be parsed is its own.
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

/// Writes the tokens of a node by `word`, with marks where their parents begin and end, but for what is nothing.
///
/// Not recursive: trees of hostile files are deeper than the stack.
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
            // What is in a string stands between its tokens as well.
            if node.kind() != "string" && cursor.goto_first_child() {
                // How segments are cut depends on comments; what is in them does not.
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

/// Whether a node means nothing to Python.
pub fn is_nothing(node: Node<'_>) -> bool {
    matches!(node.kind(), "comment" | "line_continuation") || node.start_byte() == node.end_byte()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "import a\n\n\n# one\ndef f(x):\n    y = x + 1  # two\n    if y:\n        return '# three'\n    return y\n";

    #[test]
    fn comments_and_spacing_do_not_count() {
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
    fn everything_else_does() {
        let others = [
            TEXT.replace("x + 1", "x + 2"),
            TEXT.replace("x + 1", "(x + 1)"),
            TEXT.replace("# three", "#  three"),
            TEXT.replace("    return y\n", "        return y\n"),
            TEXT.replace("f(x)", "g(x)"),
            TEXT.replace("'# three'", "\"# three\""),
            format!("{TEXT}f(1)\n"),
            // An error: nothing is known of what Python makes of it.
            format!("{TEXT}f((\n"),
            format!("{TEXT}f((  \n"),
        ];
        let forms: std::collections::HashSet<String> =
            others.iter().map(String::as_str).chain([TEXT]).map(normal_form).collect();
        assert_eq!(forms.len(), others.len() + 1);
    }
}
