//! What integers and pointers are made of: polynomials over the numbers of programs, lanes, loops and parameters.
//!
//! `pid * BLOCK + tl.arange(0, BLOCK)` is the polynomial `program(0)·BLOCK + lane(0)`, varying along axis 0 by lane 0; a
//! pointer is a parameter plus such a polynomial; a mask is a conjunction of comparisons of two of them. Two values with the
//! same polynomial are the same number in every lane of every program. What cannot be written so has none.

use std::sync::Arc;

use super::dtype::Number;
pub use super::poly::{Atom, Poly};
use super::shape::Dim;
use super::value::{Tile, Value};
use crate::syntax::Span;

/// A `tl.arange`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The call.
    pub span: Span,
    /// Its first value.
    pub start: Option<i128>,
    /// How many values it has.
    pub size: Dim,
}

/// A loop at run time with a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Its head.
    pub span: Span,
    /// Where the counter starts.
    pub start: Option<Poly>,
    /// Where it ends (exclusively).
    pub end: Option<Poly>,
    /// By how much it grows.
    pub step: Option<Poly>,
}

/// A comparison of two integers.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub op: Arc<str>,
    /// Left of the operator.
    pub left: Poly,
    /// Right of it.
    pub right: Poly,
    /// Where it stands.
    pub span: Span,
}

/// What the lanes of a tile are.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// For a pointer, the parameter that it starts from.
    pub base: Option<Arc<str>>,
    /// The number, or the offset of a pointer.
    pub poly: Poly,
    /// For each axis the `tl.arange`s along it.
    pub axes: Vec<Vec<u32>>,
    /// What on the way to it is computed in 32 bits, innermost first; kept on demand only.
    pub narrow: Vec<Narrow>,
}

/// A sum or product that is computed in 32 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrow {
    /// The operation.
    pub span: Span,
    /// Its result, if nothing wrapped around.
    pub poly: Poly,
}

/// More operations than this on the way to one index are not kept.
const MAX_NARROW: usize = 16;

/// Which lanes a mask lets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// All of these hold.
    pub conditions: Vec<Condition>,
    /// Whether there may be more that must hold.
    pub is_partial: bool,
}

/// What is known beyond the type of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum About {
    /// Nothing.
    #[default]
    Nothing,
    /// It is an integer or a pointer.
    Index(Arc<Index>),
    /// It is a mask.
    Guard(Arc<Guard>),
}

impl About {
    /// An integer that is the same in all lanes.
    #[must_use]
    pub fn scalar(poly: Poly) -> Self {
        Self::Index(Arc::new(Index { base: None, poly, axes: Vec::new(), narrow: Vec::new() }))
    }

    /// The index, if it is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        match self {
            Self::Index(index) => Some(index),
            _ => None,
        }
    }

    /// The mask, if it is one.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        match self {
            Self::Guard(guard) => Some(guard),
            _ => None,
        }
    }

    /// Noting that the last operation on the way to it is computed in 32 bits.
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

    /// With an axis of size 1 put in at `at`.
    #[must_use]
    pub fn expanded(&self, at: usize) -> Self {
        match self {
            Self::Index(index) => {
                let mut index = (**index).clone();
                index.axes.insert(at.min(index.axes.len()), Vec::new());
                Self::Index(Arc::new(index))
            }
            other => other.clone(),
        }
    }

    /// With axis `order[i]` at `i`.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        match self {
            Self::Index(index) if index.axes.len() == order.len() => {
                let axes = order.iter().filter_map(|&at| index.axes.get(at).cloned()).collect();
                Self::Index(Arc::new(Index { axes, ..(**index).clone() }))
            }
            Self::Index(_) => Self::Nothing,
            other => other.clone(),
        }
    }
}

/// The axes of two operands after broadcasting; `None` when one `tl.arange` would run along two of them: then its atom would
/// stand for two numbers.
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

/// A value as an index.
fn index_of(value: &Value<'_>) -> Option<Index> {
    match value {
        Value::Const(constant) => {
            Some(Index { base: None, poly: Poly::of_constant(constant)?, axes: Vec::new(), narrow: Vec::new() })
        }
        Value::Tile(tile) => tile.about.index().cloned(),
        _ => None,
    }
}

/// What `left op right` is.
#[must_use]
pub(super) fn binary(op: &str, left: &Value<'_>, right: &Value<'_>) -> About {
    if op == "&" || op == "and" {
        return both(left, right);
    }
    let (Some(a), Some(b)) = (index_of(left), index_of(right)) else { return About::Nothing };
    let base = match (&a.base, &b.base, op) {
        (Some(_), Some(_), _) => return About::Nothing,
        (Some(base), None, "+" | "-") | (None, Some(base), "+") => Some(base.clone()),
        (None, None, _) => None,
        _ => return About::Nothing,
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
            About::Index(Arc::new(Index { base, poly, axes, narrow }))
        }
        None => About::Nothing,
    }
}

/// What `op operand` is.
#[must_use]
pub(super) fn unary(op: &str, about: &About) -> About {
    match (op, about) {
        ("+", about) => about.clone(),
        ("-", About::Index(index)) if index.base.is_none() => match Poly::default().plus(&index.poly, -1) {
            Some(poly) => About::Index(Arc::new(Index { poly, ..(**index).clone() })),
            None => About::Nothing,
        },
        (_, About::Guard(_)) => About::Guard(Arc::new(Guard { conditions: Vec::new(), is_partial: true })),
        _ => About::Nothing,
    }
}

/// What `left op right` lets through.
#[must_use]
pub(super) fn comparison(op: &str, left: &Value<'_>, right: &Value<'_>, span: Span) -> About {
    match (index_of(left), index_of(right)) {
        (Some(a), Some(b)) if a.base.is_none() && b.base.is_none() && joined_axes(&a.axes, &b.axes).is_some() => {
            let condition = Condition { op: op.into(), left: a.poly, right: b.poly, span };
            About::Guard(Arc::new(Guard { conditions: vec![condition], is_partial: false }))
        }
        _ => About::Guard(Arc::new(Guard { conditions: Vec::new(), is_partial: true })),
    }
}

fn both(left: &Value<'_>, right: &Value<'_>) -> About {
    let guard = |value: &Value<'_>| match value {
        Value::Tile(tile) => match &tile.about {
            About::Guard(guard) => (**guard).clone(),
            _ => Guard { conditions: Vec::new(), is_partial: true },
        },
        _ => Guard { conditions: Vec::new(), is_partial: true },
    };
    let is_mask = |value: &Value<'_>| matches!(value, Value::Tile(tile) if tile.element.number() == Some(Number::Int1) || tile.about.guard().is_some());
    if !is_mask(left) && !is_mask(right) {
        return About::Nothing;
    }
    let (mut a, b) = (guard(left), guard(right));
    a.conditions.extend(b.conditions);
    a.is_partial |= b.is_partial;
    About::Guard(Arc::new(a))
}

/// What is known when it is either of two.
#[must_use]
pub(super) fn either(a: &Tile, b: &Tile) -> About {
    if a.about == b.about {
        return a.about.clone();
    }
    About::Nothing
}
