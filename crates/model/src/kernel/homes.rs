//! The items that contain the spans of a fact, so that the spans can be moved when other items move or grow.

use super::{Kernel, Module, Shift};
use crate::syntax::Span;

/// The kernels and globals that contain the spans of a [`Fact`](super::Fact), each with the span that it had when the
/// fact was found.
#[derive(Debug)]
pub struct Homes {
    /// `None` when a span lies in no item that can be found again.
    known: Option<Vec<(Home, Span)>>,
}

#[derive(Debug, PartialEq)]
enum Home {
    /// The kernel to which the fact belongs.
    Own,
    /// The only kernel of this name.
    Kernel(String),
    /// A global by its index: facts are dropped when the set of globals changes.
    Global(usize),
}

/// For each old span of an item, the distance in bytes that the item has moved.
#[derive(Debug)]
pub struct Moves(Vec<(Span, isize)>);

impl Homes {
    /// The homes of a fact without spans.
    #[must_use]
    pub fn new() -> Self {
        Self { known: Some(Vec::new()) }
    }

    /// The homes of a fact that cannot be kept through an edit.
    #[must_use]
    pub fn lost() -> Self {
        Self { known: None }
    }

    /// Adds the item that contains `place`, a span in a fact of `kernel`.
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

    /// Whether the items of all spans can be found again.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// Whether all spans lie in the kernel to which the fact belongs.
    #[must_use]
    pub fn are_own(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.iter().all(|(home, _)| *home == Home::Own))
    }

    /// The distance that each item has moved. `None` when an item was removed, changed its length or was not known.
    #[must_use]
    pub fn moves(&self, module: &Module, kernel: &Kernel) -> Option<Moves> {
        let known = self.known.as_ref()?;
        let mut moves = Vec::with_capacity(known.len());
        for (home, then) in known {
            let now = home.span(module, kernel).filter(|now| now.end - now.start == then.end - then.start)?;
            moves.push((*then, now.start.wrapping_sub(then.start).cast_signed()));
        }
        Some(Moves(moves))
    }
}

impl Default for Homes {
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
        let at = module.globals.iter().position(|global| global.span.contains(place))?;
        Some((Self::Global(at), module.globals[at].span))
    }

    fn span(&self, module: &Module, kernel: &Kernel) -> Option<Span> {
        match self {
            Self::Own => Some(kernel.span),
            Self::Kernel(name) => {
                let mut of_name = module.kernels.iter().filter(|other| other.name == *name);
                of_name.next().filter(|_| of_name.next().is_none()).map(|found| found.span)
            }
            Self::Global(at) => module.globals.get(*at).map(|global| global.span),
        }
    }
}

impl Moves {
    /// Whether no item has moved.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.iter().all(|(_, by)| *by == 0)
    }

    /// Moves one span with the item that contains it.
    pub fn apply(&self, place: &mut Span) {
        let by = self.0.iter().find(|(then, _)| then.contains(*place)).map_or(0, |(_, by)| *by);
        place.shift(by);
    }
}

/// Moves the spans of all items by the same distance, as [`Fact`](super::Fact)s move with their kernel.
impl Shift for Homes {
    fn shift(&mut self, by: isize) {
        self.known.iter_mut().flatten().for_each(|(_, span)| span.shift(by));
    }
}
