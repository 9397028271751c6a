//! M013: an access without a mask along a lane that other accesses of the kernel mask.

use model::analysis::launches::{promises_full_tiles, promises_full_tiles_of};
use model::analysis::tuning::is_always;
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::{Atom, IndexComparison, Poly};
use model::host::{HostNumber, HostOperator};
use model::kernel::Kernel;
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::{
    covers, global, guard, index, is_certain, lanes_in, lanes_of, report, tiled_by, upper_bound, verb,
};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M013",
        name: "unguarded-tail",
        severity: Severity::Warning,
        summary: "an access without a mask along a lane that another access masks, with a grid that rounds up",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses without a mask at `program · BLOCK + lane`, where another access of the kernel at the same offset masks just this
number with `< n` and the launch starts `triton.cdiv(n, BLOCK)` programs; and accesses along `tl.arange(0, BLOCK)`, where another one masks
the lane with `< n` and the launch passes `triton.next_power_of_2(n)` for `BLOCK`. A mask along one axis is none for the other: an
access that is masked along its columns only is found where the launch shows that `n` is the number of its rows.

## Why is this bad?
Unless `n` is a multiple of `BLOCK`, the last tile reads or writes behind the end. The mask of the other access
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

```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, stride, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * stride
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + start + columns)
    #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + start + columns, value * 2, mask=columns < n)


def run(x, y):
    n = x.shape[1]
    block = triton.next_power_of_2(n)
    scale[(x.shape[0],)](x, y, x.stride(0), n, BLOCK=block)
```

```python
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, rows, columns, xs, ys, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for start in range(0, columns, WIDTH):
        column = start + tl.arange(0, WIDTH)
        value = tl.load(x + row[:, None] * xs + column[None, :], mask=column[None, :] < columns)
        #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        tl.store(y + row[:, None] * ys + column[None, :], value, mask=mask)


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(rows, 16),)
    copy[grid](x, y, rows, columns, x.stride(0), y.stride(0), BLOCK=16, WIDTH=128)
    return y
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
When no other access at the same offset masks the number (the tensor may be larger than the others), when the host checks that a size is a multiple of a tile's, and when a branch, an
early `return` or anything else that is not analysed is in between.

## Sources
[triton#9026](https://github.com/triton-lang/triton/issues/9026),
[flash-attention#2790](https://github.com/Dao-AILab/flash-attention/issues/2790).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, facts, access| {
        if access.is_block_pointer {
            return None;
        }
        let bare = || look(context, kernel, facts, access).filter(|_| access.mask == Mask::None);
        let found =
            if is_certain(access) { bare().or_else(|| along_one_axis(context, kernel, facts, access)) } else { None };
        found.filter(|_| !promises_full_tiles(context.module, kernel)).or_else(|| {
            masked_elsewhere(kernel, facts, access)
                .filter(|(block, _)| !promises_full_tiles_of(context.module, kernel, block.as_param()))
                .filter(|(block, _)| !block.as_param().is_some_and(|block| is_always(context.source.text(), block, 1)))
                .map(|(_, found)| found)
        })
    });
}

/// An access that is not masked along one of its axes, where another access masks the same lanes with the size that the
/// tensor has along this axis.
fn along_one_axis(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    let index = index(access)?;
    let base = index.base.as_deref()?;
    let masked = match &access.mask {
        Mask::None => Vec::new(),
        _ => lanes_of(&guard(access)?.conditions),
    };
    lanes_in(index).into_iter().filter(|lane| !masked.contains(lane)).find_map(|lane| {
        let axis = tiled_by(facts, &index.poly, lane)?;
        let whole = global(facts, axis, lane)?;
        let guards = facts.accesses.iter().filter_map(guard).flat_map(|guard| &guard.conditions);
        let (condition, size) = guards.into_iter().find_map(|condition| {
            let (left, right) = upper_bound(condition)?;
            (*left == whole).then_some((condition, right.as_param()?))
        })?;
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        let grid = covers(context, kernel, axis, size, &block)?;
        let stride = index.poly.factor_of(&Atom::Lane(lane))?;
        let launch = context.launches().find(|known| {
            known.kernel.span == kernel.span && has_size(known, base, &stride, &known.number(size))
        })?;
        let message = format!(
            "along these lanes this {} past the end of `{base}` when `{size}` is not a multiple of {block}: its mask leaves them out, and \
             another access masks them with `< {size}`",
            verb(access)
        );
        Some(
            Diagnostic::new(&RULE.declaration, access.span, message)
                .with_related(condition.span, "the mask of another access")
                .with_related(grid, "the grid rounds up")
                .with_related(launch.launch.args_span, "the size is that of the tensor"),
        )
    })
}

/// An access without a mask at a number that other accesses mask, with the size of the tile along it.
fn masked_elsewhere(kernel: &Kernel, facts: &KernelAnalysis, access: &MemoryAccess) -> Option<(Poly, Diagnostic)> {
    let own = index(access)?;
    let base = own.base.as_deref()?;
    let masked: Vec<u32> = match &access.mask {
        Mask::None => Vec::new(),
        _ => lanes_of(&guard(access)?.conditions).into_iter().map(|lane| first_alike(facts, lane)).collect(),
    };
    let offset = same_lanes(facts, &own.poly)?;
    let lanes = lanes_in(own).into_iter().map(|lane| first_alike(facts, lane));
    lanes.filter(|lane| !masked.contains(lane)).find_map(|lane| {
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size).filter(|block| *block != Poly::number(1))?;
        let bounds = facts.accesses.iter().filter(|other| other.span != access.span).filter_map(|other| {
            let to = index(other)?;
            let other_offset = same_lanes(facts, &to.poly)?;
            let Mask::Tile(tile) = &other.mask else { return None };
            tile.about.guard()?.conditions.iter().find_map(|condition| {
                let (left, right) = upper_bound(condition)?;
                let number = same_lanes(facts, left)?;
                // A lane alone is compared with a size; with anything else, a part of the tile may be meant.
                let is_whole = number.terms.len() > 1 || right.as_param().is_some_and(|size| kernel.param(size).is_some());
                let is_bound = is_whole && number.has(&Atom::Lane(lane)) && *right != block && !right.any(|atom| matches!(atom, Atom::Lane(_)));
                // Block pointers often check each axis, also one that the tiles fill.
                let is_meant = !other.is_block_pointer || !is_constant(kernel, right);
                let is_bound = is_bound && is_meant && !(is_constant(kernel, right) && number.any(|atom| is_group(kernel, atom)));
                let is_same = holds(&offset, &number, lane) && holds(&other_offset, &number, lane);
                (is_bound && is_same).then_some((to.base.as_deref(), condition, number, right))
            })
        });
        let bounds: Vec<_> = bounds.collect();
        let (_, condition, number, right) = bounds.first()?;
        if number.terms.len() == 1 && is_stepped_by(facts, base, &block) {
            return None;
        }
        // With and without a mask by turns: a branch for whole tiles.
        if bounds.iter().any(|(to, ..)| *to == Some(base)) {
            return None;
        }
        // The tensors that are read without a mask may all be long enough.
        let bare = facts.accesses.iter().filter(|other| {
            other.mask == Mask::None
                && index(other).and_then(|to| same_lanes(facts, &to.poly)).is_some_and(|offset| holds(&offset, number, lane))
        });
        if bare.filter(|other| other.span != access.span).count() >= bounds.len() {
            return None;
        }
        let is_named = !right.any(|atom| match atom {
            Atom::Other(_) => true,
            Atom::Param(name) => kernel.param(name).is_none(),
            _ => false,
        });
        let size = if is_named { format!("`{right}`") } else { "the size".to_owned() };
        let message = format!(
            "without a mask this {} past the end of `{base}` unless {size} is a multiple of {block}; the other accesses mask the same lanes",
            verb(access)
        );
        let found = Diagnostic::new(&RULE.declaration, access.span, message)
            .with_related(condition.span, "the mask of another access");
        Some((block, found))
    })
}

/// Whether a number is `pid % heads` or `pid // heads` of a parameter: it counts groups and not tiles, and the last group ends
/// where the size does.
fn is_group(kernel: &Kernel, atom: &Atom) -> bool {
    let Atom::Param(name) = atom else { return false };
    let divisor = name.rsplit_once(" % ").or_else(|| name.rsplit_once(" // ")).map(|(_, divisor)| divisor);
    divisor.is_some_and(|divisor| kernel.param(divisor.trim_end_matches(')')).is_some())
}

/// Whether a tensor is addressed in steps of a tile: then it is as long as whole tiles.
fn is_stepped_by(facts: &KernelAnalysis, base: &str, block: &Poly) -> bool {
    let Some(block) = block.as_param() else { return false };
    let own = facts.accesses.iter().filter_map(index).filter(|index| index.base.as_deref() == Some(base));
    own.into_iter().any(|index| index.poly.has(&Atom::Param(block.into())))
}

/// Whether a size consists of compile-time parameters.
fn is_constant(kernel: &Kernel, size: &Poly) -> bool {
    !size.any(|atom| match atom {
        Atom::Param(name) => kernel.param(name).is_none_or(|param| !param.constexpr),
        _ => true,
    })
}

/// The first lane that counts from the same start and is as long as this one: both hold the same numbers.
fn first_alike(facts: &KernelAnalysis, lane: u32) -> u32 {
    let Some(own) = facts.lanes.get(lane as usize) else { return lane };
    let first = facts.lanes.iter().position(|other| other.start == own.start && other.size == own.size);
    first.and_then(|first| u32::try_from(first).ok()).unwrap_or(lane)
}

/// The polynomial with one atom for all lanes that hold the same numbers; `None` where it has two such lanes.
fn same_lanes(facts: &KernelAnalysis, poly: &Poly) -> Option<Poly> {
    let mut seen: Vec<(u32, u32)> = Vec::new();
    let renamed = poly.renamed(&mut |atom| {
        let Atom::Lane(lane) = atom else { return atom.clone() };
        let first = first_alike(facts, *lane);
        seen.push((*lane, first));
        Atom::Lane(first)
    })?;
    let is_clear = seen.iter().all(|(lane, first)| seen.iter().all(|(other, to)| to != first || other == lane));
    is_clear.then_some(renamed)
}

/// Whether an offset is `stride · number` and something that does not vary with the lane.
fn holds(offset: &Poly, number: &Poly, lane: u32) -> bool {
    let Some(stride) = offset.factor_of(&Atom::Lane(lane)) else { return false };
    let Some(rest) = number.times(&stride).and_then(|scaled| offset.plus(&scaled, -1)) else { return false };
    // A lane alone may be a part of a longer number: `program · BLOCK + lane`.
    let is_whole = number.terms.len() > 1 || !rest.any(|atom| matches!(atom, Atom::Loop(_) | Atom::Other(_)));
    is_whole && rest.terms.len() + number.terms.len() == offset.terms.len() && number.has(&Atom::Lane(lane))
}

/// Whether the tensor behind a pointer has the given size along the axis with the given stride.
fn has_size(known: &AnalysedLaunch<'_, '_>, base: &str, stride: &Poly, size: &HostNumber) -> bool {
    let Some(tensor) = known.tensor(base) else { return false };
    let passed = match (stride.as_param(), stride.as_number()) {
        (Some(name), _) => known.number(name),
        (_, Some(number)) => HostNumber::Known(number),
        _ => return false,
    };
    let rank = tensor.shape.as_ref().map_or(0, Vec::len);
    let along = |axis: i128| tensor.stride(axis).is(&passed) && tensor.size(axis).is(size);
    (0..rank).filter_map(|axis| i128::try_from(axis).ok()).any(along)
}

fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    let index = index(access)?;
    index.base.as_ref()?;
    lanes_in(index).into_iter().find_map(|lane| {
        let block = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        let (condition, size, place, why) = match tiled_by(facts, &index.poly, lane) {
            Some(axis) => {
                let (condition, size) = bounded(facts, &index.poly, &global(facts, axis, lane)?)?;
                (condition, size, covers(context, kernel, axis, size, &block)?, "the grid rounds up")
            }
            None => {
                let steps = |atom: &Atom| matches!(atom, Atom::Loop(_) | Atom::Other(_));
                if index.poly.any(steps) {
                    return None;
                }
                let (condition, size) = bounded(facts, &index.poly, &Poly::atom(Atom::Lane(lane)))?;
                (condition, size, rounds_up(context, kernel, size, block.as_param()?)?, "the tile is rounded up")
            }
        };
        let message = format!(
            "without a mask this {} past the end when `{size}` is not a multiple of {block}; other accesses mask the same lanes with `< {size}`",
            verb(access)
        );
        Some(
            Diagnostic::new(&RULE.declaration, access.span, message)
                .with_related(condition.span, "the mask of another access")
                .with_related(place, why),
        )
    })
}

/// The span where a launch passes `triton.next_power_of_2` of the parameter `size` for the parameter `block`.
fn rounds_up(context: &RuleContext<'_>, kernel: &Kernel, size: &str, block: &str) -> Option<Span> {
    context.launches_of(kernel).find_map(|known| {
        let HostNumber::Operation(rounded) = known.number(block) else { return None };
        let is_of_size = rounded.op == HostOperator::NextPowerOfTwo && rounded.left.is(&known.number(size));
        is_of_size.then(|| known.argument(block))?.map(|argument| argument.span)
    })
}

/// The condition `whole < parameter` in the mask of another access to the same offsets. A tensor with another layout
/// may be long enough, so its accesses do not count.
fn bounded<'f>(facts: &'f KernelAnalysis, offset: &Poly, whole: &Poly) -> Option<(&'f IndexComparison, &'f str)> {
    let alike = facts.accesses.iter().filter(|other| index(other).is_some_and(|index| index.poly == *offset));
    alike.filter_map(guard).flat_map(|guard| &guard.conditions).find_map(|condition| {
        let (left, right) = upper_bound(condition)?;
        (left == whole).then_some((condition, right.as_param()?))
    })
}
