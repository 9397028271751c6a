//! Transfer functions of elementwise operations.

use super::dtype::Number;
use super::engine::Engine;
use super::fold;
use super::functions::Application;
use super::index::About;
use super::shape::Shape;
use super::value::{Const, Element, Kind, Tile, Value};
use crate::syntax::Span;

/// A function of one value that keeps its type.
pub(super) fn map<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, numbers: &[Number]) -> Value<'a> {
    let value = call.first().clone();
    let Some(operand) = engine.operand(call.span, &value) else { return Value::Unknown };
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
        engine.problem(Kind::Argument, call.span, message);
        return Value::Unknown;
    }
    if tile.element.is_pointer() {
        engine.problem(Kind::Argument, call.span, format!("`tl.{}` does not take a pointer; load first", call.name));
        return Value::Unknown;
    }
    Value::Tile(tile)
}

/// A function of two values.
pub(super) fn two<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let (x, y) = (call.bound.any(&["x", "input"]).cloned(), call.bound.any(&["y", "other"]).cloned());
    let (Some(x), Some(y)) = (x, y) else { return Value::Unknown };
    if call.bound.get("propagate_nan").is_some_and(Value::is_runtime) {
        let message = format!(
            "`tl.{0}` takes two values, and the third is an option; write `tl.{0}(tl.{0}(a, b), c)`",
            call.name
        );
        engine.problem(Kind::Argument, call.span, message);
        return Value::Unknown;
    }
    match call.name {
        "add" => engine.binary(call.span, "+", &x, &y),
        "sub" => engine.binary(call.span, "-", &x, &y),
        "mul" => engine.binary(call.span, "*", &x, &y),
        _ => combined(engine, call.span, &x, &y),
    }
}

/// The common type and shape of two values. Both become run-time values.
pub(super) fn combined<'a>(engine: &mut Engine<'a>, span: Span, x: &Value<'a>, y: &Value<'a>) -> Value<'a> {
    let (x, y) = (run_time(x), run_time(y));
    if x.tile().is_none() && y.tile().is_none() {
        return Value::Unknown;
    }
    let is_pointer = |value: &Value<'a>| value.tile().is_some_and(|tile| tile.element.is_pointer());
    if is_pointer(&x) || is_pointer(&y) {
        engine.problem(Kind::Argument, span, "this function does not take a pointer; load first");
        return Value::Unknown;
    }
    engine.binary(span, "*", &x, &y)
}

/// The run-time value to which `to_tensor` converts a constant.
fn run_time<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => {
            Engine::number_of(value).map_or(Value::Unknown, Value::scalar)
        }
        Value::Const(Const::Symbol(_)) => Value::scalar(Number::Int32),
        value => value.clone(),
    }
}

pub(super) fn quotient<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, numbers: &[Number]) -> Value<'a> {
    let (Some(x), Some(y)) = (call.bound.get("x").map(run_time), call.bound.get("y").map(run_time)) else {
        return Value::Unknown;
    };
    // A constant takes the type of the other operand.
    let is_constant = |name: &str| matches!(call.bound.get(name), Some(Value::Const(_)));
    let both = is_constant("x") && is_constant("y");
    let looked_at = [("x", &x), ("y", &y)].into_iter().filter(|(name, _)| both || !is_constant(name));
    for (_, value) in looked_at {
        let number = value.tile().and_then(|tile| tile.element.number());
        let wrong =
            number.is_some_and(|number| if numbers.is_empty() { number.is_int() } else { !numbers.contains(&number) });
        if wrong {
            let message = format!("`tl.{}` takes floats, not `{value}`", call.name);
            engine.problem(Kind::Argument, call.span, message);
            return Value::Unknown;
        }
    }
    combined(engine, call.span, &x, &y)
}

/// The upper half of an integer product.
pub(super) fn umulhi<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let values = ["x", "y"].map(|name| call.bound.get(name).map_or(Value::Unknown, run_time));
    let wide = |number: &Number| number.is_int() && number.bits() >= 32;
    let number = |value: &Value<'a>| value.tile().and_then(|tile| tile.element.number());
    let is_constant = |name: &str| matches!(call.bound.get(name), Some(Value::Const(_)));
    for (name, value) in ["x", "y"].into_iter().zip(&values) {
        if !is_constant(name) && number(value).is_some_and(|number| !wide(&number)) {
            let message = format!("`tl.umulhi` takes integers of 32 and 64 bits, not `{value}`");
            engine.problem(Kind::Argument, call.span, message);
            return Value::Unknown;
        }
    }
    two(engine, call)
}

pub(super) fn clamp<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let get = |name: &str| call.bound.get(name).map_or(Value::Unknown, run_time);
    let (x, low, high) = (get("x"), get("min"), get("max"));
    let bounds = combined(engine, call.span, &low, &high);
    let value = combined(engine, call.span, &x, &bounds);
    let is_int = value.tile().and_then(|tile| tile.element.number()).is_some_and(Number::is_int);
    if is_int && engine.since(9) == Some(false) {
        engine.problem(Kind::Argument, call.span, "`tl.clamp` takes floats; use `tl.minimum` and `tl.maximum`");
        return Value::Unknown;
    }
    value
}

pub(super) fn fma<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let get = |name: &str| call.bound.get(name).map_or(Value::Unknown, run_time);
    let product = combined(engine, call.span, &get("x"), &get("y"));
    combined(engine, call.span, &product, &get("z"))
}

/// `tl.where(condition, x, y)`
pub(super) fn choose<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let get = |name: &str| call.bound.get(name).cloned().unwrap_or(Value::Unknown);
    let (condition, x, y) = (get("condition"), get("x"), get("y"));
    let both_constant = x.constant().is_some() && y.constant().is_some();
    let (x, y) = if both_constant { (run_time(&x), run_time(&y)) } else { (x, y) };
    let pointers = |value: &Value<'a>| value.tile().is_some_and(|tile| tile.element.is_pointer());
    let value = if pointers(&x) || pointers(&y) {
        match (&x, &y) {
            (Value::Tile(a), Value::Tile(b)) => engine.spread(call.span, a.element, a, b),
            _ => Value::Unknown,
        }
    } else {
        engine.binary(call.span, "*", &x, &y)
    };
    let condition = run_time(&condition);
    match (&condition, &value) {
        (Value::Tile(condition), Value::Tile(value)) => engine.spread(call.span, value.element, condition, value),
        (Value::Tile(_) | Value::Unknown | Value::Const(_), _) => Value::Unknown,
        _ => Value::Unknown,
    }
}

pub(super) fn hint<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let value = call.first().clone();
    let count = match call.bound.get("values") {
        Some(Value::Tuple(parts)) => Some(parts.len()),
        Some(Value::Const(constant)) if constant.int().is_some() => Some(1),
        _ => None,
    };
    let parts: &[Value<'a>] = match call.bound.get("values") {
        Some(Value::Tuple(parts)) => parts,
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    let is_wrong =
        |part: &&Value<'a>| part.is_runtime() || matches!(part, Value::Const(Const::Float(_) | Const::Str(_)));
    if let Some(part) = parts.iter().find(is_wrong) {
        let message = format!("`tl.{}` needs compile-time integers, not `{part}`", call.name);
        engine.problem(Kind::Argument, call.span, message);
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
            engine.problem(Kind::Argument, call.span, message);
        }
    }
    value
}

pub(super) fn cdiv<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let (Some(x), Some(y)) = (call.bound.any(&["x", "input"]).cloned(), call.bound.any(&["div", "y"]).cloned()) else {
        return Value::Unknown;
    };
    let sum = engine.binary(call.span, "+", &x, &y);
    let less = engine.binary(call.span, "-", &sum, &Value::int(1));
    let quotient = engine.binary(call.span, "//", &less, &y);
    match &quotient {
        // Before 3.7 a function written in Triton returned only run-time values.
        Value::Const(constant) => match engine.since(7) {
            Some(true) => {
                let exact = fold::binary("//", constant, &Const::Int(1));
                Value::Const(exact.unwrap_or(Const::Unknown))
            }
            Some(false) => run_time(&quotient),
            None => Value::Unknown,
        },
        _ => quotient,
    }
}

/// `tl.cast(value, dtype)` and `value.to(dtype)`
pub(super) fn cast<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let value = run_time(&call.first().scalarized());
    let dtype = call.bound.get("dtype").cloned().unwrap_or(Value::Unknown);
    let Value::Tile(tile) = &value else { return Value::Unknown };
    let element = match dtype {
        Value::Const(Const::Type(element)) => element,
        Value::Const(Const::Str(_) | Const::Int(_) | Const::None | Const::Float(_) | Const::Bool(_))
        | Value::Tile(_) => {
            let message = format!("`{dtype}` is no dtype; write one of Triton's, such as `tl.float32`");
            engine.problem(Kind::Argument, call.span, message);
            return Value::Unknown;
        }
        Value::Member(path) if path.starts_with("numpy.") || path.starts_with("torch.") => {
            engine.problem(
                Kind::Argument,
                call.span,
                format!("`{path}` is no dtype of Triton's; use that of `triton.language`"),
            );
            return Value::Unknown;
        }
        Value::Builtin(name @ ("int" | "float")) => {
            let message = format!("`{name}` is no dtype of Triton's; write `tl.{name}32`");
            engine.problem(Kind::Argument, call.span, message);
            return Value::Unknown;
        }
        _ => return Value::Tile(tile.with(Element::Unknown)),
    };
    if element == Element::Unknown {
        return Value::Tile(tile.with(Element::Unknown));
    }
    let rounding = call.bound.given("fp_downcast_rounding").cloned();
    if let (Some(Value::Const(mode)), false) = (rounding, tile.element == element) {
        let is_known = matches!(&mode, Const::Str(text) if matches!(text.as_ref(), "rtne" | "rtz"));
        let is_open = matches!(mode, Const::Unknown | Const::Symbol(_));
        let narrows = match (tile.element, element) {
            (Element::Number(from), Element::Number(to)) => from.is_float() && to.is_float() && to.bits() < from.bits(),
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
            engine.problem(Kind::Conversion, call.span, message);
            return Value::Unknown;
        }
    }
    match call.bound.flag("bitcast", false) {
        Some(true) => bitcast(engine, call.span, tile, element),
        Some(false) => convert(engine, call.span, tile, element),
        None => Value::Tile(tile.with(element)),
    }
}

fn bitcast<'a>(engine: &mut Engine<'a>, span: Span, tile: &Tile, element: Element) -> Value<'a> {
    if let (Element::Number(from), Element::Number(to)) = (tile.element, element)
        && from.bits() != to.bits()
    {
        let message = format!("a bitcast keeps the width, and `{from}` and `{to}` differ in it");
        engine.problem(Kind::Conversion, span, message);
        return Value::Unknown;
    }
    Value::Tile(tile.with(element))
}

fn convert<'a>(engine: &mut Engine<'a>, span: Span, tile: &Tile, element: Element) -> Value<'a> {
    let stays = match (tile.element, element) {
        (Element::Number(from), Element::Number(to)) => from.is_int() && to.is_int(),
        (Element::Unknown, Element::Number(to)) => to.is_int(),
        (Element::Pointer(_), Element::Pointer(_)) => true,
        _ => false,
    };
    let about = if stays { tile.about.clone() } else { About::Nothing };
    let refused = match (tile.element, element) {
        (Element::Pointer(_), Element::Number(number)) => !(number.is_int() && matches!(number.bits(), 1 | 64)),
        (Element::Number(number), Element::Pointer(_)) => number.is_float(),
        _ => false,
    };
    if refused {
        engine.problem(Kind::Conversion, span, format!("`{}` cannot be cast to `{element}`", tile.element));
        return Value::Unknown;
    }
    Value::Tile(tile.with(element).knowing(about))
}

pub(super) fn constexpr<'a>(call: &Application<'a, '_>) -> Value<'a> {
    match call.bound.any(&["value"]) {
        Some(value @ Value::Const(_)) => value.clone(),
        _ => Value::Unknown,
    }
}

pub(super) fn static_assert<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    match call.bound.get("cond") {
        Some(Value::Const(Const::Bool(false))) if engine.uncertain == 0 => {
            engine.problem(Kind::Condition, call.span, "this assertion fails while compiling");
        }
        Some(Value::Tile(tile)) => {
            let message = format!(
                "`tl.static_assert` needs a compile-time condition, and this is `{tile}`; use `tl.device_assert`"
            );
            engine.problem(Kind::Condition, call.span, message);
        }
        _ => {}
    }
    Value::none()
}

pub(super) fn nothing<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    if call.name == "device_print"
        && let Some(prefix) = call.bound.get("prefix")
        && matches!(prefix, Value::Tile(_) | Value::Const(Const::Int(_) | Const::Float(_)))
    {
        engine.problem(Kind::Argument, call.span, "the first argument of `tl.device_print` must be a string");
    }
    Value::none()
}

/// The shape of a scalar, which has no axes.
pub(super) fn scalar_shape() -> Shape {
    Shape::default()
}
