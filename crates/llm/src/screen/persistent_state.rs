//! Checks for state that outlives a call, and for changes of objects that the candidate does not own.

use tree_sitter::Node;

use model::syntax::{each_node, field};

use super::objection::ObjectionKind;
use super::scopes::{parameter, scope_of};
use super::screened::Screened;

/// Methods that change their object.
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
/// Functions of torch that create a tensor.
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
/// Types whose equal values are interchangeable for a kernel.
const PLAIN: &[&str] = &["int", "bool", "str", "float", "torch.device", "torch.dtype"];
/// Methods that initialize an object.
const SETTING_UP: &[&str] = &["__init__", "__post_init__", "reset_parameters", "setup_context"];

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    match node.kind() {
        "global_statement" | "nonlocal_statement" => add(ObjectionKind::Keeps, screened.text(node)),
        "decorator" => decorator(screened, node, add),
        "identifier" | "attribute" if is_cache_itself(screened, node) => add(ObjectionKind::Keeps, screened.text(node)),
        "class_definition" => class(screened, node, add),
        "call" => call(screened, node, add),
        "assignment" => {
            if field(node, "right").is_some_and(|value| lives_on(screened, node) && makes(screened, value)) {
                add(ObjectionKind::Keeps, screened.text(node));
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
            add(ObjectionKind::Keeps, screened.text(node));
        }
        _ => {}
    }
}

fn targets(screened: &Screened<'_>, node: Node<'_>, name: &str, add: &mut dyn FnMut(ObjectionKind, &str)) {
    if let Some(target) = field(node, name) {
        each_target(screened, target, add);
    }
}

/// Checks the targets of an assignment, including those inside tuples.
fn each_target(screened: &Screened<'_>, target: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
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

/// The objection to a change of an attribute or an element, if there is one.
fn changed(screened: &Screened<'_>, node: Node<'_>) -> Option<ObjectionKind> {
    let root = root_of(node)?;
    let (name, scope) = (screened.text(root), scope_of(node));
    let (names, scopes) = (&screened.names, &screened.scopes);
    if names.is_imported(name) {
        return Some(ObjectionKind::Patch);
    }
    if scopes.is_own(root, name) {
        let is_of_object = matches!(name, "self" | "cls") && !in_setting_up(screened, node);
        let is_kept = is_of_object || has_kept_default(screened, node, name) || marks_argument(screened, node, name);
        return is_kept.then_some(ObjectionKind::Keeps);
    }
    // Code outside of functions does not run during a measurement.
    scope?;
    Some(if scopes.is_local(root, name) || scopes.is_of_file(name) {
        ObjectionKind::Keeps
    } else {
        ObjectionKind::Patch
    })
}

/// The name at the beginning of `a.b[c].d`.
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

/// Whether `x.last = y` changes a parameter: the next call finds the value if it gets the same object.
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

/// Whether a parameter has a mutable default, which is the same object in every call.
fn has_kept_default(screened: &Screened<'_>, node: Node<'_>, name: &str) -> bool {
    let Some(parameters) = scope_of(node).and_then(|scope| field(scope, "parameters")) else { return false };
    let mut cursor = parameters.walk();
    parameters.named_children(&mut cursor).any(|parameter| {
        let is_meant = screened.named(parameter, "name") == Some(name);
        let value = field(parameter, "value").filter(|_| is_meant);
        value.is_some_and(|value| matches!(value.kind(), "dictionary" | "list" | "set" | "call"))
    })
}

/// Checks calls that change an object, such as `CACHE.append(x)`.
fn call(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
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

/// Whether `functools.lru_cache` is used other than as a decorator.
fn is_cache_itself(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let caches = ["functools.cache", "functools.lru_cache", "functools.cached_property"];
    let parent = node.parent();
    let around = parent.filter(|parent| parent.kind() == "call").and_then(|call| call.parent()).or(parent);
    let is = |node: Option<Node<'_>>, kinds: &[&str]| node.is_some_and(|node| kinds.contains(&node.kind()));
    let is_elsewhere = is(parent, &["dotted_name", "aliased_import", "attribute"]) || is(around, &["decorator"]);
    !is_elsewhere && screened.paths(node).iter().any(|path| caches.contains(&path.as_str()))
}

fn decorator(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
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
        add(ObjectionKind::Keeps, &format!("{} of {}", screened.text(node), name.unwrap_or("a function")));
    }
}

/// Whether a function only computes facts of the device or numbers: its arguments are plain and it creates no tensor.
fn keeps_numbers(screened: &Screened<'_>, function: Node<'_>) -> bool {
    let Some((parameters, body)) = field(function, "parameters").zip(field(function, "body")) else { return false };
    let mut cursor = parameters.walk();
    let is_plain = |parameter: Node<'_>| screened.named(parameter, "type").is_some_and(|name| PLAIN.contains(&name));
    parameters.named_children(&mut cursor).all(is_plain) && !makes(screened, body)
}

/// Whether torch creates a tensor inside a node.
fn makes(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let mut found = false;
    each_node(node, &mut |node| {
        let function = (node.kind() == "call").then(|| field(node, "function")).flatten();
        let paths = function.map(|function| screened.paths(function)).unwrap_or_default();
        found |= paths.iter().filter_map(|path| path.strip_prefix("torch.")).any(|name| MAKING.contains(&name));
    });
    found
}

/// Whether an assigned name lives as long as the module, and not only when the file is run as a program.
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

/// Checks for classes of tensors that compute when they are used.
fn class(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    let Some(bases) = field(node, "superclasses") else { return };
    let mut cursor = bases.walk();
    // The result of a call may also be such a class.
    let is_tensor = |base: Node<'_>| {
        let paths = screened.paths(base);
        base.kind() == "call" || paths.iter().any(|path| path == "torch.Tensor" || path.starts_with("torch.cuda."))
    };
    if bases.named_children(&mut cursor).any(is_tensor) {
        add(
            ObjectionKind::Patch,
            &format!("class {}{}", screened.named(node, "name").unwrap_or_default(), screened.text(bases)),
        );
    }
}
