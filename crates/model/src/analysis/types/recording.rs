//! The facts that an abstract run records about a kernel: accesses, products, masks, divisions and loops.

use std::sync::Arc;

use super::access::{AccessKind, Division, Mask, MemoryAccess, NamedMask, Product};
use super::application::Application;
use super::engine::{Engine, Frame};
use super::index::{Atom, Index, LaneFact, Loop, Poly};
use super::statements::bound;
use super::value::{AbstractValue, Const, LaneType, RuntimeValue};
use crate::kernel::ast::Stmt;
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// Records a memory access.
    pub(super) fn record(&mut self, call: &Application<'a, '_>, kind: AccessKind, pointer: &RuntimeValue) {
        let mask = match call.bound.get("mask") {
            None | Some(AbstractValue::Const(Const::None)) => Mask::None,
            Some(AbstractValue::Tile(tile)) => Mask::Tile(tile.clone()),
            Some(_) => Mask::Unknown,
        };
        let block = match &pointer.about {
            LaneFact::Block(position) => Some(Arc::clone(position)),
            _ => None,
        };
        let (pointer, mask) = of_block(call, pointer).unwrap_or_else(|| (pointer.clone(), mask));
        let is_checked = match call.bound.get("boundary_check") {
            None => Some(false),
            Some(AbstractValue::Tuple(parts)) => Some(!parts.is_empty()),
            Some(AbstractValue::Const(constant)) => constant.int().map(|_| true),
            Some(_) => None,
        };
        let access = MemoryAccess {
            kind,
            function: call.name.to_owned(),
            span: call.span,
            pointer,
            is_block_pointer: matches!(call.first(), AbstractValue::BlockPointer(_)),
            block,
            mask,
            has_other: call.bound.given("other").is_some(),
            is_checked,
            value: call.bound.any(&["value", "val"]).map_or(AbstractValue::Unknown, AbstractValue::detached),
            loops: self.around.clone(),
            branches: self.branches,
            is_uncertain: self.uncertain > 0,
            is_after_return: self.has_left,
        };
        if self.notes() && !self.facts.accesses.contains(&access) {
            self.facts.accesses.push(access);
        }
    }

    /// Records where a number is loaded from.
    pub(super) fn record_loaded(&mut self, atom: &Atom, pointer: &RuntimeValue) {
        if let (Atom::Other(number), Some(index)) = (atom, pointer.about.index())
            && self.notes()
        {
            self.facts.loaded.push((*number, index.poly.clone()));
        }
    }

    /// Records a call of `tl.dot`.
    pub(super) fn record_product(&mut self, call: &Application<'a, '_>, left: &RuntimeValue, right: &RuntimeValue) {
        let out = match call.bound.get("out_dtype") {
            Some(AbstractValue::Const(Const::Type(LaneType::Number(number)))) => Some(*number),
            _ => None,
        };
        let product = Product {
            span: call.span,
            operands: [left.clone(), right.clone()],
            accumulator: call.bound.given("acc").and_then(AbstractValue::tile).cloned(),
            has_precision: call.bound.given("input_precision").is_some() || call.bound.given("allow_tf32").is_some(),
            out,
            is_uncertain: self.uncertain > 0,
        };
        if self.notes() && !self.facts.products.contains(&product) {
            self.facts.products.push(product);
        }
    }

    /// The counter of a loop, with its own atom.
    pub(super) fn known_counter(
        &mut self,
        at: Span,
        bounds: &[AbstractValue<'a>; 3],
        counter: AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let poly = |value: &AbstractValue<'a>| match value.scalarized() {
            AbstractValue::Const(constant) => Poly::of_constant(&constant),
            AbstractValue::Tile(tile) => tile.about.index().map(|index| index.poly.clone()),
            _ => None,
        };
        let [start, end, step] = [poly(&bounds[0]), poly(&bounds[1]), poly(&bounds[2])];
        let id = self.loop_number(Loop { span: at, start, end, step });
        match counter {
            AbstractValue::Tile(tile) => {
                AbstractValue::Tile(tile.knowing(LaneFact::scalar(Poly::atom(Atom::Loop(id)))))
            }
            counter => counter,
        }
    }

    fn loop_number(&mut self, new: Loop) -> u32 {
        let at = self.facts.loops.iter().position(|known| *known == new).unwrap_or_else(|| {
            self.facts.loops.push(new);
            self.facts.loops.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Prepares a loop: each name that its body assigns gets a new atom, because its value differs between iterations.
    pub(super) fn enter_loop(&mut self, at: Span, body: &'a [Stmt], frame: &mut Frame<'a>) {
        let known = self.facts.loops.iter().rposition(|known| known.span == at);
        let id = match known {
            Some(at) => u32::try_from(at).unwrap_or(u32::MAX),
            None => self.loop_number(Loop { span: at, start: None, end: None, step: None }),
        };
        self.around.push(id);
        for name in bound(body).into_keys() {
            let Some(value) = frame.names.get(name) else { continue };
            let about = match value {
                AbstractValue::Tile(tile) | AbstractValue::BlockPointer(tile) => &tile.about,
                AbstractValue::Opaque(about) => about,
                _ => continue,
            };
            if frame.kernel.param(name).is_none() && *about == LaneFact::Nothing {
                continue;
            }
            let is_counter = matches!(about, LaneFact::Index(index) if index.poly == Poly::atom(Atom::Loop(id)));
            if is_counter {
                continue;
            }
            let changed = match about {
                LaneFact::Index(index) => {
                    let other = self.other();
                    let poly = index.poly.plus(&Poly::atom(other), 1).unwrap_or_default();
                    LaneFact::Index(Arc::new(Index { poly, ..(**index).clone() }))
                }
                LaneFact::Block(position) => {
                    let by = vec![None; position.axes.len()];
                    let moved = position.moved(&by, &mut || Poly::atom(self.other()));
                    moved.map_or(LaneFact::Nothing, |moved| LaneFact::Block(Arc::new(moved)))
                }
                _ => LaneFact::Nothing,
            };
            let changed = match value {
                AbstractValue::Tile(tile) => AbstractValue::Tile(tile.clone().knowing(changed)),
                AbstractValue::BlockPointer(tile) => AbstractValue::BlockPointer(tile.clone().knowing(changed)),
                _ => AbstractValue::Opaque(changed),
            };
            frame.names.insert(name, changed);
        }
    }

    /// Records that a mask is assigned to a name.
    pub(super) fn record_mask(&mut self, name: &str, span: Span, value: &AbstractValue<'a>) {
        if let AbstractValue::Tile(RuntimeValue { about: LaneFact::Guard(guard), .. }) = value
            && !guard.conditions.is_empty()
            && self.uncertain == 0
        {
            let mask = NamedMask { name: name.to_owned(), span, guard: guard.clone() };
            if self.notes() && !self.facts.masks.contains(&mask) {
                self.facts.masks.push(mask);
            }
        }
    }

    /// Records a read of a loop variable after its loop.
    pub(super) fn record_stale(&mut self, name: &str, span: Span, frame: &Frame<'a>) {
        if let Some(&head) = frame.stale.get(name)
            && self.uncertain == 0
            && self.notes()
            && !frame.is_opaque
            && !self.facts.stale.iter().any(|(known, _)| *known == span)
        {
            self.facts.stale.push((span, head));
        }
    }

    /// Records a division of a run-time integer.
    pub(super) fn record_division(
        &mut self,
        span: Span,
        op: &str,
        left: &AbstractValue<'a>,
        right: &AbstractValue<'a>,
    ) {
        let poly = |value: &AbstractValue<'a>| match value {
            AbstractValue::Const(constant) => Poly::of_constant(constant),
            AbstractValue::Tile(tile) => tile.about.index().map(|index| index.poly.clone()),
            _ => None,
        };
        let Some(index) = left.tile().and_then(|tile| tile.about.index()).filter(|index| index.base.is_none()) else {
            return;
        };
        let division = Division {
            span,
            op: op.to_owned(),
            left: index.clone(),
            right: poly(right),
            branches: self.branches,
            is_uncertain: self.uncertain > 0 || self.has_left,
        };
        if self.notes() && !self.facts.divisions.contains(&division) {
            self.facts.divisions.push(division);
        }
    }

    /// `left // right` or `left % right` as an atom of its own.
    pub(super) fn quotient(&mut self, op: &str, left: &AbstractValue<'a>, right: &AbstractValue<'a>) -> LaneFact {
        let axes = |value: &AbstractValue<'a>| {
            value.tile().and_then(|tile| tile.about.index()).map(|index| index.axes.clone())
        };
        let is_scalar = |value: &AbstractValue<'a>| match value {
            AbstractValue::Const(_) => true,
            _ => axes(value).is_some_and(|axes| axes.is_empty()),
        };
        if is_scalar(left) && is_scalar(right) {
            let key = format!("({left} {op} {right})", left = text(left), right = text(right));
            return LaneFact::scalar(Poly::atom(Atom::Param(key.into())));
        }
        LaneFact::Nothing
    }
}

/// The pointers and the mask of an access through a block pointer whose position is known.
fn of_block(call: &Application<'_, '_>, block: &RuntimeValue) -> Option<(RuntimeValue, Mask)> {
    let LaneFact::Block(position) = &block.about else { return None };
    let pointer = block.clone().knowing(LaneFact::Index(Arc::new(position.index()?)));
    let axis = |value: &AbstractValue<'_>| {
        let at = value.constant().and_then(Const::int)?;
        usize::try_from(if at < 0 { at + i128::try_from(position.axes.len()).ok()? } else { at }).ok()
    };
    let checked = match call.bound.get("boundary_check") {
        None => Some(Vec::new()),
        Some(AbstractValue::Tuple(parts)) => parts.iter().map(axis).collect(),
        Some(value @ AbstractValue::Const(Const::Int(_))) => axis(value).map(|at| vec![at]),
        Some(_) => None,
    };
    let mask = match checked {
        None => Mask::Unknown,
        Some(checked) if checked.is_empty() => Mask::None,
        Some(checked) => {
            let guard = position.guard(&checked, call.span);
            let tile = RuntimeValue::new(LaneType::Unknown, block.shape.clone());
            Mask::Tile(tile.knowing(LaneFact::Guard(Arc::new(guard))))
        }
    };
    Some((pointer, mask))
}

/// The integer that a value is in all lanes.
pub(super) fn scalar_poly(value: &AbstractValue<'_>) -> Option<Poly> {
    match value.scalarized() {
        AbstractValue::Const(constant) => Poly::of_constant(&constant),
        AbstractValue::Tile(tile) => tile
            .about
            .index()
            .filter(|index| index.base.is_none() && index.axes.is_empty())
            .map(|index| index.poly.clone()),
        _ => None,
    }
}

/// A scalar as text, for the name of a quotient.
fn text(value: &AbstractValue<'_>) -> String {
    match value {
        AbstractValue::Tile(tile) => tile.about.index().map_or_else(|| "?".to_owned(), |index| index.poly.to_string()),
        other => other.to_string(),
    }
}
