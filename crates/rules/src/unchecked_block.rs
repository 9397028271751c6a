//! M010: a block pointer without `boundary_check` that may exceed the bounds of its tensor.

use model::analysis::launches::promises_full_tiles_of;
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::kernel::Kernel;
use model::syntax::Span;

use super::memory_accesses::{guard, index, is_certain, lanes_in, lanes_of, report, tiled_by};
use super::unmasked_tile::rounds_up;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M010",
        name: "unchecked-block",
        severity: Severity::Hint,
        summary: "a block pointer without `boundary_check` along an axis whose size its blocks may exceed",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds loads and stores through a block pointer that do not check an axis along which the grid rounds up, or of which another access of the kernel
checks the same positions.

## Why is this bad?
`shape` alone checks nothing: without `boundary_check` the last block is read and written over the edge, unless the size is a
multiple of the block. If it always is, state this with an `assert` in the launching function, which disables this finding.

## Bad
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(y, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    value = tl.load(source)
    #       ^^^^^^^^^^^^^^^
    tl.store(target, value * 2, boundary_check=(0,))


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(y, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    value = tl.load(source, boundary_check=(0,), padding_option="zero")
    tl.store(target, value * 2, boundary_check=(0,))


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def run_full(x, y):
    n = x.numel()
    assert n % 1024 == 0
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it is silent
When the block pointer is chosen in a branch, and when the host checks that a size is a multiple of a tile's. Block
pointers are gone in Triton 3.9: descriptors check always.

## Sources
[triton#2138](https://github.com/triton-lang/triton/issues/2138), [triton#1946](https://github.com/triton-lang/triton/issues/1946),
[triton-shared#203](https://github.com/microsoft/triton-shared/issues/203).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| {
        if !access.is_block_pointer || access.kind == AccessKind::Atomic {
            return None;
        }
        let (block, found) = look(context, kernel, facts, access)?;
        (!promises_full_tiles_of(context.module, kernel, block.as_param())).then_some(found)
    });
}

/// The finding in an access, with the size of the block along the axis.
fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<(Poly, Diagnostic)> {
    let index = index(access)?;
    let checked = match &access.mask {
        Mask::None => Vec::new(),
        _ => lanes_of(&guard(access)?.conditions),
    };
    lanes_in(index).into_iter().filter(|lane| !checked.contains(lane)).find_map(|lane| {
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        let by_grid = || {
            let axis = tiled_by(facts, &index.poly, lane).filter(|_| is_certain(access))?;
            let grid = rounds_up(context, kernel, axis, &block)?;
            Some((grid, "the grid rounds up"))
        };
        let (place, why) = by_grid().or_else(|| {
            let place = checked_elsewhere(facts, access, lane)?;
            Some((place, "another block of the same positions is checked"))
        })?;
        let message = format!(
            "without `boundary_check` the last block goes over the edge when the size is no multiple of {block}; check the axis, or assert \
             that it is one where the kernel is launched"
        );
        Some((block, Diagnostic::new(&RULE.declaration, access.span, message).with_related(place, why)))
    })
}

/// The access through another block pointer that checks the same positions of an axis.
fn checked_elsewhere(facts: &KernelAnalysis, access: &MemoryAccess, lane: u32) -> Option<Span> {
    let own = facts.lanes.get(lane as usize)?;
    let starts = start(access, lane)?;
    // Blocks that begin at 0 are whole: their size is that of the tensor.
    if starts == Poly::default() {
        return None;
    }
    facts.accesses.iter().filter(|other| other.is_block_pointer && other.span != access.span).find_map(|other| {
        let Mask::Tile(tile) = &other.mask else { return None };
        let is_same = tile.about.guard()?.conditions.iter().any(|condition| {
            lanes_of([condition]).into_iter().any(|checked| {
                let alike = facts.lanes.get(checked as usize).is_some_and(|lane| lane.size == own.size);
                alike && condition.left.plus(&Poly::atom(Atom::Lane(checked)), -1) == Some(starts.clone())
            })
        });
        is_same.then_some(other.span)
    })
}

/// The first position of a block along the axis of a lane.
fn start(access: &MemoryAccess, lane: u32) -> Option<Poly> {
    access.block.as_ref()?.axes.iter().find(|axis| axis.lane == lane).map(|axis| axis.offset.clone())
}
