//! The arguments that a launch passes for a kernel's parameters.

use model::kernel::ast::{Arg, Expr, ExprKind, Stmt, has_star, walk_statements};
use model::kernel::{HostFunction, Kernel, Launch, Module};
use model::syntax::Span;
use protocol::{ArgumentValue, Workload};

use super::written::only_value;

/// The argument of a call for one of the function's parameters.
pub(super) fn called_with<'a>(host: &HostFunction, call: &'a Workload, name: &str) -> Option<&'a ArgumentValue> {
    let by_name = call.kwargs.iter().find(|(given, _)| given == name).map(|(_, value)| value);
    by_name.or_else(|| call.args.get(host.params.iter().position(|param| param == name)?))
}

/// The argument of a parameter, if it is certain.
pub(super) fn passed_for<'a>(kernel: &'a Kernel, launch: &'a Launch, name: &str) -> Option<&'a Expr> {
    all_passed(kernel, launch).into_iter().find(|(param, _)| *param == name).map(|(_, arg)| &arg.value)
}

/// The arguments and the parameters of a kernel that they are for, as far as that is certain.
pub(super) fn all_passed<'a>(kernel: &'a Kernel, launch: &'a Launch) -> Vec<(&'a str, &'a Arg)> {
    let (params, args) = (&kernel.params, &launch.args);
    let is_plain = |arg: &&Arg| arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_));
    let named: Vec<(&str, &Arg)> =
        args.iter().filter_map(|arg| Some((arg.keyword.as_ref()?.0.as_str(), arg))).collect();
    let mut found: Vec<(&str, &Arg)> =
        params.iter().zip(args.iter().take_while(is_plain)).map(|(param, arg)| (param.name.as_str(), arg)).collect();
    let is_full = params.iter().all(|param| param.default.is_none()) && kernel.autotune.is_none();
    if has_star(args) && is_full && kernel.heuristics.as_ref().is_some_and(Vec::is_empty) {
        // All parameters get an argument, so the last positional argument after `*strides` is for the last parameter
        // without a keyword.
        let unnamed = params.iter().rev().filter(|param| named.iter().all(|(name, _)| *name != param.name));
        let last = args.iter().rev().skip_while(|arg| arg.keyword.is_some()).take_while(is_plain);
        found.extend(unnamed.zip(last).map(|(param, arg)| (param.name.as_str(), arg)));
    }
    found.extend(named.into_iter().filter(|(name, _)| kernel.param(name).is_some()));
    found
}

/// The entries of the dictionaries that a launch unpacks, `**config`; `None` where one of them is not written out in
/// the function.
pub(super) fn unpacked<'a>(module: &'a Module, launch: &'a Launch) -> Option<Vec<(&'a str, &'a Expr)>> {
    let mut all = Vec::new();
    for arg in &launch.args {
        let ExprKind::Starred(inner) = &arg.value.kind else { continue };
        // A single star unpacks positional arguments.
        if inner.span.start <= arg.value.span.start + 1 {
            continue;
        }
        let dictionary = match inner.as_name() {
            Some(name) => only_value(&module.hosts[launch.host?].body, name)?,
            None => inner,
        };
        all.extend(items(dictionary)?);
    }
    Some(all)
}

/// The entries of `{"BLOCK": 64}` and `dict(BLOCK=64)`.
fn items(dictionary: &Expr) -> Option<Vec<(&str, &Expr)>> {
    match &dictionary.kind {
        ExprKind::Dict { items, open: false } => items
            .iter()
            .map(|(key, value)| match &key.kind {
                ExprKind::Str(name) => Some((name.as_str(), value)),
                _ => None,
            })
            .collect(),
        ExprKind::Call(call) if call.func.as_name() == Some("dict") => {
            call.args.iter().map(|arg| Some((arg.keyword.as_ref()?.0.as_str(), &arg.value))).collect()
        }
        _ => None,
    }
}

/// The innermost statement that contains a part of the text and no other statements.
pub(super) fn innermost(host: &HostFunction, span: Span) -> Option<&Stmt> {
    let mut found = None;
    walk_statements(&host.body, &mut |stmt| {
        let holds = stmt.span.start <= span.start && span.end <= stmt.span.end;
        if holds && stmt.bodies().is_empty() {
            found = Some(stmt);
        }
    });
    found
}
