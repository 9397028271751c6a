//! Transfer functions of elementwise operations.

use super::application::Application;
use super::constant_folding;
use super::dtype::Dtype;
use super::engine::Engine;
use super::index::LaneFact;
use super::shape::Shape;
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::syntax::Span;

/// A function of one value that keeps its type.
pub(super) fn map<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, numbers: &[Dtype]) -> AbstractValue<'a> {
    let value = call.first().clone();
    let Some(operand) = engine.operand(call.span, &value) else { return AbstractValue::Unknown };
    let tile = operand.tile;
    if let Some(number) = tile.element.number()
        && !numbers.is_empty()
        && !numbers.contains(&number)
    {
        let accepted: Vec<&str> = numbers.iter().map(|number| number.name()).collect();
        let message = format!(
            "`tl.{}` takes `{}`, not `{number}`; cast with `.to(tl.float32)`",
            call.name,
            accepted.join("` or `")
        );
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    if tile.element.is_pointer() {
        engine.problem(
            ProblemKind::Argument,
            call.span,
            format!("`tl.{}` does not take a pointer; load first", call.name),
        );
        return AbstractValue::Unknown;
    }
    AbstractValue::Tile(tile)
}

/// A function of two values.
pub(super) fn two<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let (x, y) = (call.bound.any(&["x", "input"]).cloned(), call.bound.any(&["y", "other"]).cloned());
    let (Some(x), Some(y)) = (x, y) else { return AbstractValue::Unknown };
    if call.bound.get("propagate_nan").is_some_and(AbstractValue::is_runtime) {
        let message = format!(
            "`tl.{0}` takes two values, and the third is an option; write `tl.{0}(tl.{0}(a, b), c)`",
            call.name
        );
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    match call.name {
        "add" => engine.binary(call.span, "+", &x, &y),
        "sub" => engine.binary(call.span, "-", &x, &y),
        "mul" => engine.binary(call.span, "*", &x, &y),
        _ => combined(engine, call.span, &x, &y),
    }
}

/// The common type and shape of two values. Both become run-time values.
pub(super) fn combined<'a>(
    engine: &mut Engine<'a>,
    span: Span,
    x: &AbstractValue<'a>,
    y: &AbstractValue<'a>,
) -> AbstractValue<'a> {
    let (x, y) = (run_time(x), run_time(y));
    if x.tile().is_none() && y.tile().is_none() {
        return AbstractValue::Unknown;
    }
    let is_pointer = |value: &AbstractValue<'a>| value.tile().is_some_and(|tile| tile.element.is_pointer());
    if is_pointer(&x) || is_pointer(&y) {
        engine.problem(ProblemKind::Argument, span, "this function does not take a pointer; load first");
        return AbstractValue::Unknown;
    }
    engine.binary(span, "*", &x, &y)
}

/// The run-time value to which `to_tensor` converts a constant.
fn run_time<'a>(value: &AbstractValue<'a>) -> AbstractValue<'a> {
    match value {
        AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => {
            Engine::number_of(value).map_or(AbstractValue::Unknown, AbstractValue::scalar)
        }
        AbstractValue::Const(Const::Symbol(_)) => AbstractValue::scalar(Dtype::Int32),
        value => value.clone(),
    }
}

pub(super) fn quotient<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    numbers: &[Dtype],
) -> AbstractValue<'a> {
    let (Some(x), Some(y)) = (call.bound.get("x").map(run_time), call.bound.get("y").map(run_time)) else {
        return AbstractValue::Unknown;
    };
    // A constant takes the type of the other operand.
    let is_constant = |name: &str| matches!(call.bound.get(name), Some(AbstractValue::Const(_)));
    let both = is_constant("x") && is_constant("y");
    let looked_at = [("x", &x), ("y", &y)].into_iter().filter(|(name, _)| both || !is_constant(name));
    for (_, value) in looked_at {
        let number = value.tile().and_then(|tile| tile.element.number());
        let wrong =
            number.is_some_and(|number| if numbers.is_empty() { number.is_int() } else { !numbers.contains(&number) });
        if wrong {
            let message = format!("`tl.{}` takes floats, not `{value}`", call.name);
            engine.problem(ProblemKind::Argument, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    combined(engine, call.span, &x, &y)
}

/// The upper half of an integer product.
pub(super) fn umulhi<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let values = ["x", "y"].map(|name| call.bound.get(name).map_or(AbstractValue::Unknown, run_time));
    let wide = |number: &Dtype| number.is_int() && number.bits() >= 32;
    let number = |value: &AbstractValue<'a>| value.tile().and_then(|tile| tile.element.number());
    let is_constant = |name: &str| matches!(call.bound.get(name), Some(AbstractValue::Const(_)));
    for (name, value) in ["x", "y"].into_iter().zip(&values) {
        if !is_constant(name) && number(value).is_some_and(|number| !wide(&number)) {
            let message = format!("`tl.umulhi` takes integers of 32 and 64 bits, not `{value}`");
            engine.problem(ProblemKind::Argument, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    two(engine, call)
}

pub(super) fn clamp<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let get = |name: &str| call.bound.get(name).map_or(AbstractValue::Unknown, run_time);
    let (x, low, high) = (get("x"), get("min"), get("max"));
    let bounds = combined(engine, call.span, &low, &high);
    let value = combined(engine, call.span, &x, &bounds);
    let is_int = value.tile().and_then(|tile| tile.element.number()).is_some_and(Dtype::is_int);
    if is_int && engine.since(9) == Some(false) {
        engine.problem(ProblemKind::Argument, call.span, "`tl.clamp` takes floats; use `tl.minimum` and `tl.maximum`");
        return AbstractValue::Unknown;
    }
    value
}

pub(super) fn fma<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let get = |name: &str| call.bound.get(name).map_or(AbstractValue::Unknown, run_time);
    let product = combined(engine, call.span, &get("x"), &get("y"));
    combined(engine, call.span, &product, &get("z"))
}

/// `tl.where(condition, x, y)`
pub(super) fn choose<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let get = |name: &str| call.bound.get(name).cloned().unwrap_or(AbstractValue::Unknown);
    let (condition, x, y) = (get("condition"), get("x"), get("y"));
    let both_constant = x.constant().is_some() && y.constant().is_some();
    let (x, y) = if both_constant { (run_time(&x), run_time(&y)) } else { (x, y) };
    let pointers = |value: &AbstractValue<'a>| value.tile().is_some_and(|tile| tile.element.is_pointer());
    let value = if pointers(&x) || pointers(&y) {
        match (&x, &y) {
            (AbstractValue::Tile(a), AbstractValue::Tile(b)) => engine.spread(call.span, a.element, a, b),
            _ => AbstractValue::Unknown,
        }
    } else {
        engine.binary(call.span, "*", &x, &y)
    };
    let condition = run_time(&condition);
    match (&condition, &value) {
        (AbstractValue::Tile(condition), AbstractValue::Tile(value)) => {
            engine.spread(call.span, value.element, condition, value)
        }
        (AbstractValue::Tile(_) | AbstractValue::Unknown | AbstractValue::Const(_), _) => AbstractValue::Unknown,
        _ => AbstractValue::Unknown,
    }
}

pub(super) fn hint<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let value = call.first().clone();
    let count = match call.bound.get("values") {
        Some(AbstractValue::Tuple(parts)) => Some(parts.len()),
        Some(AbstractValue::Const(constant)) if constant.int().is_some() => Some(1),
        _ => None,
    };
    let parts: &[AbstractValue<'a>] = match call.bound.get("values") {
        Some(AbstractValue::Tuple(parts)) => parts,
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    let is_wrong = |part: &&AbstractValue<'a>| {
        part.is_runtime() || matches!(part, AbstractValue::Const(Const::Float(_) | Const::Str(_)))
    };
    if let Some(part) = parts.iter().find(is_wrong) {
        let message = format!("`tl.{}` needs compile-time integers, not `{part}`", call.name);
        engine.problem(ProblemKind::Argument, call.span, message);
    }
    let rank = value.tile().and_then(|tile| tile.shape.as_ref()).map(|shape| shape.len());
    if let (Some(count), Some(rank)) = (count, rank) {
        let wanted = if call.name == "multiple_of" { rank.max(1) } else { rank };
        let is_bad = match engine.since(3) {
            Some(true) => rank > 0,
            Some(false) => call.name == "multiple_of" && rank > 1 || rank > 0,
            None => false,
        };
        if count != wanted && is_bad {
            let message = format!("`tl.{}` needs one number for each of {rank} axes, and gets {count}", call.name);
            engine.problem(ProblemKind::Argument, call.span, message);
        }
    }
    value
}

pub(super) fn cdiv<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let (Some(x), Some(y)) = (call.bound.any(&["x", "input"]).cloned(), call.bound.any(&["div", "y"]).cloned()) else {
        return AbstractValue::Unknown;
    };
    let sum = engine.binary(call.span, "+", &x, &y);
    let less = engine.binary(call.span, "-", &sum, &AbstractValue::int(1));
    let quotient = engine.binary(call.span, "//", &less, &y);
    match &quotient {
        // Before 3.7 a function written in Triton returned only run-time values.
        AbstractValue::Const(constant) => match engine.since(7) {
            Some(true) => {
                let exact = constant_folding::binary("//", constant, &Const::Int(1));
                AbstractValue::Const(exact.unwrap_or(Const::Unknown))
            }
            Some(false) => run_time(&quotient),
            None => AbstractValue::Unknown,
        },
        _ => quotient,
    }
}

/// `tl.cast(value, dtype)` and `value.to(dtype)`
pub(super) fn cast<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let value = run_time(&call.first().scalarized());
    let dtype = call.bound.get("dtype").cloned().unwrap_or(AbstractValue::Unknown);
    let AbstractValue::Tile(tile) = &value else { return AbstractValue::Unknown };
    let element = match dtype {
        AbstractValue::Const(Const::Type(element)) => element,
        AbstractValue::Const(Const::Str(_) | Const::Int(_) | Const::None | Const::Float(_) | Const::Bool(_))
        | AbstractValue::Tile(_) => {
            let message = format!("`{dtype}` is not a dtype; write one of Triton's, such as `tl.float32`");
            engine.problem(ProblemKind::Argument, call.span, message);
            return AbstractValue::Unknown;
        }
        AbstractValue::Member(path) if path.starts_with("numpy.") || path.starts_with("torch.") => {
            engine.problem(
                ProblemKind::Argument,
                call.span,
                format!("`{path}` is not a Triton dtype; use the one of `triton.language`"),
            );
            return AbstractValue::Unknown;
        }
        AbstractValue::Builtin(name @ ("int" | "float")) => {
            let message = format!("`{name}` is not a Triton dtype; write `tl.{name}32`");
            engine.problem(ProblemKind::Argument, call.span, message);
            return AbstractValue::Unknown;
        }
        _ => return AbstractValue::Tile(tile.with(LaneType::Unknown)),
    };
    if element == LaneType::Unknown {
        return AbstractValue::Tile(tile.with(LaneType::Unknown));
    }
    let rounding = call.bound.given("fp_downcast_rounding").cloned();
    if let (Some(AbstractValue::Const(mode)), false) = (rounding, tile.element == element) {
        let is_known = matches!(&mode, Const::Str(text) if matches!(text.as_ref(), "rtne" | "rtz"));
        let is_open = matches!(mode, Const::Unknown | Const::Symbol(_));
        let narrows = match (tile.element, element) {
            (LaneType::Number(from), LaneType::Number(to)) => {
                from.is_float() && to.is_float() && to.bits() < from.bits()
            }
            _ => true,
        };
        if !is_open && !is_known || is_known && !narrows {
            let message = if is_known {
                format!(
                    "`fp_downcast_rounding` is for narrower floats, and this casts `{}` to `{element}`",
                    tile.element
                )
            } else {
                format!("the rounding cannot be {mode}; it is 'rtne' or 'rtz'")
            };
            engine.problem(ProblemKind::Conversion, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    match call.bound.flag("bitcast", false) {
        Some(true) => bitcast(engine, call.span, tile, element),
        Some(false) => convert(engine, call.span, tile, element),
        None => AbstractValue::Tile(tile.with(element)),
    }
}

fn bitcast<'a>(engine: &mut Engine<'a>, span: Span, tile: &RuntimeValue, element: LaneType) -> AbstractValue<'a> {
    if let (LaneType::Number(from), LaneType::Number(to)) = (tile.element, element)
        && from.bits() != to.bits()
    {
        let message = format!("a bitcast keeps the width, and `{from}` and `{to}` differ in it");
        engine.problem(ProblemKind::Conversion, span, message);
        return AbstractValue::Unknown;
    }
    AbstractValue::Tile(tile.with(element))
}

/// Whether one type is an integer and the other has eight bits of a float: there is no cast between them (front ends of
/// Triton 3.3.1 to 3.9.0).
pub(super) fn mixes_fp8(from: Dtype, to: Dtype) -> bool {
    from.is_int() && to.is_fp8() || from.is_fp8() && to.is_int()
}

fn convert<'a>(engine: &mut Engine<'a>, span: Span, tile: &RuntimeValue, element: LaneType) -> AbstractValue<'a> {
    let stays = match (tile.element, element) {
        (LaneType::Number(from), LaneType::Number(to)) => from.is_int() && to.is_int(),
        (LaneType::Unknown, LaneType::Number(to)) => to.is_int(),
        (LaneType::Pointer(_), LaneType::Pointer(_)) => true,
        _ => false,
    };
    let about = if stays { tile.about.clone() } else { LaneFact::Nothing };
    let refused = match (tile.element, element) {
        (LaneType::Pointer(_), LaneType::Number(number)) => !(number.is_int() && matches!(number.bits(), 1 | 64)),
        (LaneType::Number(number), LaneType::Pointer(_)) => number.is_float(),
        (LaneType::Number(from), LaneType::Number(to)) => mixes_fp8(from, to),
        _ => false,
    };
    if refused {
        engine.problem(ProblemKind::Conversion, span, format!("`{}` cannot be cast to `{element}`", tile.element));
        return AbstractValue::Unknown;
    }
    AbstractValue::Tile(tile.with(element).knowing(about))
}

pub(super) fn constexpr<'a>(call: &Application<'a, '_>) -> AbstractValue<'a> {
    match call.bound.any(&["value"]) {
        Some(value @ AbstractValue::Const(_)) => value.clone(),
        _ => AbstractValue::Unknown,
    }
}

pub(super) fn static_assert<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    match call.bound.get("cond") {
        Some(AbstractValue::Const(Const::Bool(false))) if engine.uncertain == 0 => {
            engine.problem(ProblemKind::Condition, call.span, "this assertion fails while compiling");
        }
        Some(AbstractValue::Tile(tile)) => {
            let message = format!(
                "`tl.static_assert` needs a compile-time condition, and this is `{tile}`; use `tl.device_assert`"
            );
            engine.problem(ProblemKind::Condition, call.span, message);
        }
        _ => {}
    }
    AbstractValue::none()
}

pub(super) fn nothing<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    if call.name == "device_print"
        && let Some(prefix) = call.bound.get("prefix")
        && matches!(prefix, AbstractValue::Tile(_) | AbstractValue::Const(Const::Int(_) | Const::Float(_)))
    {
        engine.problem(ProblemKind::Argument, call.span, "the first argument of `tl.device_print` must be a string");
    }
    AbstractValue::none()
}

/// The shape of a scalar, which has no axes.
pub(super) fn scalar_shape() -> Shape {
    Shape::default()
}
