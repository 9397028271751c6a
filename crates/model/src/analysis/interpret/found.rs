//! What a run finds.

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
    /// Where the load's mask is assigned, when it is a name.
    pub mask: Option<Span>,
    /// Whether a zero from the load would change none of the reductions that these lanes reach.
    pub zero_is_neutral: bool,
    /// Whether the first reduction takes what was loaded, at most cast.
    pub as_loaded: bool,
}

/// A reduction that mixes in lanes of padding which are not neutral in it.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedReduction<'a> {
    /// The padding as the reduction finds it.
    pub fill: Fill<'a>,
    /// The reduction.
    pub reduction: &'a Expr,
    /// Its name: `sum`, `max`, …
    pub name: &'static str,
}

/// What [`lanes_that_count`] finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reductions<'a> {
    /// Those that mix in undefined lanes, in source order of the loads.
    pub undefined: Vec<UndefinedReduction<'a>>,
    /// Those that mix in padding, in source order.
    pub padded: Vec<PaddedReduction<'a>>,
}
