//! Transfer functions of matrix products.

use super::application::{Application, tile_of};
use super::dtype::Dtype;
use super::engine::Engine;
use super::shape::{self, Dim};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};

/// `tl.dot(a, b, acc, …)`
pub(super) fn dot<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let get = |names: &[&str]| call.bound.any(names).and_then(AbstractValue::tile).cloned();
    let (left, right) = (get(&["input", "lhs"]), get(&["other", "rhs"]));
    let precision = call.bound.constant("input_precision");
    if let Some(Const::Str(text)) = precision
        && !allowed_precisions(engine).contains(&text.to_ascii_lowercase().as_str())
    {
        let message =
            format!("`input_precision` cannot be '{text}'; it is one of {}", allowed_precisions(engine).join(", "));
        engine.problem(ProblemKind::Dot, call.span, message);
        return AbstractValue::Unknown;
    }
    if call.bound.given("input_precision").is_some() && call.bound.given("allow_tf32").is_some() {
        engine.problem(ProblemKind::Dot, call.span, "`input_precision` and `allow_tf32` exclude each other");
        return AbstractValue::Unknown;
    }
    let (Some(left), Some(right)) = (left, right) else { return AbstractValue::Unknown };
    for tile in [&left, &right] {
        if tile.is_scalar() == Some(true) || tile.element.is_pointer() {
            engine.problem(ProblemKind::Dot, call.span, format!("`tl.dot` multiplies tiles, and `{tile}` is none"));
            return AbstractValue::Unknown;
        }
    }
    engine.record_product(call, &left, &right);
    let numbers = left.element.number().zip(right.element.number());
    if let Some(refused) = numbers.and_then(|(a, b)| operands(engine, a, b)) {
        engine.problem(ProblemKind::Dot, call.span, refused);
        return AbstractValue::Unknown;
    }
    let asks_bf16 = call.bound.constant("out_dtype") == Some(&Const::Type(LaneType::Number(Dtype::Bf16)));
    if asks_bf16 && numbers.is_some_and(|(a, _)| a.is_float()) {
        let message = "`tl.dot` cannot give `bf16`; leave `out_dtype` out and cast with `.to(tl.bfloat16)`";
        engine.problem(ProblemKind::Dot, call.span, message);
        return AbstractValue::Unknown;
    }
    if let Some(AbstractValue::Const(acc @ (Const::Int(_) | Const::Float(_) | Const::Bool(_)))) =
        call.bound.given("acc")
    {
        let message = format!("the accumulator must be a tile, not `{acc}`; leave it out, or pass `tl.zeros`");
        engine.problem(ProblemKind::Dot, call.span, message);
        return AbstractValue::Unknown;
    }
    let element = result_type(engine, call, numbers);
    let Some(sizes) = product_shape(engine, call, &left, &right, numbers) else {
        return AbstractValue::Tile(RuntimeValue::new(element, None));
    };
    if let Some(AbstractValue::Tile(acc)) = call.bound.given("acc").cloned() {
        check_accumulator(engine, call, &acc, &sizes, element);
    }
    tile_of(element, sizes)
}

fn allowed_precisions(engine: &Engine<'_>) -> &'static [&'static str] {
    const ALL: &[&str] = &["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"];
    if engine.since(6) == Some(false) { &ALL[..3] } else { ALL }
}

/// The reason why tiles of two types cannot be multiplied; `None` when they can.
fn operands(engine: &Engine<'_>, a: Dtype, b: Dtype) -> Option<String> {
    let accepted = |number: Dtype| {
        number.is_fp8()
            || matches!(number, Dtype::Int8 | Dtype::UInt8 | Dtype::Fp16 | Dtype::Bf16 | Dtype::Fp32)
            || number == Dtype::Fp64 && engine.since(5) != Some(false)
    };
    if let Some(number) = [a, b].into_iter().find(|&number| !accepted(number)) {
        return Some(format!("`tl.dot` does not take `{number}`; cast it"));
    }
    let differ = a != b && !(a.is_fp8() && b.is_fp8());
    differ.then(|| format!("both operands of `tl.dot` must be of one type, and these are `{a}` and `{b}`; cast one"))
}

fn result_type<'a>(engine: &Engine<'a>, call: &Application<'a, '_>, numbers: Option<(Dtype, Dtype)>) -> LaneType {
    let out = match call.bound.get("out_dtype") {
        None => Some(Dtype::Fp32),
        Some(AbstractValue::Const(Const::Type(LaneType::Number(number)))) => Some(*number),
        Some(_) => None,
    };
    // Since 3.8 the accumulator determines the type of the result.
    let out = match (call.bound.given("acc"), call.bound.get("out_dtype")) {
        (Some(acc), None) if engine.since(8) != Some(false) => acc.tile().and_then(|tile| tile.element.number()),
        _ => out,
    };
    let number = match numbers {
        Some((a, _)) if a.is_int() && a != Dtype::Int1 => Some(Dtype::Int32),
        Some((Dtype::Fp32 | Dtype::Bf16, _)) => Some(Dtype::Fp32),
        Some((Dtype::Fp64, _)) => Some(Dtype::Fp64),
        Some(_) => out,
        None => None,
    };
    number.map_or(LaneType::Unknown, LaneType::Number)
}

/// The shape of the product; reports shapes that do not fit.
fn product_shape<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    left: &RuntimeValue,
    right: &RuntimeValue,
    numbers: Option<(Dtype, Dtype)>,
) -> Option<Vec<Dim>> {
    let (a, b) = (left.shape.as_ref()?, right.shape.as_ref()?);
    let rank = a.len();
    if rank != b.len() || rank < 2 || (rank > 3 && engine.since(6) == Some(false)) {
        let message =
            format!("`tl.dot` multiplies two tiles of two axes (or three), and these are `{left}` and `{right}`");
        engine.problem(ProblemKind::Dot, call.span, message);
        return None;
    }
    let (rows, inner, other_inner, columns) = (&a[rank - 2], &a[rank - 1], &b[rank - 2], &b[rank - 1]);
    if inner.differs(other_inner) {
        let message = format!("the inner sizes of `{left}` and `{right}` differ: {inner} and {other_inner}");
        engine.problem(ProblemKind::Dot, call.span, message);
        return None;
    }
    if a[..rank - 2].iter().zip(b.iter()).any(|(a, b)| a.differs(b)) {
        engine.problem(ProblemKind::Dot, call.span, format!("the outer sizes of `{left}` and `{right}` differ"));
        return None;
    }
    if let Some(message) = too_small(engine, [rows, columns, inner], numbers) {
        engine.problem(ProblemKind::Dot, call.span, message);
    }
    let mut sizes = a[..rank - 1].to_vec();
    sizes.push(columns.clone());
    Some(sizes)
}

/// The reason why sizes are too small for the hardware's matrix instructions; `None` when they are not.
fn too_small(engine: &Engine<'_>, sizes: [&Dim; 3], numbers: Option<(Dtype, Dtype)>) -> Option<String> {
    let bits = numbers.map(|(a, _)| a.bits());
    let least_inner = match (bits, engine.since(8)) {
        (Some(32), Some(true)) => 8,
        (Some(32), None) | (None, Some(true) | None) => 1,
        (Some(64), _) => 1,
        // Triton converts it to half first.
        (Some(8), _) if numbers.is_some_and(|(a, _)| a == Dtype::Fp8e4b15) => 1,
        (Some(8), _) if engine.since(3) == Some(true) => 32,
        (Some(8), _) if engine.since(2) == Some(false) && numbers.is_some_and(|(a, _)| a.is_int()) => 32,
        _ => 16,
    };
    let least = if engine.since(5) == Some(false) { 16 } else { 1 };
    let names = ["M", "N", "K"];
    let limits = [least, least, least_inner];
    for ((size, limit), name) in sizes.into_iter().zip(limits).zip(names) {
        if size.known().is_some_and(|size| size < limit) {
            return Some(format!("`tl.dot` needs {name} >= {limit}, and this has {size}"));
        }
    }
    None
}

fn check_accumulator<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    acc: &RuntimeValue,
    sizes: &[Dim],
    element: LaneType,
) {
    let expected = RuntimeValue::new(LaneType::Unknown, Some(sizes.into()));
    if expected.differs(acc) {
        let message =
            format!("the accumulator (`{acc}`) does not have the shape of the product, `{}`", shape::text(sizes));
        engine.problem(ProblemKind::Dot, call.span, message);
        return;
    }
    if let (LaneType::Number(result), LaneType::Number(given)) = (element, acc.element)
        && result != given
    {
        let message = format!("the accumulator is `{given}`, and the product is `{result}`");
        engine.problem(ProblemKind::Dot, call.span, message);
    }
}

/// `tl.dot_scaled(lhs, lhs_scale, lhs_format, rhs, …)`
pub(super) fn dot_scaled<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let rows = call.bound.get("lhs").and_then(AbstractValue::tile).and_then(|tile| tile.shape.as_ref());
    let columns = call.bound.get("rhs").and_then(AbstractValue::tile).and_then(|tile| tile.shape.as_ref());
    if let (Some(AbstractValue::Const(Const::Str(format))), Some(false)) =
        (call.bound.get("rhs_format"), engine.since(3))
        && format.as_ref() == "e2m1"
    {
        engine.problem(ProblemKind::Dot, call.span, "`rhs_format` cannot be 'e2m1' before Triton 3.3");
        return AbstractValue::Unknown;
    }
    let is_default = call.bound.get("lhs_k_pack").is_none() && call.bound.get("rhs_k_pack").is_none();
    let element = match call.bound.get("out_dtype") {
        None => LaneType::Number(Dtype::Fp32),
        Some(AbstractValue::Const(Const::Type(element))) => *element,
        _ => LaneType::Unknown,
    };
    match (rows.map(|shape| &**shape), columns.map(|shape| &**shape)) {
        (Some([rows, _]), Some([_, columns])) if is_default => tile_of(element, vec![rows.clone(), columns.clone()]),
        _ => AbstractValue::Unknown,
    }
}
