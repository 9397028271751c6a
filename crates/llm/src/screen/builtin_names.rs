//! Checks of names that are an objection anywhere: built-in functions, and attributes of objects.

use tree_sitter::Node;

use model::syntax::field;

use super::objection::ObjectionKind;
use super::paths::{is_held, power_of};
use super::screened::Screened;

/// Built-in functions that no kernel needs in any form.
const FUNCTIONS: &[(&str, ObjectionKind)] = &[
    ("__builtins__", ObjectionKind::Dynamic),
    ("__import__", ObjectionKind::Dynamic),
    ("__loader__", ObjectionKind::Dynamic),
    ("__spec__", ObjectionKind::Dynamic),
    ("breakpoint", ObjectionKind::Inspection),
    ("compile", ObjectionKind::Dynamic),
    ("delattr", ObjectionKind::Patch),
    ("eval", ObjectionKind::Dynamic),
    ("exec", ObjectionKind::Dynamic),
    ("globals", ObjectionKind::Dynamic),
    ("locals", ObjectionKind::Dynamic),
    ("open", ObjectionKind::Outside),
    ("vars", ObjectionKind::Dynamic),
];

/// Built-in functions whose names are often used for variables.
const SHADOWED: &[(&str, ObjectionKind)] = &[("id", ObjectionKind::Address), ("input", ObjectionKind::Outside)];

const ATTRIBUTES: &[(&str, ObjectionKind)] = &[
    ("Popen", ObjectionKind::Outside),
    ("Thread", ObjectionKind::Concurrency),
    ("_cdata", ObjectionKind::Address),
    ("_getframe", ObjectionKind::Inspection),
    ("add_pre_run_hook", ObjectionKind::Concurrency),
    ("ag_frame", ObjectionKind::Inspection),
    ("co_code", ObjectionKind::Inspection),
    ("cr_frame", ObjectionKind::Inspection),
    ("extern_elementwise", ObjectionKind::Outside),
    ("f_back", ObjectionKind::Inspection),
    ("f_builtins", ObjectionKind::Inspection),
    ("f_code", ObjectionKind::Inspection),
    ("f_globals", ObjectionKind::Inspection),
    ("f_locals", ObjectionKind::Inspection),
    ("cpp_extension", ObjectionKind::Outside),
    ("CUDAGraph", ObjectionKind::Concurrency),
    ("gi_code", ObjectionKind::Inspection),
    ("hub", ObjectionKind::Outside),
    ("load_binary", ObjectionKind::Outside),
    ("gi_frame", ObjectionKind::Inspection),
    ("load_inline", ObjectionKind::Outside),
    ("load_library", ObjectionKind::Outside),
    ("mutable_data_ptr", ObjectionKind::Address),
    ("popen", ObjectionKind::Outside),
    ("record_stream", ObjectionKind::Concurrency),
    ("register_forward_hook", ObjectionKind::Concurrency),
    ("register_forward_pre_hook", ObjectionKind::Concurrency),
    ("register_full_backward_hook", ObjectionKind::Concurrency),
    ("register_hook", ObjectionKind::Concurrency),
    ("rmtree", ObjectionKind::Outside),
    ("share_memory_", ObjectionKind::Concurrency),
    ("tb_frame", ObjectionKind::Inspection),
    ("tofile", ObjectionKind::Outside),
    ("wait_event", ObjectionKind::Concurrency),
    ("wait_stream", ObjectionKind::Concurrency),
    ("write_bytes", ObjectionKind::Outside),
    ("write_text", ObjectionKind::Outside),
];

/// Dunder names without effect.
const HARMLESS: &[&str] = &[
    "__all__",
    "__author__",
    "__call__",
    "__doc__",
    "__enter__",
    "__exit__",
    "__file__",
    "__init__",
    "__len__",
    "__name__",
    "__version__",
];

/// Dunder methods that a class may define.
const METHODS: &[&str] = &[
    "__call__",
    "__enter__",
    "__exit__",
    "__getitem__",
    "__hash__",
    "__init__",
    "__iter__",
    "__len__",
    "__post_init__",
    "__repr__",
    "__str__",
];

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    match node.kind() {
        "identifier" => name(screened, node, add),
        "attribute" => {
            let Some(attribute) = screened.named(node, "attribute") else { return };
            let what = attribute_is(attribute)
                .filter(|what| *what != ObjectionKind::Address || !is_of_alignment(screened, node));
            if let Some(what) = what {
                add(what, screened.text(node));
            }
        }
        "function_definition" => {
            let name = screened.named(node, "name").unwrap_or_default();
            if is_dunder(name) && !METHODS.contains(&name) {
                add(ObjectionKind::Dynamic, &format!("def {name}"));
            }
        }
        _ => {}
    }
}

fn find(list: &[(&str, ObjectionKind)], name: &str) -> Option<ObjectionKind> {
    list.iter().find(|(other, _)| *other == name).map(|(_, what)| *what)
}

fn attribute_is(name: &str) -> Option<ObjectionKind> {
    if name == "data_ptr" {
        return Some(ObjectionKind::Address);
    }
    let held = || is_held(name);
    let dunder = || (is_dunder(name) && !HARMLESS.contains(&name)).then_some(ObjectionKind::Dynamic);
    find(ATTRIBUTES, name).or_else(held).or_else(dunder)
}

fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// Whether an address is only used for its alignment, as in `x.data_ptr() % 16`.
fn is_of_alignment(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let call = node.parent().filter(|parent| parent.kind() == "call");
    let around = call.and_then(|call| call.parent()).filter(|parent| parent.kind() == "binary_operator");
    around.and_then(|around| screened.named(around, "operator")).is_some_and(|operator| matches!(operator, "%" | "&"))
}

/// Checks a name that is not an attribute, keyword or imported name.
fn name(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    let Some(parent) = node.parent() else { return };
    let is_label = match parent.kind() {
        "attribute" => field(parent, "attribute") == Some(node),
        "keyword_argument" | "default_parameter" | "typed_default_parameter" => field(parent, "name") == Some(node),
        "dotted_name" | "parameters" | "lambda_parameters" | "typed_parameter" => true,
        _ => false,
    };
    if is_label {
        return;
    }
    let name = screened.text(node);
    let shown = if parent.kind() == "call" { screened.text(parent) } else { name };
    if let Some(what) = find(FUNCTIONS, name) {
        return add(what, shown);
    }
    match name {
        "type" if argument_count(parent) > 1 => add(ObjectionKind::Dynamic, shown),
        "getattr" | "hasattr" | "setattr" => named_attribute(screened, node, name, add),
        _ if screened.scopes.is_local(node, name) || screened.scopes.is_of_file(name) => {}
        _ => {
            if let Some(what) = find(SHADOWED, name) {
                add(what, shown);
            } else if is_dunder(name) && !HARMLESS.contains(&name) {
                add(ObjectionKind::Dynamic, name);
            }
        }
    }
}

/// The number of arguments of a call; none if it is not a call.
fn argument_count(node: Node<'_>) -> usize {
    let args = (node.kind() == "call").then(|| field(node, "arguments")).flatten();
    args.map_or(0, |args| args.named_child_count())
}

/// Checks `getattr`: `getattr(tl, "name", None)` is equivalent to `tl.name`, but other attribute names are unknown.
fn named_attribute(screened: &Screened<'_>, node: Node<'_>, function: &str, add: &mut dyn FnMut(ObjectionKind, &str)) {
    let call = node.parent().filter(|parent| parent.kind() == "call" && field(*parent, "function") == Some(node));
    let args = call.and_then(|call| field(call, "arguments"));
    let (Some(call), Some(args)) = (call, args) else { return add(ObjectionKind::Dynamic, function) };
    let shown = screened.text(call);
    let (Some(object), Some(named)) = (args.named_child(0), args.named_child(1)) else {
        return add(ObjectionKind::Dynamic, shown);
    };
    let Some(attribute) = plain_string(screened, named) else { return add(ObjectionKind::Dynamic, shown) };
    let paths = screened.paths(object);
    let power = paths.iter().find_map(|path| power_of(&format!("{path}.{attribute}")));
    if let Some(what) = power.or_else(|| attribute_is(attribute)) {
        add(what, shown);
    }
    if function == "setattr" {
        let root = screened.text(object);
        let is_own = root != "self" && screened.scopes.is_own(node, root);
        match paths.is_empty() {
            false => add(ObjectionKind::Patch, shown),
            true if is_own => {}
            true => add(ObjectionKind::Keeps, shown),
        }
    }
}

/// The value of a string literal without interpolation or escapes.
fn plain_string<'s>(screened: &'s Screened<'_>, node: Node<'_>) -> Option<&'s str> {
    let text = (node.kind() == "string").then(|| screened.text(node))?;
    let inside = text.strip_prefix(['"', '\''])?.strip_suffix(['"', '\''])?;
    let is_word = !inside.is_empty() && inside.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word.then_some(inside)
}
