//! M004: a mask that compares the index within a tile with the bound of the whole tensor.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::index::{Atom, IndexComparison, Poly};
use model::kernel::Kernel;
use model::syntax::Span;

use super::memory_accesses::{covers, global, guard, index, report, upper_bound};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M004",
        name: "tile-local-mask",
        severity: Severity::Warning,
        summary: "a mask that compares the lane within its tile with the bound of the whole tensor",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds an access whose offset is `program · BLOCK + lane`, and whose mask compares `lane` alone with a size that the
launch covers with tiles of `BLOCK`, or that another access of the kernel compares with `program · BLOCK + lane`.

## Why is this bad?
In every program the lanes are compared as if it were the first. As soon as the size is `BLOCK` or more, the mask lets everything
through, and the last tile reads or writes behind the end of the tensor.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    value = tl.load(x + start + lanes, mask=mask)
    #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + start + lanes, value * 2, mask=start + lanes < n)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = start + lanes < n
    value = tl.load(x + start + lanes, mask=mask)
    tl.store(y + start + lanes, value * 2, mask=mask)


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + lanes, mask=lanes < n)
    tl.store(y + row * n + lanes, value * 2, mask=lanes < n)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
```

## Sources
[Megatron-LM#7103](https://github.com/NVIDIA/Megatron-LM/issues/7103).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| look(context, kernel, facts, access));
}

fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    let (index, guard) = (index(access)?, guard(access)?);
    for condition in &guard.conditions {
        let Some((left, bound)) = upper_bound(condition) else { continue };
        let ([(atoms, 1)], Some(size)) = (left.terms.as_slice(), bound.as_param()) else { continue };
        let [Atom::Lane(lane)] = atoms.as_slice() else { continue };
        if left.constant != 0 || guards_otherwise(guard.conditions.as_slice(), condition, *lane) {
            continue;
        }
        let Some(axis) = super::memory_accesses::tiled_by(facts, &index.poly, *lane) else { continue };
        let whole = global(facts, axis, *lane)?;
        let block = Poly::of_dim(&facts.lanes.get(*lane as usize)?.size)?;
        if block.as_param() == Some(size) {
            continue;
        }
        let elsewhere = bounded(facts, &whole, bound);
        let Some(related) = elsewhere.or_else(|| covers(context, kernel, axis, size, &block)) else { continue };
        let text = if elsewhere.is_some() {
            "here the number in the whole tensor is compared"
        } else {
            "as many programs as cover it"
        };
        let message = format!(
            "the offset is `program_id({axis}) * {block}` plus the lane, but the mask compares the lane alone with `{size}`: it \
             lets through what is behind the end; compare the sum"
        );
        return Some(
            Diagnostic::new(&RULE.declaration, access.span, message)
                .with_related(condition.span, "the mask compares the lane within the tile")
                .with_related(related, text),
        );
    }
    None
}

/// Whether another condition of the mask also bounds the lane.
fn guards_otherwise(conditions: &[IndexComparison], own: &IndexComparison, lane: u32) -> bool {
    let has =
        |condition: &IndexComparison| condition.left.has(&Atom::Lane(lane)) || condition.right.has(&Atom::Lane(lane));
    conditions.iter().any(|condition| condition != own && has(condition))
}

/// The span of a condition `whole < bound` in a mask of the kernel.
fn bounded(facts: &KernelAnalysis, whole: &Poly, bound: &Poly) -> Option<Span> {
    let guards = facts.accesses.iter().filter_map(guard);
    guards
        .flat_map(|guard| &guard.conditions)
        .find(|condition| upper_bound(condition) == Some((whole, bound)))
        .map(|condition| condition.span)
}
