//! Transfer functions of block pointers and tensor descriptors.

use std::sync::Arc;

use super::application::{Application, tile_of};
use super::creation::checked_shape;
use super::dtype::Dtype;
use super::engine::Engine;
use super::index::{BlockAxis, BlockPosition, LaneFact, Poly};
use super::recording::scalar_poly;
use super::shape::Dim;
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::kernel::ast::Call;
use crate::syntax::Span;

/// `tl.load` through a block pointer.
pub(super) fn load<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, block: &RuntimeValue) -> AbstractValue<'a> {
    if call.bound.given("mask").or(call.bound.given("other")).is_some_and(|value| *value != AbstractValue::Unknown) {
        let message = "a block pointer takes no `mask` and no `other`; use `boundary_check` and `padding_option`";
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    let is_nan = call.bound.constant("padding_option") == Some(&Const::Str("nan".into()));
    if is_nan && block.element.number().is_some_and(Dtype::is_int) {
        let message = format!("`padding_option=\"nan\"` is for floats, and this block is `{block}`");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    if let (Some(AbstractValue::Tuple(checked)), Some(shape)) = (call.bound.get("boundary_check"), &block.shape) {
        let rank = i128::try_from(shape.len()).unwrap_or(i128::MAX);
        let axes = checked.iter().filter_map(|axis| axis.constant().and_then(Const::int));
        if let Some(axis) = axes.into_iter().find(|axis| !(0..rank).contains(axis)) {
            let message = format!("`boundary_check` names axis {axis}, and the block has {rank}");
            engine.problem(ProblemKind::MemoryAccess, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    engine.record(call, super::access::AccessKind::Load, block);
    AbstractValue::Tile(block.clone().knowing(LaneFact::Nothing))
}

/// `tl.store` through a block pointer.
pub(super) fn store<'a>(
    engine: &mut Engine<'a>,
    call: &Application<'a, '_>,
    block: &RuntimeValue,
    value: &AbstractValue<'a>,
) {
    if call.bound.given("mask").is_some_and(|mask| *mask != AbstractValue::Unknown) {
        let message = "a block pointer takes no `mask`; use `boundary_check`";
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return;
    }
    engine.record(call, super::access::AccessKind::Store, block);
    let AbstractValue::Tile(value) = value else { return };
    // Since 3.8 the value is cast to the type of the block.
    let shape_only = RuntimeValue::new(LaneType::Unknown, block.shape.clone());
    let block = if engine.since(8) == Some(false) { block } else { &shape_only };
    if value.is_block() && block.differs(value) {
        let shapes_differ = RuntimeValue::new(LaneType::Unknown, block.shape.clone()).differs(value);
        let what = if shapes_differ { "shape" } else { "type" };
        let message = format!("the {what} of the value (`{value}`) and of the block (`{block}`) differ");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
    }
}

/// The error in the numbers from which a block pointer is made, if there is one.
fn misfit<'a>(engine: &Engine<'a>, call: &Application<'a, '_>) -> Option<String> {
    for name in ["shape", "strides", "offsets"] {
        let Some(AbstractValue::Tuple(parts)) = call.bound.get(name) else { continue };
        for part in parts.iter() {
            let number = Engine::number_of(part);
            if part.tile().is_some_and(RuntimeValue::is_block) {
                return Some(format!("`{name}` must hold scalars, not `{part}`"));
            }
            if number.is_some_and(Dtype::is_float) {
                return Some(format!("`{name}` must hold integers, not `{part}`"));
            }
            let is_wide = number == Some(Dtype::Int64) && part.is_runtime();
            if name == "offsets" && is_wide && engine.since(8) == Some(false) {
                return Some("`offsets` must have 32 bits before Triton 3.8; use `.to(tl.int32)`".to_owned());
            }
        }
    }
    let Some(AbstractValue::Tuple(order)) = call.bound.get("order") else { return None };
    let known: Option<Vec<i128>> = order.iter().map(|axis| axis.constant().and_then(Const::int)).collect();
    let mut sorted = known?;
    sorted.sort_unstable();
    let rank = i128::try_from(sorted.len()).unwrap_or(0);
    (!sorted.iter().copied().eq(0..rank)).then(|| format!("`order` must name each of the {rank} axes once"))
}

/// `tl.advance(base, offsets)`
pub(super) fn advance<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let refused = match (call.first(), call.bound.get("offsets")) {
        (AbstractValue::Tile(tile), _) => {
            Some(format!("`tl.advance` moves block pointers, not `{tile}`; add to the pointer"))
        }
        (AbstractValue::BlockPointer(RuntimeValue { shape: Some(shape), .. }), Some(AbstractValue::Tuple(offsets)))
            if shape.len() != offsets.len() =>
        {
            Some(format!("the block has {} axes, and {} offsets are given", shape.len(), offsets.len()))
        }
        _ => None,
    };
    if let Some(message) = refused.filter(|_| engine.since(8) == Some(true)) {
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    let parts = match call.bound.get("offsets") {
        Some(AbstractValue::Tuple(parts)) => parts.iter().map(scalar_poly).collect(),
        _ => Vec::new(),
    };
    match call.first() {
        AbstractValue::BlockPointer(RuntimeValue { element, shape, about: LaneFact::Block(position) }) => {
            let moved = (parts.len() == position.axes.len())
                .then(|| position.moved(&parts, &mut || Poly::atom(engine.other())))
                .flatten();
            let about = moved.map_or(LaneFact::Nothing, |moved| LaneFact::Block(Arc::new(moved)));
            AbstractValue::BlockPointer(RuntimeValue::new(*element, shape.clone()).knowing(about))
        }
        other => other.clone(),
    }
}

/// What is known about the position of a new block pointer.
fn position<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>, sizes: &[Dim]) -> Option<BlockPosition> {
    let base = call.bound.get("base")?.scalarized();
    let base = base.tile()?.about.index().filter(|index| index.axes.is_empty())?.clone();
    let parts = |name: &str| match call.bound.get(name) {
        Some(AbstractValue::Tuple(parts)) if parts.len() == sizes.len() => Some(parts.clone()),
        _ => None,
    };
    let (shape, strides, offsets) = (parts("shape")?, parts("strides")?, parts("offsets")?);
    let mut axes = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        // Each axis has a lane of its own, told from the others by its span.
        let span = Span::new((call.span.start + at).min(call.span.end), call.span.end);
        let lane = engine.lane(span, Some(0), size);
        let offset = scalar_poly(&offsets[at]).unwrap_or_else(|| Poly::atom(engine.other()));
        axes.push(BlockAxis { offset, size: scalar_poly(&shape[at]), stride: scalar_poly(&strides[at])?, lane });
    }
    Some(BlockPosition { base, axes })
}

/// Checks the arguments of a load or store through a descriptor.
pub(super) fn check_access<'a>(
    engine: &mut Engine<'a>,
    span: Span,
    tile: &RuntimeValue,
    name: &str,
    call: &Call,
    values: &[AbstractValue<'a>],
) {
    if let Some((keyword, _)) = call.args.iter().filter_map(|arg| arg.keyword.as_ref()).find(|(name, _)| name == "mask")
    {
        engine.problem(
            ProblemKind::Keyword,
            span,
            format!("a descriptor's `.{name}()` takes no `{keyword}`; it knows the bounds"),
        );
        return;
    }
    let (Some(AbstractValue::Tuple(offsets)), Some(shape)) = (values.first(), &tile.shape) else { return };
    if offsets.len() != shape.len() {
        let message = format!("the block has {} axes, and {} offsets are given", shape.len(), offsets.len());
        return engine.problem(ProblemKind::MemoryAccess, span, message);
    }
    let is_wide =
        |offset: &&AbstractValue<'a>| offset.tile().and_then(|tile| tile.element.number()) == Some(Dtype::Int64);
    if offsets.iter().any(|offset| is_wide(&offset)) {
        let message = "offsets of a descriptor must have 32 bits; use `.to(tl.int32)`";
        engine.problem(ProblemKind::MemoryAccess, span, message);
    }
}

/// `tl.make_block_ptr(base, shape, strides, offsets, block_shape, order)`
pub(super) fn block_pointer<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    if engine.since(9) == Some(true) {
        let message = "block pointers were removed in Triton 3.9; use `tl.make_tensor_descriptor`";
        engine.problem(ProblemKind::BlockPointerRemoved, call.span, message);
        return AbstractValue::Unknown;
    }
    let number = match call.bound.get("base") {
        Some(AbstractValue::Tile(tile)) => match (tile.element, tile.is_scalar()) {
            (LaneType::Pointer(number), Some(true)) => number,
            (LaneType::Number(_), _) | (LaneType::Pointer(_), Some(false)) => {
                engine.problem(
                    ProblemKind::MemoryAccess,
                    call.span,
                    format!("`base` must be one pointer, not `{tile}`"),
                );
                return AbstractValue::Unknown;
            }
            _ => None,
        },
        _ => None,
    };
    let lengths: Vec<Option<usize>> = ["shape", "strides", "offsets", "block_shape", "order"]
        .iter()
        .map(|name| match call.bound.get(name) {
            Some(AbstractValue::Tuple(parts)) => Some(parts.len()),
            _ => None,
        })
        .collect();
    let known: Vec<usize> = lengths.iter().copied().flatten().collect();
    if known.len() == lengths.len() && known.windows(2).any(|pair| pair[0] != pair[1]) {
        let message = "`shape`, `strides`, `offsets`, `block_shape` and `order` must have the same length";
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    if let Some(message) = misfit(engine, call) {
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    let element = number.map_or(LaneType::Unknown, LaneType::Number);
    let Some(block_shape) = call.bound.get("block_shape").cloned() else { return AbstractValue::Unknown };
    if let AbstractValue::Tuple(parts) = &block_shape
        && let Some(part) = parts.iter().find(|part| part.is_runtime())
    {
        let message = format!("`block_shape` must be known while compiling, and `{part}` is a run-time value");
        engine.problem(ProblemKind::MemoryAccess, call.span, message);
        return AbstractValue::Unknown;
    }
    match super::application::shape_of(&block_shape) {
        Some(sizes) => {
            let about = position(engine, call, &sizes).map_or(LaneFact::Nothing, |at| LaneFact::Block(Arc::new(at)));
            AbstractValue::BlockPointer(RuntimeValue::new(element, Some(sizes.into())).knowing(about))
        }
        None => AbstractValue::BlockPointer(RuntimeValue::new(element, None)),
    }
}

/// `tl.make_tensor_descriptor(base, shape, strides, block_shape)`
pub(super) fn descriptor<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let number = match call.bound.get("base") {
        Some(AbstractValue::Tile(RuntimeValue { element: LaneType::Pointer(number), .. })) => *number,
        _ => None,
    };
    let element = number.map_or(LaneType::Unknown, LaneType::Number);
    let Some(given) = call.bound.get("block_shape").cloned() else { return AbstractValue::Unknown };
    let Some(sizes) = checked_shape(engine, call.span, &given) else {
        return AbstractValue::Descriptor(RuntimeValue::new(element, None));
    };
    if let (Some(number), Some(last)) = (number, sizes.last().and_then(Dim::known)) {
        let bytes = last * i64::from(number.bits()) / 8;
        if bytes < 16 {
            let message = format!("the last axis of a descriptor's block must have 16 bytes at least, and has {bytes}");
            engine.problem(ProblemKind::MemoryAccess, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    if let Some(AbstractValue::Tuple(strides)) = call.bound.get("strides") {
        let last = strides.last().and_then(AbstractValue::constant).and_then(Const::int);
        if strides.len() != sizes.len() || last.is_some_and(|last| last != 1) {
            let message = "a descriptor needs a stride for each axis, and 1 for the last";
            engine.problem(ProblemKind::MemoryAccess, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    match tile_of(element, sizes) {
        AbstractValue::Tile(tile) => AbstractValue::Descriptor(tile),
        _ => AbstractValue::Unknown,
    }
}
