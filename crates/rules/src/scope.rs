//! Exact name resolution that examines every binding in the file. It is slow, and thus only for findings that are
//! otherwise certain.

use tree_sitter::Node;

use model::kernel::Kernel;
use model::syntax::{Source, Span, field, node_span};

/// Whether the name of a kernel is bound once at the top level of the file: by the kernel itself.
pub(super) fn is_bound_once(source: &Source, kernel: &Kernel) -> bool {
    name_is_bound_once(source, &kernel.name)
}

/// Whether a name is bound once at the top level of the file, and by no function.
pub(super) fn name_is_bound_once(source: &Source, name: &str) -> bool {
    let is = |node: Node<'_>, above: &[Node<'_>]| binds_to(node, above, source, name);
    let mut bindings = 0;
    for root in source.roots() {
        walk(root, &mut |node, above| {
            bindings += usize::from(is(node, above));
            if !matches!(node.kind(), "function_definition" | "class_definition" | "lambda") {
                return true;
            }
            // Names bound inside a function or class are not global.
            bindings += usize::from(field(node, "name").is_some_and(|name| is(name, &[node])));
            false
        });
    }
    let is_global = |node: Node<'_>, above: &[Node<'_>]| {
        above.last().is_some_and(|parent| parent.kind() == "global_statement") && is(node, above)
    };
    bindings == 1 && !source.roots().any(|root| any(root, &is_global))
}

/// The byte offsets of `name` as a whole word in the text.
pub(super) fn places_of<'a>(source: &'a Source, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = source.text().as_bytes();
    let is_word = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
    };
    memchr::memmem::find_iter(bytes, name)
        .filter(move |at| !is_word(at.checked_sub(1)) && !is_word(Some(at + name.len())))
}

/// The functions and comprehensions around `span`, innermost first.
pub(super) fn scopes_of(source: &Source, span: Span) -> Vec<Node<'_>> {
    let Some(mut node) = source.root_at(span.start) else { return Vec::new() };
    let mut scopes = Vec::new();
    let mut cursor = node.walk();
    while node_span(node).contains(span) {
        let is_scope = node.kind().ends_with("_comprehension")
            || matches!(node.kind(), "function_definition" | "lambda" | "generator_expression");
        if is_scope {
            scopes.push(node);
        }
        if cursor.goto_first_child_for_byte(span.start).is_none() {
            break;
        }
        node = cursor.node();
    }
    scopes.reverse();
    scopes
}

/// Whether one of `scopes` binds the name of a kernel, and thus hides the kernel.
pub(super) fn is_hidden(source: &Source, kernel: &Kernel, scopes: &[Node<'_>]) -> bool {
    scopes.iter().any(|&scope| any(scope, &|node, above| binds_to(node, above, source, &kernel.name)))
}

fn binds_to(node: Node<'_>, above: &[Node<'_>], source: &Source, name: &str) -> bool {
    node.kind() == "identifier" && source.text()[node.byte_range()] == *name && binds(node, above)
}

/// Whether an identifier is a binding occurrence. `above` holds its ancestors, the parent last.
fn binds(node: Node<'_>, above: &[Node<'_>]) -> bool {
    let Some((&parent, above)) = above.split_last() else { return false };
    let is = |name: &str| field(parent, name) == Some(node);
    let kind = parent.kind();
    match kind {
        "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => is("left"),
        "default_parameter" | "typed_default_parameter" | "named_expression" => is("name"),
        "function_definition" | "class_definition" => is("name"),
        "parameters" | "lambda_parameters" | "typed_parameter" | "as_pattern_target" => true,
        "global_statement" | "nonlocal_statement" | "delete_statement" => true,
        "aliased_import" => is("alias"),
        "dotted_name" => {
            let Some(import) = above.last() else { return false };
            match import.kind() {
                "import_from_statement" => field(*import, "module_name") != Some(parent),
                "import_statement" => parent.named_child(0) == Some(node),
                kind => kind.ends_with("_pattern"),
            }
        }
        _ => kind.ends_with("_pattern") || kind == "pattern_list",
    }
}

fn any(root: Node<'_>, is_wanted: &dyn Fn(Node<'_>, &[Node<'_>]) -> bool) -> bool {
    let mut found = false;
    walk(root, &mut |node, above| {
        found = found || is_wanted(node, above);
        !found
    });
    found
}

/// Visits `root` and its descendants in source order, each with its ancestors, and skips the children of nodes for
/// which `visit` returns `false`. It is not recursive, as the trees of hostile files may be deeper than the stack.
fn walk<'tree>(root: Node<'tree>, visit: &mut dyn FnMut(Node<'tree>, &[Node<'tree>]) -> bool) {
    let mut above = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if visit(node, &above) && cursor.goto_first_child() {
            above.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            above.pop();
        }
    }
}
