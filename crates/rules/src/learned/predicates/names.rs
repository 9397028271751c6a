//! Predicates about the meaning of names.

use tree_sitter::Node;

use model::analysis::types::is_of_python;
use model::api::{Lookup, VersionCertainty};
use model::kernel::GlobalBinding;
use model::kernel::ast::{Expr, ExprKind};

use super::predicate::{Predicate, PredicateInput, Words};
use crate::learned::kernel_view::{KernelView, plain};

pub(super) static TABLE: &[Predicate] = &[
    Predicate::new("api", (1, 1), Words::Some, api),
    Predicate::new("unknown-member", (1, 1), Words::None, unknown_member),
    Predicate::new("undefined", (1, 1), Words::None, undefined),
    Predicate::new("python-builtin", (1, 1), Words::None, python_builtin),
    Predicate::new("parameter", (1, 1), Words::None, parameter),
    Predicate::new("plain-parameter", (1, 1), Words::None, plain_parameter),
    Predicate::new("local", (1, 1), Words::None, local),
    Predicate::new("global", (1, 1), Words::Of(GLOBALS), global),
    Predicate::new("plain-global", (1, 1), Words::None, plain_global),
];

const GLOBALS: &[&str] = &["assigned", "function", "class", "import", "kernel"];

/// `(#api? @f "tl.arange" "tl.tensor.sum" "torch.exp" "builtins.sum")`: the expression refers to one of these, under
/// whatever name the file imports it. `tl` is `triton.language`; `tl.tensor.…` are methods of run-time values.
fn api(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let path = subject.path(argument.nodes[0])?;
    Some(argument.words.iter().any(|word| full(word) == path))
}

/// A full name, where a pattern may write `tl` for `triton.language`.
pub(in crate::learned) fn full(word: &str) -> String {
    match word.strip_prefix("tl.") {
        Some(rest) => format!("triton.language.{rest}"),
        None => word.to_owned(),
    }
}

/// `(#unknown-member? @attribute)`: the module of Triton has no such member in this release. The capture is `tl.name`,
/// or the name in it.
fn unknown_member(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let node = whole_attribute(argument.nodes[0]);
    let path = subject.path(node)?;
    if !path.starts_with("triton.") || path.starts_with("triton.language.tensor.") {
        return None;
    }
    match subject.target().lookup(&path) {
        Lookup::Found(_) => Some(false),
        Lookup::Undescribed => None,
        Lookup::Absent if subject.target().certainty == VersionCertainty::Outside => None,
        Lookup::Absent => {
            // It depends on the rest of the file, which may set the attribute, or check for it.
            subject.context.ask_everything();
            let (text, name) = (subject.context.source.text(), path.rsplit('.').next()?);
            let is_asked_for = ["hasattr(", "setattr(", "getattr("].iter().any(|call| text.contains(call));
            let is_given = text.match_indices(subject.text(node)).any(|(at, written)| {
                let rest = text[at + written.len()..].trim_start();
                rest.starts_with('=') && !rest.starts_with("==")
            });
            let is_quoted = text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"));
            (!is_asked_for && !is_given && !is_quoted).then_some(true)
        }
    }
}

/// The attribute whose name the node is.
fn whole_attribute(node: Node<'_>) -> Node<'_> {
    let parent = node.parent().filter(|parent| parent.kind() == "attribute" && node.end_byte() == parent.end_byte());
    parent.unwrap_or(node)
}

/// `(#undefined? @name)`: nothing in the file binds the name, and it is no builtin of Python.
fn undefined(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = read_name(subject, argument.nodes[0])?;
    if is_bound(subject, name) || is_of_python(name) {
        return Some(false);
    }
    // Exceptions, constants and attributes that Python itself defines.
    let may_be_python = name.starts_with("__")
        || name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.bytes().all(|byte| !byte.is_ascii_lowercase());
    (!subject.module().has_star_import && !may_be_python).then_some(true)
}

/// The name that is read; a name after a dot or before the `=` of an argument refers to nothing on its own.
fn read_name<'a>(subject: &KernelView<'a>, node: Node<'_>) -> Option<&'a str> {
    subject.expression(node)?;
    subject.name(node)
}

fn is_bound(subject: &KernelView<'_>, name: &str) -> bool {
    let module = subject.module();
    subject.kernel.locals.contains(name) || module.bindings.contains_key(name) || module.uncertain.contains(name)
}

/// `(#python-builtin? @name)`: a builtin function of Python such as `sum`, which nothing in the file hides.
fn python_builtin(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = read_name(subject, argument.nodes[0])?;
    if is_bound(subject, name) || !is_of_python(name) {
        return Some(false);
    }
    (!subject.module().has_star_import).then_some(true)
}

/// `(#parameter? @name)`: a parameter of the kernel.
fn parameter(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    Some(subject.kernel.param(subject.name(argument.nodes[0])?).is_some())
}

/// `(#plain-parameter? @name)`: a parameter without annotation that is never assigned, of a kernel that no other kernel
/// calls. Its argument may still be 1 or `None`, which Triton treats as compile-time values.
fn plain_parameter(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = subject.name(argument.nodes[0])?;
    let Some(param) = subject.kernel.param(name) else { return Some(false) };
    if param.constexpr {
        return Some(false);
    }
    let is_helper = subject.module().called_in_kernels().contains(&subject.kernel.name);
    let is_plain = param.annotation.is_none() && param.default.is_none() && !param.variadic;
    (is_plain && !is_helper && !subject.is_assigned(name)).then_some(true)
}

/// `(#local? @name)`: the kernel binds the name, by a parameter or otherwise.
fn local(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    Some(subject.kernel.locals.contains(subject.name(argument.nodes[0])?))
}

/// `(#global? @name "function")`: the top level binds the name once, in this way.
fn global(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = subject.name(plain(argument.nodes[0]))?;
    let module = subject.module();
    if subject.kernel.locals.contains(name) {
        return Some(false);
    }
    let bound = if module.kernel(name).is_some() {
        "kernel"
    } else {
        match module.bindings.get(name) {
            Some(GlobalBinding::Assigned) => "assigned",
            Some(GlobalBinding::Function) => "function",
            Some(GlobalBinding::Class) => "class",
            Some(GlobalBinding::Import(_)) => "import",
            Some(GlobalBinding::Other) => return None,
            None if module.has_star_import => return None,
            None => return Some(false),
        }
    };
    (!module.uncertain.contains(name)).then(|| argument.words.iter().any(|word| word == bound))
}

/// `(#plain-global? @name)`: the top level binds the name exactly once, to a number, a string or a tuple of such, and
/// the body reads it.
fn plain_global(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = read_name(subject, argument.nodes[0])?;
    let module = subject.module();
    let body = subject.kernel.body.first()?.span.start;
    if subject.kernel.locals.contains(name) || argument.nodes[0].start_byte() < body {
        return Some(false);
    }
    let mut of_name = module.globals.iter().filter(|global| global.name == name);
    let (Some(global), None) = (of_name.next(), of_name.next()) else { return None };
    let is_single =
        matches!(module.bindings.get(name), Some(GlobalBinding::Assigned)) && !module.uncertain.contains(name);
    (is_single && !global.is_constexpr && is_plain(&global.value)).then_some(true)
}

fn is_plain(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Bool(_) => true,
        ExprKind::Unary { operand, .. } => is_plain(operand),
        ExprKind::Tuple(items) => items.iter().all(is_plain),
        _ => false,
    }
}
