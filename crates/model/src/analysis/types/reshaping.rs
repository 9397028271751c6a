//! Transfer functions of operations that change shapes.

use super::application::{Application, shape_of, tile_of};
use super::arguments::Bound;
use super::creation::{check_lanes, check_sizes, checked_shape};
use super::engine::Engine;
use super::shape::{self, Dim};
use super::value::{AbstractValue, Const, ProblemKind, RuntimeValue};

/// A shape that is passed as a tuple or as separate arguments.
fn target<'a>(bound: &Bound<'a>) -> AbstractValue<'a> {
    match bound.rest.as_slice() {
        [] => bound.any(&["shape", "dims"]).cloned().unwrap_or(AbstractValue::Unknown),
        [only @ (AbstractValue::Tuple(_) | AbstractValue::Unknown)] => only.clone(),
        several => AbstractValue::tuple(several.to_vec()),
    }
}

/// `tl.reshape(x, shape)`, `tl.view`
pub(super) fn reshape<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    if tile.is_scalar() == Some(true) {
        let message = format!("`tl.{}` takes a tile, and `{tile}` is a scalar; use `tl.full`", call.name);
        engine.problem(ProblemKind::ShapeChange, call.span, message);
        return AbstractValue::Unknown;
    }
    let given = target(&call.bound);
    let Some(sizes) = checked_shape(engine, call.span, &given) else {
        return AbstractValue::Tile(RuntimeValue::new(tile.element, None));
    };
    if let Some(from) = tile.shape.as_ref().and_then(|shape| shape::lanes(shape).known())
        && let Some(to) = shape::lanes(&sizes).known()
        && from != to
    {
        let message = format!("`{tile}` has {from} lanes, and `{}` has {to}", shape::text(&sizes));
        engine.problem(ProblemKind::ShapeChange, call.span, message);
        return AbstractValue::Unknown;
    }
    tile_of(tile.element, sizes)
}

/// `tl.expand_dims(x, axis)`
pub(super) fn expand_dims<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let axes: Option<Vec<i128>> = match call.bound.get("axis") {
        Some(AbstractValue::Tuple(parts)) => parts.iter().map(|part| part.constant().and_then(Const::int)).collect(),
        Some(AbstractValue::Const(constant)) => constant.int().map(|axis| vec![axis]),
        _ => None,
    };
    let (Some(axes), Some(shape)) = (axes, &tile.shape) else {
        return AbstractValue::Tile(RuntimeValue::new(tile.element, None));
    };
    let rank = i128::try_from(shape.len() + axes.len()).unwrap_or(0);
    let mut sizes = shape.to_vec();
    let mut about = tile.about.clone();
    let mut places = Vec::new();
    for axis in axes {
        let at = if axis < 0 { axis + rank } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < usize::try_from(rank).unwrap_or(0) => places.push(at),
            _ => {
                let message = format!("axis {axis} does not exist in a tile of {rank} axes");
                engine.problem(ProblemKind::ShapeChange, call.span, message);
                return AbstractValue::Unknown;
            }
        }
    }
    places.sort_unstable();
    for at in places {
        sizes.insert(at.min(sizes.len()), Dim::Known(1));
        about = about.expanded(at);
    }
    AbstractValue::Tile(RuntimeValue::new(tile.element, Some(sizes.into())).knowing(about))
}

/// `tl.broadcast_to(x, shape)`
pub(super) fn broadcast_to<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let given = target(&call.bound);
    let value = call.first().clone();
    let Some(operand) = engine.operand(call.span, &value) else { return AbstractValue::Unknown };
    let tile = operand.tile;
    let Some(sizes) = checked_shape(engine, call.span, &given) else {
        return AbstractValue::Tile(RuntimeValue::new(tile.element, None));
    };
    if let Some(from) = tile.shape.as_ref().filter(|shape| !shape.is_empty()) {
        if from.len() != sizes.len() {
            let message =
                format!("`{tile}` has {} axes, and `{}` has {}", from.len(), shape::text(&sizes), sizes.len());
            engine.problem(ProblemKind::Broadcast, call.span, message);
            return AbstractValue::Unknown;
        }
        let misfit = from.iter().zip(&sizes).position(|(from, to)| from.differs(to) && *from != Dim::Known(1));
        if let Some(axis) = misfit {
            let message = format!("`{tile}` cannot be broadcast to `{}`: axis {axis} differs", shape::text(&sizes));
            engine.problem(ProblemKind::Broadcast, call.span, message);
            return AbstractValue::Unknown;
        }
    }
    let about = if tile.is_scalar() == Some(true) { super::index::LaneFact::Nothing } else { tile.about.clone() };
    AbstractValue::Tile(RuntimeValue::new(tile.element, Some(sizes.into())).knowing(about))
}

/// `tl.broadcast(x, other)`
pub(super) fn broadcast<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let (Some(a), Some(AbstractValue::Tile(b))) = (call.tile().cloned(), call.bound.any(&["other", "y"]).cloned())
    else {
        return AbstractValue::Unknown;
    };
    let shape = engine.common_shape(call.span, &a, &b);
    let parts = [a.element, b.element].map(|element| AbstractValue::Tile(RuntimeValue::new(element, shape.clone())));
    AbstractValue::tuple(parts.to_vec())
}

/// `tl.trans(x)`, `tl.permute(x, dims)`
pub(super) fn permute<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let Some(shape) = &tile.shape else { return AbstractValue::Tile(tile) };
    let given = target(&call.bound);
    let is_default = call.bound.rest.is_empty() && call.bound.get("dims").is_none();
    let rank = shape.len();
    let dims: Vec<i128> = if is_default {
        if rank < 2 {
            let message = format!("`tl.{}` needs two axes at least, and `{tile}` has {rank}", call.name);
            engine.problem(ProblemKind::ShapeChange, call.span, message);
            return AbstractValue::Unknown;
        }
        if call.name == "permute" || rank > 2 && engine.since(6) != Some(true) {
            if rank > 2 && engine.since(6) == Some(false) {
                let message = format!("the order of {rank} axes must be given");
                engine.problem(ProblemKind::ShapeChange, call.span, message);
            }
            return AbstractValue::Unknown;
        }
        let rank = i128::try_from(rank).unwrap_or(0);
        (0..rank - 2).chain([rank - 1, rank - 2]).collect()
    } else {
        let Some(sizes) = shape_of(&given) else { return AbstractValue::Unknown };
        let known: Option<Vec<i128>> = sizes.iter().map(|size| size.known().map(i128::from)).collect();
        let Some(known) = known else { return AbstractValue::Unknown };
        known
    };
    let mut sorted = dims.clone();
    sorted.sort_unstable();
    if sorted != (0..i128::try_from(rank).unwrap_or(0)).collect::<Vec<_>>() {
        let message = format!("the order must name each of the {rank} axes of `{tile}` once");
        engine.problem(ProblemKind::ShapeChange, call.span, message);
        return AbstractValue::Unknown;
    }
    let order: Vec<usize> = dims.iter().filter_map(|&at| usize::try_from(at).ok()).collect();
    let sizes = order.iter().filter_map(|&at| shape.get(at).cloned()).collect();
    AbstractValue::Tile(RuntimeValue::new(tile.element, Some(sizes)).knowing(tile.about.permuted(&order)))
}

/// `tl.join(a, b)`, `tl.interleave(a, b)`
pub(super) fn join<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    for name in ["a", "b"] {
        if let Some(AbstractValue::Const(value @ (Const::Int(_) | Const::Float(_) | Const::Bool(_)))) =
            call.bound.get(name)
        {
            engine.problem(
                ProblemKind::Argument,
                call.span,
                format!("`tl.{}` takes tiles, and `{value}` is a number", call.name),
            );
            return AbstractValue::Unknown;
        }
    }
    let (Some(AbstractValue::Tile(a)), Some(AbstractValue::Tile(b))) =
        (call.bound.get("a").cloned(), call.bound.get("b").cloned())
    else {
        return AbstractValue::Unknown;
    };
    let Some(shape) = engine.common_shape(call.span, &a, &b) else { return AbstractValue::Unknown };
    let mut sizes = shape.to_vec();
    match (call.name, sizes.last_mut()) {
        ("interleave", Some(last)) => *last = last.times(&Dim::Known(2)),
        _ => sizes.push(Dim::Known(2)),
    }
    if !check_lanes(engine, call.span, &sizes) {
        return AbstractValue::Unknown;
    }
    tile_of(a.element, sizes)
}

/// `tl.split(a)`
pub(super) fn split<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let Some(tile) = call.tile().cloned() else { return AbstractValue::Unknown };
    let Some(shape) = &tile.shape else { return AbstractValue::Unknown };
    match shape.last() {
        Some(Dim::Known(2) | Dim::Symbol(_) | Dim::Unknown) => {
            let half = tile_of(tile.element, shape[..shape.len() - 1].to_vec());
            AbstractValue::tuple(vec![half.clone(), half])
        }
        _ => {
            let message = format!("`tl.split` needs a last axis of size 2, and this is `{tile}`");
            engine.problem(ProblemKind::ShapeChange, call.span, message);
            AbstractValue::Unknown
        }
    }
}

/// `tl.cat(a, b, can_reorder=True)`
pub(super) fn concatenate<'a>(engine: &mut Engine<'a>, call: &Application<'a, '_>) -> AbstractValue<'a> {
    let (Some(a), Some(AbstractValue::Tile(b))) = (call.tile().cloned(), call.bound.get("other").cloned()) else {
        return AbstractValue::Unknown;
    };
    if call.bound.flag("can_reorder", false) == Some(false) && engine.since(7) == Some(false) {
        let message = "`tl.cat` may reorder lanes, which must be allowed with `can_reorder=True`; or use `tl.join`";
        engine.problem(ProblemKind::Argument, call.span, message);
        return AbstractValue::Unknown;
    }
    match (a.shape.as_deref(), b.shape.as_deref()) {
        (Some([Dim::Known(x)]), Some([Dim::Known(y)])) => {
            let sizes = vec![Dim::Known(x + y)];
            check_sizes(engine, call.span, &sizes);
            tile_of(a.element, sizes)
        }
        _ => AbstractValue::Unknown,
    }
}

/// `tl.ravel(x)`
pub(super) fn ravel<'a>(call: &Application<'a, '_>) -> AbstractValue<'a> {
    match call.tile() {
        Some(RuntimeValue { element, shape: Some(shape), .. }) => tile_of(*element, vec![shape::lanes(shape)]),
        _ => AbstractValue::Unknown,
    }
}
