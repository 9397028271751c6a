//! A call of a function of `triton.language`, with its evaluated arguments.

use super::arguments::Bound;
use super::shape::{Dim, Shape};
use super::value::{AbstractValue, LaneType, RuntimeValue};
use crate::syntax::Span;

/// A call of a function of `triton.language`.
pub(super) struct Application<'a, 'n> {
    /// The name in `triton.language`.
    pub(super) name: &'n str,
    /// Span of the whole call.
    pub(super) span: Span,
    /// The arguments by parameter.
    pub(super) bound: Bound<'a>,
}

impl<'a> Application<'a, '_> {
    /// The argument of the first parameter, under any of the names that releases give it.
    pub(super) fn first(&self) -> &AbstractValue<'a> {
        self.bound.any(&["input", "x", "a", "pointer", "base", "lhs", "src"]).unwrap_or(&AbstractValue::Unknown)
    }

    /// The argument of the first parameter, when it is a tile.
    pub(super) fn tile(&self) -> Option<&RuntimeValue> {
        self.first().tile()
    }
}

/// A shape that is passed as a tuple, or as separate arguments.
pub(super) fn shape_of(value: &AbstractValue<'_>) -> Option<Vec<Dim>> {
    match value {
        AbstractValue::Tuple(parts) => {
            Some(parts.iter().map(|part| part.constant().map_or(Dim::Unknown, super::value::Const::dim)).collect())
        }
        AbstractValue::Const(constant) if constant.int().is_some() => Some(vec![constant.dim()]),
        AbstractValue::Const(super::value::Const::Symbol(symbol)) => Some(vec![Dim::Symbol(symbol.clone())]),
        _ => None,
    }
}

/// A tile of a known element type.
pub(super) fn tile_of<'a>(element: LaneType, shape: Vec<Dim>) -> AbstractValue<'a> {
    AbstractValue::Tile(RuntimeValue::new(element, Some(Shape::from(shape))))
}
