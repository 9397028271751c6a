//! M027: a mask whose axes are those of the pointer in exchange.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::{Atom, IndexComparison, Poly};

use super::memory_accesses::{index, lanes_of, report, verb};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M027",
        name: "transposed-mask",
        severity: Severity::Warning,
        summary: "a mask that compares along one axis what the pointer counts along another",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses whose mask compares a `tl.arange` along one axis, while the pointer counts the same `tl.arange` along another.

## Why is this bad?
Each element is then kept or left out by the numbers of the element that lies across the diagonal. In the last tiles, elements inside of the tensor
are left out, and others are read or written past its end.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(y + column[:, None] * rows + row[None, :], tl.trans(value), mask=mask)
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    mask = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(y + column[:, None] * rows + row[None, :], tl.trans(value), mask=mask)
```

## Sources
[ao](https://github.com/pytorch/ao), `_to_fp8_row_major_t`, which stored the transposed tile under the mask of the tile.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |_, facts, access| look(facts, access));
}

fn look(facts: &KernelAnalysis, access: &MemoryAccess) -> Option<Diagnostic> {
    let (condition, of_mask, of_pointer) = mismatch(facts, access)?;
    let message = format!(
        "the mask compares along axis {of_mask} what the pointer counts along axis {of_pointer}: this {} other elements than the mask is about",
        verb(access)
    );
    // A mask with a name is wrong where it is made, unless another access uses it as it is meant.
    let is_right_elsewhere = facts
        .accesses
        .iter()
        .any(|other| other.span != access.span && other.mask == access.mask && mismatch(facts, other).is_none());
    let Mask::Tile(tile) = &access.mask else { return None };
    let guard = tile.about.guard()?;
    let made = facts.masks.iter().find(|mask| *mask.guard == *guard).filter(|_| !is_right_elsewhere);
    let found = Diagnostic::new(&RULE.declaration, made.map_or(access.span, |mask| mask.span), message);
    let found = if made.is_some() { found.with_related(access.span, "used here") } else { found };
    Some(found.with_related(condition.span, "compared along the other axis"))
}

/// A condition of an access's mask about lanes that the pointer counts along another axis, with the axes of both.
fn mismatch<'f>(facts: &KernelAnalysis, access: &'f MemoryAccess) -> Option<(&'f IndexComparison, usize, usize)> {
    let index = index(access)?;
    let Mask::Tile(tile) = &access.mask else { return None };
    let along = |axes: &[Vec<u32>], lane: u32| -> Option<usize> {
        // Axes are counted from the last one, with which broadcasting begins.
        axes.iter().rev().position(|lanes| lanes.contains(&lane))
    };
    tile.about.guard()?.conditions.iter().find_map(|condition| {
        lanes_of([condition]).into_iter().find_map(|lane| {
            let (of_mask, of_pointer) = (along(&condition.axes, lane)?, along(&index.axes, lane)?);
            let beside = index.axes.iter().rev().nth(of_mask).map_or(&[][..], Vec::as_slice);
            let is_alike = beside.iter().any(|other| counts(facts, &index.poly, &condition.left, lane, *other));
            (of_mask != of_pointer && !is_alike)
                .then(|| (condition, condition.axes.len() - 1 - of_mask, index.axes.len() - 1 - of_pointer))
        })
    })
}

/// Whether a pointer counts the same numbers as a condition, by another `tl.arange` of the same length.
fn counts(facts: &KernelAnalysis, pointer: &Poly, number: &Poly, lane: u32, other: u32) -> bool {
    let (Some(own), Some(alike)) = (facts.lanes.get(lane as usize), facts.lanes.get(other as usize)) else {
        return false;
    };
    let renamed = number.renamed(&mut |atom| if *atom == Atom::Lane(lane) { Atom::Lane(other) } else { atom.clone() });
    let (Some(number), Some(stride)) = (renamed, pointer.factor_of(&Atom::Lane(other))) else { return false };
    let rest = number.times(&stride).and_then(|scaled| pointer.plus(&scaled, -1));
    own.start == alike.start
        && own.size == alike.size
        && rest.is_some_and(|rest| rest.terms.len() + number.terms.len() == pointer.terms.len())
}
