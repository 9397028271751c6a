//! M026: a position of which one part is multiplied by a stride and the other is not.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::index::{Atom, Poly};
use model::kernel::Kernel;
use model::kernel::ast::{ExprKind, walk_expressions};
use model::syntax::Span;

use super::memory_accesses::{guard, index, lanes_in, report, upper_bound, verb};
use super::unmasked_tile::rounds_up;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M026",
        name: "unscaled-offset",
        severity: Severity::Warning,
        summary: "an address in which the lane is multiplied by a stride and the start of its tile is not",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses at `x + start + lane * stride` whose mask says that `start + lane` is the position along an axis, and accesses at `program + lane`
where the grid has `triton.cdiv(size, BLOCK)` programs along this axis.

## Why is this bad?
The start of the tile is a position as well, and needs the same stride. It is right for a stride of 1 only.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        sum += tl.load(x + start + lanes * stride, mask=lanes < n - start, other=0.0)
        #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y, tl.sum(sum))


def run(x, y):
    total[(1,)](x, y, x.stride(0), x.shape[0], BLOCK=128)
```

```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) + tl.arange(0, BLOCK)
    #         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=offsets < n), mask=offsets < n)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    sum = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        sum += tl.load(x + (start + lanes) * stride, mask=lanes < n - start, other=0.0)
    tl.store(y, tl.sum(sum))


def run(x, y):
    total[(1,)](x, y, x.stride(0), x.shape[0], BLOCK=128)
```

## When it is silent
When the mask does not bound the sum of both, and when the lane is multiplied by a number.

## Sources
[mamba](https://github.com/state-spaces/mamba), `ssd_chunk_scan`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| {
        look(facts, access).or_else(|| unscaled_program(context, kernel, facts, access))
    });
}

/// An access at `program + lane` where the grid has one program for each tile.
fn unscaled_program(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    let index = index(access).filter(|_| access.branches == 0 && !access.is_uncertain)?;
    lanes_in(index).into_iter().find_map(|lane| {
        let step = index.poly.factor_of(&Atom::Lane(lane)).filter(|step| *step != Poly::default())?;
        let known = facts.lanes.get(lane as usize)?;
        let block = Poly::of_dim(&known.size).filter(|block| *block != Poly::number(1))?;
        let axis = (0..3).find(|axis| index.poly.factor_of(&Atom::Program(*axis)).as_ref() == Some(&step))?;
        let grid = rounds_up(context, kernel, axis, &block)?;
        let sum = sum_around(kernel, known.span);
        let message = format!(
            "the tiles of the programs along axis {axis} are {block} long and begin one after the other: multiply `tl.program_id({axis})` with \
             {block}"
        );
        Some(
            Diagnostic::new(&RULE.declaration, sum.unwrap_or(access.span), message)
                .with_related(grid, "a program for each tile"),
        )
    })
}

/// The smallest sum with a place in it.
fn sum_around(kernel: &Kernel, at: Span) -> Option<Span> {
    let mut found: Option<Span> = None;
    walk_expressions(&kernel.body, &mut |expr| {
        let is_sum = matches!(&expr.kind, ExprKind::Binary { op, .. } if op == "+") && expr.span.contains(at);
        if is_sum && found.is_none_or(|smallest| smallest.contains(expr.span)) {
            found = Some(expr.span);
        }
    });
    found
}

fn look(facts: &KernelAnalysis, access: &MemoryAccess) -> Option<Diagnostic> {
    let (index, guard) = (index(access)?, guard(access)?);
    let one = Poly::number(1);
    for lane in lanes_in(index) {
        let stride = index.poly.factor_of(&Atom::Lane(lane))?;
        if stride.as_param().is_none() {
            continue;
        }
        for condition in &guard.conditions {
            let Some((left, right)) = upper_bound(condition) else { continue };
            let Some(position) = left.plus(right, -1) else { continue };
            if position.factor_of(&Atom::Lane(lane)).as_ref() != Some(&one) {
                continue;
            }
            let moved = access.loops.iter().map(|id| Atom::Loop(*id)).find(|atom| {
                position.factor_of(atom).as_ref() == Some(&one) && index.poly.factor_of(atom).as_ref() == Some(&one)
            });
            if let Some(Atom::Loop(id)) = moved {
                let around = facts.loops.get(id as usize)?;
                let message = format!(
                    "this {} at a position of which the lane is multiplied by `{}` and the start of the tile is not",
                    verb(access),
                    stride.as_param().unwrap_or_default()
                );
                return Some(
                    Diagnostic::new(&RULE.declaration, access.span, message)
                        .with_related(condition.span, "the mask adds the two")
                        .with_related(around.span, "the loop over the tiles"),
                );
            }
        }
    }
    None
}
