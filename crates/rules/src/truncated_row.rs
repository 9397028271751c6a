//! M011: a row of any length that is read with one tile of a fixed size, so that its end is not reached.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::MemoryAccess;
use model::analysis::types::index::{Atom, Poly};
use model::host::HostNumber;
use model::kernel::HostFunction;
use model::kernel::ast::{ExprKind, StmtKind, walk_statements};
use model::syntax::Span;

use super::known_launch::KnownLaunch;
use super::memory_accesses::{guard, index, is_certain, is_described, kernels, lanes_in, tiled_by, upper_bound};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M011",
        name: "truncated-row",
        severity: Severity::Warning,
        summary: "a row of any length that is read with one tile of a fixed size",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses along `tl.arange(0, BLOCK)`, masked with `< n` and neither moved on by a loop nor by the number of the program,
where the launch passes a number for `BLOCK` and a size of a tensor for `n`, and the host checks neither.

## Why is this bad?
Elements of a row after the first `BLOCK` are silently never read, or never written: the result is wrong for
every longer row.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + row, tl.sum(value))


def run(x, y):
    total[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row, tl.sum(value))


def run(x, y):
    block = triton.next_power_of_2(x.shape[1])
    total[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=block)


def short(x, y):
    assert x.shape[1] <= 1024
    total[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=1024)
```

## When it is silent
When the host compares the size, or anything else, in an `assert` or an `if` that raises or chooses, and when the size is
passed on from a parameter of the host.

## Sources
[xformers#785](https://github.com/facebookresearch/xformers/issues/785).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        for access in facts.accesses.iter().filter(|access| is_certain(access)) {
            let Some((size, block)) = row(facts, access) else { continue };
            for known in context.launches_of(kernel) {
                if seen.contains(&access.span) || context.is_for_other_compiler() || kernel.autotune.is_some() {
                    continue;
                }
                let Some((number, place)) = truncates(context, &known, size, &block) else { continue };
                seen.push(access.span);
                let message = format!(
                    "only the first {number} elements are reached, and `{size}` may be larger: nothing checks it; take the block from the \
                     size (`triton.next_power_of_2`), or loop over the row"
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, access.span, message)
                        .with_related(place, "the size and the block are passed here"),
                );
            }
        }
    }
}

/// The bound and the length of a lane that covers a row from its start, once.
fn row<'f>(facts: &'f KernelAnalysis, access: &'f MemoryAccess) -> Option<(&'f str, Poly)> {
    let (index, guard) = (index(access)?, guard(access)?);
    if index.poly.any(|atom| matches!(atom, Atom::Loop(_) | Atom::Other(_))) || !access.loops.is_empty() {
        return None;
    }
    guard.conditions.iter().find_map(|condition| {
        let (left, right) = upper_bound(condition)?;
        let [(atoms, 1)] = left.terms.as_slice() else { return None };
        let [Atom::Lane(lane)] = atoms.as_slice() else { return None };
        let known = facts.lanes.get(*lane as usize)?;
        let size = right.as_param()?;
        let block = Poly::of_dim(&known.size)?;
        // The program may process only a part of a row.
        let divided = index.poly.terms.iter().any(|(atoms, _)| {
            atoms.iter().any(|atom| matches!(atom, Atom::Program(_)))
                && (block.as_param().is_some_and(|block| atoms.contains(&Atom::Param(block.into()))) || atoms.len() < 2)
        });
        let divided = divided || tiled_by(facts, &index.poly, *lane).is_some();
        (known.start == Some(0) && left.constant == 0 && !divided && lanes_in(index).contains(lane))
            .then_some((size, block))
    })
}

/// The number that is passed for the block, where nothing ensures that the size is not larger.
fn truncates(context: &RuleContext<'_>, known: &KnownLaunch<'_, '_>, size: &str, block: &Poly) -> Option<(i128, Span)> {
    if !is_described(context, known) {
        return None;
    }
    let number = match (block.as_number(), block.as_param()) {
        (Some(number), _) => number,
        (None, Some(param)) => known.number(param).known()?,
        _ => return None,
    };
    let kernel = known.kernel;
    if kernel.param(size)?.constexpr || kernel.heuristics.as_ref().is_none_or(|names| !names.is_empty()) {
        return None;
    }
    let host = context.module.hosts.get(known.launch.host?)?;
    // A function that gets the size may check it.
    let passed = known.number(size);
    if known.run.calls.iter().any(|call| call.gets(&passed)) {
        return None;
    }
    (is_size_of_tensor(known, size) && !compares(host)).then_some((number, known.launch.args_span))
}

/// Whether a function of the host contains a comparison, check or choice.
pub(super) fn compares(host: &HostFunction) -> bool {
    let mut compares = false;
    walk_statements(&host.body, &mut |stmt| {
        compares |= matches!(stmt.kind, StmtKind::Assert(_) | StmtKind::If { .. } | StmtKind::While { .. });
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| compares |= matches!(expr.kind, ExprKind::Compare { .. } | ExprKind::IfExp { .. }));
        }
    });
    compares
}

/// Whether the launch passes a size of a tensor that the host gets, `x.shape[1]` or `x.numel()`, for a parameter.
pub(super) fn is_size_of_tensor(known: &KnownLaunch<'_, '_>, param: &str) -> bool {
    let HostNumber::Given(name) = known.number(param) else { return false };
    name.contains(".shape[") || name.ends_with(".numel()")
}
