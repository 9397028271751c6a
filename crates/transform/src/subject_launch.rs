//! The launch of a subject's kernel, and its arguments.

use model::kernel::Launch;
use model::kernel::ast::{Arg, Expr, ExprKind};
use model::syntax::Span;

use super::launched::all_passed;
use super::subject::Subject;
use super::written::{bindings, grid_of, is_steady, tuple_of};

/// The only launch of the kernel in the file.
pub(super) fn only_launch<'a>(subject: &'a Subject<'a>) -> Option<&'a Launch> {
    let mut launches = subject.candidate.module.launches_of(&subject.kernel.name);
    launches.next().filter(|launch| launches.next().is_none() && !launch.has_error)
}

/// The arguments and the parameters that they are for, as far as that is certain.
pub(super) fn passed<'a>(subject: &'a Subject<'a>, launch: &'a Launch) -> Vec<(&'a str, &'a Arg)> {
    all_passed(subject.kernel, launch)
}

/// The parameter that gets exactly this argument.
pub(super) fn passed_as<'a>(subject: &'a Subject<'a>, launch: &'a Launch, expr: &Expr) -> Option<&'a str> {
    let slice = |span: Span| subject.candidate.text.get(span.start..span.end);
    let is_same = |arg: &Arg| is_steady(expr) && slice(arg.value.span) == slice(expr.span);
    passed(subject, launch).into_iter().find(|(_, arg)| is_same(arg)).map(|(param, _)| param)
}

/// The number of programs of a launch along an axis, as its grid has it, and the name by which the grid refers to the
/// kernel's constexprs.
pub(super) fn programs_along<'a>(
    subject: &'a Subject<'a>,
    launch: &'a Launch,
    axis: usize,
) -> Option<(&'a Expr, Option<&'a str>)> {
    let grid = grid_of(&subject.candidate.module, launch)?;
    let (_, parts, meta) = tuple_of(grid)?;
    Some((parts.get(axis)?, meta))
}

/// The parameters that certainly have the value of an expression in the grid: `n` or `meta["BLOCK"]`.
pub(super) fn given<'a>(
    subject: &'a Subject<'a>,
    launch: &'a Launch,
    meta: Option<&str>,
    expr: &'a Expr,
) -> Vec<&'a str> {
    if let ExprKind::Subscript { value, index } = &expr.kind
        && value.as_name().is_some_and(|name| Some(name) == meta)
    {
        let [Expr { kind: ExprKind::Str(name), .. }] = index.as_slice() else { return Vec::new() };
        return subject.kernel.param(name).map(|param| param.name.as_str()).into_iter().collect();
    }
    let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
    let Some(host) = launch.host.map(|host| &module.hosts[host]) else { return Vec::new() };
    let mut is_settled = is_steady(expr);
    // A name that is assigned again may have another value at the launch.
    expr.walk(&mut |expr| is_settled &= expr.as_name().is_none_or(|name| bindings(&host.body, name).len() <= 1));
    let slice = |expr: &Expr| &text[expr.span.start..expr.span.end];
    let passed = passed(subject, launch).into_iter();
    passed.filter(|(_, arg)| is_settled && slice(&arg.value) == slice(expr)).map(|(name, _)| name).collect()
}
