//! P003: a loop that loads a row which an earlier loop has loaded.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::syntax::Span;

use super::memory_accesses::{index, kernels, line};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P003",
        name: "repeated-pass",
        severity: Severity::Hint,
        summary: "a loop that loads again what an earlier loop of the kernel has loaded",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds a load in a loop that goes over a row tile by tile, as a load in an earlier loop of the same kernel has done.

## Why is this bad?
What a program loads is gone when the loop ends. A kernel that reads its row once for the mean, once for the variance and
once for the result moves three times as much memory. If rows fit into one tile, load the row once, without a loop; if not,
merge passes (mean and variance can be found in one).

"Optimize this kernel" measures what a larger tile brings.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def normalize(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    sum = tl.sum(total)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
        #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        tl.store(y + row * stride + columns, value / sum, mask=columns < n)


def run(x, y):
    normalize[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def normalize(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row * stride + columns, value / tl.sum(value), mask=columns < n)


def run(x, y):
    block = triton.next_power_of_2(x.shape[1])
    normalize[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=block)
```

## Sources
[Fused softmax, a tutorial of Triton](https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html): why the
row is read once.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        let mut told: Vec<&str> = Vec::new();
        for (at, access) in facts.accesses.iter().enumerate() {
            let Some((base, own)) = swept(facts, access) else { continue };
            let before = facts.accesses[..at].iter().position(|earlier| {
                earlier.loops != access.loops
                    && earlier.span.end <= access.span.start
                    && swept(facts, earlier).is_some_and(|other| other == (base, own.clone()))
            });
            // Data that was written between the two loops is no longer the same.
            let writes = |other: &MemoryAccess| {
                other.kind != AccessKind::Load && index(other).is_none_or(|index| index.base.as_deref() == Some(base))
            };
            let before =
                before.filter(|from| !facts.accesses[*from..at].iter().any(writes)).map(|at| &facts.accesses[at]);
            if let Some(before) = before
                && !told.contains(&base)
                && !seen.contains(&access.span)
                && !context.is_for_other_compiler()
            {
                told.push(base);
                seen.push(access.span);
                let message = format!(
                    "the loop on line {} has loaded the same of `{base}` already; if a row fits into one tile, load it once (\"Optimize this \
                     kernel\" measures larger tiles)",
                    line(context, before.span)
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, access.span, message)
                        .with_related(before.span, "loaded here for the first time"),
                );
            }
        }
    }
}

/// An address as a sum of products, each of names with a factor.
type Address = Vec<(Vec<String>, i128)>;

/// The parameter and the address of a load in a loop, in terms that do not depend on which loop or lane it uses.
fn swept<'f>(facts: &KernelAnalysis, access: &'f MemoryAccess) -> Option<(&'f str, Address)> {
    let [around] = access.loops.as_slice() else { return None };
    let index = index(access)?;
    if access.kind != AccessKind::Load
        || !index.poly.has(&Atom::Loop(*around))
        || access.is_uncertain
        || access.branches > 0
    {
        return None;
    }
    let head = facts.loops.get(*around as usize)?;
    // In a pass over a row, each iteration takes the next tile.
    let next_tile = index.axes.iter().flatten().any(|lane| {
        let size = facts.lanes.get(*lane as usize).and_then(|lane| Poly::of_dim(&lane.size));
        let (step, of_lane) = (head.step.as_ref(), index.poly.factor_of(&Atom::Lane(*lane)));
        let round = index.poly.factor_of(&Atom::Loop(*around)).zip(step).and_then(|(factor, step)| factor.times(step));
        size.zip(of_lane).and_then(|(size, factor)| factor.times(&size)).is_some_and(|tile| round == Some(tile))
    });
    if !next_tile {
        return None;
    }
    let fixed =
        |poly: &Option<Poly>| poly.as_ref().is_some_and(|poly| !poly.any(|atom| matches!(atom, Atom::Other(_))));
    if !fixed(&head.start) || !fixed(&head.end) || index.poly.any(|atom| matches!(atom, Atom::Other(_))) {
        return None;
    }
    let mut terms = Address::new();
    for (atoms, factor) in &index.poly.terms {
        let mut names = Vec::new();
        for atom in atoms {
            names.push(match atom {
                Atom::Loop(_) => format!("loop from {:?} to {:?} by {:?}", head.start, head.end, head.step),
                Atom::Lane(lane) => {
                    let lane = facts.lanes.get(*lane as usize)?;
                    format!("lane from {:?}, {:?}", lane.start, lane.size)
                }
                other => format!("{other:?}"),
            });
        }
        names.sort();
        terms.push((names, *factor));
    }
    terms.push((Vec::new(), index.poly.constant));
    terms.sort();
    Some((index.base.as_deref()?, terms))
}
