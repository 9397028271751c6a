//! P002: an access whose lanes are all several elements apart.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::index::Atom;
use model::syntax::Span;

use super::memory_accesses::{index, kernels};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P002",
        name: "strided-lanes",
        severity: Severity::Hint,
        summary: "an access whose lanes are all several elements apart",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds loads and stores in which neighbouring lanes are a fixed number of elements apart along every axis, four or more: no
axis of the tile walks through memory element by element, and no other access of the kernel uses what lies between.

## Why is this bad?
Memory moves in pieces of 32 bytes. Of each piece an access like this uses one element and fetches the others for
nothing. Where the kernel needs these as well, load them together and take them apart afterwards, for instance with a tile of one
more axis and `tl.split`; or change the layout of the tensor.

"Optimize this kernel" measures what other tile sizes bring, but does not change the layout.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def first_of_four(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets * 4, mask=offsets < n)
    #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, value, mask=offsets < n)


def run(x, y):
    n = y.numel()
    first_of_four[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def fours(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parts = tl.arange(0, 4)
    places = offsets[:, None] * 4 + parts[None, :]
    value = tl.load(x + places, mask=offsets[:, None] < n, other=0.0)
    tl.store(y + offsets, tl.sum(value, axis=1), mask=offsets < n)


def run(x, y):
    n = y.numel()
    fours[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Sources
[CUDA C++ Best Practices Guide: Coalesced Access to Global Memory](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory).
"#,
    },
    check,
};

/// The distance in elements below which most of a memory transaction is used.
const APART: i128 = 4;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        for access in &facts.accesses {
            if !seen.contains(&access.span)
                && let Some(step) = step(facts, access)
                && !others_fill(facts, access, step)
                && !context.is_for_other_compiler()
            {
                seen.push(access.span);
                let message = format!(
                    "neighbouring lanes are {step} elements apart, so most of what is fetched is not used; load the elements between \
                     together, or change the layout"
                );
                findings.push(Diagnostic::new(&RULE.declaration, access.span, message));
            }
        }
    }
}

/// Whether other accesses of the kernel use the elements in between, so that a cache may hold them.
fn others_fill(facts: &KernelAnalysis, access: &MemoryAccess, step: i128) -> bool {
    let Some(own) = index(access) else { return true };
    facts.accesses.iter().filter(|other| other.kind == access.kind).filter_map(index).any(|other| {
        let apart = other.poly.plus(&own.poly, -1).and_then(|difference| difference.as_number());
        // An access that is not understood may go anywhere.
        other.base == own.base && apart.is_none_or(|apart| apart != 0 && apart.abs() < step)
    })
}

/// The distance in elements of the nearest lanes, where all lanes are far apart.
fn step(facts: &KernelAnalysis, access: &MemoryAccess) -> Option<i128> {
    let index = index(access)?;
    index.base.as_ref()?;
    let mut steps = Vec::new();
    for lane in index.axes.iter().flatten() {
        if facts.lanes.get(*lane as usize)?.size.known().is_some_and(|size| size < 32) {
            return None;
        }
        steps.push(index.poly.factor_of(&Atom::Lane(*lane))?.as_number()?.abs());
    }
    steps.into_iter().min().filter(|step| *step >= APART)
}
