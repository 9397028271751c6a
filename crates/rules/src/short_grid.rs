//! M017: a grid that does not cover a new tensor.

use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::Poly;
use model::analysis::witness::largest;
use model::host::{HostNumber, HostOperator, TensorOrigin};
use model::kernel::Param;
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::{global, guard, index, is_certain, lanes_in, tiled_by, upper_bound};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M017",
        name: "short-grid",
        severity: Severity::Warning,
        summary: "a grid with too few programs for what the kernel has to write",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches whose programs write less than all of a new tensor: by numbers, where the grid, the tile and the tensor are known,
and where the grid is `n // BLOCK` although the kernel masks with `< n`, so that the last tile has no program.

## Why is this bad?
The rest of the tensor stays as `torch.empty` left it: with values of earlier tensors.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[(n // 1024,)](x, y, n, BLOCK=1024)
    #      ^^^^^^^^^^^^
    return y
```

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def test():
    x = torch.randn(128, device="cuda")
    y = torch.empty_like(x)
    double[(4,)](x, y, 128, BLOCK=16)
    #      ^^^^
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
```

## When it is silent
When the function looks at the size in an assertion or a condition, when the kernel loops over tiles, and when something else writes
the tensor before.

## Sources
[pytorch#195546](https://github.com/pytorch/pytorch/issues/195546).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        let grid = known.launch.grid.span;
        if seen.contains(&grid) || known.passed.is_repeated || known.kernel.autotune.is_some() {
            continue;
        }
        let message =
            known.kernel.params.iter().find_map(|param| by_numbers(&known, param)).or_else(|| rounded_down(&known));
        if let Some((message, access)) = message
            && !context.is_for_other_compiler()
        {
            seen.push(grid);
            findings.push(
                Diagnostic::new(&RULE.declaration, grid, message).with_related(access, "what each program writes"),
            );
        }
    }
}

/// The only access that writes a parameter's tensor, when all accesses of the kernel are followed.
fn only_store<'c>(known: &AnalysedLaunch<'c, '_>, param: &str) -> Option<&'c MemoryAccess> {
    let accesses = &known.facts.accesses;
    let is_followed = accesses.iter().all(|access| index(access).is_some_and(|index| index.base.is_some()));
    let mut stores = accesses.iter().filter(|access| {
        access.kind != AccessKind::Load && index(access).is_some_and(|index| index.base.as_deref() == Some(param))
    });
    let (Some(store), None) = (stores.next(), stores.next()) else { return None };
    (is_followed && is_certain(store) && store.loops.is_empty()).then_some(store)
}

/// A grid, a tile and a tensor whose sizes are all known.
fn by_numbers(known: &AnalysedLaunch<'_, '_>, param: &Param) -> Option<(String, Span)> {
    let tensor = known.tensor(&param.name)?;
    if tensor.origin != TensorOrigin::Unset || !known.passed.unset.contains(&tensor.storage) {
        return None;
    }
    let count = tensor.count().known()?;
    let store = only_store(known, &param.name)?;
    let launched = known.launched(&|_| None)?;
    let conditions = match &store.mask {
        Mask::None => Vec::new(),
        _ => guard(store)?.conditions.clone(),
    };
    let poly = &index(store)?.poly;
    let last = largest(known.facts, &launched, poly, &conditions, &[])?.value(&launched, poly)?;
    (last + 1 < count).then(|| {
        let programs = launched.grid.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let message = format!(
            "{programs} programs write the first {} of {count} elements of `{}`: the rest stays as `torch.empty` left it",
            last + 1,
            tensor.label()
        );
        (message, store.span)
    })
}

/// A grid of `n // BLOCK` programs for a kernel that masks with `< n`.
fn rounded_down(known: &AnalysedLaunch<'_, '_>) -> Option<(String, Span)> {
    let grid = known.passed.grid.as_ref()?;
    for access in known.facts.accesses.iter().filter(|access| access.kind != AccessKind::Load && is_certain(access)) {
        let Some((index, guard)) = index(access).zip(guard(access)) else { continue };
        for lane in lanes_in(index) {
            let Some(axis) = tiled_by(known.facts, &index.poly, lane) else { continue };
            let Some(whole) = global(known.facts, axis, lane) else { continue };
            let bound = guard.conditions.iter().find_map(|condition| {
                let (left, right) = upper_bound(condition)?;
                (*left == whole).then(|| right.as_param())?
            });
            let (Some(size), Some(block)) = (bound, Poly::of_dim(&known.facts.lanes[lane as usize].size)) else {
                continue;
            };
            let Some(HostNumber::Operation(quotient)) = grid.get(usize::from(axis)) else { continue };
            let size_given = known.number(size);
            let is_rounded_down = quotient.op == HostOperator::Python("//")
                && quotient.left.is(&size_given)
                && known.is_block(&block, &quotient.right);
            let is_checked = size_given.sources()?.iter().any(|name| known.run.is_checked(name));
            if is_rounded_down && !is_checked && access.loops.is_empty() {
                let message = format!(
                    "`{} // {}` programs leave out the last tile when `{size}` is no multiple of it: use `triton.cdiv`",
                    quotient.left, quotient.right
                );
                return Some((message, access.span));
            }
        }
    }
    None
}
