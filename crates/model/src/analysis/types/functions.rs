//! The functions of `triton.language`: one table of what each makes of its arguments.

use super::arguments::Bound;
use super::dtype::Number;
use super::engine::Engine;
use super::shape::{Dim, Shape};
use super::value::{Element, Tile, Value};
use super::{blocks, creation, linear, memory, reductions, reshaping, transfer};
use crate::syntax::Span;

/// What a function makes of its arguments: how the shape and the type of its result come about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transfer {
    /// Lane by lane, the type stays; of floats of these widths only, when any are named.
    Map(&'static [Number]),
    /// Two operands, like an operator.
    Elementwise,
    /// A quotient of floats.
    Quotient(&'static [Number]),
    /// `min` and `max` bound the first.
    Clamp,
    /// `x * y + z`
    Fma,
    /// `tl.where`
    Where,
    /// The upper half of a product of integers.
    Umulhi,
    /// The same value, with a hint for the compiler: one number for each axis.
    Hint,
    /// Rounded up quotient.
    Cdiv,
    /// `tl.arange`
    Arange,
    /// `tl.zeros`, `tl.full`
    Full,
    /// `tl.zeros_like`
    Like,
    /// A number of the launch, along an axis.
    Program,
    /// A random float for each offset.
    Random,
    /// `tl.cast`, `.to`
    Cast,
    /// As many lanes in another shape.
    Reshape,
    /// One more axis of size 1.
    ExpandDims,
    /// To a given shape.
    BroadcastTo,
    /// To the shape of another value.
    Broadcast,
    /// Axes in another order.
    Permute,
    /// Two values along a new last axis, or one after the other.
    Join,
    /// The two halves of the last axis.
    Split,
    /// The lanes of two values in turn.
    Interleave,
    /// One after the other.
    Concatenate,
    /// All lanes along one axis.
    Ravel,
    /// `tl.load`
    Load,
    /// `tl.store`
    Store,
    /// An atomic operation that gives what was there.
    Atomic,
    /// `tl.atomic_cas`
    AtomicCas,
    /// `tl.make_block_ptr`
    BlockPointer,
    /// `tl.advance`
    Advance,
    /// `tl.make_tensor_descriptor`
    Descriptor,
    /// `tl.dot`
    Dot,
    /// `tl.dot_scaled`
    DotScaled,
    /// An axis less; small integers become wider.
    Sum,
    /// An axis less; small numbers become 32 bits wide.
    Extreme,
    /// An axis less; the position.
    Position,
    /// An axis less; integers only.
    Bits,
    /// An axis less, by a function of the file.
    Reduce,
    /// A running result along an axis.
    Cumulative,
    /// A running result along an axis, by a function of the file.
    Scan,
    /// The same lanes in another order.
    Reorder,
    /// `tl.histogram`
    Histogram,
    /// `tl.gather`
    Gather,
    /// `None`
    Nothing,
    /// `tl.range` outside the head of a loop.
    Range,
    /// The argument, as a compile-time value.
    Constexpr,
    /// A condition that is checked while compiling.
    StaticAssert,
}

use Transfer as T;

const WIDE: &[Number] = &[Number::Fp32, Number::Fp64];
const SINGLE: &[Number] = &[Number::Fp32];

/// Each function with its transfer. What is not here gives an unknown value.
const TABLE: &[(&[&str], Transfer)] = &[
    (&["exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "rsqrt", "erf", "floor", "ceil", "sigmoid"], T::Map(WIDE)),
    (&["sqrt_rn"], T::Map(SINGLE)),
    (&["softmax"], T::Map(WIDE)),
    (&["abs"], T::Map(&[])),
    (&["add", "sub", "mul", "maximum", "minimum"], T::Elementwise),
    (&["fdiv"], T::Quotient(&[])),
    (&["div_rn"], T::Quotient(SINGLE)),
    (&["clamp"], T::Clamp),
    (&["fma"], T::Fma),
    (&["where"], T::Where),
    (&["umulhi"], T::Umulhi),
    (&["multiple_of", "max_contiguous", "max_constancy"], T::Hint),
    (&["cdiv"], T::Cdiv),
    (&["arange"], T::Arange),
    (&["zeros", "full"], T::Full),
    (&["zeros_like"], T::Like),
    (&["program_id", "num_programs"], T::Program),
    (&["rand", "randn", "randint", "randint4x"], T::Random),
    (&["cast"], T::Cast),
    (&["reshape", "view"], T::Reshape),
    (&["expand_dims"], T::ExpandDims),
    (&["broadcast_to"], T::BroadcastTo),
    (&["broadcast"], T::Broadcast),
    (&["trans", "permute"], T::Permute),
    (&["join"], T::Join),
    (&["split"], T::Split),
    (&["interleave"], T::Interleave),
    (&["cat"], T::Concatenate),
    (&["ravel"], T::Ravel),
    (&["load"], T::Load),
    (&["store"], T::Store),
    (&["atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg"], T::Atomic),
    (&["atomic_cas"], T::AtomicCas),
    (&["make_block_ptr"], T::BlockPointer),
    (&["advance"], T::Advance),
    (&["make_tensor_descriptor", "_experimental_make_tensor_descriptor"], T::Descriptor),
    (&["dot"], T::Dot),
    (&["dot_scaled"], T::DotScaled),
    (&["sum"], T::Sum),
    (&["max", "min"], T::Extreme),
    (&["argmax", "argmin"], T::Position),
    (&["xor_sum", "reduce_or"], T::Bits),
    (&["reduce"], T::Reduce),
    (&["cumsum", "cumprod"], T::Cumulative),
    (&["associative_scan"], T::Scan),
    (&["sort", "flip", "topk"], T::Reorder),
    (&["histogram"], T::Histogram),
    (&["gather"], T::Gather),
    (&["debug_barrier", "device_print", "device_assert", "static_print", "assume"], T::Nothing),
    (&["range"], T::Range),
    (&["constexpr"], T::Constexpr),
    (&["static_assert"], T::StaticAssert),
];

/// The result of `triton.language.name`.
pub(super) fn apply<'a>(engine: &mut Engine<'a>, span: Span, name: &str, bound: Bound<'a>) -> Value<'a> {
    let Some((_, transfer)) = TABLE.iter().find(|(names, _)| names.contains(&name)) else { return Value::Unknown };
    let call = Application { name, span, bound };
    match *transfer {
        T::Map(numbers) => transfer::map(engine, &call, numbers),
        T::Elementwise => transfer::two(engine, &call),
        T::Quotient(numbers) => transfer::quotient(engine, &call, numbers),
        T::Clamp => transfer::clamp(engine, &call),
        T::Fma => transfer::fma(engine, &call),
        T::Where => transfer::choose(engine, &call),
        T::Umulhi => transfer::umulhi(engine, &call),
        T::Hint => transfer::hint(engine, &call),
        T::Cdiv => transfer::cdiv(engine, &call),
        T::Cast => transfer::cast(engine, &call),
        T::Constexpr => transfer::constexpr(&call),
        T::StaticAssert => transfer::static_assert(engine, &call),
        T::Range => Value::Builtin("tl.range()"),
        T::Nothing => transfer::nothing(engine, &call),
        T::Arange => creation::arange(engine, &call),
        T::Full => creation::full(engine, &call),
        T::Like => call.first().tile().map_or(Value::Unknown, |tile| Value::Tile(tile.clone())),
        T::Program => creation::program(engine, &call),
        T::Random => creation::random(engine, &call),
        T::Reshape => reshaping::reshape(engine, &call),
        T::ExpandDims => reshaping::expand_dims(engine, &call),
        T::BroadcastTo => reshaping::broadcast_to(engine, &call),
        T::Broadcast => reshaping::broadcast(engine, &call),
        T::Permute => reshaping::permute(engine, &call),
        T::Join | T::Interleave => reshaping::join(engine, &call),
        T::Split => reshaping::split(engine, &call),
        T::Concatenate => reshaping::concatenate(engine, &call),
        T::Ravel => reshaping::ravel(&call),
        T::Load => memory::load(engine, &call),
        T::Store => memory::store(engine, &call),
        T::Atomic => memory::atomic(engine, &call),
        T::AtomicCas => memory::atomic_cas(engine, &call),
        T::BlockPointer => blocks::block_pointer(engine, &call),
        T::Advance => blocks::advance(engine, &call),
        T::Descriptor => blocks::descriptor(engine, &call),
        T::Dot => linear::dot(engine, &call),
        T::DotScaled => linear::dot_scaled(engine, &call),
        T::Sum | T::Extreme | T::Position | T::Bits | T::Reduce => reductions::reduce(engine, &call, *transfer),
        T::Cumulative | T::Scan => reductions::scan(engine, &call, *transfer),
        T::Reorder => reductions::reorder(engine, &call),
        T::Histogram => reductions::histogram(engine, &call),
        T::Gather => reductions::gather(engine, &call),
    }
}

/// One use of a function.
pub(super) struct Application<'a, 'n> {
    /// Its name in `triton.language`.
    pub(super) name: &'n str,
    /// The whole call.
    pub(super) span: Span,
    /// Its arguments.
    pub(super) bound: Bound<'a>,
}

impl<'a> Application<'a, '_> {
    /// What the function works on: its first parameter, whatever the release calls it.
    pub(super) fn first(&self) -> &Value<'a> {
        self.bound.any(&["input", "x", "a", "pointer", "base", "lhs", "src"]).unwrap_or(&Value::Unknown)
    }

    /// The first parameter as a tile.
    pub(super) fn tile(&self) -> Option<&Tile> {
        self.first().tile()
    }
}

/// `tl.maximum(x, y)`, also as `max(x, y)`.
pub(super) fn elementwise<'a>(engine: &mut Engine<'a>, span: Span, x: &Value<'a>, y: &Value<'a>) -> Value<'a> {
    transfer::combined(engine, span, x, y)
}

/// What a descriptor loads.
pub(super) fn descriptor_load<'a>(name: &str, tile: &Tile, values: &[Value<'a>]) -> Value<'a> {
    if name == "load" {
        return Value::Tile(tile.clone());
    }
    let rows = values.first().and_then(Value::tile).and_then(|rows| rows.shape.as_ref()?.first().cloned());
    let columns = tile.shape.as_ref().and_then(|shape| shape.get(1).cloned());
    match (rows, columns) {
        (Some(rows), Some(columns)) => Value::Tile(Tile::new(tile.element, Some([rows, columns].into()))),
        _ => Value::Unknown,
    }
}

/// A shape that is passed as a tuple, or as arguments one by one.
pub(super) fn shape_of(value: &Value<'_>) -> Option<Vec<Dim>> {
    match value {
        Value::Tuple(parts) => {
            Some(parts.iter().map(|part| part.constant().map_or(Dim::Unknown, super::value::Const::dim)).collect())
        }
        Value::Const(constant) if constant.int().is_some() => Some(vec![constant.dim()]),
        Value::Const(super::value::Const::Symbol(symbol)) => Some(vec![Dim::Symbol(symbol.clone())]),
        _ => None,
    }
}

/// A tile of a known element type.
pub(super) fn tile_of<'a>(element: Element, shape: Vec<Dim>) -> Value<'a> {
    Value::Tile(Tile::new(element, Some(Shape::from(shape))))
}
