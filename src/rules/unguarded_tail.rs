//! M013: an access without a mask where others of the kernel have one.

use super::memory::{covers, global, guard, index, is_certain, kernels, lanes_in, tiled_by, upper_bound, verb};
use super::{Context, Declaration, Diagnostic, Findings, Rule, Severity};
use crate::analysis::launches::promises_full_tiles;
use crate::analysis::types::Facts;
use crate::analysis::types::access::{Access, Mask};
use crate::analysis::types::index::{Condition, Poly};
use crate::kernel::Kernel;
use crate::syntax::Span;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M013",
        name: "unguarded-tail",
        severity: Severity::Warning,
        summary: "an access without a mask along a lane that another access masks, with a grid that rounds up",
        since: "0.1.0",
        fixable: false,
        doc: r#"
## What it does
Finds accesses without a mask at `program · BLOCK + lane`, where another access of the kernel masks just this number with
`< n` and the launch starts `triton.cdiv(n, BLOCK)` programs.

## Why is this bad?
Unless `n` is a multiple of `BLOCK`, the last program reads or writes behind the end. The mask of the other access
says that this happens.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left = tl.load(x + offsets, mask=mask)
    right = tl.load(y + offsets)
    #       ^^^^^^^^^^^^^^^^^^^^
    tl.store(out + offsets, left + right, mask=mask)


def run(x, y, out):
    n = x.numel()
    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left = tl.load(x + offsets, mask=mask)
    right = tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, left + right, mask=mask)


def run(x, y, out):
    n = x.numel()
    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
```

## When it is silent
When no other access masks the number, when the host checks that a size is a multiple of a tile's, and when a branch, an
early `return` or anything else that is not followed stands in between.

## Sources
[triton#9026](https://github.com/triton-lang/triton/issues/9026),
[flash-attention#2790](https://github.com/Dao-AILab/flash-attention/issues/2790).
"#,
    },
    check,
};

fn check(context: &Context<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        for access in facts.accesses.iter().filter(|access| is_certain(access)) {
            if access.mask == Mask::None
                && !seen.contains(&access.span)
                && let Some(found) = look(context, kernel, facts, access)
                && !context.is_for_other_compiler()
                && !promises_full_tiles(context.module, kernel)
            {
                seen.push(access.span);
                findings.push(found);
            }
        }
    }
}

fn look(context: &Context<'_>, kernel: &Kernel, facts: &Facts, access: &Access) -> Option<Diagnostic> {
    let index = index(access)?;
    index.base.as_ref()?;
    lanes_in(index).into_iter().find_map(|lane| {
        let axis = tiled_by(facts, &index.poly, lane)?;
        let whole = global(facts, axis, lane)?;
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        let (condition, size) = bounded(facts, &whole)?;
        let grid = covers(context, kernel, axis, size, &block)?;
        let message = format!(
            "without a mask this {} behind the end when `{size}` is no multiple of {block}; other accesses mask the same lanes with `< {size}`",
            verb(access)
        );
        Some(
            Diagnostic::new(&RULE.declaration, access.span, message)
                .with_related(condition.span, "the mask of another access")
                .with_related(grid, "the grid rounds up"),
        )
    })
}

/// The condition of an access that masks `whole < parameter`.
fn bounded<'f>(facts: &'f Facts, whole: &Poly) -> Option<(&'f Condition, &'f str)> {
    facts.accesses.iter().filter_map(guard).flat_map(|guard| &guard.conditions).find_map(|condition| {
        let (left, right) = upper_bound(condition)?;
        (left == whole).then_some((condition, right.as_param()?))
    })
}
