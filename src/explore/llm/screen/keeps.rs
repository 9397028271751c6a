//! What outlives a call, and what is changed that belongs to others.

use tree_sitter::Node;

use super::scopes::scope_of;
use super::{Screened, What};
use crate::syntax::{each_node, field};

/// Methods that change what they are called on.
const CHANGING: &[&str] = &[
    "add",
    "append",
    "appendleft",
    "clear",
    "copy_",
    "extend",
    "fill_",
    "insert",
    "pop",
    "popitem",
    "resize_",
    "set_",
    "setdefault",
    "update",
    "zero_",
];
/// Functions of torch that make a tensor.
const MAKING: &[&str] = &[
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "tensor",
    "zeros",
    "zeros_like",
];
/// Types of which two that are equal are the same to a kernel.
const PLAIN: &[&str] = &["int", "bool", "str", "float", "torch.device", "torch.dtype"];
/// Methods that set an object up.
const SETTING_UP: &[&str] = &["__init__", "__post_init__", "reset_parameters", "setup_context"];

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    match node.kind() {
        "global_statement" | "nonlocal_statement" => add(What::Keeps, screened.text(node)),
        "decorator" => decorator(screened, node, add),
        "class_definition" => class(screened, node, add),
        "call" => call(screened, node, add),
        "assignment" => {
            if field(node, "right").is_some_and(|value| lives_on(screened, node) && makes(screened, value)) {
                add(What::Keeps, screened.text(node));
            }
            targets(screened, node, "left", add);
        }
        "augmented_assignment" | "for_statement" => targets(screened, node, "left", add),
        "as_pattern" => targets(screened, node, "alias", add),
        "delete_statement" => {
            let mut cursor = node.walk();
            node.named_children(&mut cursor).for_each(|target| each_target(screened, target, add));
        }
        "default_parameter" | "typed_default_parameter" => {
            if field(node, "value").is_some_and(|value| makes(screened, value)) {
                add(What::Keeps, screened.text(node));
            }
        }
        _ => {}
    }
}

fn targets(screened: &Screened<'_>, node: Node<'_>, name: &str, add: &mut dyn FnMut(What, &str)) {
    if let Some(target) = field(node, name) {
        each_target(screened, target, add);
    }
}

/// What is changed of a target, also in the middle of a tuple.
fn each_target(screened: &Screened<'_>, target: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    let mut until = 0;
    each_node(target, &mut |node| {
        if matches!(node.kind(), "attribute" | "subscript") && node.start_byte() >= until {
            until = node.end_byte();
            if let Some(what) = changed(screened, node) {
                add(what, screened.text(node));
            }
        }
    });
}

/// What it means that an attribute or an element is changed.
fn changed(screened: &Screened<'_>, node: Node<'_>) -> Option<What> {
    let root = root_of(node)?;
    let (name, scope) = (screened.text(root), scope_of(node));
    let (names, scopes) = (&screened.names, &screened.scopes);
    if scopes.is_own(root, name) {
        let is_of_object = matches!(name, "self" | "cls") && !in_setting_up(screened, node);
        return (is_of_object || has_kept_default(screened, node, name)).then_some(What::Keeps);
    }
    if names.is_imported(name) {
        return Some(What::Patch);
    }
    // Outside of functions nothing is done while it is measured.
    scope?;
    Some(if scopes.is_local(root, name) || scopes.is_of_file(name) { What::Keeps } else { What::Patch })
}

/// The name that `a.b[c].d` begins with.
fn root_of(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node;
    loop {
        at = match at.kind() {
            "identifier" => return Some(at),
            "attribute" => field(at, "object")?,
            "subscript" => field(at, "value")?,
            "call" => field(at, "function")?,
            "parenthesized_expression" => at.named_child(0)?,
            _ => return None,
        };
    }
}

fn in_setting_up(screened: &Screened<'_>, node: Node<'_>) -> bool {
    scope_of(node).and_then(|scope| screened.named(scope, "name")).is_some_and(|name| SETTING_UP.contains(&name))
}

/// Whether a parameter has a default that is the same object in every call, and can be changed.
fn has_kept_default(screened: &Screened<'_>, node: Node<'_>, name: &str) -> bool {
    let Some(parameters) = scope_of(node).and_then(|scope| field(scope, "parameters")) else { return false };
    let mut cursor = parameters.walk();
    parameters.named_children(&mut cursor).any(|parameter| {
        let is_meant = screened.named(parameter, "name") == Some(name);
        let value = field(parameter, "value").filter(|_| is_meant);
        value.is_some_and(|value| matches!(value.kind(), "dictionary" | "list" | "set" | "call"))
    })
}

/// `CACHE.append(x)`
fn call(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    let Some(function) = field(node, "function") else { return };
    if function.kind() != "attribute"
        || !screened.named(function, "attribute").is_some_and(|name| CHANGING.contains(&name))
    {
        return;
    }
    let Some(root) = root_of(function) else { return };
    if !screened.names.is_imported(screened.text(root))
        && let Some(what) = changed(screened, function)
    {
        add(what, screened.text(function));
    }
}

fn decorator(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    let Some(mut value) = node.named_child(0) else { return };
    if value.kind() == "call" {
        let Some(function) = field(value, "function") else { return };
        value = function;
    }
    let path = screened.path(value).unwrap_or_else(|| screened.text(value).to_owned());
    let function = node.parent().and_then(|parent| field(parent, "definition"));
    if path.contains("cache") && !function.is_some_and(|function| keeps_numbers(screened, function)) {
        let name = function.and_then(|function| screened.named(function, "name"));
        add(What::Keeps, &format!("{} of {}", screened.text(node), name.unwrap_or("a function")));
    }
}

/// Whether a function is asked for facts of the device or of numbers: what it is given is plain, and it makes no tensor.
fn keeps_numbers(screened: &Screened<'_>, function: Node<'_>) -> bool {
    let Some((parameters, body)) = field(function, "parameters").zip(field(function, "body")) else { return false };
    let mut cursor = parameters.walk();
    let is_plain = |parameter: Node<'_>| screened.named(parameter, "type").is_some_and(|name| PLAIN.contains(&name));
    parameters.named_children(&mut cursor).all(is_plain) && !makes(screened, body)
}

/// Whether torch is asked for a tensor somewhere in there.
fn makes(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let mut found = false;
    each_node(node, &mut |node| {
        let function = (node.kind() == "call").then(|| field(node, "function")).flatten();
        let path = function.and_then(|function| screened.path(function));
        found |=
            path.as_deref().and_then(|path| path.strip_prefix("torch.")).is_some_and(|name| MAKING.contains(&name));
    });
    found
}

/// Whether what is assigned here is there as long as the file is, and not only where it is run as a program.
fn lives_on(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(around) = at {
        let is_program = |around| screened.named(around, "condition").is_some_and(|test| test.contains("__name__"));
        if matches!(around.kind(), "function_definition" | "lambda")
            || (around.kind() == "if_statement" && is_program(around))
        {
            return false;
        }
        at = around.parent();
    }
    true
}

/// A tensor that computes when it is asked.
fn class(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    let Some(bases) = field(node, "superclasses") else { return };
    let mut cursor = bases.walk();
    let is_tensor = |base: Node<'_>| {
        screened.path(base).is_some_and(|path| path == "torch.Tensor" || path.starts_with("torch.cuda."))
    };
    if bases.named_children(&mut cursor).any(is_tensor) {
        add(
            What::Patch,
            &format!("class {}{}", screened.named(node, "name").unwrap_or_default(), screened.text(bases)),
        );
    }
}
