//! Predicates about the arguments of calls.

use tree_sitter::Node;

use model::api::{Lookup, MemberKind, MemberParameter};
use model::kernel::ast::{Arg, Call, ExprKind};
use model::syntax::field;

use super::predicate::{Predicate, PredicateInput, Words};
use crate::learned::kernel_view::{KernelView, around, plain};

pub(super) static TABLE: &[Predicate] = &[
    Predicate::new("unknown-keyword", (1, 2), Words::None, unknown_keyword),
    Predicate::new("has-keyword", (1, 1), Words::Some, has_keyword),
    Predicate::new("argument-count", (1, 1), Words::Some, argument_count),
    Predicate::new("too-many-arguments", (1, 1), Words::None, too_many_arguments),
    Predicate::new("missing-argument", (1, 1), Words::None, missing_argument),
];

/// `(#unknown-keyword? @name)`: the called function has no parameter of this name. The capture is the name in
/// `name=value`; a second one may be the call.
fn unknown_keyword(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let name = argument.nodes[0];
    let call = around(name, "call")?;
    if argument.nodes.get(1).is_some_and(|other| *other != call && field(call, "function") != Some(*other)) {
        return None;
    }
    let params = parameters(subject, call)?;
    // Parameters for the compiler's own use are in no table.
    let written = subject.text(name);
    let may_be_inner = written.starts_with('_') || params.iter().any(|param| param.starts_with("**"));
    (!may_be_inner).then(|| !params.iter().any(|param| param == written))
}

/// The parameters of the called function, with their stars; for a method of a value, without the value itself.
fn parameters(subject: &KernelView<'_>, call: Node<'_>) -> Option<Vec<String>> {
    let function = field(call, "function")?;
    if let Some(helper) = subject
        .name(function)
        .filter(|name| !subject.kernel.locals.contains(*name))
        .and_then(|name| subject.module().kernel(name))
    {
        let star = |param: &model::kernel::Param| {
            let text = subject.context.source.slice(param.span);
            text.starts_with('*').then(|| text.split(':').next().unwrap_or(text).to_owned())
        };
        return Some(helper.params.iter().map(|param| star(param).unwrap_or_else(|| param.name.clone())).collect());
    }
    let path = subject.path(function)?;
    let Lookup::Found(member) = subject.target().lookup(&path) else { return None };
    let is_described = matches!(member.kind, MemberKind::Builtin | MemberKind::Jit);
    is_described.then(|| member.params.iter().map(|param| param.name.clone()).collect())
}

fn call_of<'a>(subject: &KernelView<'a>, node: Node<'_>) -> Option<&'a Call> {
    subject.expression(plain(node))?.as_call()
}

/// The arguments of a call, unless `*` or `**` hides some.
fn arguments<'a>(subject: &KernelView<'a>, node: Node<'_>) -> Option<&'a [Arg]> {
    let args = &call_of(subject, node)?.args;
    let is_open = args.iter().any(|arg| matches!(arg.value.kind, ExprKind::Starred(_)));
    (!is_open).then_some(args.as_slice())
}

/// `(#has-keyword? @call "mask" …)`: the call has one of these keyword arguments.
fn has_keyword(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let args = arguments(subject, argument.nodes[0])?;
    let has = |word: &String| args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == word));
    Some(argument.words.iter().any(has))
}

/// `(#argument-count? @call "2" "3")`: its number of arguments, positional and keyword, is one of these.
fn argument_count(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let count = arguments(subject, argument.nodes[0])?.len();
    Some(argument.words.iter().any(|word| word.parse() == Ok(count)))
}

/// `(#too-many-arguments? @call)`: the call has more positional arguments than the function takes.
fn too_many_arguments(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let args = arguments(subject, argument.nodes[0])?;
    let params = parameters(subject, argument.nodes[0])?;
    let is_open = params.iter().any(|param| param.starts_with('*') && !param.starts_with("**") && param.len() > 1);
    let taken = params.iter().take_while(|param| !param.starts_with('*')).count();
    let given = args.iter().filter(|arg| arg.keyword.is_none()).count();
    (!is_open).then_some(given > taken)
}

/// `(#missing-argument? @call)`: the call of a Triton function lacks an argument without a default.
fn missing_argument(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let args = arguments(subject, argument.nodes[0])?;
    let path = subject.path(field(argument.nodes[0], "function")?)?;
    // The value itself is not an argument of its method, and the tables contain both forms.
    if path.starts_with("triton.language.tensor.") {
        return None;
    }
    let Lookup::Found(member) = subject.target().lookup(&path) else { return None };
    if !matches!(member.kind, MemberKind::Builtin | MemberKind::Jit) {
        return None;
    }
    let by_position = args.iter().filter(|arg| arg.keyword.is_none()).count();
    let is_missing = |(at, param): (usize, &MemberParameter)| {
        let by_name = args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| *name == param.name));
        param.default.is_none() && !param.name.starts_with('*') && at >= by_position && !by_name
    };
    Some(member.params.iter().enumerate().any(is_missing))
}
