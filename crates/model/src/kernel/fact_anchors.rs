//! The items that contain the places of a fact, by which the places are found again when other items move or grow.

use super::{Kernel, Module, ShiftSpans};
use crate::syntax::Span;

/// The kernels and globals that contain the places of a [`Fact`](super::Fact), each with its span when the fact was
/// found.
#[derive(Debug)]
pub struct FactAnchors {
    /// `None` when a place is in no item that can be found again.
    known: Option<Vec<(Home, Span)>>,
}

#[derive(Debug, PartialEq)]
enum Home {
    /// The kernel that the fact is of.
    Own,
    /// The only kernel of this name.
    Kernel(String),
    /// The only global of this name. An index would not suffice: a global that the kernel does not mention may be
    /// inserted before it.
    Global(String),
}

/// The distances by which the contents of some spans have moved.
#[derive(Debug)]
pub struct SpanMoves(Vec<(Span, isize)>);

impl FactAnchors {
    /// The anchors of a fact without places.
    #[must_use]
    pub fn new() -> Self {
        Self { known: Some(Vec::new()) }
    }

    /// The anchors of a fact that cannot be kept.
    #[must_use]
    pub fn lost() -> Self {
        Self { known: None }
    }

    /// Adds the anchor of a place in a fact of `kernel`.
    pub fn add(&mut self, module: &Module, kernel: &Kernel, place: Span) {
        let Some(known) = &mut self.known else { return };
        if known.iter().any(|(_, home)| home.contains(place)) {
            return;
        }
        match Home::of(module, kernel, place) {
            Some(home) => known.push(home),
            None => self.known = None,
        }
    }

    /// Whether all places can be found again.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether all places are in the kernel that the fact is about.
    #[must_use]
    pub fn are_own(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.iter().all(|(home, _)| *home == Home::Own))
    }

    /// The distance that each item has moved. `None` when an item was removed, changed its length or was not known.
    #[must_use]
    pub fn span_moves(&self, module: &Module, kernel: &Kernel) -> Option<SpanMoves> {
        let known = self.known.as_ref()?;
        let mut moves = Vec::with_capacity(known.len());
        for (home, then) in known {
            let now = home.span(module, kernel).filter(|now| length(*now) == length(*then))?;
            moves.push((*then, now.start.wrapping_sub(then.start).cast_signed()));
        }
        Some(SpanMoves(moves))
    }
}

impl Default for FactAnchors {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    fn of(module: &Module, kernel: &Kernel, place: Span) -> Option<(Self, Span)> {
        if kernel.span.contains(place) {
            return Some((Self::Own, kernel.span));
        }
        if let Some(other) = module.kernels.iter().find(|other| other.span.contains(place)) {
            let home = Self::Kernel(other.name.clone());
            return (home.span(module, kernel)? == other.span).then_some((home, other.span));
        }
        let global = module.globals.iter().find(|global| global.span.contains(place))?;
        let home = Self::Global(global.name.clone());
        (home.span(module, kernel)? == global.span).then_some((home, global.span))
    }

    fn span(&self, module: &Module, kernel: &Kernel) -> Option<Span> {
        match self {
            Self::Own => Some(kernel.span),
            Self::Kernel(name) => only(module.kernels.iter().filter(|other| other.name == *name)).map(|it| it.span),
            Self::Global(name) => only(module.globals.iter().filter(|other| other.name == *name)).map(|it| it.span),
        }
    }
}

/// The length of a span. It may begin before the file, where the kernel has moved up by more bytes than precede it.
fn length(span: Span) -> usize {
    span.end.wrapping_sub(span.start)
}

/// Whether a span contains a place, where both may begin before the file.
fn contains(span: Span, place: Span) -> bool {
    let start = place.start.wrapping_sub(span.start);
    start <= length(span) && length(place) <= length(span) - start
}

/// The only item of an iterator; `None` where there are several.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

impl SpanMoves {
    /// Whether nothing has moved.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.iter().all(|(_, by)| *by == 0)
    }

    /// Moves one place.
    pub fn apply(&self, place: &mut Span) {
        let by = self.0.iter().find(|(then, _)| contains(*then, *place)).map_or(0, |(_, by)| *by);
        place.shift(by);
    }
}

/// Shifts all anchors by the same distance, as a [`Fact`](super::Fact) moves with its kernel.
impl ShiftSpans for FactAnchors {
    fn shift(&mut self, by: isize) {
        self.known.iter_mut().flatten().for_each(|(_, span)| span.shift(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Source;

    #[test]
    fn anchors_above_a_kernel_that_moves_up_are_found_again() {
        let source = Source::parse("import triton\nSIZE = 100\n\n@triton.jit\ndef k(x):\n    return SIZE\n");
        let module = Module::build(&source);
        let (kernel, size) = (&module.kernels[0], module.globals[0].span);
        let mut anchors = FactAnchors::new();
        let (mut place, mut own) = (Span::new(size.start + 7, size.end), kernel.name_span);
        anchors.add(&module, kernel, place);
        anchors.add(&module, kernel, own);
        // The kernel is moved up so far that the global, which stays, would begin before the file.
        let by = -(size.start.cast_signed() + 3);
        anchors.shift(by);
        place.shift(by);
        own.shift(by);
        let moves = anchors.span_moves(&module, kernel).expect("both are there");
        moves.apply(&mut place);
        moves.apply(&mut own);
        assert_eq!((place, own), (Span::new(size.start + 7, size.end), kernel.name_span));
    }
}
