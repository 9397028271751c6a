//! P006: one program for each short row, which has too little work.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::index::Atom;

use super::memory_accesses::{index, kernels, lanes_in};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P006",
        name: "narrow-row",
        severity: Severity::Hint,
        summary: "a program for each short row",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds kernels in which each program handles one row with a tile of at most 256 lanes, a number that all launches of the file
agree on, without loops.

## Why is this bad?
A program has 128 threads by default: each gets an element or two, and starting the program costs more than its work. A
tile of several rows gives each program more to do.

"Optimize this kernel" tries fewer warps for each program, which is the smaller remedy.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    #         ^^^^^^^^^^^^^^^^^^^
    value = tl.load(x + row * stride + columns, mask=columns < n)
    tl.store(y + row * stride + columns, value * 2, mask=columns < n)


def run(x, y):
    assert x.shape[1] <= 128
    scale[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=128)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, stride, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (columns[None, :] < n)
    places = row[:, None] * stride + columns[None, :]
    tl.store(y + places, tl.load(x + places, mask=mask) * 2, mask=mask)


def run(x, y):
    assert x.shape[1] <= 128
    rows = x.shape[0]
    scale[(triton.cdiv(rows, 16),)](x, y, x.stride(0), rows, x.shape[1], ROWS=16, BLOCK=128)
```

## Sources
[Layer normalization, a tutorial of Triton](https://triton-lang.org/main/getting-started/tutorials/05-layer-norm.html) chooses the
number of warps by the length of the row.
"#,
    },
    check,
};

/// The number of lanes up to which the threads of a program have too little work.
const NARROW: i64 = 256;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for (kernel, facts) in kernels(context) {
        let Some((lane, size)) = narrow(facts) else { continue };
        let sets_warps = context.module.launches_of(&kernel.name).any(|launch| {
            launch.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == "num_warps"))
        });
        if sets_warps || kernel.autotune.is_some() || context.is_for_other_compiler() {
            continue;
        }
        let message = format!(
            "each program handles one row of at most {size} elements, an element or two for each thread; take several rows, or fewer warps \
             (\"Optimize this kernel\" can try these)"
        );
        findings.push(Diagnostic::new(&RULE.declaration, facts.lanes[lane].span, message));
    }
}

/// The only lane of a kernel and its length, where it is short and runs along the program's row.
fn narrow(facts: &KernelAnalysis) -> Option<(usize, i64)> {
    let [lane] = facts.lanes.as_slice() else { return None };
    let size = lane.size.known().filter(|size| *size <= NARROW && *size > 1)?;
    if !facts.loops.is_empty() || !facts.products.is_empty() || facts.accesses.len() < 2 {
        return None;
    }
    let along_row = |access| {
        let index = index(access)?;
        let parts = (1..3).any(|axis| index.poly.has(&Atom::Program(axis)));
        let alone = lanes_in(index).is_empty();
        let steps = || index.poly.factor_of(&Atom::Lane(0)).is_some_and(|factor| factor.as_number() == Some(1));
        let simple = !parts && (alone || steps());
        let of_row = index.poly.terms.iter().any(|(atoms, _)| atoms.len() > 1 && atoms.contains(&Atom::Program(0)));
        Some((simple, of_row && !lanes_in(index).is_empty()))
    };
    let all: Option<Vec<(bool, bool)>> = facts.accesses.iter().map(along_row).collect();
    let all = all?;
    (all.iter().all(|(simple, _)| *simple) && all.iter().any(|(_, row)| *row)).then_some((0, size))
}
