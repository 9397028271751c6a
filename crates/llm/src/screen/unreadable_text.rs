//! Text that Python reads differently from the parser, or from how it looks. Reading cannot tell what it does.

use model::syntax::{Source, each_node, node_span};

use super::names::ImportedNames;
use super::objection::{ObjectionKind, ScreenHit};
use crate::numbered_text::bare_return;

pub(super) fn look(source: &Source, names: &ImportedNames) -> Vec<ScreenHit> {
    let text = source.text();
    let mut found = Vec::new();
    let mut add =
        |at: usize, key: &str| found.push(ScreenHit { kind: ObjectionKind::Dynamic, at, key: key.to_owned() });
    if source.has_error() {
        add(0, "text that is not valid Python");
    }
    if names.is_lost() {
        add(0, "one name for many things");
    }
    if let Some(at) = bare_return(text) {
        add(at, "a line that ends in the middle of another");
    }
    if let Some(encoding) = text.lines().take(2).find_map(encoding).filter(|name| !is_utf8(name)) {
        add(0, &format!("coding: {encoding}"));
    }
    for root in source.roots() {
        each_node(root, &mut |node| {
            // Python normalizes compatible letters, such as full-width ones.
            let name = source.slice(node_span(node));
            if node.kind() == "identifier" && !name.is_ascii() {
                add(node.start_byte(), name);
            }
        });
    }
    found
}

/// The encoding declared in a comment. Python decodes the file with it, so that text may become code.
fn encoding(line: &str) -> Option<&str> {
    let (_, comment) = line.split_once('#')?;
    let (_, rest) = comment.split_once("coding")?;
    let name = rest.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(name.len());
    Some(&name[..end])
}

fn is_utf8(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().replace('_', "-").as_str(), "utf-8" | "utf8" | "ascii" | "us-ascii")
}
