//! The findings of the interpreter.

use super::super::fills::Fill;
use crate::kernel::ast::Expr;
use crate::syntax::Span;

/// A reduction that mixes in lanes which a masked load without `other` left undefined.
#[derive(Clone, Debug, PartialEq)]
pub struct UndefinedReduction<'a> {
    /// The load.
    pub load: &'a Expr,
    /// The first reduction that its undefined lanes reach.
    pub reduction: &'a Expr,
    /// The name of that reduction: `sum`, `max`, …
    pub name: &'static str,
    /// Span of the assignment of the load's mask, when the mask is a name.
    pub mask: Option<Span>,
    /// Whether filling with zero would change none of the reductions that these lanes reach.
    pub zero_is_neutral: bool,
    /// Whether the first reduction gets the loaded value itself, at most cast.
    pub as_loaded: bool,
}

/// A reduction that mixes in lanes of padding which are not neutral in it.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedReduction<'a> {
    /// The padding as it reaches the reduction.
    pub fill: Fill<'a>,
    /// The reduction.
    pub reduction: &'a Expr,
    /// The name of the reduction: `sum`, `max`, …
    pub name: &'static str,
}

/// The result of [`lanes_that_count`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reductions<'a> {
    /// Reductions that mix in undefined lanes, in source order of the loads.
    pub undefined: Vec<UndefinedReduction<'a>>,
    /// Reductions that mix in padding, in source order.
    pub padded: Vec<PaddedReduction<'a>>,
}
