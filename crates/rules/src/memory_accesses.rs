//! Helpers of the rules about memory accesses.

use std::collections::HashSet;

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Index, IndexComparison, MaskGuard, Poly};
use model::analysis::types::signature;
use model::kernel::Kernel;
use model::kernel::ast::{Call, walk_expressions};
use model::syntax::Span;

use super::context::RuleContext;
use super::diagnostic::Diagnostic;
use super::findings::Findings;
use super::known_launch::KnownLaunch;

/// The kernels without syntax errors, with the facts of each.
pub(super) fn kernels<'c>(context: &'c RuleContext<'_>) -> impl Iterator<Item = (&'c Kernel, &'c KernelAnalysis)> {
    let facts = context.facts().iter().map(AsRef::as_ref);
    context.module.kernels.iter().zip(facts).filter(|(kernel, _)| !kernel.has_error)
}

/// Reports the findings of `look` in the accesses of all kernels, at most one per span. Files for other compilers are
/// skipped.
pub(super) fn report(
    context: &RuleContext<'_>,
    findings: &mut Findings<'_>,
    look: impl Fn(&Kernel, &KernelAnalysis, &MemoryAccess) -> Option<Diagnostic>,
) {
    let mut seen = HashSet::new();
    for (kernel, facts) in kernels(context) {
        for access in &facts.accesses {
            if !seen.contains(&access.span)
                && let Some(found) = look(kernel, facts, access)
                && !context.is_for_other_compiler()
            {
                seen.insert(access.span);
                findings.push(found);
            }
        }
    }
}

/// The call with exactly this span.
pub(super) fn call_at<'c>(context: &RuleContext<'c>, span: Span) -> Option<&'c Call> {
    let kernel = kernel_around(context, span)?;
    let mut found = None;
    walk_expressions(&kernel.body, &mut |expr| {
        if expr.span == span {
            found = found.or(expr.as_call());
        }
    });
    found
}

/// Whether each program executes an access, whatever the parameters are. Loops are assumed to run at least once.
pub(super) fn is_certain(access: &MemoryAccess) -> bool {
    access.branches == 0 && !access.is_uncertain && !access.is_after_return
}

/// The index of an access, where it is known.
pub(super) fn index(access: &MemoryAccess) -> Option<&Index> {
    access.pointer.about.index()
}

/// The guard of a masked access, when all of its conditions are known.
pub(super) fn guard(access: &MemoryAccess) -> Option<&MaskGuard> {
    match &access.mask {
        Mask::Tile(tile) => tile.about.guard().filter(|guard| !guard.is_partial),
        _ => None,
    }
}

/// The conditions of a guard on the lanes of an index; `None` where it is not known how the lanes that they compare belong
/// to those of the index.
///
/// A mask of its own `tl.arange` compares other lanes, each of which is the lane of the index along the same axis when it
/// counts the same numbers.
pub(super) fn conditions_on(facts: &KernelAnalysis, index: &Index, guard: &MaskGuard) -> Option<Vec<IndexComparison>> {
    let mut found = Vec::with_capacity(guard.conditions.len());
    for condition in &guard.conditions {
        let mut lanes: Vec<(u32, u32)> = Vec::new();
        for (axis, compared) in condition.axes.iter().enumerate() {
            let own = index.axes.get(axis).map(Vec::as_slice).unwrap_or_default();
            for lane in compared.iter().filter(|lane| !own.contains(lane) && !own.is_empty()) {
                let range = |lane: &u32| facts.lanes.get(*lane as usize).map(|known| (known.start, known.size.clone()));
                let same = own.iter().find(|other| range(other).is_some() && range(other) == range(lane))?;
                lanes.push((*lane, *same));
            }
        }
        if condition.axes.len() != index.axes.len() && !lanes_of([condition]).is_empty() {
            return None;
        }
        let mut rename = |atom: &Atom| match atom {
            Atom::Lane(lane) => {
                let same = lanes.iter().find(|(from, _)| from == lane).map_or(*lane, |(_, to)| *to);
                Atom::Lane(same)
            }
            other => other.clone(),
        };
        let (left, right) = (condition.left.renamed(&mut rename)?, condition.right.renamed(&mut rename)?);
        found.push(IndexComparison { left, right, ..condition.clone() });
    }
    Some(found)
}

/// The value of a polynomial in program 0, in the first lanes and the first iteration of each loop.
pub(super) fn at_first(facts: &KernelAnalysis, poly: &Poly) -> Option<i128> {
    fn first(facts: &KernelAnalysis, poly: &Poly, depth: u32) -> Option<i128> {
        poly.value(&|atom| match atom {
            Atom::Program(_) => Some(0),
            Atom::Lane(lane) => facts.lanes.get(*lane as usize)?.start,
            Atom::Loop(id) if depth < 4 => first(facts, facts.loops.get(*id as usize)?.start.as_ref()?, depth + 1),
            _ => None,
        })
    }
    first(facts, poly, 0)
}

/// The axis of the grid whose programs are as far apart along `lane` as the lane is long, so that each has a tile of
/// its own.
pub(super) fn tiled_by(facts: &KernelAnalysis, poly: &Poly, lane: u32) -> Option<u8> {
    let step = poly.factor_of(&Atom::Lane(lane))?;
    let size = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
    if size == Poly::number(1) {
        return None;
    }
    let tile = step.times(&size)?;
    (0..3).find(|axis| {
        poly.factor_of(&Atom::Program(*axis)).is_some_and(|factor| factor == tile && factor != Poly::default())
    })
}

/// The global index of a lane: `program·size + lane`.
pub(super) fn global(facts: &KernelAnalysis, axis: u8, lane: u32) -> Option<Poly> {
    let size = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
    Poly::atom(Atom::Program(axis)).times(&size)?.plus(&Poly::atom(Atom::Lane(lane)), 1)
}

/// The two sides of an upper bound, the smaller first: of `left < right`, or of `right > left`.
pub(super) fn upper_bound(condition: &IndexComparison) -> Option<(&Poly, &Poly)> {
    match condition.op.as_ref() {
        "<" => Some((&condition.left, &condition.right)),
        ">" => Some((&condition.right, &condition.left)),
        _ => None,
    }
}

/// The span of the grid of a launch of `kernel` that starts along `axis` enough programs to cover the parameter `size`
/// with tiles of `block`, a parameter or number; `None` where no launch does.
pub(super) fn covers(context: &RuleContext<'_>, kernel: &Kernel, axis: u8, size: &str, block: &Poly) -> Option<Span> {
    context.launches_of(kernel).find(|known| known.covers(axis, size, block)).map(|known| known.launch.grid.span)
}

/// The parameters by which the kernel steps from row to row of the tensor behind the pointer `base`: those that are
/// multiplied with the number of a program, a loop or a loaded number. `None` when an access is not followed.
pub(super) fn row_steps<'f>(facts: &'f KernelAnalysis, base: &str) -> Option<Vec<&'f str>> {
    let mut steps = Vec::new();
    for access in &facts.accesses {
        let index = index(access)?;
        if index.base.as_deref()? != base {
            continue;
        }
        for (atoms, _) in &index.poly.terms {
            let [one, other] = atoms.as_slice() else { continue };
            let (step, moved) = match (one, other) {
                (Atom::Param(step), moved) | (moved, Atom::Param(step)) => (step, moved),
                _ => continue,
            };
            let is_moved = matches!(moved, Atom::Program(_) | Atom::Loop(_) | Atom::Other(_));
            if is_moved && !steps.contains(&&**step) {
                steps.push(&**step);
            }
        }
    }
    Some(steps)
}

/// Whether the signature comment of the kernel, if it has one, describes a launch: each compile-time number of the comment
/// is what the launch passes.
pub(super) fn is_described(context: &RuleContext<'_>, known: &KnownLaunch<'_, '_>) -> bool {
    let Some(signature) = signature::of(known.module, known.kernel, context.source.text()) else { return true };
    known.kernel.params.iter().filter(|param| param.constexpr).all(|param| {
        let (said, is_passed) = (signature.number(&param.name), known.argument(&param.name).is_some());
        said.is_none() || !is_passed || known.number(&param.name).known() == said
    })
}

/// The verb for an access in a message: "reads", "writes" or "updates".
pub(super) fn verb(access: &MemoryAccess) -> &'static str {
    match access.kind {
        AccessKind::Load => "reads",
        AccessKind::Store => "writes",
        AccessKind::Atomic => "updates",
    }
}

/// The line in which `span` begins, counted from 1.
pub(super) fn line(context: &RuleContext<'_>, span: Span) -> usize {
    context.line_of(span)
}

/// The lanes that conditions compare.
pub(super) fn lanes_of<'g>(conditions: impl IntoIterator<Item = &'g IndexComparison>) -> Vec<u32> {
    let mut lanes = Vec::new();
    for condition in conditions {
        for (atoms, _) in condition.left.terms.iter().chain(&condition.right.terms) {
            for atom in atoms {
                if let Atom::Lane(lane) = atom
                    && !lanes.contains(lane)
                {
                    lanes.push(*lane);
                }
            }
        }
    }
    lanes.sort_unstable();
    lanes
}

/// The lanes along which an index varies.
pub(super) fn lanes_in(index: &Index) -> Vec<u32> {
    let mut lanes: Vec<u32> = index.axes.iter().flatten().copied().collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Whether the value of a polynomial may differ between programs.
pub(super) fn depends_on_program(poly: &Poly) -> bool {
    poly.any(|atom| match atom {
        Atom::Program(_) | Atom::Loop(_) | Atom::Other(_) => true,
        Atom::Param(name) => name.contains("program_id") || name.contains("loop") || name.contains("other"),
        Atom::Programs(_) | Atom::Lane(_) => false,
    })
}

/// The kernel whose definition holds `span`.
pub(super) fn kernel_around<'c>(context: &RuleContext<'c>, span: Span) -> Option<&'c Kernel> {
    let kernels = context.module.kernels.iter();
    kernels.rev().find(|kernel| kernel.def_span.start <= span.start && span.end <= kernel.def_span.end)
}
