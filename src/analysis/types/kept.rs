//! Facts that are kept through edits: their places move with the kernels and globals that they stand in.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use super::access::{Access, Mask};
use super::engine::{Facts, infer};
use super::index::{About, Guard, Index};
use super::signature;
use super::value::{Tile, Value};
use crate::api::Target;
use crate::kernel::{Kernel, Module, Shift};
use crate::syntax::Span;

/// The same as [`infer`] without the types of expressions. What is found is kept with the kernel, for as long as nothing
/// changes that may matter to it.
#[must_use]
pub fn facts(module: &Module, text: &str, target: Target, index: usize) -> Arc<Facts> {
    let Some(kernel) = module.kernels.get(index) else { return Arc::default() };
    let find = || Arc::new(infer(module, text, target, index, false));
    if signature::may_be_in(text) {
        // Which comment is of which kernel is a matter of where they stand.
        return find();
    }
    let mut fresh = None;
    let kept = kernel.facts.get(key(target), || Kept::new(module, kernel, Arc::clone(fresh.insert(find()))));
    fresh.or_else(|| kept.now(module, kernel)).unwrap_or_else(find)
}

/// A number for a version of Triton.
fn key(target: Target) -> u64 {
    // No two tables begin so near to each other.
    (std::ptr::from_ref(target.table).addr() as u64).wrapping_add(target.certainty as u64)
}

/// Facts and where the spans in them stand.
struct Kept {
    facts: Arc<Facts>,
    /// Each with its span when the facts were found; `None` when a span stands in nothing that can be found again.
    homes: Option<Vec<(Home, Span)>>,
}

#[derive(Debug, PartialEq)]
enum Home {
    /// The kernel that the facts are of.
    Own,
    /// The only kernel of this name.
    Kernel(String),
    /// A global by its number: facts are forgotten when there are others.
    Global(usize),
}

impl Home {
    fn of(module: &Module, kernel: &Kernel, span: Span) -> Option<(Self, Span)> {
        if kernel.span.contains(span) {
            return Some((Self::Own, kernel.span));
        }
        if let Some(other) = module.kernels.iter().find(|other| other.span.contains(span)) {
            let home = Self::Kernel(other.name.clone());
            return (home.span(module, kernel)? == other.span).then_some((home, other.span));
        }
        let at = module.globals.iter().position(|global| global.span.contains(span))?;
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

impl Kept {
    fn new(module: &Module, kernel: &Kernel, mut facts: Arc<Facts>) -> Self {
        let mut homes: Option<Vec<(Home, Span)>> = Some(Vec::new());
        let is_movable = each_span(Arc::make_mut(&mut facts), &mut |span| {
            let Some(known) = &mut homes else { return };
            if known.iter().any(|(_, home)| home.contains(*span)) {
                return;
            }
            match Home::of(module, kernel, *span) {
                Some(home) => known.push(home),
                None => homes = None,
            }
        });
        Self { facts, homes: homes.filter(|_| is_movable) }
    }

    /// The facts with the spans that they have now.
    fn now(&self, module: &Module, kernel: &Kernel) -> Option<Arc<Facts>> {
        let homes = self.homes.as_ref()?;
        let mut moves = Vec::with_capacity(homes.len());
        for (home, then) in homes {
            let now = home.span(module, kernel).filter(|now| now.end - now.start == then.end - then.start)?;
            moves.push((*then, now.start.wrapping_sub(then.start).cast_signed()));
        }
        if moves.iter().all(|(_, by)| *by == 0) {
            return Some(Arc::clone(&self.facts));
        }
        let mut facts = Facts::clone(&self.facts);
        each_span(&mut facts, &mut |span| {
            let by = moves.iter().find(|(then, _)| then.contains(*span)).map_or(0, |(_, by)| *by);
            span.shift(by);
        });
        Some(Arc::new(facts))
    }
}

impl Shift for Kept {
    fn shift(&mut self, by: isize) {
        if let Some(homes) = &mut self.homes {
            each_span(Arc::make_mut(&mut self.facts), &mut |span| span.shift(by));
            homes.iter_mut().for_each(|(_, span)| span.shift(by));
        }
    }
}

/// Calls `visit` on every span in `facts`. Returns whether there is nothing else that a change elsewhere may make wrong.
fn each_span(facts: &mut Facts, visit: &mut dyn FnMut(&mut Span)) -> bool {
    let Facts { problems, types, accesses, products, masks, divisions, stale, lanes, loops, coverage } = facts;
    let mut is_movable = types.is_empty();
    for problem in problems {
        visit(&mut problem.span);
        problem.related.iter_mut().for_each(|(span, _)| visit(span));
    }
    for access in accesses {
        is_movable &= of_access(access, visit);
    }
    for product in products {
        visit(&mut product.span);
        product.operands.iter_mut().chain(&mut product.accumulator).for_each(|tile| of_tile(tile, visit));
    }
    for mask in masks {
        visit(&mut mask.span);
        of_guard(&mut mask.guard, visit);
    }
    for division in divisions {
        visit(&mut division.span);
        of_index(&mut division.left, visit);
    }
    for (place, head) in stale {
        visit(place);
        visit(head);
    }
    lanes.iter_mut().for_each(|lane| visit(&mut lane.span));
    loops.iter_mut().for_each(|known| visit(&mut known.span));
    for spans in [&mut coverage.entered, &mut coverage.pruned, &mut coverage.functions] {
        let visited = take(spans).into_iter().map(|mut span| {
            visit(&mut span);
            span
        });
        *spans = visited.collect::<HashSet<_>>();
    }
    is_movable
}

fn of_access(access: &mut Access, visit: &mut dyn FnMut(&mut Span)) -> bool {
    visit(&mut access.span);
    of_tile(&mut access.pointer, visit);
    if let Mask::Tile(tile) = &mut access.mask {
        of_tile(tile, visit);
    }
    match &mut access.value {
        Value::Opaque(about) => of_about(about, visit),
        Value::Tile(tile) | Value::BlockPointer(tile) | Value::Descriptor(tile) => of_tile(tile, visit),
        Value::Unknown | Value::Const(_) | Value::Member(_) | Value::Builtin(_) | Value::Slice => {}
        // They may hold the number of a kernel.
        Value::Tuple(_) | Value::Kernel(_) | Value::File(_) | Value::Method(..) => return false,
    }
    true
}

fn of_tile(tile: &mut Tile, visit: &mut dyn FnMut(&mut Span)) {
    of_about(&mut tile.about, visit);
}

fn of_about(about: &mut About, visit: &mut dyn FnMut(&mut Span)) {
    match about {
        About::Nothing => {}
        About::Index(index) if index.narrow.is_empty() => {}
        About::Index(index) => of_index(Arc::make_mut(index), visit),
        About::Guard(guard) => of_guard(guard, visit),
    }
}

fn of_index(index: &mut Index, visit: &mut dyn FnMut(&mut Span)) {
    index.narrow.iter_mut().for_each(|narrow| visit(&mut narrow.span));
}

fn of_guard(guard: &mut Arc<Guard>, visit: &mut dyn FnMut(&mut Span)) {
    if !guard.conditions.is_empty() {
        Arc::make_mut(guard).conditions.iter_mut().for_each(|condition| visit(&mut condition.span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Document, Encoding, Position, Source};

    const TEXT: &str = "import triton\nimport triton.language as tl\n\n\nN = 64\n\n\n@triton.jit\ndef helper(x):\n    return x + N\n\n\n\
        def host():\n    pass\n\n\n@triton.jit\ndef k(x):\n    i = tl.arange(0, 100)\n    tl.store(x + i, helper(i), mask=i < 3)\n\n\n\
        def last():\n    pass\n";

    /// Puts `text` at the start of a line. Returns the facts of the kernel `k` before and after that, when the latter come
    /// from the former.
    fn kept_through(line: u32, text: &str) -> Option<[Facts; 2]> {
        let target = Target::of("3.6.0".parse().unwrap());
        let of = |source: &Source, module: &Module| {
            let known = facts(module, source.text(), target, 1);
            assert_eq!(*known, infer(module, source.text(), target, 1, false));
            Facts::clone(&known)
        };
        let mut document = Document::new(TEXT);
        let source = document.source();
        // What was found by the first model that an edit led to is kept.
        let module = Module::rebuild(&source, Module::build(&source), &source);
        let before = of(&source, &module);
        assert_eq!(before.problems.len(), 2, "{:?}", before.problems);
        let at = Position { line, column: 0 };
        document.edit(at, at, text, Encoding::Utf8).unwrap();
        let edited = document.source();
        let module = Module::rebuild(&edited, module, &source);
        let mut is_kept = true;
        let empty = || Kept { facts: Arc::default(), homes: None };
        let kernel = &module.kernels[1];
        let kept = kernel.facts.get(key(target), || {
            is_kept = false;
            empty()
        });
        if is_kept {
            assert!(kept.now(&module, kernel).is_some());
            drop(kept);
            return Some([before, of(&edited, &module)]);
        }
        None
    }

    #[test]
    fn facts_stay_where_nothing_changes_and_move_where_something_moves() {
        let [before, after] = kept_through(24, "    return 5\n").unwrap();
        assert_eq!(before, after);
        for (line, text) in [(13, "    return 5\n"), (11, "\n"), (6, "\n")] {
            let [before, after] = kept_through(line, text).unwrap();
            assert_ne!(before, after);
            let of = |facts: &Facts| facts.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>();
            assert_eq!(of(&before), of(&after));
        }
    }

    #[test]
    fn facts_are_found_anew_where_what_they_depend_on_changes() {
        for (line, text) in [(18, "    x += 1\n"), (9, "    x = 2.5\n"), (5, "M = 1\n"), (22, "# TRITON_ALLOW\n")] {
            assert_eq!(kept_through(line, text), None, "{text}");
        }
    }
}
