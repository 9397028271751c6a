//! Reductions, scans, and functions that look at whole axes.

use super::dtype::Number;
use super::engine::Engine;
use super::functions::{Application, Transfer, tile_of};
use super::shape::Dim;
use super::value::{Const, Element, Kind, Tile, Value};

/// An axis of a reduction.
enum Axis {
    /// All of them.
    All,
    /// This one.
    One(usize),
    /// Nobody can tell.
    Unknown,
}

/// The axis that is passed; reports one that does not exist.
fn axis<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, rank: usize, default: Option<i128>) -> Option<Axis> {
    let given = call.bound.any(&["axis", "dim"]);
    let number = match (given, default) {
        (None, None) => return Some(Axis::All),
        (None, Some(axis)) => axis,
        (Some(Value::Const(Const::None)), _) => return Some(Axis::All),
        (Some(Value::Const(Const::Int(axis))), _) => *axis,
        (Some(Value::Const(Const::Bool(axis))), _) => i128::from(*axis),
        (Some(value @ (Value::Tuple(_) | Value::Tile(_) | Value::Const(Const::Float(_) | Const::Str(_)))), _) => {
            let message = format!("an axis must be one compile-time integer, and this is `{value}`");
            engine.problem(Kind::Reduction, call.span, message);
            return None;
        }
        _ => return Some(Axis::Unknown),
    };
    let whole = i128::try_from(rank).unwrap_or(0);
    let at = if number < 0 { number + whole } else { number };
    match usize::try_from(at) {
        Ok(at) if at < rank => Some(Axis::One(at)),
        _ => {
            let message = format!("axis {number} does not exist in a value of {rank} axes");
            engine.problem(Kind::Reduction, call.span, message);
            None
        }
    }
}

/// The type that small numbers are reduced in.
fn reduced_type<'a>(
    engine: &Engine<'a>,
    call: &Application<'a, '_>,
    transfer: Transfer,
    element: Element,
) -> Option<Element> {
    let Element::Number(number) = element else { return Some(Element::Unknown) };
    let asked = match call.bound.given("dtype") {
        None => None,
        Some(Value::Const(Const::Type(element))) => Some(*element),
        Some(_) => return Some(Element::Unknown),
    };
    let promoted = match transfer {
        Transfer::Sum | Transfer::Cumulative if call.name != "cumprod" => {
            if let Some(asked) = asked {
                return Some(asked);
            }
            match (number.is_int(), engine.since(3)) {
                (true, Some(false)) => number,
                (true, Some(true)) if number.bits() < 32 => {
                    if number.is_signed() {
                        Number::Int32
                    } else {
                        Number::UInt32
                    }
                }
                (true, None) if number.bits() < 32 => return Some(Element::Unknown),
                (false, _) if number == Number::Bf16 => match transfer {
                    Transfer::Cumulative => return Some(bf16_promoted(engine)),
                    _ => match engine.since(3) {
                        Some(true) => Number::Bf16,
                        Some(false) => Number::Fp32,
                        None => return Some(Element::Unknown),
                    },
                },
                _ => number,
            }
        }
        Transfer::Cumulative if number == Number::Bf16 => return Some(bf16_promoted(engine)),
        Transfer::Extreme => {
            let pairs = call.bound.flag("return_indices", false);
            match (number.bits() < 32, pairs) {
                (true, Some(false)) => {
                    if number.is_float() {
                        Number::Fp32
                    } else {
                        Number::Int32
                    }
                }
                (true, Some(true)) if number == Number::Bf16 => return Some(bf16_promoted(engine)),
                (true, None) => return Some(Element::Unknown),
                _ => number,
            }
        }
        Transfer::Position => Number::Int32,
        Transfer::Bits if number.is_float() => return None,
        _ => number,
    };
    Some(Element::Number(promoted))
}

fn bf16_promoted(engine: &Engine<'_>) -> Element {
    match engine.since(9) {
        Some(true) => Element::Number(Number::Bf16),
        Some(false) => Element::Number(Number::Fp32),
        None => Element::Unknown,
    }
}

/// A reduction along an axis, or along all.
pub(super) fn reduce<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, transfer: Transfer) -> Value<'a> {
    if matches!(transfer, Transfer::Reduce) && matches!(call.first(), Value::Tuple(_)) {
        return reduce_several(engine, call);
    }
    let Some(tile) = call.tile().cloned() else { return Value::Unknown };
    let Some(shape) = &tile.shape else { return Value::Unknown };
    if shape.is_empty() && engine.since(1) == Some(true) {
        let axis_given = call.bound.given("axis").is_some();
        if axis_given {
            let message = format!("`tl.{}` reduces a tile, and `{tile}` is a scalar", call.name);
            engine.problem(Kind::Reduction, call.span, message);
        }
        return Value::Unknown;
    }
    let Some(axis) = axis(engine, call, shape.len(), None) else { return Value::Unknown };
    let Some(element) = reduced_type(engine, call, transfer, tile.element) else {
        let message = format!("`tl.{}` is for integers, and this is `{tile}`", call.name);
        engine.problem(Kind::Reduction, call.span, message);
        return Value::Unknown;
    };
    let Some(keeps) = call.bound.flag("keep_dims", false) else { return Value::Tile(Tile::new(element, None)) };
    let Some(sizes) = without(shape, &axis, keeps) else { return Value::Tile(Tile::new(element, None)) };
    let result = tile_of(element, sizes.clone());
    match (transfer, call.bound.flag("return_indices", false)) {
        (Transfer::Extreme, Some(true)) => Value::tuple(vec![result, tile_of(Element::Number(Number::Int32), sizes)]),
        (Transfer::Extreme, None) => Value::Unknown,
        _ => result,
    }
}

fn without(shape: &[Dim], axis: &Axis, keeps: bool) -> Option<Vec<Dim>> {
    let is_gone = |at: usize| match axis {
        Axis::All => true,
        Axis::One(axis) => *axis == at,
        Axis::Unknown => false,
    };
    if matches!(axis, Axis::Unknown) {
        return keeps.then(|| vec![Dim::Unknown; shape.len()]);
    }
    let sizes = shape.iter().enumerate();
    Some(
        sizes
            .filter_map(|(at, size)| if is_gone(at) { keeps.then_some(Dim::Known(1)) } else { Some(size.clone()) })
            .collect(),
    )
}

fn reduce_several<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let Value::Tuple(parts) = call.first().clone() else { return Value::Unknown };
    let keeps = call.bound.flag("keep_dims", false);
    let mut results = Vec::new();
    for part in parts.iter() {
        let (Value::Tile(Tile { element, shape: Some(shape), .. }), Some(keeps)) = (part, keeps) else {
            return Value::Unknown;
        };
        let Some(axis) = axis(engine, call, shape.len(), None) else { return Value::Unknown };
        match without(shape, &axis, keeps) {
            Some(sizes) => results.push(tile_of(*element, sizes)),
            None => return Value::Unknown,
        }
    }
    Value::tuple(results)
}

/// A running result along an axis: the shape stays.
pub(super) fn scan<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, transfer: Transfer) -> Value<'a> {
    if let Value::Tuple(parts) = call.first() {
        return if parts.iter().all(|part| part.tile().is_some()) { call.first().clone() } else { Value::Unknown };
    }
    let Some(tile) = call.tile().cloned() else { return Value::Unknown };
    let Some(shape) = &tile.shape else { return Value::Unknown };
    if !shape.is_empty() && axis(engine, call, shape.len(), Some(0)).is_none() {
        return Value::Unknown;
    }
    let element = match transfer {
        Transfer::Scan => Some(tile.element),
        _ => reduced_type(engine, call, transfer, tile.element),
    };
    element.map_or(Value::Unknown, |element| Value::Tile(tile.with(element)))
}

/// `tl.sort(x)`, `tl.flip(x)`
pub(super) fn reorder<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let Some(tile) = call.tile().cloned() else { return Value::Unknown };
    let rank = tile.shape.as_ref().map(|shape| shape.len());
    if let (Some(Value::Const(Const::Int(dim))), Some(rank)) = (call.bound.given("dim"), rank) {
        let last = i128::try_from(rank).unwrap_or(0) - 1;
        if call.name == "sort" && *dim != last {
            let message = format!("`tl.sort` sorts along the last axis only, which is {last}");
            engine.problem(Kind::Reduction, call.span, message);
            return Value::Unknown;
        }
    }
    Value::Tile(tile)
}

/// `tl.histogram(x, num_bins)`
pub(super) fn histogram<'a>(call: &Application<'a, '_>) -> Value<'a> {
    let bins = call.bound.constant("num_bins").map_or(Dim::Unknown, Const::dim);
    tile_of(Element::Number(Number::Int32), vec![bins])
}

/// `tl.gather(src, index, axis)`
pub(super) fn gather<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let (Some(source), Some(Value::Tile(index))) = (call.tile().cloned(), call.bound.get("index").cloned()) else {
        return Value::Unknown;
    };
    if index.element.number().is_some_and(Number::is_float) {
        engine.problem(Kind::Argument, call.span, format!("the index must be an integer tile, not `{index}`"));
        return Value::Unknown;
    }
    if let (Some(a), Some(b)) = (&source.shape, &index.shape)
        && a.len() != b.len()
    {
        let message = format!("source and index must have as many axes, and these are `{source}` and `{index}`");
        engine.problem(Kind::Argument, call.span, message);
        return Value::Unknown;
    }
    Value::Tile(Tile::new(source.element, index.shape))
}
