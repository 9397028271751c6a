//! Symbolic values of integers, pointers and masks: polynomials over the indices of programs and lanes, loop variables
//! and parameters.
//!
//! `pid * BLOCK + tl.arange(0, BLOCK)` is the polynomial `program(0)·BLOCK + lane(0)`, which varies along axis 0 by
//! lane 0. A pointer is a parameter plus such a polynomial, and a mask is a conjunction of comparisons of two of them.
//! Two values with the same polynomial are equal in every lane of every program. A value that is not a polynomial has
//! none.

use std::sync::Arc;

use super::dtype::Dtype;
pub use super::poly::{Atom, Poly};
use super::shape::Dim;
use super::value::AbstractValue;
use crate::syntax::Span;

/// A `tl.arange`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Span of the call.
    pub span: Span,
    /// The first value, if it is known.
    pub start: Option<i128>,
    /// The number of values.
    pub size: Dim,
}

/// A run-time loop with a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Span of its head.
    pub span: Span,
    /// The first value of the counter, if it is known.
    pub start: Option<Poly>,
    /// The end of the counter (exclusive), if it is known.
    pub end: Option<Poly>,
    /// The step of the counter, if it is known.
    pub step: Option<Poly>,
}

/// A comparison of two integers.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexComparison {
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub op: Arc<str>,
    /// The left side.
    pub left: Poly,
    /// The right side.
    pub right: Poly,
    /// For each axis of the mask, the indices of the `tl.arange`s that are compared along it; empty when that is not known.
    pub axes: Vec<Vec<u32>>,
    /// Span of the comparison.
    pub span: Span,
}

/// The symbolic values of the lanes of a tile of integers or pointers.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// For a pointer, the parameter that is its base.
    pub base: Option<Arc<str>>,
    /// The integer, or the offset of a pointer in elements.
    pub poly: Poly,
    /// For each axis, the indices of the `tl.arange`s along it.
    pub axes: Vec<Vec<u32>>,
    /// The operations on the way to this value that are computed in 32 bits, innermost first; recorded on request only.
    pub narrow: Vec<Narrow>,
}

/// A sum or product that is computed in 32 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrow {
    /// Span of the operation.
    pub span: Span,
    /// Its result, assuming that it does not overflow.
    pub poly: Poly,
}

/// The longest name of a number by what it is computed from, in bytes.
const MAX_NAME: usize = 240;

/// The largest number of such operations that is recorded for one index.
const MAX_NARROW: usize = 16;

/// The lanes that a mask keeps, as a conjunction.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskGuard {
    /// The conditions that must hold.
    pub conditions: Vec<IndexComparison>,
    /// Whether there may be further conditions.
    pub is_partial: bool,
}

impl MaskGuard {
    /// The same conditions with other axes, where axes are known.
    fn with_axes(&self, change: impl Fn(&[Vec<u32>]) -> Vec<Vec<u32>>) -> Self {
        let mut changed = self.clone();
        for condition in changed.conditions.iter_mut().filter(|condition| !condition.axes.is_empty()) {
            condition.axes = change(&condition.axes);
        }
        changed
    }
}

/// Knowledge about a value beyond its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LaneFact {
    /// Nothing is known.
    #[default]
    Nothing,
    /// The value is an integer or a pointer.
    Index(Arc<Index>),
    /// The value is a mask.
    Guard(Arc<MaskGuard>),
    /// The value is a block pointer.
    Block(Arc<BlockPosition>),
}

/// The position of a block pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockPosition {
    /// The pointer that it was made from.
    pub base: Index,
    /// Its axes.
    pub axes: Vec<BlockAxis>,
}

/// An axis of a block pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockAxis {
    /// The first position of the block.
    pub offset: Poly,
    /// The number of positions in the tensor, if it is known.
    pub size: Option<Poly>,
    /// The stride in elements.
    pub stride: Poly,
    /// The index of the lane that counts the positions within the block.
    pub lane: u32,
}

impl BlockAxis {
    /// The positions of the block.
    #[must_use]
    pub fn position(&self) -> Option<Poly> {
        self.offset.plus(&Poly::atom(Atom::Lane(self.lane)), 1)
    }
}

impl BlockPosition {
    /// The pointers of the block as a tile.
    #[must_use]
    pub fn index(&self) -> Option<Index> {
        let mut poly = self.base.poly.clone();
        for axis in &self.axes {
            poly = poly.plus(&axis.position()?.times(&axis.stride)?, 1)?;
        }
        let axes = self.axes.iter().map(|axis| vec![axis.lane]).collect();
        Some(Index { base: self.base.base.clone(), poly, axes, narrow: Vec::new() })
    }

    /// The mask that `boundary_check` of these axes stands for.
    #[must_use]
    pub fn guard(&self, checked: &[usize], span: Span) -> MaskGuard {
        let (mut conditions, mut is_partial) = (Vec::new(), false);
        for (at, axis) in self.axes.iter().enumerate().filter(|(at, _)| checked.contains(at)) {
            let axes: Vec<Vec<u32>> =
                (0..self.axes.len()).map(|other| if other == at { vec![axis.lane] } else { Vec::new() }).collect();
            match axis.position().zip(axis.size.clone()) {
                Some((left, right)) => conditions.push(IndexComparison { op: "<".into(), left, right, axes, span }),
                None => is_partial = true,
            }
        }
        MaskGuard { conditions, is_partial }
    }

    /// The same block, moved along each axis; an axis that moves by an unknown number gets one from `other`.
    #[must_use]
    pub(super) fn moved(&self, by: &[Option<Poly>], other: &mut dyn FnMut() -> Poly) -> Option<Self> {
        let mut moved = self.clone();
        for (axis, by) in moved.axes.iter_mut().zip(by) {
            axis.offset = axis.offset.plus(&by.clone().unwrap_or_else(&mut *other), 1)?;
        }
        Some(moved)
    }
}

impl LaneFact {
    /// An integer that is the same in all lanes.
    #[must_use]
    pub fn scalar(poly: Poly) -> Self {
        Self::Index(Arc::new(Index { base: None, poly, axes: Vec::new(), narrow: Vec::new() }))
    }

    /// The index of an integer or a pointer.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        match self {
            Self::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The guard of a mask.
    #[must_use]
    pub fn guard(&self) -> Option<&MaskGuard> {
        match self {
            Self::Guard(guard) => Some(guard),
            _ => None,
        }
    }

    /// The same, with a record that the last operation is computed in 32 bits.
    #[must_use]
    pub(super) fn noting(self, span: Span) -> Self {
        match self {
            Self::Index(index) if index.base.is_none() && index.narrow.len() < MAX_NARROW => {
                let mut index = Arc::unwrap_or_clone(index);
                index.narrow.push(Narrow { span, poly: index.poly.clone() });
                Self::Index(Arc::new(index))
            }
            other => other,
        }
    }

    /// The same with an axis of size 1 inserted at `at`.
    #[must_use]
    pub fn expanded(&self, at: usize) -> Self {
        match self {
            Self::Index(index) => {
                let mut index = (**index).clone();
                index.axes.insert(at.min(index.axes.len()), Vec::new());
                Self::Index(Arc::new(index))
            }
            Self::Guard(guard) => Self::Guard(Arc::new(guard.with_axes(|axes| {
                let mut axes = axes.to_vec();
                axes.insert(at.min(axes.len()), Vec::new());
                axes
            }))),
            Self::Nothing | Self::Block(_) => Self::Nothing,
        }
    }

    /// The same with axis `order[i]` at position `i`.
    #[must_use]
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        match self {
            Self::Index(index) if index.axes.len() == order.len() => {
                let axes = order.iter().filter_map(|&at| index.axes.get(at).cloned()).collect();
                Self::Index(Arc::new(Index { axes, ..(**index).clone() }))
            }
            Self::Guard(guard) => Self::Guard(Arc::new(guard.with_axes(|axes| {
                let is_known = axes.len() == order.len();
                order.iter().filter(|_| is_known).filter_map(|&at| axes.get(at).cloned()).collect()
            }))),
            Self::Index(_) | Self::Nothing | Self::Block(_) => Self::Nothing,
        }
    }
}

/// The axes of two operands after broadcasting. `None` when one `tl.arange` would lie along two of them, because its
/// atom would then mean two numbers.
fn joined_axes(a: &[Vec<u32>], b: &[Vec<u32>]) -> Option<Vec<Vec<u32>>> {
    let rank = a.len().max(b.len());
    let of = |axes: &[Vec<u32>], at: usize| {
        let missing = rank - axes.len();
        if at < missing { Vec::new() } else { axes[at - missing].clone() }
    };
    let axes: Vec<Vec<u32>> = (0..rank)
        .map(|at| {
            let mut lanes = of(a, at);
            lanes.extend(of(b, at));
            lanes.sort_unstable();
            lanes.dedup();
            lanes
        })
        .collect();
    let mut all: Vec<u32> = axes.iter().flatten().copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    (all.len() == count).then_some(axes)
}

/// The index of a value; `None` when the value has none.
fn index_of(value: &AbstractValue<'_>) -> Option<Index> {
    match value {
        AbstractValue::Const(constant) => {
            Some(Index { base: None, poly: Poly::of_constant(constant)?, axes: Vec::new(), narrow: Vec::new() })
        }
        AbstractValue::Tile(tile) => tile.about.index().cloned(),
        _ => None,
    }
}

/// The knowledge about `left op right`.
#[must_use]
pub(super) fn binary(op: &str, left: &AbstractValue<'_>, right: &AbstractValue<'_>) -> LaneFact {
    if op == "&" || op == "and" {
        return both(left, right);
    }
    let (Some(a), Some(b)) = (index_of(left), index_of(right)) else { return LaneFact::Nothing };
    let base = match (&a.base, &b.base, op) {
        (Some(_), Some(_), _) => return LaneFact::Nothing,
        (Some(base), None, "+" | "-") | (None, Some(base), "+") => Some(base.clone()),
        (None, None, _) => None,
        _ => return LaneFact::Nothing,
    };
    let poly = match op {
        "+" => a.poly.plus(&b.poly, 1),
        "-" => a.poly.plus(&b.poly, -1),
        "*" => a.poly.times(&b.poly),
        _ => None,
    };
    match poly.zip(joined_axes(&a.axes, &b.axes)) {
        Some((poly, axes)) => {
            let mut narrow = a.narrow;
            narrow.extend(b.narrow);
            LaneFact::Index(Arc::new(Index { base, poly, axes, narrow }))
        }
        None => LaneFact::Nothing,
    }
}

/// The knowledge about `op operand`.
#[must_use]
pub(super) fn unary(op: &str, about: &LaneFact) -> LaneFact {
    match (op, about) {
        ("+", about) => about.clone(),
        ("-", LaneFact::Index(index)) if index.base.is_none() => match Poly::default().plus(&index.poly, -1) {
            Some(poly) => LaneFact::Index(Arc::new(Index { poly, ..(**index).clone() })),
            None => LaneFact::Nothing,
        },
        (_, LaneFact::Guard(_)) => LaneFact::Guard(Arc::new(MaskGuard { conditions: Vec::new(), is_partial: true })),
        _ => LaneFact::Nothing,
    }
}

/// The guard of the comparison `left op right`.
#[must_use]
pub(super) fn comparison(op: &str, left: &AbstractValue<'_>, right: &AbstractValue<'_>, span: Span) -> LaneFact {
    match (index_of(left), index_of(right)) {
        (Some(a), Some(b)) if a.base.is_none() && b.base.is_none() => match joined_axes(&a.axes, &b.axes) {
            Some(axes) => {
                let condition = IndexComparison { op: op.into(), left: a.poly, right: b.poly, axes, span };
                LaneFact::Guard(Arc::new(MaskGuard { conditions: vec![condition], is_partial: false }))
            }
            None => LaneFact::Guard(Arc::new(MaskGuard { conditions: Vec::new(), is_partial: true })),
        },
        _ => LaneFact::Guard(Arc::new(MaskGuard { conditions: Vec::new(), is_partial: true })),
    }
}

fn both(left: &AbstractValue<'_>, right: &AbstractValue<'_>) -> LaneFact {
    let guard = |value: &AbstractValue<'_>| match value {
        AbstractValue::Tile(tile) => match &tile.about {
            LaneFact::Guard(guard) => (**guard).clone(),
            _ => MaskGuard { conditions: Vec::new(), is_partial: true },
        },
        _ => MaskGuard { conditions: Vec::new(), is_partial: true },
    };
    let is_mask = |value: &AbstractValue<'_>| matches!(value, AbstractValue::Tile(tile) if tile.element.number() == Some(Dtype::Int1) || tile.about.guard().is_some());
    if !is_mask(left) && !is_mask(right) {
        return LaneFact::Nothing;
    }
    let (mut a, b) = (guard(left), guard(right));
    a.conditions.extend(b.conditions);
    a.is_partial |= b.is_partial;
    LaneFact::Guard(Arc::new(a))
}

/// The knowledge that is certain when the value is one of two. What differs must be the same in all lanes; it becomes one
/// unknown number.
#[must_use]
pub(super) fn either(a: &LaneFact, b: &LaneFact) -> LaneFact {
    if a == b {
        return a.clone();
    }
    match (a, b) {
        (LaneFact::Index(one), LaneFact::Index(other)) if one.base == other.base && one.axes == other.axes => {
            joined(one, other).map_or(LaneFact::Nothing, |poly| {
                LaneFact::Index(Arc::new(Index { poly, narrow: Vec::new(), ..(**one).clone() }))
            })
        }
        _ => LaneFact::Nothing,
    }
}

/// The part that two indices share, plus one atom for the rest: `other(…)`, by what it may be.
fn joined(one: &Index, other: &Index) -> Option<Poly> {
    let (mut shared, mut rests) = (Poly::default(), [one.poly.clone(), other.poly.clone()]);
    for term in &one.poly.terms {
        if other.poly.terms.contains(term) {
            shared.terms.push(term.clone());
            rests.iter_mut().for_each(|rest| rest.terms.retain(|kept| kept != term));
        }
    }
    let varies = |rest: &Poly| rest.any(|atom| matches!(atom, Atom::Lane(_)));
    let name = format!("other({} | {})", rests[0], rests[1]);
    if rests.iter().any(varies) || name.len() > MAX_NAME {
        return None;
    }
    shared.plus(&Poly::atom(Atom::Param(name.into())), 1)
}

/// The least or greatest of two numbers that are the same in all lanes, as an atom by its operands.
#[must_use]
pub(super) fn extreme(name: &str, left: &AbstractValue<'_>, right: &AbstractValue<'_>) -> LaneFact {
    match (index_of(left), index_of(right)) {
        (Some(a), Some(b)) if a.base.is_none() && b.base.is_none() && a.axes.is_empty() && b.axes.is_empty() => {
            let key = format!("{name}({}, {})", a.poly, b.poly);
            if key.len() > MAX_NAME { LaneFact::Nothing } else { LaneFact::scalar(Poly::atom(Atom::Param(key.into()))) }
        }
        _ => LaneFact::Nothing,
    }
}
