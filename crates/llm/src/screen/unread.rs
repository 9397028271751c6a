//! Text that Python reads otherwise than the parser, or than it looks: what it does, nobody can say by reading.

use model::syntax::{Source, each_node, node_span};

use super::names::Names;
use super::{Found, What};
use crate::lines::bare_return;

pub(super) fn look(source: &Source, names: &Names) -> Vec<Found> {
    let text = source.text();
    let mut found = Vec::new();
    let mut add = |at: usize, key: &str| found.push(Found { what: What::Dynamic, at, key: key.to_owned() });
    if source.has_error() {
        add(0, "what is no Python");
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
            // Python takes letters that look alike for the same, as full-width ones.
            let name = source.slice(node_span(node));
            if node.kind() == "identifier" && !name.is_ascii() {
                add(node.start_byte(), name);
            }
        });
    }
    found
}

/// What a comment says of how a file is encoded: Python goes by it, and then text may be code.
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
