//! Transfer functions that create values.

use super::dtype::Dtype;
use super::engine::Engine;
use std::sync::Arc;

use super::application::{Application, shape_of, tile_of};
use super::index::{Atom, Index, LaneFact, Poly};
use super::shape::{self, Dim};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::syntax::Span;

/// The maximum number of lanes of a tile.
pub(super) const MAX_LANES: i64 = 1 << 20;

/// `tl.arange(start, end)`
pub(super) fn arange<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let get = |name: &str| call.bound.get(name).cloned().unwrap_or(AbstractValue::Unknown);
    let (start, end) = (get("start"), get("end"));
    for bound in [&start, &end] {
        if matches!(bound, AbstractValue::Tile(_) | AbstractValue::Const(Const::Float(_) | Const::Str(_) | Const::None))
        {
            let message = format!("the bounds of `tl.arange` must be `tl.constexpr` integers, and `{bound}` is none");
            engine.problem(ProblemKind::Arange, call.span, message);
            return tile_of(LaneType::Number(Dtype::Int32), vec![Dim::Unknown]);
        }
    }
    let size = match (&start, &end) {
        (AbstractValue::Const(a), AbstractValue::Const(b)) => match super::constant_folding::binary("-", b, a) {
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
            engine.problem(ProblemKind::Arange, call.span, message);
            return tile_of(LaneType::Number(Dtype::Int32), vec![Dim::Unknown]);
        }
    }
    let first = start.constant().and_then(Const::int);
    let lane = engine.lane(call.span, first, &size);
    let poly = Poly::atom(Atom::Lane(lane));
    let about = LaneFact::Index(Arc::new(Index { base: None, poly, axes: vec![vec![lane]], narrow: Vec::new() }));
    AbstractValue::Tile(RuntimeValue::new(LaneType::Number(Dtype::Int32), Some([size].into())).knowing(about))
}

/// `tl.zeros(shape, dtype)`, `tl.full(shape, value, dtype)`
pub(super) fn full<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let element = match call.bound.get("dtype") {
        Some(AbstractValue::Const(Const::Type(element))) => *element,
        Some(AbstractValue::Const(constant @ (Const::Str(_) | Const::Int(_) | Const::None))) => {
            let message = format!("`{constant}` is not a dtype; write one of Triton's, such as `tl.float32`");
            engine.problem(ProblemKind::Argument, call.span, message);
            LaneType::Unknown
        }
        Some(AbstractValue::Member(path)) if path.starts_with("numpy.") || path.starts_with("torch.") => {
            engine.problem(ProblemKind::Argument, call.span, format!("`{path}` is not a Triton dtype"));
            LaneType::Unknown
        }
        Some(AbstractValue::Builtin(name @ ("int" | "float"))) => {
            let message = format!("`{name}` is not a Triton dtype; write `tl.{name}32`");
            engine.problem(ProblemKind::Argument, call.span, message);
            LaneType::Unknown
        }
        _ => LaneType::Unknown,
    };
    // Zero is the same in each type.
    if let (LaneType::Number(number), Some(AbstractValue::Const(value @ Const::Float(filled)))) =
        (element, call.bound.get("value"))
        && number.is_int()
        && *filled != 0.0
    {
        engine.problem(
            ProblemKind::Argument,
            call.span,
            format!("a tile of `{number}` cannot be filled with `{value}`"),
        );
    }
    if let Some(AbstractValue::Tile(value)) = call.bound.get("value")
        && value.is_block()
        && value.shape.as_ref().is_some_and(|shape| shape::lanes(shape).known().is_some_and(|lanes| lanes > 1))
    {
        engine.problem(ProblemKind::Argument, call.span, format!("`tl.full` fills with a scalar, not with `{value}`"));
    }
    let Some(given) = call.bound.get("shape") else { return AbstractValue::Unknown };
    sized(engine, call.span, given, element)
}

/// A tile of a shape that is passed. Reports shapes that no tile can have.
pub(super) fn sized<'a>(
    engine: &mut Engine<'a>,
    span: Span,
    given: &AbstractValue<'a>,
    element: LaneType,
) -> AbstractValue<'a> {
    let Some(sizes) = checked_shape(engine, span, given) else {
        return AbstractValue::Tile(RuntimeValue::new(element, None));
    };
    tile_of(element, sizes)
}

/// The sizes that are passed as a shape. Reports values that cannot be sizes.
pub(super) fn checked_shape<'a>(engine: &mut Engine<'a>, span: Span, given: &AbstractValue<'a>) -> Option<Vec<Dim>> {
    let parts: Vec<&AbstractValue<'a>> = match given {
        AbstractValue::Tuple(parts) => parts.iter().collect(),
        other => vec![other],
    };
    for part in parts {
        if matches!(part, AbstractValue::Tile(_) | AbstractValue::Const(Const::Float(_) | Const::Str(_))) {
            let message = format!("the size of a tile must be a `tl.constexpr` integer, and `{part}` is none");
            engine.problem(ProblemKind::TileSize, span, message);
            return None;
        }
    }
    if let AbstractValue::Const(constant) = given
        && constant.int().is_some()
    {
        let message = format!("a shape must be a tuple, such as `({constant},)`");
        engine.problem(ProblemKind::TileSize, span, message);
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
            engine.problem(ProblemKind::TileSize, span, message);
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
            engine.problem(ProblemKind::TileSize, span, message);
            false
        }
        _ => true,
    }
}

/// `tl.program_id(axis)`
pub(super) fn program<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    match call.bound.get("axis") {
        Some(AbstractValue::Const(constant)) => {
            let is_none = matches!(constant, Const::Str(_) | Const::None | Const::Float(_));
            if is_none || constant.int().is_some_and(|axis| !(0..3).contains(&axis)) {
                let message = format!("a grid has the axes 0, 1 and 2, but this is axis {constant}");
                engine.problem(ProblemKind::Argument, call.span, message);
            }
        }
        Some(AbstractValue::Tile(_)) => {
            engine.problem(ProblemKind::Argument, call.span, "the axis of the grid must be a compile-time value");
        }
        _ => {}
    }
    let axis = call.bound.constant("axis").and_then(Const::int).and_then(|axis| u8::try_from(axis).ok());
    let atom = axis.map(|axis| if call.name == "program_id" { Atom::Program(axis) } else { Atom::Programs(axis) });
    let about = atom.map_or(LaneFact::Nothing, |atom| LaneFact::scalar(Poly::atom(atom)));
    AbstractValue::Tile(RuntimeValue::scalar(Dtype::Int32).knowing(about))
}

/// `tl.rand(seed, offset)`
pub(super) fn random<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let seed = call.bound.get("seed").and_then(Engine::number_of);
    if let Some(number) = seed.filter(|number| number.is_float() && engine.since(3) == Some(true)) {
        engine.problem(ProblemKind::Argument, call.span, format!("the seed must be an integer, not `{number}`"));
        return AbstractValue::Unknown;
    }
    if let Some(AbstractValue::Tile(tile)) = call.bound.get("seed")
        && tile.element.is_pointer()
    {
        let message = "the seed is a pointer, whose address would be the seed; load it with `tl.load`";
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    if let Some(AbstractValue::Const(offset @ (Const::Int(_) | Const::Float(_) | Const::Bool(_)))) =
        call.bound.get("offset")
    {
        let message =
            format!("the offset must be a run-time value, not `{offset}`; pass a tile, such as a `tl.arange`");
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    if matches!(call.name, "randint" | "randint4x") {
        return AbstractValue::Unknown;
    }
    let shapes: Vec<Option<shape::Shape>> = ["seed", "offset"]
        .iter()
        .map(|name| match call.bound.get(name) {
            Some(AbstractValue::Tile(tile)) => tile.shape.clone(),
            Some(AbstractValue::Const(_)) => Some(super::elementwise::scalar_shape()),
            _ => None,
        })
        .collect();
    match shapes.as_slice() {
        [Some(seed), Some(offset)] => match shape::broadcast(seed, offset) {
            Ok(shape) => AbstractValue::Tile(RuntimeValue::new(LaneType::Number(Dtype::Fp32), Some(shape))),
            Err(_) => AbstractValue::Unknown,
        },
        _ => AbstractValue::Unknown,
    }
}
