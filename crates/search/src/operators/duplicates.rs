//! Detection of candidates that differ only in names, comments and layout.

use std::collections::HashMap;

use tree_sitter::Node;

use model::syntax::{Source, each_node, field, is_nothing, write_form};

/// A canonical form: two files share it when they differ only in local names, comments, docstrings and layout. A
/// file that cannot be parsed is its own form.
pub(super) fn skeleton(text: &str) -> String {
    let source = Source::parse(text);
    if source.has_error() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for root in source.roots() {
        let mut cursor = root.walk();
        for node in root.named_children(&mut cursor) {
            let (locals, before) = (locals(node, text), out.len());
            let mut names: HashMap<&str, usize> = HashMap::new();
            let is_left_out = |node: Node<'_>| is_nothing(node) || is_docstring(node);
            write_form(node, &mut out, &is_left_out, &mut |node, out| {
                let word = &text[node.byte_range()];
                if node.kind() == "identifier" && locals.contains(&word) && !is_fixed(node) {
                    let count = names.len();
                    out.push_str(&format!("\u{3}{}", names.entry(word).or_insert(count)));
                } else {
                    out.push_str(word);
                }
            });
            if out.len() > before {
                out.push('\n');
            }
        }
    }
    out
}

/// The names that a definition binds locally. Its parameters keep their names, because callers may use them.
fn locals<'t>(statement: Node<'_>, text: &'t str) -> Vec<&'t str> {
    let mut bound = Vec::new();
    let mut parameters = Vec::new();
    let definition = field(statement, "definition").unwrap_or(statement);
    if !matches!(definition.kind(), "function_definition" | "class_definition") {
        return bound;
    }
    each_node(statement, &mut |node| {
        let target = match node.kind() {
            "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => field(node, "left"),
            "parameters" | "lambda_parameters" => {
                each_node(node, &mut |inner| {
                    if inner.kind() == "identifier" {
                        parameters.push(&text[inner.byte_range()]);
                    }
                });
                None
            }
            _ => None,
        };
        let Some(target) = target else { return };
        if target.kind() == "identifier" {
            bound.push(&text[target.byte_range()]);
        } else if matches!(target.kind(), "pattern_list" | "tuple_pattern") {
            let mut cursor = target.walk();
            let names = target.named_children(&mut cursor).filter(|node| node.kind() == "identifier");
            bound.extend(names.map(|node| &text[node.byte_range()]));
        }
    });
    bound.retain(|name| !parameters.contains(name));
    bound
}

/// Whether a name is an attribute or a keyword argument and so not local.
fn is_fixed(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is = |name| field(parent, name) == Some(node);
    parent.kind() == "attribute" && is("attribute") || parent.kind() == "keyword_argument" && is("name")
}

fn is_docstring(node: Node<'_>) -> bool {
    node.kind() == "expression_statement"
        && node.named_child_count() == 1
        && node.named_child(0).is_some_and(|inner| inner.kind() == "string")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "def k(x, n, BLOCK):\n    pid = tl.program_id(0)\n    offs = pid * BLOCK + tl.arange(0, BLOCK)\n    \
                        tl.store(x + offs, n, mask=offs < n)\n\ndef f(x):\n    n = x.numel()\n    k[(1,)](x, n, BLOCK=16)\n";

    #[test]
    fn candidates_that_differ_in_local_names_or_layout_are_duplicates() {
        for same in [
            TEXT.replace("offs", "offsets"),
            TEXT.replace("pid", "program"),
            TEXT.replace("BLOCK):\n", "BLOCK):\n    \"\"\"Stores.\"\"\"\n    # fast\n"),
            TEXT.replace("pid * BLOCK + tl", "pid*BLOCK+tl"),
        ] {
            assert_eq!(skeleton(&same), skeleton(TEXT), "{same}");
        }
    }

    #[test]
    fn candidates_with_any_other_difference_are_distinct() {
        for other in [
            TEXT.replace("BLOCK=16", "BLOCK=32"),
            TEXT.replace("BLOCK", "SIZE"),
            TEXT.replace("mask=offs < n", "mask=offs <= n"),
            TEXT.replace("tl.store(x + offs", "tl.store(x + pid"),
            TEXT.replace("def f(", "def g("),
            TEXT.replace("x.numel()", "x.n()"),
        ] {
            assert_ne!(skeleton(&other), skeleton(TEXT), "{other}");
        }
        let broken = "def f(:\n";
        assert_eq!(skeleton(broken), broken);
    }
}
