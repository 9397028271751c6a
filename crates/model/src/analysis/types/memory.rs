//! Transfer functions of loads, stores and atomic operations.

use super::application::Application;
use super::dtype::Dtype;
use super::elementwise::mixes_fp8;
use super::engine::Engine;
use super::index::{LaneFact, Poly};
use super::shape::{self, Dim};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};

const LOAD_CACHE: &[&str] = &["", ".ca", ".cg", ".cv", ".cs"];
const STORE_CACHE: &[&str] = &["", ".wb", ".cg", ".cs", ".wt"];
const EVICTION: &[&str] = &["", "evict_last", "evict_first", "evict_normal"];
/// Values of options, each with the minor release of Triton 3 that introduced it.
const LATER: &[(&str, u32)] = &[(".cv", 2), (".cs", 8), ("evict_normal", 9)];
const PADDING: &[&str] = &["", "zero", "nan"];
const ORDER: &[&str] = &["acquire", "release", "acq_rel", "relaxed"];
const SCOPE: &[&str] = &["gpu", "cta", "sys"];

/// Reports an option whose value does not exist in the release. Returns whether the value is valid.
fn check_option<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, name: &str, allowed: &[&str]) -> bool {
    // Since 3.9 a cache modifier may be written without its dot.
    let dotless = name == "cache_modifier" && engine.since(9) != Some(false);
    let is_allowed = |text: &str| {
        allowed.contains(&text) || dotless && allowed.iter().any(|option| option.strip_prefix('.') == Some(text))
    };
    let is_later = |text: &str| {
        let later = LATER.iter().find(|(option, _)| call.name == "load" && *option == text);
        later.is_some_and(|(_, since)| engine.since(*since) == Some(false))
    };
    let wrong = match call.bound.get(name) {
        Some(AbstractValue::Const(Const::Str(text))) => !text.is_empty() && (!is_allowed(text) || is_later(text)),
        _ => false,
    };
    if wrong && let Some(value) = call.bound.get(name) {
        let known: Vec<String> =
            allowed.iter().filter(|one| !one.is_empty() && !is_later(one)).map(|one| format!("'{one}'")).collect();
        let message = format!("`{name}` cannot be {value}; it is one of {}", known.join(", "));
        engine.problem(ProblemKind::Argument, call.span, message);
    }
    !wrong
}

fn given<'a, 'b>(call: &'b Application<'a, '_>, name: &str) -> Option<&'b AbstractValue<'a>> {
    call.bound.given(name)
}

/// `tl.load(pointer, mask, other, …)`
pub(super) fn load<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let options = [("cache_modifier", LOAD_CACHE), ("eviction_policy", EVICTION), ("padding_option", PADDING)];
    if !options.into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed)) {
        return AbstractValue::Unknown;
    }
    if let AbstractValue::BlockPointer(tile) = &call.first().clone() {
        return super::block_pointers::load(engine, call, tile);
    }
    let Some((pointer, number)) = pointer(engine, call) else {
        engine.record(call, super::access::AccessKind::Load, &RuntimeValue::new(LaneType::Unknown, None));
        return AbstractValue::Unknown;
    };
    let has_check = match call.bound.get("boundary_check") {
        Some(AbstractValue::Tuple(parts)) => !parts.is_empty(),
        Some(AbstractValue::Const(constant)) => constant.int().is_some(),
        _ => false,
    };
    let has_padding =
        matches!(call.bound.get("padding_option"), Some(AbstractValue::Const(Const::Str(text))) if !text.is_empty());
    if has_check || has_padding {
        let message = "`boundary_check` and `padding_option` are for block pointers; pass a `mask`";
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    let (mask, other) = (given(call, "mask").cloned(), given(call, "other").cloned());
    let mask_is_none = call.bound.get("mask").is_none_or(|mask| mask.is_none() == Some(true));
    if mask_is_none
        && other.as_ref().is_some_and(|other| {
            !matches!(other, AbstractValue::Unknown | AbstractValue::Const(Const::Unknown | Const::Symbol(_)))
        })
    {
        engine.problem(ProblemKind::MemoryAccess, call.span, "`other` has no meaning without a `mask`");
        return AbstractValue::Unknown;
    }
    engine.record(call, super::access::AccessKind::Load, &pointer);
    check_fp8(engine, call, "other", number);
    check_mask(engine, call);
    if let Some(AbstractValue::Const(text @ Const::Str(_))) = &other {
        engine.problem(
            ProblemKind::MemoryAccess,
            call.span,
            format!("`other` must be a number, and {text} is a string"),
        );
    }
    // Up to 3.4 the pointer itself is not broadcast.
    if let (Some(AbstractValue::Tile(mask)), Some(false)) = (&mask, engine.since(5)) {
        guarded_store(engine, call, "mask", &pointer, mask);
        let ranks = mask.shape.as_ref().zip(pointer.shape.as_ref()).map(|(mask, pointer)| (mask.len(), pointer.len()));
        if ranks.is_some_and(|(mask, pointer)| mask > 0 && mask < pointer) {
            let message =
                format!("`mask` (`{mask}`) must have as many axes as the pointer (`{pointer}`) before Triton 3.5");
            engine.problem(ProblemKind::Broadcast, call.span, message);
        }
    }
    let number = match (number, engine.since(2)) {
        (Some(Dtype::Int1), Some(false)) => Some(Dtype::Int8),
        (Some(Dtype::Int1), None) => None,
        _ => number,
    };
    let mut shape = pointer.shape.clone();
    for (name, value) in [("mask", mask), ("other", other)] {
        let Some(AbstractValue::Tile(tile)) = value else { continue };
        shape = guarded(engine, call, name, &RuntimeValue::new(pointer.element, shape), &tile);
    }
    let loaded = RuntimeValue::new(number.map_or(LaneType::Unknown, LaneType::Number), shape);
    if pointer.is_scalar() == Some(true) {
        // One number, which may be an offset or a size.
        let atom = engine.other();
        engine.record_loaded(&atom, &pointer);
        return AbstractValue::Tile(loaded.knowing(LaneFact::scalar(Poly::atom(atom))));
    }
    AbstractValue::Tile(loaded)
}

/// The pointer of an access and the type that it points to. Reports values that are not pointers.
fn pointer<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Option<(RuntimeValue, Option<Dtype>)> {
    let refused = match call.first() {
        AbstractValue::Opaque(_) => return call.first().scalarized().tile().map(|tile| (tile.clone(), None)),
        AbstractValue::Tile(tile) => match tile.element {
            LaneType::Pointer(number) => return Some((tile.clone(), number)),
            LaneType::Unknown => return Some((tile.clone(), None)),
            LaneType::Number(_) => format!("`tl.{}` needs a pointer, and this is `{tile}`", call.name),
        },
        AbstractValue::Const(constant @ (Const::Int(_) | Const::Float(_) | Const::None | Const::Str(_))) => {
            format!("`tl.{}` needs a pointer, and this is `{constant}`", call.name)
        }
        AbstractValue::Tuple(_) => format!("`tl.{}` needs one pointer or a tile of pointers, not a tuple", call.name),
        AbstractValue::Descriptor(_) if call.name == "load" => {
            "a descriptor is read with its own `.load(…)`".to_owned()
        }
        _ => return None,
    };
    engine.problem(ProblemKind::MemoryAccess, call.span, refused);
    None
}

/// The shape of an access after broadcasting with one of its arguments. Reports shapes that do not fit.
fn guarded<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    name: &str,
    pointer: &RuntimeValue,
    argument: &RuntimeValue,
) -> Option<shape::Shape> {
    if pointer.is_scalar() == Some(true) && argument.is_block() {
        let message =
            format!("`{name}` is a tile (`{argument}`), and the pointer is a scalar; add the offsets to the pointer");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return None;
    }
    if pointer.is_scalar() == Some(true) {
        return pointer.shape.clone();
    }
    engine.common_shape(call.span, pointer, argument)
}

/// `tl.store(pointer, value, mask, …)`
pub(super) fn store<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let options = [("cache_modifier", STORE_CACHE), ("eviction_policy", EVICTION)];
    if !options.into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed)) {
        return AbstractValue::none();
    }
    let value = call.bound.get("value").cloned().unwrap_or(AbstractValue::Unknown);
    if let AbstractValue::BlockPointer(tile) = call.first().clone() {
        super::block_pointers::store(engine, call, &tile, &value);
        return AbstractValue::none();
    }
    let Some((pointer, number)) = pointer(engine, call) else {
        engine.record(call, super::access::AccessKind::Store, &RuntimeValue::new(LaneType::Unknown, None));
        return AbstractValue::none();
    };
    engine.record(call, super::access::AccessKind::Store, &pointer);
    if let AbstractValue::Tile(value) = &value {
        check_stored(engine, call, &pointer, number, value);
    }
    check_fp8(engine, call, "value", number);
    if let AbstractValue::Const(constant @ (Const::Str(_) | Const::None | Const::Type(_))) = &value {
        engine.problem(ProblemKind::MemoryAccess, call.span, format!("`{constant}` cannot be stored"));
    }
    if matches!(&value, AbstractValue::Tuple(_)) {
        engine.problem(
            ProblemKind::MemoryAccess,
            call.span,
            format!("`{value}` cannot be stored; store each part of the tuple"),
        );
    }
    check_mask(engine, call);
    if let Some(AbstractValue::Tile(mask)) = call.bound.given("mask").cloned() {
        guarded_store(engine, call, "mask", &pointer, &mask);
    }
    AbstractValue::none()
}

/// Reports integers for memory of eight-bit floats, and the reverse: a store and a load cast what they get.
fn check_fp8<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, name: &str, to: Option<Dtype>) {
    let from = call.bound.given(name).and_then(Engine::number_of);
    let (Some(from), Some(to)) = (from, to) else { return };
    if mixes_fp8(from, to) {
        let advice = match call.bound.given(name) {
            Some(AbstractValue::Const(Const::Int(value))) => format!("; write `{value}.0`"),
            _ if to.is_fp8() => "; cast it to `tl.float32` first".to_owned(),
            _ => "; cast it to `tl.float32`, and then to an integer".to_owned(),
        };
        let message = format!("`{name}` is `{from}`, which cannot be cast to `{to}`{advice}");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
    }
}

/// Reports masks whose elements are not conditions.
fn check_mask<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) {
    let number = match call.bound.given("mask") {
        Some(AbstractValue::Tile(tile)) => tile.element.number(),
        Some(value @ AbstractValue::Const(Const::Int(_) | Const::Float(_))) => Engine::number_of(value),
        _ => None,
    };
    if let Some(number) = number.filter(|number| number.bits() != 1) {
        let message = format!("`mask` must be a condition, and this is `{number}`; compare it, such as with `!= 0`");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
    }
}

fn check_stored<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    pointer: &RuntimeValue,
    number: Option<Dtype>,
    value: &RuntimeValue,
) {
    guarded_store(engine, call, "value", pointer, value);
    if let (Some(number), LaneType::Pointer(_)) = (number, value.element)
        && !(number.is_int() && matches!(number.bits(), 1 | 64))
    {
        engine.problem(ProblemKind::MemoryAccess, call.span, format!("a pointer cannot be stored as `{number}`"));
    }
}

/// Reports an argument of a store that does not fit: it is broadcast to the shape of the pointer, never the other way.
fn guarded_store<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    name: &str,
    pointer: &RuntimeValue,
    argument: &RuntimeValue,
) {
    let (Some(to), Some(from)) = (&pointer.shape, &argument.shape) else { return };
    if to.is_empty() {
        guarded(engine, call, name, pointer, argument);
        return;
    }
    // Since 3.6 a shape with fewer axes gets axes in front.
    let lacks_axes = !from.is_empty() && from.len() < to.len() && engine.since(6) == Some(false);
    let rank_differs = from.len() > to.len() || lacks_axes;
    let fits = |(from, to): (&Dim, &Dim)| *from == Dim::Known(1) || !from.differs(to);
    if rank_differs || !from.iter().rev().zip(to.iter().rev()).all(fits) {
        let message = format!("`{name}` (`{argument}`) does not fit the pointer (`{pointer}`)");
        engine.problem(ProblemKind::Broadcast, call.span, message);
    }
}

/// `tl.atomic_add(pointer, val, …)` and the similar operations.
pub(super) fn atomic<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    if ![("sem", ORDER), ("scope", SCOPE)].into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed))
    {
        return AbstractValue::Unknown;
    }
    let Some((pointer, number)) = pointer(engine, call) else {
        engine.record(call, super::access::AccessKind::Atomic, &RuntimeValue::new(LaneType::Unknown, None));
        return AbstractValue::Unknown;
    };
    engine.record(call, super::access::AccessKind::Atomic, &pointer);
    if let Some(number) = number
        && let Some(refused) = unsupported(engine, call.name, number)
    {
        engine.problem(ProblemKind::MemoryAccess, call.span, format!("`tl.{}` does not take `{refused}`", call.name));
        return AbstractValue::Unknown;
    }
    for name in ["val", "mask"] {
        if let Some(AbstractValue::Tile(argument)) = call.bound.given(name).cloned() {
            guarded_store(engine, call, name, &pointer, &argument);
        }
    }
    AbstractValue::Tile(RuntimeValue::new(number.map_or(LaneType::Unknown, LaneType::Number), pointer.shape))
}

/// The number type, when the atomic operation does not support it.
fn unsupported(engine: &Engine<'_>, name: &str, number: Dtype) -> Option<Dtype> {
    let is_add = name == "atomic_add";
    let refused = match number {
        Dtype::Fp16 => !is_add,
        Dtype::Bf16 => !is_add || engine.since(4) == Some(false),
        Dtype::Int16 | Dtype::UInt16 => true,
        _ => number.bits() < 16,
    };
    refused.then_some(number)
}

/// `tl.atomic_cas(pointer, cmp, val)`
pub(super) fn atomic_cas<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    if ![("sem", ORDER), ("scope", SCOPE)].into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed))
    {
        return AbstractValue::Unknown;
    }
    let Some((pointer, number)) = pointer(engine, call) else { return AbstractValue::Unknown };
    if let Some(number) = number.filter(|number| number.bits() < 16) {
        let message = format!("`tl.atomic_cas` takes numbers of 16, 32 and 64 bits, not `{number}`");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
    }
    match call.bound.get("val") {
        Some(AbstractValue::Tile(tile)) => AbstractValue::Tile(tile.clone()),
        Some(AbstractValue::Const(_)) => {
            AbstractValue::Tile(RuntimeValue::new(number.map_or(LaneType::Unknown, LaneType::Number), pointer.shape))
        }
        _ => AbstractValue::Unknown,
    }
}
