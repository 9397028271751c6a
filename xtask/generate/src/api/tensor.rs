//! The members of run-time values: those of the class `tensor`.

use std::path::Path;

use anyhow::{Context as _, Result};
use model::api::{Member, MemberKind};
use model::syntax::Source;
use tree_sitter::Node;

use super::reader::{Members, decorated, params};

/// Functions of these modules under `@_tensor_member_fn` are methods as well.
const MODULES: [&str; 3] = ["core", "math", "standard"];

/// Reads the members from the sources below `root`.
pub(super) fn members(root: &Path) -> Result<Members> {
    let mut members = Members::new();
    for module in MODULES {
        let path = root.join(format!("triton/language/{module}.py"));
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let source = Source::parse(text.as_str());
        for node in source.roots().flat_map(children) {
            let inner = node.child_by_field_name("definition").unwrap_or(node);
            let name = inner.child_by_field_name("name").map_or("", |name| &text[name.byte_range()]);
            if inner.kind() == "class_definition" && name == "tensor" {
                class_members(inner, &text, &mut members);
            } else if inner.kind() == "function_definition" && decorated(node, &text, "_tensor_member_fn") {
                members.insert(name.to_owned(), method(node, inner, &text));
            }
        }
    }
    Ok(members)
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.named_child_count()).filter_map(move |at| node.named_child(at as u32))
}

fn class_members(class: Node<'_>, text: &str, members: &mut Members) {
    let Some(body) = class.child_by_field_name("body") else { return };
    let mut cursor = body.walk();
    for node in body.named_children(&mut cursor) {
        let inner = node.child_by_field_name("definition").unwrap_or(node);
        if inner.kind() != "function_definition" {
            continue;
        }
        let name = inner.child_by_field_name("name").map_or("", |name| &text[name.byte_range()]);
        if name == "__init__" {
            attributes(inner, text, members);
        } else if !name.starts_with('_') {
            let member = if decorated(node, text, "property") {
                Member { kind: MemberKind::Value, params: Vec::new() }
            } else {
                method(node, inner, text)
            };
            members.entry(name.to_owned()).or_insert(member);
        }
    }
}

/// A method, without the parameter for the value itself.
fn method(node: Node<'_>, function: Node<'_>, text: &str) -> Member {
    let kind = if decorated(node, text, "jit") { MemberKind::Jit } else { MemberKind::Builtin };
    let mut params = params(function, text);
    if !params.is_empty() {
        params.remove(0);
    }
    Member { kind, params }
}

/// `self.name = …`
fn attributes(init: Node<'_>, text: &str, members: &mut Members) {
    let mut rest = &text[init.byte_range()];
    while let Some(at) = rest.find("self.") {
        rest = &rest[at + "self.".len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if rest[end..].trim_start().starts_with('=') {
            members.insert(rest[..end].to_owned(), Member { kind: MemberKind::Value, params: Vec::new() });
        }
    }
    members.insert("T".to_owned(), Member { kind: MemberKind::Value, params: Vec::new() });
}
