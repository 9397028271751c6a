//! M028: a tile without any mask, in a grid that rounds up.

use model::analysis::launches::promises_full_tiles;
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::Poly;
use model::kernel::Kernel;
use model::syntax::Span;

use super::memory_accesses::{index, is_certain, lanes_in, lanes_of, report, tiled_by, verb};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M028",
        name: "unmasked-tile",
        severity: Severity::Warning,
        summary: "an access along a tile that nothing in the kernel masks, with a grid that rounds up",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses without a mask at `program · BLOCK + lane` in a kernel that masks these lanes nowhere, where each launch of the file starts
`triton.cdiv(size, BLOCK)` programs.

## Why is this bad?
The grid is rounded up for sizes that are no multiple of the tile. For these the last tile reads and writes behind the end of the tensor: wrong values,
memory of another tensor overwritten, or an illegal memory access that is reported much later. If all sizes are multiples, say so with an `assert` in
the launching function, which disables this finding.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    #       ^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, value * 2)
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


def run(x, y):
    double[(triton.cdiv(x.numel(), 1024),)](x, y, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(y + offsets, value * 2, mask=offsets < n)


@triton.jit
def double_full(x, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets) * 2)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def run_full(x, y):
    n = x.numel()
    assert n % 1024 == 0
    double_full[(triton.cdiv(n, 1024),)](x, y, BLOCK=1024)
```

## When it is silent
When the host checks that a size is a multiple of a tile's, when a size and a tile are numbers that fit, and when a branch, an early `return` or anything
else that is not analysed is in between.

## Sources
[flash-linear-attention](https://github.com/fla-org/flash-linear-attention), `relu_square_bwd_kernel`,
[ao](https://github.com/pytorch/ao), `_dequant_kernel`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| {
        let found = look(context, kernel, facts, access)?;
        (!promises_full_tiles(context.module, kernel)).then_some(found)
    });
}

fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    // Block pointers are M010's.
    if !is_certain(access) || access.mask != Mask::None || access.is_block_pointer {
        return None;
    }
    let index = index(access)?;
    let base = index.base.as_deref()?;
    lanes_in(index).into_iter().find_map(|lane| {
        let axis = tiled_by(facts, &index.poly, lane)?;
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        if is_masked(facts, lane) {
            return None;
        }
        let grid = rounds_up(context, kernel, axis, &block)?;
        let message = format!(
            "nothing masks these lanes, and the grid rounds up: the last tile {} past the end of `{base}` unless its size is a multiple of \
             {block}",
            verb(access)
        );
        Some(Diagnostic::new(&RULE.declaration, access.span, message).with_related(grid, "the grid rounds up"))
    })
}

/// Whether the kernel compares lanes like this one anywhere.
fn is_masked(facts: &KernelAnalysis, lane: u32) -> bool {
    let Some(own) = facts.lanes.get(lane as usize) else { return true };
    let is_alike = |other: u32| facts.lanes.get(other as usize).is_none_or(|other| other.size == own.size);
    let guards = facts.accesses.iter().filter_map(|access| match &access.mask {
        Mask::Tile(tile) => tile.about.guard(),
        _ => None,
    });
    let is_unknown = facts.accesses.iter().any(|access| {
        access.mask == Mask::Unknown
            || matches!(&access.mask, Mask::Tile(tile) if tile.about.guard().is_none_or(|guard| guard.is_partial))
    });
    is_unknown || guards.flat_map(|guard| lanes_of(&guard.conditions)).any(is_alike)
}

/// The grid of a launch, where all launches of the kernel start `triton.cdiv(size, block)` programs along `axis`.
pub(super) fn rounds_up(context: &RuleContext<'_>, kernel: &Kernel, axis: u8, block: &Poly) -> Option<Span> {
    let mut first = None;
    for known in context.launches_of(kernel) {
        let (_, by) = known.passed.grid.as_ref()?.get(usize::from(axis))?.tiles()?;
        if !known.is_block(block, by) {
            return None;
        }
        first = first.or(Some(known.launch.grid.span));
    }
    first
}
