//! The names that a file defines.

use std::collections::BTreeSet;

use tree_sitter::Node;

use model::syntax::{Source, field, node_span};

/// The depth of branches at which the search ends, because the trees of hostile files are deep.
const DEEPEST: usize = 16;

/// The names of `must_define` that a file does not define: functions and classes, and methods of classes
/// (`Op.forward`).
pub(super) fn missing(text: &str, must_define: &[&str]) -> Vec<String> {
    let source = Source::parse(text);
    let mut defined = BTreeSet::new();
    for root in source.roots() {
        add(root, ("", DEEPEST), &source, &mut defined);
    }
    must_define.iter().filter(|name| !defined.contains(**name)).map(|name| (*name).to_owned()).collect()
}

/// Adds the definitions below a node, including those in branches but not those inside functions.
fn add(node: Node<'_>, (within, depth): (&str, usize), source: &Source, defined: &mut BTreeSet<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let named = |node: Node<'_>, name: &str| {
        let found = field(node, name).map(|name| source.slice(node_span(name)).to_owned());
        found.map(|found| if within.is_empty() { found } else { format!("{within}.{found}") })
    };
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "function_definition" => defined.extend(named(child, "name")),
            "class_definition" => {
                let Some(name) = named(child, "name") else { continue };
                if let Some(body) = field(child, "body").filter(|_| within.is_empty()) {
                    add(body, (&name, depth), source, defined);
                }
                defined.insert(name);
            }
            "assignment" => defined.extend(named(child, "left")),
            "decorated_definition" | "expression_statement" => {
                add(child, (within, depth), source, defined);
            }
            "if_statement" | "else_clause" | "elif_clause" | "try_statement" | "except_clause" | "block" => {
                add(child, (within, depth), source, defined);
            }
            _ => {}
        }
    }
}
