//! What outlives a call, and what is changed that belongs to others.

use tree_sitter::Node;

use model::syntax::{each_node, field};

use super::scopes::{parameter, scope_of};
use super::{Screened, What};

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
    "send",
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
        "identifier" | "attribute" if is_cache_itself(screened, node) => add(What::Keeps, screened.text(node)),
        "class_definition" => class(screened, node, add),
        "call" => call(screened, node, add),
        "assignment" => {
            if field(node, "right").is_some_and(|value| lives_on(screened, node) && makes(screened, value)) {
                add(What::Keeps, screened.text(node));
            }
            targets(screened, node, "left", add);
        }
        "augmented_assignment" | "for_statement" | "for_in_clause" => targets(screened, node, "left", add),
        "as_pattern" => targets(screened, node, "alias", add),
        "delete_statement" => {
            let mut cursor = node.walk();
            node.named_children(&mut cursor).for_each(|target| each_target(screened, target, add));
        }
        "default_parameter" | "typed_default_parameter"
            if field(node, "value").is_some_and(|value| makes(screened, value)) =>
        {
            add(What::Keeps, screened.text(node));
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
    if names.is_imported(name) {
        return Some(What::Patch);
    }
    if scopes.is_own(root, name) {
        let is_of_object = matches!(name, "self" | "cls") && !in_setting_up(screened, node);
        let is_kept = is_of_object || has_kept_default(screened, node, name) || marks_argument(screened, node, name);
        return is_kept.then_some(What::Keeps);
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

/// `x.last = y` of a parameter: the next call finds it there if it is given the same.
fn marks_argument(screened: &Screened<'_>, node: Node<'_>, name: &str) -> bool {
    let is_plain = field(node, "object").is_some_and(|object| object.kind() == "identifier");
    let attribute = screened.named(node, "attribute").unwrap_or_default();
    let is_usual = matches!(name, "ctx" | "self" | "cls" | "config" | "meta" | "nargs")
        || matches!(attribute, "grad" | "requires_grad" | "data" | "block_shape")
        || CHANGING.contains(&attribute);
    let Some(parameters) = scope_of(node).and_then(|scope| field(scope, "parameters")) else { return false };
    let mut cursor = parameters.walk();
    let is_parameter = parameters
        .named_children(&mut cursor)
        .any(|one| parameter(one).is_some_and(|parameter| screened.text(parameter) == name));
    is_plain && !is_usual && is_parameter
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

/// `functools.lru_cache` where it is no decorator.
fn is_cache_itself(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let caches = ["functools.cache", "functools.lru_cache", "functools.cached_property"];
    let parent = node.parent();
    let around = parent.filter(|parent| parent.kind() == "call").and_then(|call| call.parent()).or(parent);
    let is = |node: Option<Node<'_>>, kinds: &[&str]| node.is_some_and(|node| kinds.contains(&node.kind()));
    let is_elsewhere = is(parent, &["dotted_name", "aliased_import", "attribute"]) || is(around, &["decorator"]);
    !is_elsewhere && screened.paths(node).iter().any(|path| caches.contains(&path.as_str()))
}

fn decorator(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    let Some(mut value) = node.named_child(0) else { return };
    if value.kind() == "call" {
        let Some(function) = field(value, "function") else { return };
        value = function;
    }
    let named = |path: &str| path.contains("cache");
    let is_cache = named(screened.text(value)) || screened.paths(value).iter().any(|path| named(path));
    let function = node.parent().and_then(|parent| field(parent, "definition"));
    if is_cache && !function.is_some_and(|function| keeps_numbers(screened, function)) {
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
        let paths = function.map(|function| screened.paths(function)).unwrap_or_default();
        found |= paths.iter().filter_map(|path| path.strip_prefix("torch.")).any(|name| MAKING.contains(&name));
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
    // What a call returns may be one, too.
    let is_tensor = |base: Node<'_>| {
        let paths = screened.paths(base);
        base.kind() == "call" || paths.iter().any(|path| path == "torch.Tensor" || path.starts_with("torch.cuda."))
    };
    if bases.named_children(&mut cursor).any(is_tensor) {
        add(
            What::Patch,
            &format!("class {}{}", screened.named(node, "name").unwrap_or_default(), screened.text(bases)),
        );
    }
}
