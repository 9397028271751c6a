//! Functions that read and write memory.

use super::creation::checked_shape;
use super::dtype::Number;
use super::engine::Engine;
use super::functions::{Application, tile_of};
use super::shape::{self, Dim};
use super::value::{Const, Element, Kind, Tile, Value};

const LOAD_CACHE: &[&str] = &["", ".ca", ".cg", ".cv"];
const STORE_CACHE: &[&str] = &["", ".wb", ".cg", ".cs", ".wt"];
const EVICTION: &[&str] = &["", "evict_last", "evict_first", "evict_normal"];
const PADDING: &[&str] = &["", "zero", "nan"];
const ORDER: &[&str] = &["acquire", "release", "acq_rel", "relaxed"];
const SCOPE: &[&str] = &["gpu", "cta", "sys"];

/// Reports an option whose value does not exist.
fn check_option<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, name: &str, allowed: &[&str]) -> bool {
    let wrong = match call.bound.get(name) {
        Some(Value::Const(Const::Str(text))) => !text.is_empty() && !allowed.contains(&text.as_ref()),
        _ => false,
    };
    if wrong && let Some(value) = call.bound.get(name) {
        let known: Vec<String> = allowed.iter().filter(|one| !one.is_empty()).map(|one| format!("'{one}'")).collect();
        let message = format!("`{name}` cannot be {value}; it is one of {}", known.join(", "));
        engine.problem(Kind::Argument, call.span, message);
    }
    !wrong
}

fn given<'a, 'b>(call: &'b Application<'a, '_>, name: &str) -> Option<&'b Value<'a>> {
    call.bound.given(name)
}

/// `tl.load(pointer, mask, other, …)`
pub(super) fn load<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let options = [("cache_modifier", LOAD_CACHE), ("eviction_policy", EVICTION), ("padding_option", PADDING)];
    if !options.into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed)) {
        return Value::Unknown;
    }
    if let Value::BlockPointer(tile) = &call.first().clone() {
        if given(call, "mask").or(given(call, "other")).is_some_and(|value| *value != Value::Unknown) {
            let message = "a block pointer takes no `mask` and no `other`; use `boundary_check` and `padding_option`";
            engine.problem(Kind::MemoryAccess, call.span, message);
            return Value::Unknown;
        }
        engine.record(call, super::access::AccessKind::Load, tile);
        return Value::Tile(tile.clone());
    }
    let Some((pointer, number)) = pointer(engine, call) else { return Value::Unknown };
    let has_check = match call.bound.get("boundary_check") {
        Some(Value::Tuple(parts)) => !parts.is_empty(),
        Some(Value::Const(constant)) => constant.int().is_some(),
        _ => false,
    };
    let has_padding =
        matches!(call.bound.get("padding_option"), Some(Value::Const(Const::Str(text))) if !text.is_empty());
    if has_check || has_padding {
        let message = "`boundary_check` and `padding_option` are for block pointers; pass a `mask`";
        engine.problem(Kind::MemoryAccess, call.span, message);
        return Value::Unknown;
    }
    let (mask, other) = (given(call, "mask").cloned(), given(call, "other").cloned());
    let mask_is_none = call.bound.get("mask").is_none_or(|mask| mask.is_none() == Some(true));
    if mask_is_none
        && other
            .as_ref()
            .is_some_and(|other| !matches!(other, Value::Unknown | Value::Const(Const::Unknown | Const::Symbol(_))))
    {
        engine.problem(Kind::MemoryAccess, call.span, "`other` has no meaning without a `mask`");
        return Value::Unknown;
    }
    engine.record(call, super::access::AccessKind::Load, &pointer);
    let mut shape = pointer.shape.clone();
    for (name, value) in [("mask", mask), ("other", other)] {
        let Some(Value::Tile(tile)) = value else { continue };
        shape = guarded(engine, call, name, &Tile::new(pointer.element, shape), &tile);
    }
    Value::Tile(Tile::new(number.map_or(Element::Unknown, Element::Number), shape))
}

/// The pointer of an access, and what it points to; reports what is no pointer.
fn pointer<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Option<(Tile, Option<Number>)> {
    let refused = match call.first() {
        Value::Opaque(_) => return call.first().scalarized().tile().map(|tile| (tile.clone(), None)),
        Value::Tile(tile) => match tile.element {
            Element::Pointer(number) => return Some((tile.clone(), number)),
            Element::Unknown => return Some((tile.clone(), None)),
            Element::Number(_) => format!("`tl.{}` needs a pointer, and this is `{tile}`", call.name),
        },
        Value::Const(constant @ (Const::Int(_) | Const::Float(_) | Const::None | Const::Str(_))) => {
            format!("`tl.{}` needs a pointer, and this is `{constant}`", call.name)
        }
        Value::Descriptor(_) if call.name == "load" => "a descriptor is read with its own `.load(…)`".to_owned(),
        _ => return None,
    };
    engine.problem(Kind::MemoryAccess, call.span, refused);
    None
}

/// The shape of an access after one of its arguments is broadcast; reports what does not fit.
fn guarded<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    name: &str,
    pointer: &Tile,
    argument: &Tile,
) -> Option<shape::Shape> {
    if pointer.is_scalar() == Some(true) && argument.is_block() {
        let message =
            format!("`{name}` is a tile (`{argument}`), and the pointer is a scalar; add the offsets to the pointer");
        engine.problem(Kind::MemoryAccess, call.span, message);
        return None;
    }
    if pointer.is_scalar() == Some(true) {
        return pointer.shape.clone();
    }
    engine.common_shape(call.span, pointer, argument)
}

/// `tl.store(pointer, value, mask, …)`
pub(super) fn store<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let options = [("cache_modifier", STORE_CACHE), ("eviction_policy", EVICTION)];
    if !options.into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed)) {
        return Value::none();
    }
    let value = call.bound.get("value").cloned().unwrap_or(Value::Unknown);
    if let Value::BlockPointer(tile) = call.first().clone() {
        store_block(engine, call, &tile, &value);
        return Value::none();
    }
    let Some((pointer, number)) = pointer(engine, call) else { return Value::none() };
    engine.record(call, super::access::AccessKind::Store, &pointer);
    if let Value::Tile(value) = &value {
        check_stored(engine, call, &pointer, number, value);
    }
    if let Value::Const(constant @ (Const::Str(_) | Const::None | Const::Type(_))) = &value {
        engine.problem(Kind::MemoryAccess, call.span, format!("`{constant}` cannot be stored"));
    }
    if let Some(Value::Tile(mask)) = call.bound.given("mask").cloned() {
        guarded_store(engine, call, "mask", &pointer, &mask);
    }
    Value::none()
}

fn check_stored<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    pointer: &Tile,
    number: Option<Number>,
    value: &Tile,
) {
    guarded_store(engine, call, "value", pointer, value);
    if let (Some(number), Element::Pointer(_)) = (number, value.element)
        && !(number.is_int() && matches!(number.bits(), 1 | 64))
    {
        engine.problem(Kind::MemoryAccess, call.span, format!("a pointer cannot be stored as `{number}`"));
    }
}

/// What is stored is broadcast to the shape of the pointer, never the other way.
fn guarded_store<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, name: &str, pointer: &Tile, argument: &Tile) {
    let (Some(to), Some(from)) = (&pointer.shape, &argument.shape) else { return };
    if to.is_empty() {
        guarded(engine, call, name, pointer, argument);
        return;
    }
    let rank_differs = from.len() > to.len();
    let fits = |(from, to): (&Dim, &Dim)| *from == Dim::Known(1) || !from.differs(to);
    if rank_differs || !from.iter().rev().zip(to.iter().rev()).all(fits) {
        let message = format!("`{name}` (`{argument}`) does not fit the pointer (`{pointer}`)");
        engine.problem(Kind::Broadcast, call.span, message);
    }
}

fn store_block<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, block: &Tile, value: &Value<'a>) {
    if call.bound.given("mask").is_some_and(|mask| *mask != Value::Unknown) {
        let message = "a block pointer takes no `mask`; use `boundary_check`";
        engine.problem(Kind::MemoryAccess, call.span, message);
        return;
    }
    let Value::Tile(value) = value else { return };
    if value.is_block() && block.differs(value) {
        let shapes_differ = Tile::new(Element::Unknown, block.shape.clone()).differs(value);
        let what = if shapes_differ { "shape" } else { "type" };
        let message = format!("the {what} of the value (`{value}`) and of the block (`{block}`) differ");
        engine.problem(Kind::MemoryAccess, call.span, message);
    }
}

/// `tl.atomic_add(pointer, val, …)` and its like.
pub(super) fn atomic<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    if ![("sem", ORDER), ("scope", SCOPE)].into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed))
    {
        return Value::Unknown;
    }
    let Some((pointer, number)) = pointer(engine, call) else { return Value::Unknown };
    engine.record(call, super::access::AccessKind::Atomic, &pointer);
    if let Some(number) = number
        && let Some(refused) = unsupported(engine, call.name, number)
    {
        engine.problem(Kind::MemoryAccess, call.span, format!("`tl.{}` does not take `{refused}`", call.name));
        return Value::Unknown;
    }
    for name in ["val", "mask"] {
        if let Some(Value::Tile(argument)) = call.bound.given(name).cloned() {
            guarded_store(engine, call, name, &pointer, &argument);
        }
    }
    Value::Tile(Tile::new(number.map_or(Element::Unknown, Element::Number), pointer.shape))
}

/// The number type, when the atomic operation does not take it.
fn unsupported(engine: &Engine<'_>, name: &str, number: Number) -> Option<Number> {
    let is_add = name == "atomic_add";
    let refused = match number {
        Number::Fp16 => !is_add,
        Number::Bf16 => !is_add || engine.since(4) == Some(false),
        Number::Int16 | Number::UInt16 => true,
        _ => number.bits() < 16,
    };
    refused.then_some(number)
}

/// `tl.atomic_cas(pointer, cmp, val)`
pub(super) fn atomic_cas<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    if ![("sem", ORDER), ("scope", SCOPE)].into_iter().all(|(name, allowed)| check_option(engine, call, name, allowed))
    {
        return Value::Unknown;
    }
    let Some((pointer, number)) = pointer(engine, call) else { return Value::Unknown };
    if let Some(number) = number.filter(|number| number.bits() < 16) {
        let message = format!("`tl.atomic_cas` takes numbers of 16, 32 and 64 bits, not `{number}`");
        engine.problem(Kind::MemoryAccess, call.span, message);
    }
    match call.bound.get("val") {
        Some(Value::Tile(tile)) => Value::Tile(tile.clone()),
        Some(Value::Const(_)) => {
            Value::Tile(Tile::new(number.map_or(Element::Unknown, Element::Number), pointer.shape))
        }
        _ => Value::Unknown,
    }
}

/// `tl.make_block_ptr(base, shape, strides, offsets, block_shape, order)`
pub(super) fn block_pointer<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    if engine.since(9) == Some(true) {
        let message = "block pointers were removed in Triton 3.9; use `tl.make_tensor_descriptor`";
        engine.problem(Kind::BlockPointerRemoved, call.span, message);
        return Value::Unknown;
    }
    let number = match call.bound.get("base") {
        Some(Value::Tile(tile)) => match (tile.element, tile.is_scalar()) {
            (Element::Pointer(number), Some(true)) => number,
            (Element::Number(_), _) | (Element::Pointer(_), Some(false)) => {
                engine.problem(Kind::MemoryAccess, call.span, format!("`base` must be one pointer, not `{tile}`"));
                return Value::Unknown;
            }
            _ => None,
        },
        _ => None,
    };
    let lengths: Vec<Option<usize>> = ["shape", "strides", "offsets", "block_shape", "order"]
        .iter()
        .map(|name| match call.bound.get(name) {
            Some(Value::Tuple(parts)) => Some(parts.len()),
            _ => None,
        })
        .collect();
    let known: Vec<usize> = lengths.iter().copied().flatten().collect();
    if known.len() == lengths.len() && known.windows(2).any(|pair| pair[0] != pair[1]) {
        let message = "`shape`, `strides`, `offsets`, `block_shape` and `order` must have the same length";
        engine.problem(Kind::MemoryAccess, call.span, message);
        return Value::Unknown;
    }
    let element = number.map_or(Element::Unknown, Element::Number);
    let Some(block_shape) = call.bound.get("block_shape").cloned() else { return Value::Unknown };
    if let Value::Tuple(parts) = &block_shape
        && let Some(part) = parts.iter().find(|part| part.is_runtime())
    {
        let message = format!("`block_shape` must be known while compiling, and `{part}` is a run-time value");
        engine.problem(Kind::MemoryAccess, call.span, message);
        return Value::Unknown;
    }
    match super::functions::shape_of(&block_shape) {
        Some(sizes) => Value::BlockPointer(Tile::new(element, Some(sizes.into()))),
        None => Value::BlockPointer(Tile::new(element, None)),
    }
}

/// `tl.make_tensor_descriptor(base, shape, strides, block_shape)`
pub(super) fn descriptor<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> Value<'a> {
    let number = match call.bound.get("base") {
        Some(Value::Tile(Tile { element: Element::Pointer(number), .. })) => *number,
        _ => None,
    };
    let element = number.map_or(Element::Unknown, Element::Number);
    let Some(given) = call.bound.get("block_shape").cloned() else { return Value::Unknown };
    let Some(sizes) = checked_shape(engine, call.span, &given) else {
        return Value::Descriptor(Tile::new(element, None));
    };
    if let (Some(number), Some(last)) = (number, sizes.last().and_then(Dim::known)) {
        let bytes = last * i64::from(number.bits()) / 8;
        if bytes < 16 {
            let message = format!("the last axis of a descriptor's block must have 16 bytes at least, and has {bytes}");
            engine.problem(Kind::MemoryAccess, call.span, message);
            return Value::Unknown;
        }
    }
    if let Some(Value::Tuple(strides)) = call.bound.get("strides") {
        let last = strides.last().and_then(Value::constant).and_then(Const::int);
        if strides.len() != sizes.len() || last.is_some_and(|last| last != 1) {
            let message = "a descriptor needs a stride for each axis, and 1 for the last";
            engine.problem(Kind::MemoryAccess, call.span, message);
            return Value::Unknown;
        }
    }
    match tile_of(element, sizes) {
        Value::Tile(tile) => Value::Descriptor(tile),
        _ => Value::Unknown,
    }
}
