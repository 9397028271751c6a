//! Scopes: which names belong to a function, and which to the file.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use model::syntax::{Source, each_node, field, node_span};

/// The names that functions bind: parameters and assigned names.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// Bound names, by the start of their function.
    bound: BTreeMap<usize, BTreeSet<String>>,
    /// Names bound outside of functions.
    file: BTreeSet<String>,
}

impl Scopes {
    pub(super) fn of(source: &Source) -> Self {
        let mut scopes = Self::default();
        for root in source.roots() {
            each_node(root, &mut |node| scopes.add(node, source));
        }
        scopes
    }

    fn add(&mut self, node: Node<'_>, source: &Source) {
        let targets: Vec<Node<'_>> = match node.kind() {
            "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => {
                field(node, "left").into_iter().collect()
            }
            "named_expression" | "function_definition" | "class_definition" => {
                field(node, "name").into_iter().collect()
            }
            "as_pattern" => field(node, "alias").into_iter().collect(),
            "parameters" | "lambda_parameters" => {
                let mut cursor = node.walk();
                node.named_children(&mut cursor).filter_map(parameter).collect()
            }
            _ => return,
        };
        // The name of a function belongs to the enclosing scope.
        let inside = match node.kind() {
            "function_definition" | "class_definition" => node.parent().and_then(scope_of),
            "parameters" | "lambda_parameters" => node.parent(),
            _ => scope_of(node),
        };
        let bound = match inside {
            Some(function) => self.bound.entry(function.start_byte()).or_default(),
            None => &mut self.file,
        };
        for target in targets {
            bind(target, source, bound);
        }
    }

    /// Whether a name used at `node` is bound by an enclosing function.
    pub(super) fn is_local(&self, node: Node<'_>, name: &str) -> bool {
        let mut at = scope_of(node);
        while let Some(function) = at {
            if self.binds(function, name) {
                return true;
            }
            at = function.parent().and_then(scope_of);
        }
        false
    }

    /// Whether a name used at `node` is bound by the innermost function, and not by one further outside.
    pub(super) fn is_own(&self, node: Node<'_>, name: &str) -> bool {
        let mut at = scope_of(node);
        while let Some(function) = at {
            if self.binds(function, name) {
                return true;
            }
            // A lambda is mostly called where it is written.
            at = if function.kind() == "lambda" { function.parent().and_then(scope_of) } else { None };
        }
        false
    }

    fn binds(&self, function: Node<'_>, name: &str) -> bool {
        self.bound.get(&function.start_byte()).is_some_and(|bound| bound.contains(name))
    }

    /// Whether the file binds a name outside of functions.
    pub(super) fn is_of_file(&self, name: &str) -> bool {
        self.file.contains(name)
    }
}

/// The innermost function or lambda that contains a node, or the node itself. Defaults of parameters belong to the
/// scope around their function.
pub(super) fn scope_of(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = Some(node);
    let mut is_default = false;
    while let Some(node) = at {
        match node.kind() {
            "parameters" | "lambda_parameters" => is_default = true,
            "function_definition" | "lambda" if !is_default => return Some(node),
            "function_definition" | "lambda" => is_default = false,
            _ => {}
        }
        at = node.parent();
    }
    None
}

/// The name of a parameter.
pub(super) fn parameter(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "identifier" => Some(node),
        "default_parameter" | "typed_default_parameter" => field(node, "name"),
        "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => parameter(node.named_child(0)?),
        _ => None,
    }
}

/// Only names are bound: `a.b = c` and `a[b] = c` change an object.
fn bind(target: Node<'_>, source: &Source, bound: &mut BTreeSet<String>) {
    let mut cursor = target.walk();
    loop {
        let node = cursor.node();
        if node.kind() == "identifier" {
            bound.insert(source.slice(node_span(node)).to_owned());
        }
        let goes_on = !matches!(node.kind(), "attribute" | "subscript" | "identifier");
        if goes_on && cursor.goto_first_child() {
            continue;
        }
        loop {
            if cursor.node() == target {
                return;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
