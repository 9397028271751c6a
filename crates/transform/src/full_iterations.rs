//! Splits off the iterations of a loop that need no masks into a loop of their own.

mod masks;
mod proof;

use base::rng::Rng;
use model::kernel::ast::{Call, Expr, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::candidate::Change;
use super::lines::line_start;
use super::names::{bound_in, in_expr, uses};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};

use masks::Masks;
use proof::Rounds;

/// Splits a loop over tiles in two: the iterations in which the whole tile is below the sizes and on one side of a
/// diagonal, without masks for that, and the remaining iterations as they were. In attention, masks take as much time
/// as the work that they guard.
pub(super) struct WholeRounds;

impl Skill for WholeRounds {
    fn name(&self) -> &'static str {
        "whole_rounds"
    }

    fn about(&self) -> &'static str {
        "The iterations of a loop that need no masks, in a separate loop: tiles that are below the size, and, in causal attention, below the diagonal."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        // In kernels without a product, masks take less time than a second loop.
        if subject.kernel.has_error || !subject.has_product() {
            return Vec::new();
        }
        let (mut turns, mut count) = (Vec::new(), 0);
        walk_statements(&subject.kernel.body, &mut |stmt| {
            let StmtKind::For { target, iter, body, orelse } = &stmt.kind else { return };
            count += 1;
            if orelse.is_empty()
                && let Some(edits) = split(subject, stmt, (target, iter, body))
            {
                let changes = vec![Change::Structure(format!("full iterations of loop {count} without masks"))];
                turns.push(Proposal { kind: "whole_rounds".to_owned(), edits, changes });
            }
        });
        turns
    }
}

/// The two loops: one for the whole tiles, and one for the rest.
fn split(subject: &Subject<'_>, stmt: &Stmt, (target, iter, body): (&Expr, &Expr, &[Stmt])) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let indent = indent_of(text, stmt.span.start)?;
    let variable = target.as_name()?;
    let call = iter.as_call()?;
    let [start, stop, step] = bounds(subject, call)?;
    let bound = bound_in(body)?;
    let is_steady = |expr: &Expr| in_expr(expr).iter().all(|name| *name != variable && !bound.contains(name));
    // Further iterations would be skipped, or would run with another value of the variable.
    let is_used_behind = uses(&subject.kernel.body, variable) != uses(body, variable) + 1 || bound.contains(variable);
    if !is_steady(stop) || is_used_behind || leaves(body) {
        return None;
    }
    let rounds = Rounds::new(subject, variable, step, body, &bound)?;
    let Masks { limits, mut edits, .. } = Masks::of(&rounds)?;
    let slice = |expr: &Expr| &text[expr.span.start..expr.span.end];
    let [minimum, maximum] =
        ["minimum", "maximum"].map(|name| subject.candidate.module.language_name(subject.kernel, name));
    let (minimum, maximum, whole) = (minimum?, maximum?, fresh(text, "whole"));
    let mut said: Vec<(Option<&str>, &str)> = vec![(None, slice(stop))];
    let mut prelude = format!("{indent}{whole} = {}\n", slice(stop));
    for limit in &limits {
        let guard = limit.guard.map(slice);
        if said.contains(&(None, &limit.text)) || said.contains(&(guard, &limit.text)) {
            continue;
        }
        said.push((guard, &limit.text));
        let line = format!("{whole} = {minimum}({whole}, {})", limit.text);
        prelude += &match guard {
            Some(guard) => format!("{indent}if {guard}:\n{indent}    {line}\n"),
            None => format!("{indent}{line}\n"),
        };
    }
    let step = slice(step);
    prelude += &format!("{indent}{whole} = {maximum}({whole}, 0) // {step} * {step}\n");
    let from = line_start(text, stmt.span.start);
    edits.push(Edit { span: stop.span, text: whole.clone() });
    edits.sort_by_key(|edit| edit.span.start);
    let moved = |edit: Edit| Edit { span: Span::new(edit.span.start - from, edit.span.end - from), text: edit.text };
    let edits: Vec<Edit> = edits.into_iter().map(moved).collect();
    let first = apply_edits(&text[from..stmt.span.end], &edits);
    Some(vec![
        Edit { span: Span::new(from, from), text: format!("{prelude}{first}\n") },
        Edit { span: start.span, text: whole },
    ])
}

/// `range(0, stop, STEP)`, where the step is a scalar of the kernel.
fn bounds<'a>(subject: &Subject<'_>, call: &'a Call) -> Option<[&'a Expr; 3]> {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let is_language = module.language_member(kernel, &call.func).as_deref() == Some("range");
    let is_range = is_language || call.func.as_name() == Some("range") && !kernel.locals.contains("range");
    let [start, stop, step, options @ ..] = call.args.as_slice() else { return None };
    let is_plain = [start, stop, step].iter().all(|arg| arg.keyword.is_none())
        && options.iter().all(|arg| arg.keyword.is_some())
        && !call.has_star();
    let is_number = step.value.as_name().and_then(|name| kernel.param(name)).is_some_and(|param| param.constexpr);
    let is_meant = is_range && is_plain && is_number && start.value.as_int() == Some(0);
    is_meant.then_some([&start.value, &stop.value, &step.value])
}

/// Whether an iteration may end early.
fn leaves(body: &[Stmt]) -> bool {
    let mut leaves = false;
    walk_statements(body, &mut |stmt| {
        leaves |= matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Return(_));
    });
    leaves
}

#[cfg(test)]
mod tests;
