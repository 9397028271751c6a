//! Transfer functions that create values.

use super::dtype::Number;
use super::engine::Engine;
use std::sync::Arc;

use super::functions::{Application, shape_of, tile_of};
use super::index::{About, Atom, Index, Poly};
use super::shape::{self, Dim};
use super::value::{Const, Element, Kind, Tile, Value};
use crate::syntax::Span;

/// The maximum number of lanes of a tile.
pub(super) const MAX_LANES: i64 = 1 << 20;

/// `tl.arange(start, end)`
pub(super) fn arange<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let get = |name: &str| call.bound.get(name).cloned().unwrap_or(Value::Unknown);
    let (start, end) = (get("start"), get("end"));
    for bound in [&start, &end] {
        if matches!(bound, Value::Tile(_) | Value::Const(Const::Float(_) | Const::Str(_) | Const::None)) {
            let message = format!("the bounds of `tl.arange` must be `tl.constexpr` integers, and `{bound}` is none");
            engine.problem(Kind::Arange, call.span, message);
            return tile_of(Element::Number(Number::Int32), vec![Dim::Unknown]);
        }
    }
    let size = match (&start, &end) {
        (Value::Const(a), Value::Const(b)) => match super::fold::binary("-", b, a) {
            Some(length) => length.dim(),
            None => Dim::Unknown,
        },
        _ => Dim::Unknown,
    };
    if let Some(size) = size.known() {
        let refused = if size <= 0 {
            Some(format!("`tl.arange` needs an end behind its start, and this is `{start}` to `{end}`"))
        } else if size & (size - 1) != 0 {
            Some(format!("the length of `tl.arange` must be a power of 2, and {size} is none"))
        } else if size > MAX_LANES {
            Some(format!("a tile has at most {MAX_LANES} lanes, and this would have {size}"))
        } else {
            None
        };
        if let Some(message) = refused {
            engine.problem(Kind::Arange, call.span, message);
            return tile_of(Element::Number(Number::Int32), vec![Dim::Unknown]);
        }
    }
    let first = start.constant().and_then(Const::int);
    let lane = engine.lane(call.span, first, &size);
    let poly = Poly::atom(Atom::Lane(lane));
    let about = About::Index(Arc::new(Index { base: None, poly, axes: vec![vec![lane]], narrow: Vec::new() }));
    Value::Tile(Tile::new(Element::Number(Number::Int32), Some([size].into())).knowing(about))
}

/// `tl.zeros(shape, dtype)`, `tl.full(shape, value, dtype)`
pub(super) fn full<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let element = match call.bound.get("dtype") {
        Some(Value::Const(Const::Type(element))) => *element,
        Some(Value::Const(constant @ (Const::Str(_) | Const::Int(_) | Const::None))) => {
            let message = format!("`{constant}` is no dtype; write one of Triton's, such as `tl.float32`");
            engine.problem(Kind::Argument, call.span, message);
            Element::Unknown
        }
        Some(Value::Member(path)) if path.starts_with("numpy.") || path.starts_with("torch.") => {
            engine.problem(Kind::Argument, call.span, format!("`{path}` is no dtype of Triton's"));
            Element::Unknown
        }
        Some(Value::Builtin(name @ ("int" | "float"))) => {
            let message = format!("`{name}` is no dtype of Triton's; write `tl.{name}32`");
            engine.problem(Kind::Argument, call.span, message);
            Element::Unknown
        }
        _ => Element::Unknown,
    };
    if let (Element::Number(number), Some(Value::Const(value @ Const::Float(_)))) = (element, call.bound.get("value"))
        && number.is_int()
    {
        engine.problem(Kind::Argument, call.span, format!("a tile of `{number}` cannot be filled with `{value}`"));
    }
    if let Some(Value::Tile(value)) = call.bound.get("value")
        && value.is_block()
        && value.shape.as_ref().is_some_and(|shape| shape::lanes(shape).known().is_some_and(|lanes| lanes > 1))
    {
        engine.problem(Kind::Argument, call.span, format!("`tl.full` fills with a scalar, not with `{value}`"));
    }
    let Some(given) = call.bound.get("shape") else { return Value::Unknown };
    sized(engine, call.span, given, element)
}

/// A tile of a shape that is passed. Reports shapes that no tile can have.
pub(super) fn sized<'a>(engine: &mut Engine<'a>, span: Span, given: &Value<'a>, element: Element) -> Value<'a> {
    let Some(sizes) = checked_shape(engine, span, given) else {
        return Value::Tile(Tile::new(element, None));
    };
    tile_of(element, sizes)
}

/// The sizes that are passed as a shape. Reports values that cannot be sizes.
pub(super) fn checked_shape<'a>(engine: &mut Engine<'a>, span: Span, given: &Value<'a>) -> Option<Vec<Dim>> {
    let parts: Vec<&Value<'a>> = match given {
        Value::Tuple(parts) => parts.iter().collect(),
        other => vec![other],
    };
    for part in parts {
        if matches!(part, Value::Tile(_) | Value::Const(Const::Float(_) | Const::Str(_))) {
            let message = format!("the size of a tile must be a `tl.constexpr` integer, and `{part}` is none");
            engine.problem(Kind::TileSize, span, message);
            return None;
        }
    }
    if let Value::Const(constant) = given
        && constant.int().is_some()
    {
        let message = format!("a shape must be a tuple, such as `({constant},)`");
        engine.problem(Kind::TileSize, span, message);
        return None;
    }
    let sizes = shape_of(given)?;
    check_sizes(engine, span, &sizes).then_some(sizes)
}

/// Reports sizes that no tile can have.
pub(super) fn check_sizes(engine: &mut Engine<'_>, span: Span, sizes: &[Dim]) -> bool {
    for (axis, size) in sizes.iter().enumerate() {
        if let Some(size) = size.known()
            && (size <= 0 || size & (size - 1) != 0)
        {
            let message = format!("the sizes of a tile must be powers of 2, and axis {axis} would have {size}");
            engine.problem(Kind::TileSize, span, message);
            return false;
        }
    }
    check_lanes(engine, span, sizes)
}

/// Reports tiles with too many lanes.
pub(super) fn check_lanes(engine: &mut Engine<'_>, span: Span, sizes: &[Dim]) -> bool {
    match shape::lanes(sizes).known() {
        Some(lanes) if lanes > MAX_LANES => {
            let message = format!("a tile has at most {MAX_LANES} lanes, and this would have {lanes}");
            engine.problem(Kind::TileSize, span, message);
            false
        }
        _ => true,
    }
}

/// `tl.program_id(axis)`
pub(super) fn program<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    match call.bound.get("axis") {
        Some(Value::Const(constant)) => {
            let is_none = matches!(constant, Const::Str(_) | Const::None | Const::Float(_));
            if is_none || constant.int().is_some_and(|axis| !(0..3).contains(&axis)) {
                let message = format!("a grid has the axes 0, 1 and 2, and this asks for {constant}");
                engine.problem(Kind::Argument, call.span, message);
            }
        }
        Some(Value::Tile(_)) => {
            engine.problem(Kind::Argument, call.span, "the axis of the grid must be a compile-time value");
        }
        _ => {}
    }
    let axis = call.bound.constant("axis").and_then(Const::int).and_then(|axis| u8::try_from(axis).ok());
    let atom = axis.map(|axis| if call.name == "program_id" { Atom::Program(axis) } else { Atom::Programs(axis) });
    let about = atom.map_or(About::Nothing, |atom| About::scalar(Poly::atom(atom)));
    Value::Tile(Tile::scalar(Number::Int32).knowing(about))
}

/// `tl.rand(seed, offset)`
pub(super) fn random<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let seed = call.bound.get("seed").and_then(Engine::number_of);
    if let Some(number) = seed.filter(|number| number.is_float() && engine.since(3) == Some(true)) {
        engine.problem(Kind::Argument, call.span, format!("the seed must be an integer, not `{number}`"));
        return Value::Unknown;
    }
    if let Some(Value::Const(offset @ (Const::Int(_) | Const::Float(_) | Const::Bool(_)))) = call.bound.get("offset") {
        let message =
            format!("the offset must be a run-time value, not `{offset}`; pass a tile, such as a `tl.arange`");
        engine.problem(Kind::Argument, call.span, message);
        return Value::Unknown;
    }
    if matches!(call.name, "randint" | "randint4x") {
        return Value::Unknown;
    }
    let shapes: Vec<Option<shape::Shape>> = ["seed", "offset"]
        .iter()
        .map(|name| match call.bound.get(name) {
            Some(Value::Tile(tile)) => tile.shape.clone(),
            Some(Value::Const(_)) => Some(super::transfer::scalar_shape()),
            _ => None,
        })
        .collect();
    match shapes.as_slice() {
        [Some(seed), Some(offset)] => match shape::broadcast(seed, offset) {
            Ok(shape) => Value::Tile(Tile::new(Element::Number(Number::Fp32), Some(shape))),
            Err(_) => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}
