//! Sums in registers what the iterations of a loop add atomically to one address.

use base::rng::Rng;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::shape::Dim;
use model::analysis::types::{AbstractValue, KernelAnalysis};
use model::kernel::ast::{Call, Expr, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use protocol::ArgumentValue as Given;
use rules::Edit;

use super::candidate::Change;
use super::hoisted_loads::{Steady, moved, once};
use super::names::in_expr;
use super::persistent::Persistent;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};

/// Accumulates in registers what `tl.atomic_add` adds to the same address in each iteration, such as the gradient of a
/// weight over all rows, and adds it once after the loop. Where each program has one row, it first introduces a loop
/// over the programs ([`Persistent`]). The order of the summation changes, which is arbitrary for atomic operations
/// anyway.
pub(super) struct SummedAtomics;

/// An atomic addition that each iteration repeats.
struct Repeated<'a> {
    stmt: &'a Stmt,
    call: &'a Call,
    value: &'a Expr,
    /// `(BLOCK,)`, or `None` for a scalar.
    shape: Option<String>,
    /// The type of the sum.
    float: &'static str,
}

impl Skill for SummedAtomics {
    fn name(&self) -> &'static str {
        "summed_atomics"
    }

    fn about(&self) -> &'static str {
        "Values that the iterations of a loop add to the same address are summed in registers and added to memory once; programs with one row each are first changed to loop over rows."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, chance: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error {
            return Vec::new();
        }
        let turn = |edits: Vec<Edit>, mut changes: Vec<Change>| {
            changes.push(Change::Structure("sums added to the memory once".to_owned()));
            Proposal { kind: "summed_atomics".to_owned(), edits, changes }
        };
        if let Some(edits) = summed(subject) {
            return vec![turn(edits, Vec::new())];
        }
        let has_own = subject.kernel.body.iter().any(|stmt| added(subject, stmt).is_some());
        let dealt = if has_own { Persistent.turns(subject, chance) } else { Vec::new() };
        let chained = dealt.into_iter().filter(|turn| turn.kind == "persistent").filter_map(|dealt| {
            let text = subject.candidate.text_with(&dealt.edits);
            Some(turn(subject.edits_through(&text, summed)?, dealt.changes))
        });
        chained.collect()
    }
}

/// The edits for the first loop of the kernel that adds to the same addresses in each iteration.
fn summed(subject: &Subject<'_>) -> Option<Vec<Edit>> {
    let mut adds = false;
    walk_statements(&subject.kernel.body, &mut |stmt| adds |= added(subject, stmt).is_some());
    // Most kernels have no atomic addition, and the analysis takes a while.
    let facts = if adds { subject.facts_of_any_launch()? } else { return None };
    subject.kernel.body.iter().find_map(|around| {
        let StmtKind::For { body, orelse, .. } = &around.kind else { return None };
        let steady = Steady::of(subject, around, body, false).filter(|_| orelse.is_empty())?;
        let all: Vec<Repeated<'_>> = body.iter().filter_map(|stmt| repeated(subject, &facts, &steady, stmt)).collect();
        if all.is_empty() { None } else { edits(subject, around, &steady, &all) }
    })
}

/// A statement `tl.atomic_add(…)`.
fn added<'a>(subject: &Subject<'_>, stmt: &'a Stmt) -> Option<&'a Call> {
    let StmtKind::Expr(value) = &stmt.kind else { return None };
    let call = value.as_call().filter(|call| !call.has_star())?;
    (subject.member(call).as_deref() == Some("atomic_add")).then_some(call)
}

/// An addition of floats to the same addresses in each iteration.
fn repeated<'a>(
    subject: &Subject<'_>,
    facts: &KernelAnalysis,
    steady: &Steady<'_>,
    stmt: &'a Stmt,
) -> Option<Repeated<'a>> {
    let call = added(subject, stmt)?;
    let value = call.argument("val", Some(1))?;
    let mut places = call.args.iter().filter(|arg| arg.value.span != value.span);
    if !places.all(|arg| in_expr(&arg.value).iter().all(|name| !steady.differs.contains(name))) {
        return None;
    }
    let StmtKind::Expr(whole) = &stmt.kind else { return None };
    let mut of_call = facts.accesses.iter().filter(|access| access.span == whole.span);
    let access = of_call.next().filter(|access| of_call.next().is_none() && !access.is_uncertain)?;
    let (shape, float) = sum_of(subject, access)?;
    Some(Repeated { stmt, call, value, shape, float })
}

/// The shape of the added value and the type of its sum; `None` where it is not of the shape of the addresses, or not
/// of a float type.
fn sum_of(subject: &Subject<'_>, access: &MemoryAccess) -> Option<(Option<String>, &'static str)> {
    let AbstractValue::Tile(value) = &access.value else { return None };
    let number = value.element.number();
    if !number.map_or_else(|| goes_to_floats(subject, access), |number| number.is_float()) {
        return None;
    }
    let (places, added) = (access.pointer.shape.as_ref()?, value.shape.as_ref()?);
    if !added.is_empty() && added != places {
        return None;
    }
    let size = |dim: &Dim| match dim {
        Dim::Known(size) => Some(size.to_string()),
        Dim::Symbol(symbol) if symbol.factor == 1 && symbol.names.len() == 1 => {
            subject.kernel.param(&symbol.names[0]).map(|param| param.name.clone())
        }
        _ => None,
    };
    let sizes: Vec<String> = places.iter().map(size).collect::<Option<_>>()?;
    let shape =
        (!sizes.is_empty()).then(|| format!("({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" }));
    Some((shape, if number.is_some_and(|number| number.bits() > 32) { "float64" } else { "float32" }))
}

/// Whether the addresses belonged to floats of at most 32 bits in the recorded call.
fn goes_to_floats(subject: &Subject<'_>, access: &MemoryAccess) -> bool {
    let base = access.pointer.about.index().and_then(|index| index.base.as_ref());
    let mut of_base = subject
        .records()
        .flat_map(|launch| &launch.arguments)
        .filter(|(name, _)| base.is_some_and(|base| **base == **name))
        .peekable();
    let is_float =
        |value: &Given| matches!(value, Given::Pointer(dtype) if dtype.contains("float") && dtype != "float64");
    of_base.peek().is_some() && of_base.all(|(_, value)| is_float(value))
}

fn edits(subject: &Subject<'_>, around: &Stmt, steady: &Steady<'_>, all: &[Repeated<'_>]) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let indent = indent_of(text, around.span.start)?;
    let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
    let mut edits = moved(subject, around, &needed(subject, steady, all))?;
    let (mut before, mut after) = (String::new(), String::new());
    for (at, it) in all.iter().enumerate() {
        let name = fresh(text, &if at == 0 { "added".to_owned() } else { format!("added_{}", at + 1) });
        let begin = match &it.shape {
            Some(shape) => format!("{}({shape}, dtype={})", of("zeros")?, of(it.float)?),
            None => "0.0".to_owned(),
        };
        before += &format!("{indent}{name} = {begin}\n");
        let (whole, value) = (it.stmt.span, it.value.span);
        edits.push(Edit { span: whole, text: format!("{name} += {}", &text[value.start..value.end]) });
        after += &format!("\n{indent}{}{name}{}", &text[whole.start..value.start], &text[value.end..whole.end]);
    }
    edits[0].text += &before;
    edits.push(Edit { span: Span::new(around.span.end, around.span.end), text: after });
    let is_plain = |it: &Repeated<'_>| !text[it.stmt.span.start..it.stmt.span.end].contains(['#', '\n']);
    all.iter().all(|it| is_plain(it) && !it.call.args.is_empty()).then_some(edits)
}

/// The statements inside the loop that compute the addresses.
fn needed<'a>(subject: &Subject<'_>, steady: &Steady<'a>, all: &[Repeated<'_>]) -> Vec<&'a Stmt> {
    let mut names: Vec<&str> = all
        .iter()
        .flat_map(|it| it.call.args.iter().filter(|arg| arg.value.span != it.value.span))
        .flat_map(|arg| in_expr(&arg.value))
        .collect();
    let mut found = Vec::new();
    for stmt in steady.statements.iter().rev() {
        let Some((name, value)) = once(subject, stmt) else { continue };
        if names.contains(&name) {
            names.extend(in_expr(value));
            found.push(*stmt);
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    const BACKWARD: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(dy, x, dw, count, rows, N, B: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        cols = tl.arange(0, B)
        mask = cols < N
        g = tl.load(dy + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(x + row * N + cols, mask=mask, other=0.0).to(tl.float32)
        tl.atomic_add(dw + cols, g * v, mask=mask)
        tl.atomic_add(count, tl.sum(g))

def run(dy, x, dw, count, rows, N):
    k[(rows,)](dy, x, dw, count, rows, N, B=64)
";

    #[test]
    fn loop_invariant_atomic_additions_are_summed_in_registers() {
        let expected = BACKWARD
            .replace("    for row", "    cols = tl.arange(0, B)\n    mask = cols < N\n    added = tl.zeros((B,), dtype=tl.float32)\n    added_2 = 0.0\n    for row")
            .replace("        cols = tl.arange(0, B)\n        mask = cols < N\n", "")
            .replace("        tl.atomic_add(dw + cols, g * v, mask=mask)", "        added += g * v")
            .replace("        tl.atomic_add(count, tl.sum(g))", "        added_2 += tl.sum(g)\n    tl.atomic_add(dw + cols, added, mask=mask)\n    tl.atomic_add(count, added_2)");
        assert_eq!(turned_by(&SummedAtomics, BACKWARD), std::slice::from_ref(&expected));
        assert!(turned_by(&SummedAtomics, &expected).is_empty(), "once is enough");
    }

    #[test]
    fn programs_with_one_row_become_persistent_first() {
        let own = BACKWARD
            .replace(
                "    for row in range(tl.program_id(0), rows, tl.num_programs(0)):\n",
                "    row = tl.program_id(0)\n",
            )
            .replace("\n        ", "\n    ");
        let turns = turned_by(&SummedAtomics, &own);
        assert_eq!(turns.len(), 5);
        for line in [
            "    for program in range(tl.program_id(0), rows, tl.num_programs(0)):\n        row = program\n",
            "        added += g * v\n",
            "\n    tl.atomic_add(dw + cols, added, mask=mask)\n",
        ] {
            assert!(turns[0].contains(line), "{}", turns[0]);
        }
    }

    #[test]
    fn atomic_additions_to_varying_addresses_stay_in_the_loop() {
        for (old, new) in [
            ("dw + cols, g", "dw + row * N + cols, g"),
            ("g * v, mask=mask", "g * v, mask=mask & (row < 7)"),
            ("        tl.atomic_add(dw", "        old = tl.atomic_add(dw"),
            (
                "        tl.atomic_add(dw + cols, g * v",
                "        if row > 3:\n            tl.atomic_add(dw + cols, g * v",
            ),
            ("g * v, mask", "cols, mask"),
            ("g * v, mask", "v.to(tl.int32), mask"),
            ("g * v, mask", "(g * v)[:, None], mask"),
        ] {
            assert_eq!(BACKWARD.matches(old).count(), 1, "{old}");
            let turns = turned_by(&SummedAtomics, &BACKWARD.replace(old, new));
            assert!(turns.iter().all(|turn| !turn.contains("dw + cols, added")), "{new}: {turns:?}");
        }
    }
}
