//! Checks of names that are an objection anywhere: built-in functions, and attributes of objects.

use tree_sitter::Node;

use model::syntax::field;

use super::paths::{is_held, power_of};
use super::{Screened, What};

/// Built-in functions that no kernel needs in any form.
const FUNCTIONS: &[(&str, What)] = &[
    ("__builtins__", What::Dynamic),
    ("__import__", What::Dynamic),
    ("__loader__", What::Dynamic),
    ("__spec__", What::Dynamic),
    ("breakpoint", What::Inspection),
    ("compile", What::Dynamic),
    ("delattr", What::Patch),
    ("eval", What::Dynamic),
    ("exec", What::Dynamic),
    ("globals", What::Dynamic),
    ("locals", What::Dynamic),
    ("open", What::Outside),
    ("vars", What::Dynamic),
];

/// Built-in functions whose names are often used for variables.
const SHADOWED: &[(&str, What)] = &[("id", What::Address), ("input", What::Outside)];

const ATTRIBUTES: &[(&str, What)] = &[
    ("Popen", What::Outside),
    ("Thread", What::Concurrency),
    ("_cdata", What::Address),
    ("_getframe", What::Inspection),
    ("add_pre_run_hook", What::Concurrency),
    ("ag_frame", What::Inspection),
    ("co_code", What::Inspection),
    ("cr_frame", What::Inspection),
    ("extern_elementwise", What::Outside),
    ("f_back", What::Inspection),
    ("f_builtins", What::Inspection),
    ("f_code", What::Inspection),
    ("f_globals", What::Inspection),
    ("f_locals", What::Inspection),
    ("cpp_extension", What::Outside),
    ("CUDAGraph", What::Concurrency),
    ("gi_code", What::Inspection),
    ("hub", What::Outside),
    ("load_binary", What::Outside),
    ("gi_frame", What::Inspection),
    ("load_inline", What::Outside),
    ("load_library", What::Outside),
    ("mutable_data_ptr", What::Address),
    ("popen", What::Outside),
    ("record_stream", What::Concurrency),
    ("register_forward_hook", What::Concurrency),
    ("register_forward_pre_hook", What::Concurrency),
    ("register_full_backward_hook", What::Concurrency),
    ("register_hook", What::Concurrency),
    ("rmtree", What::Outside),
    ("share_memory_", What::Concurrency),
    ("tb_frame", What::Inspection),
    ("tofile", What::Outside),
    ("wait_event", What::Concurrency),
    ("wait_stream", What::Concurrency),
    ("write_bytes", What::Outside),
    ("write_text", What::Outside),
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

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    match node.kind() {
        "identifier" => name(screened, node, add),
        "attribute" => {
            let Some(attribute) = screened.named(node, "attribute") else { return };
            let what =
                attribute_is(attribute).filter(|what| *what != What::Address || !is_of_alignment(screened, node));
            if let Some(what) = what {
                add(what, screened.text(node));
            }
        }
        "function_definition" => {
            let name = screened.named(node, "name").unwrap_or_default();
            if is_dunder(name) && !METHODS.contains(&name) {
                add(What::Dynamic, &format!("def {name}"));
            }
        }
        _ => {}
    }
}

fn find(list: &[(&str, What)], name: &str) -> Option<What> {
    list.iter().find(|(other, _)| *other == name).map(|(_, what)| *what)
}

fn attribute_is(name: &str) -> Option<What> {
    if name == "data_ptr" {
        return Some(What::Address);
    }
    let held = || is_held(name);
    let dunder = || (is_dunder(name) && !HARMLESS.contains(&name)).then_some(What::Dynamic);
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
fn name(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
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
        "type" if argument_count(parent) > 1 => add(What::Dynamic, shown),
        "getattr" | "hasattr" | "setattr" => named_attribute(screened, node, name, add),
        _ if screened.scopes.is_local(node, name) || screened.scopes.is_of_file(name) => {}
        _ => {
            if let Some(what) = find(SHADOWED, name) {
                add(what, shown);
            } else if is_dunder(name) && !HARMLESS.contains(&name) {
                add(What::Dynamic, name);
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
fn named_attribute(screened: &Screened<'_>, node: Node<'_>, function: &str, add: &mut dyn FnMut(What, &str)) {
    let call = node.parent().filter(|parent| parent.kind() == "call" && field(*parent, "function") == Some(node));
    let args = call.and_then(|call| field(call, "arguments"));
    let (Some(call), Some(args)) = (call, args) else { return add(What::Dynamic, function) };
    let shown = screened.text(call);
    let (Some(object), Some(named)) = (args.named_child(0), args.named_child(1)) else {
        return add(What::Dynamic, shown);
    };
    let Some(attribute) = plain_string(screened, named) else { return add(What::Dynamic, shown) };
    let paths = screened.paths(object);
    let power = paths.iter().find_map(|path| power_of(&format!("{path}.{attribute}")));
    if let Some(what) = power.or_else(|| attribute_is(attribute)) {
        add(what, shown);
    }
    if function == "setattr" {
        let root = screened.text(object);
        let is_own = root != "self" && screened.scopes.is_own(node, root);
        match paths.is_empty() {
            false => add(What::Patch, shown),
            true if is_own => {}
            true => add(What::Keeps, shown),
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
