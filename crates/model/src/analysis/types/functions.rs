//! The functions of `triton.language`, in one table with the rule for each result.

use super::application::Application;
use super::arguments::Bound;
use super::dtype::Dtype;
use super::engine::Engine;
use super::value::{AbstractValue, RuntimeValue};
use super::{block_pointers, creation, dot, elementwise, memory, reductions, reshaping};
use crate::syntax::Span;

/// The rule by which the shape and element type of a function's result follow from its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transfer {
    /// Elementwise with the same type; only for the listed float types, if any are listed.
    Map(&'static [Dtype]),
    /// Two operands, combined like those of an operator.
    Elementwise,
    /// A quotient of floats of these types.
    Quotient(&'static [Dtype]),
    /// `tl.clamp`: `min` and `max` bound the first argument.
    Clamp,
    /// `x * y + z`
    Fma,
    /// `tl.where`
    Where,
    /// The upper half of an integer product.
    Umulhi,
    /// The first argument, with a compiler hint that has one number for each axis.
    Hint,
    /// The quotient, rounded up.
    Cdiv,
    /// `tl.arange`
    Arange,
    /// `tl.zeros`, `tl.full`
    Full,
    /// `tl.zeros_like`
    Like,
    /// `tl.program_id` or `tl.num_programs` along an axis.
    Program,
    /// A random float for each offset.
    Random,
    /// `tl.cast`, `.to`
    Cast,
    /// The same lanes in another shape.
    Reshape,
    /// An additional axis of size 1.
    ExpandDims,
    /// Broadcast to a given shape.
    BroadcastTo,
    /// Broadcast to the shape of another value.
    Broadcast,
    /// The axes in another order.
    Permute,
    /// Two values along a new last axis.
    Join,
    /// The two halves of the last axis, of size 2.
    Split,
    /// The lanes of two values, alternating.
    Interleave,
    /// The lanes of two values, concatenated.
    Concatenate,
    /// All lanes along a single axis.
    Ravel,
    /// `tl.load`
    Load,
    /// `tl.store`
    Store,
    /// An atomic operation that returns the previous value.
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
    /// A sum along an axis; small integers are widened.
    Sum,
    /// A minimum or maximum along an axis; small numbers are widened to 32 bits.
    Extreme,
    /// The position of an extreme value along an axis.
    Position,
    /// A bitwise reduction along an axis; integers only.
    Bits,
    /// A reduction along an axis by a function of the file.
    Reduce,
    /// A cumulative result along an axis.
    Cumulative,
    /// A cumulative result along an axis by a function of the file.
    Scan,
    /// The same lanes in another order.
    Reorder,
    /// `tl.histogram`
    Histogram,
    /// `tl.gather`
    Gather,
    /// A function that returns `None`.
    Nothing,
    /// `tl.range` outside the head of a loop.
    Range,
    /// The argument as a compile-time value.
    Constexpr,
    /// A condition that is checked at compile time.
    StaticAssert,
}

use Transfer as T;

const WIDE: &[Dtype] = &[Dtype::Fp32, Dtype::Fp64];
const SINGLE: &[Dtype] = &[Dtype::Fp32];

/// Each function with its rule. Functions that are missing here give an unknown value.
const TABLE: &[(&[&str], Transfer)] = &[
    (&["exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "rsqrt", "erf", "floor", "ceil", "sigmoid"], T::Map(WIDE)),
    (&["sqrt_rn"], T::Map(SINGLE)),
    // The maximum of a half type is single, and so is the difference from it.
    (&["softmax"], T::Map(&[Dtype::Fp16, Dtype::Bf16, Dtype::Fp32, Dtype::Fp64])),
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

/// The result of a call of `triton.language.name`; reports the problems of its arguments.
pub(super) fn apply<'a>(engine: &mut Engine<'a>, span: Span, name: &str, bound: Bound<'a>) -> AbstractValue<'a> {
    let Some((_, transfer)) = TABLE.iter().find(|(names, _)| names.contains(&name)) else {
        return AbstractValue::Unknown;
    };
    let call = Application { name, span, bound };
    match *transfer {
        T::Map(numbers) => elementwise::map(engine, &call, numbers),
        T::Elementwise => elementwise::two(engine, &call),
        T::Quotient(numbers) => elementwise::quotient(engine, &call, numbers),
        T::Clamp => elementwise::clamp(engine, &call),
        T::Fma => elementwise::fma(engine, &call),
        T::Where => elementwise::choose(engine, &call),
        T::Umulhi => elementwise::umulhi(engine, &call),
        T::Hint => elementwise::hint(engine, &call),
        T::Cdiv => elementwise::cdiv(engine, &call),
        T::Cast => elementwise::cast(engine, &call),
        T::Constexpr => elementwise::constexpr(&call),
        T::StaticAssert => elementwise::static_assert(engine, &call),
        T::Range => AbstractValue::Builtin("tl.range()"),
        T::Nothing => elementwise::nothing(engine, &call),
        T::Arange => creation::arange(engine, &call),
        T::Full => creation::full(engine, &call),
        T::Like => call.first().tile().map_or(AbstractValue::Unknown, |tile| AbstractValue::Tile(tile.clone())),
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
        T::BlockPointer => block_pointers::block_pointer(engine, &call),
        T::Advance => block_pointers::advance(engine, &call),
        T::Descriptor => block_pointers::descriptor(engine, &call),
        T::Dot => dot::dot(engine, &call),
        T::DotScaled => dot::dot_scaled(engine, &call),
        T::Sum | T::Extreme | T::Position | T::Bits | T::Reduce => reductions::reduce(engine, &call, *transfer),
        T::Cumulative | T::Scan => reductions::scan(engine, &call, *transfer),
        T::Reorder => reductions::reorder(engine, &call),
        T::Histogram => reductions::histogram(engine, &call),
        T::Gather => reductions::gather(engine, &call),
    }
}

/// `tl.maximum(x, y)`, also as `max(x, y)`.
pub(super) fn elementwise<'a>(
    engine: &mut Engine<'a>,
    span: Span,
    x: &AbstractValue<'a>,
    y: &AbstractValue<'a>,
) -> AbstractValue<'a> {
    elementwise::combined(engine, span, x, y)
}

/// The result of a load through a descriptor.
pub(super) fn descriptor_load<'a>(name: &str, tile: &RuntimeValue, values: &[AbstractValue<'a>]) -> AbstractValue<'a> {
    if name == "load" {
        return AbstractValue::Tile(tile.clone());
    }
    let rows = values.first().and_then(AbstractValue::tile).and_then(|rows| rows.shape.as_ref()?.first().cloned());
    let columns = tile.shape.as_ref().and_then(|shape| shape.get(1).cloned());
    match (rows, columns) {
        (Some(rows), Some(columns)) => {
            AbstractValue::Tile(RuntimeValue::new(tile.element, Some([rows, columns].into())))
        }
        _ => AbstractValue::Unknown,
    }
}
