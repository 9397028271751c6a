//! Transfer functions of reductions, scans and other operations along whole axes.

use super::application::{Application, tile_of};
use super::dtype::Dtype;
use super::engine::Engine;
use super::functions::Transfer;
use super::shape::Dim;
use super::value::{AbstractValue, Const, JitFunction, LaneType, ProblemKind, RuntimeValue};

/// The axis of a reduction.
enum Axis {
    /// All axes.
    All,
    /// A single axis.
    One(usize),
    /// Not known.
    Unknown,
}

/// The axis that is passed. Reports one that does not exist.
fn axis<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, rank: usize, default: Option<i128>) -> Option<Axis> {
    let given = call.bound.any(&["axis", "dim"]);
    let number = match (given, default) {
        (None, None) => return Some(Axis::All),
        (None, Some(axis)) => axis,
        (Some(AbstractValue::Const(Const::None)), _) => return Some(Axis::All),
        (Some(AbstractValue::Const(Const::Int(axis))), _) => *axis,
        (Some(AbstractValue::Const(Const::Bool(axis))), _) => i128::from(*axis),
        (
            Some(
                value @ (AbstractValue::Tuple(_)
                | AbstractValue::Tile(_)
                | AbstractValue::Const(Const::Float(_) | Const::Str(_))),
            ),
            _,
        ) => {
            let message = format!("an axis must be one compile-time integer, and this is `{value}`");
            engine.problem(ProblemKind::Reduction, call.span, message);
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
            engine.problem(ProblemKind::Reduction, call.span, message);
            None
        }
    }
}

/// The type in which a reduction is computed: small numbers are widened.
fn reduced_type<'a>(
    engine: &Engine<'a>,
    call: &Application<'a, '_>,
    transfer: Transfer,
    element: LaneType,
) -> Option<LaneType> {
    let LaneType::Number(number) = element else { return Some(LaneType::Unknown) };
    let asked = match call.bound.given("dtype") {
        None => None,
        Some(AbstractValue::Const(Const::Type(element))) => Some(*element),
        Some(_) => return Some(LaneType::Unknown),
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
                        Dtype::Int32
                    } else {
                        Dtype::UInt32
                    }
                }
                (true, None) if number.bits() < 32 => return Some(LaneType::Unknown),
                (false, _) if number == Dtype::Bf16 => match transfer {
                    Transfer::Cumulative => return Some(bf16_promoted(engine)),
                    _ => match engine.since(3) {
                        Some(true) => Dtype::Bf16,
                        Some(false) => Dtype::Fp32,
                        None => return Some(LaneType::Unknown),
                    },
                },
                _ => number,
            }
        }
        Transfer::Cumulative if number == Dtype::Bf16 => return Some(bf16_promoted(engine)),
        Transfer::Extreme => {
            let pairs = call.bound.flag("return_indices", false);
            match (number.bits() < 32, pairs) {
                (true, Some(false)) => {
                    if number.is_float() {
                        Dtype::Fp32
                    } else {
                        Dtype::Int32
                    }
                }
                (true, Some(true)) if number == Dtype::Bf16 => return Some(bf16_promoted(engine)),
                (true, None) => return Some(LaneType::Unknown),
                _ => number,
            }
        }
        Transfer::Position => Dtype::Int32,
        Transfer::Bits if number.is_float() => return None,
        _ => number,
    };
    Some(LaneType::Number(promoted))
}

fn bf16_promoted(engine: &Engine<'_>) -> LaneType {
    match engine.since(9) {
        Some(true) => LaneType::Number(Dtype::Bf16),
        Some(false) => LaneType::Number(Dtype::Fp32),
        None => LaneType::Unknown,
    }
}

/// A reduction along an axis, or along all axes.
pub(super) fn reduce<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, transfer: Transfer) -> AbstractValue<'a> {
    if matches!(transfer, Transfer::Reduce) && matches!(call.first(), AbstractValue::Tuple(_)) {
        if !check_combine(engine, call) {
            return AbstractValue::Unknown;
        }
        return reduce_several(engine, call);
    }
    if matches!(transfer, Transfer::Reduce) && !check_combine(engine, call) {
        return AbstractValue::Unknown;
    }
    if let value @ (AbstractValue::Tuple(_) | AbstractValue::Const(Const::Int(_) | Const::Float(_) | Const::Bool(_))) =
        call.first()
    {
        engine.problem(
            ProblemKind::Reduction,
            call.span,
            format!("`tl.{}` reduces a tile, and `{value}` is none", call.name),
        );
        return AbstractValue::Unknown;
    }
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let Some(shape) = &tile.shape else { return AbstractValue::Unknown };
    if shape.is_empty() {
        let message = format!("`tl.{}` reduces a tile, and `{tile}` is a scalar", call.name);
        engine.problem(ProblemKind::Reduction, call.span, message);
        return AbstractValue::Unknown;
    }
    let wants_indices = matches!(transfer, Transfer::Extreme) && call.bound.flag("return_indices", false) == Some(true);
    if (wants_indices || matches!(transfer, Transfer::Position)) && call.bound.given("axis").is_none() {
        let is_told = call.bound.get("axis").is_none_or(|axis| *axis == AbstractValue::none());
        if is_told && wants_indices && !shape.is_empty() {
            let message = format!("`tl.{}` needs an `axis` to give positions", call.name);
            engine.problem(ProblemKind::Reduction, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    let Some(axis) = axis(engine, call, shape.len(), None) else { return AbstractValue::Unknown };
    let Some(element) = reduced_type(engine, call, transfer, tile.element) else {
        let message = format!("`tl.{}` is for integers, and this is `{tile}`", call.name);
        engine.problem(ProblemKind::Reduction, call.span, message);
        return AbstractValue::Unknown;
    };
    let Some(keeps) = call.bound.flag("keep_dims", false) else {
        return AbstractValue::Tile(RuntimeValue::new(element, None));
    };
    let Some(sizes) = without(shape, &axis, keeps) else {
        return AbstractValue::Tile(RuntimeValue::new(element, None));
    };
    let result = tile_of(element, sizes.clone());
    match (transfer, call.bound.flag("return_indices", false)) {
        (Transfer::Extreme, Some(true)) => {
            AbstractValue::tuple(vec![result, tile_of(LaneType::Number(Dtype::Int32), sizes)])
        }
        (Transfer::Extreme, None) => AbstractValue::Unknown,
        _ => result,
    }
}

/// Reports a combining function that the file does not define, or that takes another number of arguments.
fn check_combine<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> bool {
    let function = call.bound.get("combine_fn").cloned();
    let count = match call.first() {
        AbstractValue::Tuple(parts) => parts.len(),
        AbstractValue::Tile(_) => 1,
        _ => return true,
    };
    let message = match function {
        Some(AbstractValue::Kernel(callee)) => match engine.home(callee.file).0.kernels.get(callee.index) {
            _ if callee.is_one_of_several => return true,
            Some(kernel)
                if kernel.plain
                    && kernel.params.len() != 2 * count
                    && !kernel.params.iter().any(|param| param.variadic || param.default.is_some()) =>
            {
                format!(
                    "`{}` takes {} values, and combining {count} pairs needs {}",
                    kernel.name,
                    kernel.params.len(),
                    2 * count
                )
            }
            Some(kernel) if kernel.plain && kernel.params.len() == 2 * count => {
                match combined(engine, call, callee, count) {
                    Some(message) => message,
                    None => return true,
                }
            }
            _ => return true,
        },
        Some(AbstractValue::Const(Const::Int(_) | Const::None)) => {
            "`combine_fn` must be a function under `@triton.jit`; the axis comes before it".to_owned()
        }
        Some(AbstractValue::Builtin(_)) => "`combine_fn` must be a function under `@triton.jit`".to_owned(),
        Some(AbstractValue::Member(path)) if engine.is_builtin(&path) => {
            "`combine_fn` must be a function under `@triton.jit`; wrap this one".to_owned()
        }
        _ => return true,
    };
    engine.problem(ProblemKind::Reduction, call.span, message);
    false
}

/// Runs a combining function on the lanes that it gets. Since 3.4 its results must have the types of the lanes.
fn combined<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    callee: JitFunction,
    count: usize,
) -> Option<String> {
    let kernel = engine.home(callee.file).0.kernels.get(callee.index)?;
    let parts: Vec<AbstractValue<'a>> = match call.first() {
        AbstractValue::Tuple(parts) => parts.to_vec(),
        tile => vec![tile.clone()],
    };
    let lanes: Option<Vec<AbstractValue<'a>>> =
        parts.iter().map(|part| Some(AbstractValue::scalar(part.tile()?.element.number()?))).collect();
    let lanes = lanes?;
    let arguments = lanes.iter().chain(&lanes).cloned().collect();
    let result = engine.run_helper(callee, kernel, arguments);
    if engine.since(4) != Some(true) {
        return None;
    }
    match &result {
        AbstractValue::Tuple(results) if results.len() != count => {
            Some(format!("`{}` returns {} values, and must return {count}", kernel.name, results.len()))
        }
        AbstractValue::Tile(tile) if count > 1 || lanes[0].tile().is_some_and(|lane| lane.differs(tile)) => {
            Some(format!(
                "`{}` returns `{tile}`, and must return what it gets: `{}`",
                kernel.name,
                AbstractValue::tuple(lanes)
            ))
        }
        _ => None,
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

fn reduce_several<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let AbstractValue::Tuple(parts) = call.first().clone() else { return AbstractValue::Unknown };
    let keeps = call.bound.flag("keep_dims", false);
    let mut results = Vec::new();
    for part in parts.iter() {
        let (AbstractValue::Tile(RuntimeValue { element, shape: Some(shape), .. }), Some(keeps)) = (part, keeps) else {
            return AbstractValue::Unknown;
        };
        let Some(axis) = axis(engine, call, shape.len(), None) else { return AbstractValue::Unknown };
        match without(shape, &axis, keeps) {
            Some(sizes) => results.push(tile_of(*element, sizes)),
            None => return AbstractValue::Unknown,
        }
    }
    AbstractValue::tuple(results)
}

/// A scan along an axis, which keeps the shape.
pub(super) fn scan<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, transfer: Transfer) -> AbstractValue<'a> {
    if let AbstractValue::Tuple(parts) = call.first() {
        return if parts.iter().all(|part| part.tile().is_some()) {
            call.first().clone()
        } else {
            AbstractValue::Unknown
        };
    }
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let Some(shape) = &tile.shape else { return AbstractValue::Unknown };
    if axis(engine, call, shape.len(), Some(0)).is_none() {
        return AbstractValue::Unknown;
    }
    let element = match transfer {
        Transfer::Scan => Some(tile.element),
        _ => reduced_type(engine, call, transfer, tile.element),
    };
    element.map_or(AbstractValue::Unknown, |element| AbstractValue::Tile(tile.with(element)))
}

/// `tl.sort(x)`, `tl.flip(x)`, `tl.topk(x, k)`
pub(super) fn reorder<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let Some(rank) = tile.shape.as_ref().map(|shape| shape.len()) else { return AbstractValue::Unknown };
    let dim = call.bound.given("dim").and_then(AbstractValue::constant).and_then(Const::int);
    let last = i128::try_from(rank).unwrap_or(0) - 1;
    let flips_last_only = call.name == "flip" && engine.since(4) == Some(false);
    let refused = match dim {
        Some(dim) if dim != last && (call.name != "flip" || flips_last_only) => {
            Some(format!("`tl.{}` works along the last axis only, which is {last}", call.name))
        }
        None if call.name == "flip"
            && call.bound.given("dim").is_none()
            && engine.since(4) == Some(true)
            && engine.since(9) == Some(false) =>
        {
            Some(format!("`tl.flip` needs `dim={last}` from Triton 3.4 to 3.8"))
        }
        _ => None,
    };
    if let Some(message) = refused {
        engine.problem(ProblemKind::Reduction, call.span, message);
        return AbstractValue::Unknown;
    }
    if call.name != "topk" {
        return AbstractValue::Tile(tile);
    }
    let count = call.bound.constant("k").map_or(Dim::Unknown, Const::dim);
    if let Some(count) = count.known()
        && (count <= 0 || count & (count - 1) != 0)
        && engine.since(9) == Some(true)
    {
        engine.problem(
            ProblemKind::Reduction,
            call.span,
            format!("`tl.topk` gives a power of 2 of values, and {count} is none"),
        );
        return AbstractValue::Unknown;
    }
    let is_power = count.known().is_some_and(|count| count > 0 && count & (count - 1) == 0);
    let Some(mut sizes) = tile.shape.as_ref().map(|shape| shape.to_vec()) else { return AbstractValue::Unknown };
    if let Some(size) = sizes.last_mut() {
        *size = if is_power { count } else { Dim::Unknown };
    }
    tile_of(tile.element, sizes)
}

/// `tl.histogram(x, num_bins)`
pub(super) fn histogram<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let bins = call.bound.constant("num_bins").map_or(Dim::Unknown, Const::dim);
    let mut refused = None;
    if let Some(tile) = call.tile() {
        if tile.shape.as_ref().is_some_and(|shape| shape.len() != 1) {
            refused = Some(format!("`tl.histogram` counts a tile of one axis, not `{tile}`"));
        } else if tile.element.number().is_some_and(Dtype::is_float) {
            refused = Some(format!("`tl.histogram` counts integers, not `{tile}`"));
        }
    }
    if call.bound.get("num_bins").is_some_and(AbstractValue::is_runtime) {
        refused = Some("`num_bins` must be a compile-time value".to_owned());
    }
    let is_power = bins.known().is_none_or(|bins| bins > 0 && bins & (bins - 1) == 0);
    if !is_power && engine.since(2) == Some(true) {
        refused = Some(format!("`num_bins` must be a power of 2, and {bins} is none"));
    }
    if let Some(message) = refused {
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    tile_of(LaneType::Number(Dtype::Int32), vec![bins])
}

/// `tl.gather(src, index, axis)`
pub(super) fn gather<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let (Some(source), Some(AbstractValue::Tile(index))) = (call.tile().cloned(), call.bound.get("index").cloned())
    else {
        return AbstractValue::Unknown;
    };
    if index.element.number().is_some_and(Dtype::is_float) {
        engine.problem(ProblemKind::Argument, call.span, format!("the index must be an integer tile, not `{index}`"));
        return AbstractValue::Unknown;
    }
    if let (Some(a), Some(b)) = (&source.shape, &index.shape)
        && a.len() != b.len()
    {
        let message = format!("source and index must have as many axes, and these are `{source}` and `{index}`");
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    if let (Some(shape), Some(axis)) = (&source.shape, call.bound.constant("axis").and_then(Const::int)) {
        let rank = i128::try_from(shape.len()).unwrap_or(0);
        if !(-rank..rank).contains(&axis) {
            let message = format!("axis {axis} does not exist in a value of {rank} axes");
            engine.problem(ProblemKind::Reduction, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    AbstractValue::Tile(RuntimeValue::new(source.element, index.shape))
}
