//! Facts that are cached across edits: their spans move with the kernels and globals that contain them.

use std::mem::take;
use std::sync::Arc;

use rustc_hash::FxHashSet as HashSet;

use super::access::{Mask, MemoryAccess};
use super::engine::infer;
use super::index::{Index, LaneFact, MaskGuard};
use super::kernel_analysis::KernelAnalysis;
use super::signature;
use super::value::{AbstractValue, RuntimeValue};
use crate::api::TritonTarget;
use crate::kernel::{FactAnchors, Kernel, Module, ShiftSpans};
use crate::syntax::Span;

/// The same as [`infer`] without the types of expressions. The result is cached with the kernel until something changes
/// that may affect it.
#[must_use]
pub fn facts(module: &Module, text: &str, target: TritonTarget, index: usize) -> Arc<KernelAnalysis> {
    let Some(kernel) = module.kernels.get(index) else { return Arc::default() };
    let find = || Arc::new(infer(module, text, target, index, false));
    if signature::may_be_in(text) {
        // Which kernel a comment belongs to depends on their positions, so nothing is cached.
        return find();
    }
    let mut fresh = None;
    let kept = kernel.facts.get(target.key(), || CachedAnalysis::new(module, kernel, Arc::clone(fresh.insert(find()))));
    fresh.or_else(|| kept.now(module, kernel)).unwrap_or_else(find)
}

/// Facts with the items that contain their spans.
struct CachedAnalysis {
    facts: Arc<KernelAnalysis>,
    homes: FactAnchors,
}

impl CachedAnalysis {
    fn new(module: &Module, kernel: &Kernel, mut facts: Arc<KernelAnalysis>) -> Self {
        let mut homes = FactAnchors::new();
        let is_movable = each_span(Arc::make_mut(&mut facts), &mut |span| homes.add(module, kernel, *span));
        Self { facts, homes: if is_movable { homes } else { FactAnchors::lost() } }
    }

    /// The facts with their present spans.
    fn now(&self, module: &Module, kernel: &Kernel) -> Option<Arc<KernelAnalysis>> {
        let moves = self.homes.span_moves(module, kernel)?;
        if moves.are_none() {
            return Some(Arc::clone(&self.facts));
        }
        let mut facts = KernelAnalysis::clone(&self.facts);
        each_span(&mut facts, &mut |span| moves.apply(span));
        Some(Arc::new(facts))
    }
}

impl ShiftSpans for CachedAnalysis {
    fn shift(&mut self, by: isize) {
        if self.homes.are_known() {
            each_span(Arc::make_mut(&mut self.facts), &mut |span| span.shift(by));
            self.homes.shift(by);
        }
    }
}

/// Calls `visit` on every span in `facts`. Returns false when the facts hold other data that a change elsewhere can
/// invalidate.
fn each_span(facts: &mut KernelAnalysis, visit: &mut dyn FnMut(&mut Span)) -> bool {
    let KernelAnalysis {
        problems,
        types,
        accesses,
        products,
        masks,
        divisions,
        stale,
        lanes,
        loaded: _,
        loops,
        coverage,
    } = facts;
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

fn of_access(access: &mut MemoryAccess, visit: &mut dyn FnMut(&mut Span)) -> bool {
    visit(&mut access.span);
    of_tile(&mut access.pointer, visit);
    if let Mask::Tile(tile) = &mut access.mask {
        of_tile(tile, visit);
    }
    match &mut access.value {
        AbstractValue::Opaque(about) => of_about(about, visit),
        AbstractValue::Tile(tile) | AbstractValue::BlockPointer(tile) | AbstractValue::Descriptor(tile) => {
            of_tile(tile, visit)
        }
        AbstractValue::Unknown
        | AbstractValue::Const(_)
        | AbstractValue::Member(_)
        | AbstractValue::Builtin(_)
        | AbstractValue::Slice => {}
        // These may contain the index of a kernel.
        AbstractValue::Tuple(_) | AbstractValue::Kernel(_) | AbstractValue::File(_) | AbstractValue::Method(..) => {
            return false;
        }
    }
    true
}

fn of_tile(tile: &mut RuntimeValue, visit: &mut dyn FnMut(&mut Span)) {
    of_about(&mut tile.about, visit);
}

fn of_about(about: &mut LaneFact, visit: &mut dyn FnMut(&mut Span)) {
    match about {
        LaneFact::Nothing | LaneFact::Block(_) => {}
        LaneFact::Index(index) if index.narrow.is_empty() => {}
        LaneFact::Index(index) => of_index(Arc::make_mut(index), visit),
        LaneFact::Guard(guard) => of_guard(guard, visit),
    }
}

fn of_index(index: &mut Index, visit: &mut dyn FnMut(&mut Span)) {
    index.narrow.iter_mut().for_each(|narrow| visit(&mut narrow.span));
}

fn of_guard(guard: &mut Arc<MaskGuard>, visit: &mut dyn FnMut(&mut Span)) {
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

    /// Inserts `text` at the start of a line. Returns the facts of the kernel `k` before and after that, when the
    /// latter were derived from the cached former.
    fn kept_through(line: u32, text: &str) -> Option<[KernelAnalysis; 2]> {
        let target = TritonTarget::of("3.6.0".parse().unwrap());
        let of = |source: &Source, module: &Module| {
            let known = facts(module, source.text(), target, 1);
            assert_eq!(*known, infer(module, source.text(), target, 1, false));
            KernelAnalysis::clone(&known)
        };
        let mut document = Document::new(TEXT);
        let source = document.source();
        // Facts are kept from the first model on that an edit produced.
        let module = Module::rebuild(&source, Module::build(&source), &source);
        let before = of(&source, &module);
        assert_eq!(before.problems.len(), 2, "{:?}", before.problems);
        let at = Position { line, column: 0 };
        document.edit(at, at, text, Encoding::Utf8).unwrap();
        let edited = document.source();
        let module = Module::rebuild(&edited, module, &source);
        let mut is_kept = true;
        let empty = || CachedAnalysis { facts: Arc::default(), homes: FactAnchors::lost() };
        let kernel = &module.kernels[1];
        let kept = kernel.facts.get(target.key(), || {
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
    fn cached_facts_survive_unrelated_edits_and_shift_with_the_text() {
        let [before, after] = kept_through(24, "    return 5\n").unwrap();
        assert_eq!(before, after);
        for (line, text) in [(13, "    return 5\n"), (11, "\n"), (6, "\n")] {
            let [before, after] = kept_through(line, text).unwrap();
            assert_ne!(before, after);
            let of = |facts: &KernelAnalysis| {
                facts.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
            };
            assert_eq!(of(&before), of(&after));
        }
    }

    #[test]
    fn cached_facts_are_dropped_when_a_dependency_changes() {
        for (line, text) in [(18, "    x += 1\n"), (9, "    x = 2.5\n"), (5, "M = 1\n"), (22, "# TRITON_ALLOW\n")] {
            assert_eq!(kept_through(line, text), None, "{text}");
        }
    }
}
