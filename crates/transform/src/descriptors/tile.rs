//! The tile of a matrix that a load reads, derived from its pointers and its mask.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Index, IndexComparison, Poly};
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};

use crate::subject::Subject;

/// One axis of a tile, and of the matrix that the tile is a part of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// The distance between neighbours in memory.
    pub(super) stride: Poly,
    /// The size of the matrix, and that of the tile.
    pub(super) length: Poly,
    pub(super) size: Poly,
    /// The position where the tile begins.
    pub(super) start: Poly,
}

/// A tile of a matrix that begins at a parameter's address.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) base: String,
    /// The axes, in the order of the tile.
    pub(super) axes: [Axis; 2],
}

/// The tile that a load reads, where its mask is exactly the bounds of a matrix; `None` where that is not certain.
pub(super) fn tile_of(
    subject: &Subject<'_>,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
    load: &Expr,
) -> Option<Tile> {
    let is_plain = access.kind == AccessKind::Load && !access.is_block_pointer && !access.is_uncertain;
    let index = access.pointer.about.index().filter(|_| is_plain)?;
    let guard = match &access.mask {
        Mask::Tile(tile) => tile.about.guard().filter(|guard| !guard.is_partial)?.conditions.as_slice(),
        Mask::None => &[],
        Mask::Unknown => return None,
    };
    let [rows, columns] = index.axes.as_slice() else { return None };
    let ([row], [column]) = (rows.as_slice(), columns.as_slice()) else { return None };
    let axes = [axis(facts, index, *row, guard)?, axis(facts, index, *column, guard)?];
    let lanes = [Atom::Lane(*row), Atom::Lane(*column)];
    let is_of_one = |condition: &IndexComparison| {
        let has = |lane: &Atom| condition.left.has(lane) || condition.right.has(lane);
        has(&lanes[0]) != has(&lanes[1])
    };
    if !guard.iter().all(is_of_one) {
        return None;
    }
    let mut reached = Poly::default();
    for (Axis { stride, start, .. }, lane) in axes.iter().zip(&lanes) {
        reached = reached.plus(&start.plus(&Poly::atom(lane.clone()), 1)?.times(stride)?, 1)?;
    }
    let is_reached = goes_there(subject, facts, access, load, &index.poly, &reached)?;
    is_reached.then(|| Some(Tile { base: index.base.as_ref()?.to_string(), axes }))?
}

/// An axis by its `tl.arange` and the conditions on it.
fn axis(facts: &KernelAnalysis, index: &Index, lane: u32, guard: &[IndexComparison]) -> Option<Axis> {
    let known = facts.lanes.get(usize::try_from(lane).ok()?).filter(|known| known.start == Some(0))?;
    let size = Poly::of_dim(&known.size)?;
    let lane = Atom::Lane(lane);
    let stride = index.poly.factor_of(&lane).filter(is_of_parameters)?;
    let mut bounds = guard.iter().filter(|it| it.left.has(&lane) || it.right.has(&lane)).map(|it| bound(it, &lane));
    let (start, length) = match bounds.next() {
        Some(first) => first.filter(|first| bounds.all(|other| other.as_ref() == Some(first)))?,
        // Without a condition it is the whole axis.
        None => (Poly::default(), size.clone()),
    };
    Some(Axis { stride, length, size, start })
}

/// The start of the lanes and their bound, from `start + lane < length` in any form.
fn bound(condition: &IndexComparison, lane: &Atom) -> Option<(Poly, Poly)> {
    let (less, more) = match condition.op.as_ref() {
        "<" => (&condition.left, &condition.right),
        ">" => (&condition.right, &condition.left),
        _ => return None,
    };
    // Terms that change from iteration to iteration go to the left.
    let changing = part(more, |atom| matches!(atom, Atom::Loop(_)))?;
    let (less, more) = (less.plus(&changing, -1)?, more.plus(&changing, -1)?);
    let start =
        less.plus(&Poly::atom(lane.clone()), -1).filter(|start| !start.any(|atom| matches!(atom, Atom::Lane(_))))?;
    let is_start = !start.any(|atom| matches!(atom, Atom::Other(_) | Atom::Programs(_)));
    (is_start && is_of_parameters(&more)).then_some((start, more))
}

fn is_of_parameters(poly: &Poly) -> bool {
    !poly.any(|atom| !matches!(atom, Atom::Param(_)))
}

/// The terms with such an atom.
fn part(poly: &Poly, of: impl Fn(&Atom) -> bool) -> Option<Poly> {
    let without = Poly { terms: Vec::new(), constant: 0 };
    poly.terms.iter().filter(|(atoms, _)| atoms.iter().any(&of)).try_fold(without, |sum, (atoms, factor)| {
        sum.plus(&Poly { terms: vec![(atoms.clone(), *factor)], constant: 0 }, 1)
    })
}

/// Whether the pointers address the tile, either directly or by an addition in each iteration of a loop that counts
/// from 0.
fn goes_there(
    subject: &Subject<'_>,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
    load: &Expr,
    pointer: &Poly,
    reached: &Poly,
) -> Option<bool> {
    if pointer == reached {
        return Some(true);
    }
    let moved = part(pointer, |atom| matches!(atom, Atom::Other(_)))?;
    let is_one = matches!(moved.terms.as_slice(), [(atoms, 1)] if atoms.len() == 1);
    let id = access.loops.last().filter(|_| is_one)?;
    let round = Atom::Loop(*id);
    let by_round = part(reached, |atom| *atom == round)?;
    let known = facts.loops.get(usize::try_from(*id).ok()?)?;
    let first = known.start.as_ref().is_some_and(|start| start.as_number() == Some(0));
    if !first || pointer.plus(&moved, -1)? != reached.plus(&by_round, -1)? {
        return Some(false);
    }
    let step = reached.factor_of(&round)?.times(known.step.as_ref()?)?;
    let name = load.as_call()?.argument("pointer", Some(0))?.as_name()?;
    let mut of_loop = None;
    walk_statements(&subject.kernel.body, &mut |stmt| {
        if let StmtKind::For { body, .. } = &stmt.kind
            && stmt.span.start == known.span.start
        {
            of_loop = Some(body);
        }
    });
    Some(move_of(of_loop?, name, load)? == step)
}

/// The amount by which a name grows at the end of an iteration, if it changes nowhere else in the loop.
fn move_of(body: &[Stmt], name: &str, load: &Expr) -> Option<Poly> {
    let mut assigned = 0;
    walk_statements(body, &mut |stmt| {
        assigned += stmt.targets().iter().filter(|target| target.mentions(name)).count();
    });
    let grows = body.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::AugAssign { target, op, value } if op == "+" && target.as_name() == Some(name) => {
            Some(value).filter(|_| stmt.span.start > load.span.end)
        }
        _ => None,
    });
    grows.filter(|_| assigned == 1).and_then(poly)
}

/// A polynomial of parameters and numbers. Any other name is treated as a parameter, which then matches none of the
/// wanted ones.
fn poly(expr: &Expr) -> Option<Poly> {
    match &expr.kind {
        ExprKind::Int(number) => Some(Poly::number(*number)),
        ExprKind::Name(name) => Some(Poly::atom(Atom::Param(name.as_str().into()))),
        ExprKind::Binary { op, left, right } => match op.as_str() {
            "+" => poly(left)?.plus(&poly(right)?, 1),
            "-" => poly(left)?.plus(&poly(right)?, -1),
            "*" => poly(left)?.times(&poly(right)?),
            _ => None,
        },
        _ => None,
    }
}
