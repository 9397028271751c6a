//! M032: a store that the programs along an axis repeat.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::host::HostNumber;
use model::kernel::Kernel;

use super::memory_accesses::{guard, index, is_certain, lanes_in, report, tiled_by};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M032",
        name: "repeated-store",
        severity: Severity::Hint,
        summary: "a store to the same address in all programs along an axis, along which another store has a tile for each",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds stores whose address does not depend on `tl.program_id` of an axis, along which another store of the kernel has a tile for each program.

## Why is this bad?
As soon as there are two tiles, two programs write the same place at once. If they write the same value the second write is for nothing; if they do not, which
one remains is undefined.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, total, stride, n, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    whole = tl.arange(0, WIDTH)
    sum = tl.sum(tl.load(x + row * stride + whole, mask=whole < n, other=0.0))
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row * stride + columns, value / sum, mask=columns < n)
    tl.store(total + row, sum)
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, total, stride, n, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    whole = tl.arange(0, WIDTH)
    sum = tl.sum(tl.load(x + row * stride + whole, mask=whole < n, other=0.0))
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row * stride + columns, value / sum, mask=columns < n)
    if tl.program_id(1) == 0:
        tl.store(total + row, sum)
```

## When it is silent
When the launching function looks at the sizes that decide how many programs there are along the axis. In branches, after an early `return`, when the mask depends on the program, and when anything in the address is not followed.

## Sources
[flash-linear-attention](https://github.com/fla-org/flash-linear-attention), `parallel_attn_fwd_kernel`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| {
        let (axis, found) = look(facts, access)?;
        (!is_checked(context, kernel, axis)).then_some(found)
    });
}

/// Whether a launching function looks at the sizes that decide how many programs there are along an axis: it may assert that
/// there is one.
fn is_checked(context: &RuleContext<'_>, kernel: &Kernel, axis: u8) -> bool {
    context.launches().filter(|known| known.kernel.span == kernel.span).any(|known| {
        let programs = known.passed.grid.as_ref().and_then(|grid| grid.get(usize::from(axis)));
        let sources = programs.and_then(HostNumber::sources).unwrap_or_default();
        programs.and_then(HostNumber::known) == Some(1) || sources.iter().any(|source| known.run.is_checked(source))
    })
}

/// The finding in an access, with the axis.
fn look(facts: &KernelAnalysis, access: &MemoryAccess) -> Option<(u8, Diagnostic)> {
    if access.kind != AccessKind::Store || !is_certain(access) {
        return None;
    }
    let own = index(access)?;
    own.base.as_ref()?;
    let conditions = match &access.mask {
        Mask::None => &[][..],
        _ => &guard(access)?.conditions,
    };
    let stores = facts.accesses.iter().filter(|other| other.kind == AccessKind::Store && other.span != access.span);
    let found = stores.filter_map(|other| {
        let to = index(other).filter(|to| to.base != own.base)?;
        let axis = lanes_in(to).into_iter().find_map(|lane| tiled_by(facts, &to.poly, lane))?;
        Some((other, axis))
    });
    let (tiled, axis) = found.into_iter().find(|(_, axis)| {
        let varies = |poly: &Poly| depends(facts, poly, *axis, 0);
        !varies(&own.poly) && !conditions.iter().any(|it| varies(&it.left) || varies(&it.right))
    })?;
    let message = format!(
        "the programs along axis {axis} all store to this address: let one of them do it, or give each a place of its own"
    );
    let found = Diagnostic::new(&RULE.declaration, access.span, message)
        .with_related(tiled.span, "this store has a tile for each program along the axis");
    Some((axis, found))
}

/// Whether a number may differ between programs along an axis.
fn depends(facts: &KernelAnalysis, poly: &Poly, axis: u8, depth: usize) -> bool {
    let loaded = |number: u32| match facts.loaded.iter().find(|(known, _)| *known == number) {
        Some((_, offset)) if depth < 8 => depends(facts, offset, axis, depth + 1),
        _ => true,
    };
    poly.any(|atom| match atom {
        Atom::Program(of) => *of == axis,
        Atom::Programs(_) | Atom::Lane(_) => false,
        Atom::Loop(id) => facts.loops.get(*id as usize).is_none_or(|around| {
            let bound = |bound: &Option<Poly>| {
                bound.as_ref().is_none_or(|poly| depth >= 8 || depends(facts, poly, axis, depth + 1))
            };
            bound(&around.start) || bound(&around.end)
        }),
        Atom::Other(number) => loaded(*number),
        // The name of a number says what it is computed from.
        Atom::Param(name) => {
            let parts = name.match_indices("other").filter_map(|(at, word)| {
                let digits: String = name[at + word.len()..].chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            });
            name.contains(&format!("program_id({axis})")) || name.contains("loop") || parts.into_iter().any(loaded)
        }
    })
}
