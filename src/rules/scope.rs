//! What a name stands for, by a look at every place that binds it. Slow: only for findings that are otherwise certain.

use tree_sitter::Node;

use crate::kernel::{Kernel, Launch};
use crate::syntax::Source;

/// Whether the name of a kernel is bound once at the top level of the file, by the kernel.
pub(super) fn is_bound_once(source: &Source, kernel: &Kernel) -> bool {
    let is = |node: Node<'_>| binds_to(node, source, &kernel.name);
    let mut bindings = 0;
    for root in source.roots() {
        walk(root, &mut |node| {
            bindings += usize::from(is(node));
            if !matches!(node.kind(), "function_definition" | "class_definition" | "lambda") {
                return true;
            }
            // What is bound inside a function or class is another name.
            bindings += usize::from(node.child_by_field_name("name").is_some_and(is));
            false
        });
    }
    let is_global =
        |node: Node<'_>| is(node) && node.parent().is_some_and(|parent| parent.kind() == "global_statement");
    bindings == 1 && !source.roots().any(|root| any(root, &is_global))
}

/// The innermost function (or comprehension) around a launch.
pub(super) fn scope_of<'a>(source: &'a Source, launch: &Launch) -> Option<Node<'a>> {
    scopes(source.node_at(launch.span)).next()
}

/// Whether `scope` or a function around it binds the name of a kernel.
pub(super) fn is_hidden(source: &Source, kernel: &Kernel, scope: Option<Node<'_>>) -> bool {
    scopes(scope).any(|scope| any(scope, &|node| binds_to(node, source, &kernel.name)))
}

/// The functions and comprehensions around a node, itself included, innermost first.
fn scopes(at: Option<Node<'_>>) -> impl Iterator<Item = Node<'_>> {
    std::iter::successors(at, Node::parent).filter(|node| {
        node.kind().ends_with("_comprehension")
            || matches!(node.kind(), "function_definition" | "lambda" | "generator_expression")
    })
}

fn binds_to(node: Node<'_>, source: &Source, name: &str) -> bool {
    node.kind() == "identifier" && source.text()[node.byte_range()] == *name && binds(node)
}

/// Whether an import anywhere in the file binds `alias` to something that is not Triton's.
pub(super) fn imports_another(source: &Source, alias: &str) -> bool {
    let str = |node: Node<'_>| &source.text()[node.byte_range()];
    let is_triton = |module: Node<'_>| str(module).split('.').next() == Some("triton");
    let is_another = |node: Node<'_>| {
        let mut cursor = node.walk();
        let mut items = node.children_by_field_name("name", &mut cursor);
        match node.kind() {
            "import_statement" => items.any(|item| {
                let module = item.child_by_field_name("name").unwrap_or(item);
                let bound = item.child_by_field_name("alias").map(str).or_else(|| str(item).split('.').next());
                bound == Some(alias) && !is_triton(module)
            }),
            "import_from_statement" => {
                !node.child_by_field_name("module_name").is_some_and(is_triton)
                    && items.any(|item| str(item.child_by_field_name("alias").unwrap_or(item)) == alias)
            }
            _ => false,
        }
    };
    source.roots().any(|root| any(root, &is_another))
}

/// Whether an identifier stands where it gives a value to a name.
fn binds(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is = |field: &str| parent.child_by_field_name(field) == Some(node);
    let kind = parent.kind();
    match kind {
        "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => is("left"),
        "default_parameter" | "typed_default_parameter" | "named_expression" => is("name"),
        "function_definition" | "class_definition" => is("name"),
        "parameters" | "lambda_parameters" | "typed_parameter" | "as_pattern_target" => true,
        "global_statement" | "nonlocal_statement" | "delete_statement" => true,
        "aliased_import" => is("alias"),
        "dotted_name" => {
            let Some(import) = parent.parent() else { return false };
            match import.kind() {
                "import_from_statement" => import.child_by_field_name("module_name") != Some(parent),
                "import_statement" => parent.named_child(0) == Some(node),
                kind => kind.ends_with("_pattern"),
            }
        }
        _ => kind.ends_with("_pattern") || kind == "pattern_list",
    }
}

fn any(root: Node<'_>, is_wanted: &dyn Fn(Node<'_>) -> bool) -> bool {
    let mut found = false;
    walk(root, &mut |node| {
        found = found || is_wanted(node);
        !found
    });
    found
}

/// Visits `root` and all below it in source order, except below nodes for which `visit` says no. Not recursive: trees
/// of hostile files are deeper than the stack.
fn walk(root: Node<'_>, visit: &mut dyn FnMut(Node<'_>) -> bool) {
    let mut cursor = root.walk();
    loop {
        if visit(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
