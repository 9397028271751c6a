//! P004: a matrix product whose programs take the tiles row by row.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Division};
use model::analysis::types::index::{Atom, Poly};
use model::kernel::Kernel;
use model::kernel::ast::walk_expressions;
use model::syntax::Span;

use super::memory_accesses::{depends_on_program, index, kernels};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P004",
        name: "unswizzled-tiles",
        severity: Severity::Hint,
        summary: "a matrix product whose programs take the tiles row by row",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds kernels with `tl.dot` in a loop that make the row and the column of their tile from one program number with `//` and `%`, and
nothing more.

## Why is this bad?
Programs that run at the same time then share one row of tiles of the left matrix and all of the right one, which does not
fit into the L2 cache for large matrices. Taking the tiles in groups of a few rows lets them share both.

"Optimize this kernel" tries other tile sizes, warps and stages; the order of the tiles is changed by hand.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    program = tl.program_id(0)
    tiles = tl.cdiv(n, BLOCK)
    row = program // tiles
    #     ^^^^^^^^^^^^^^^^
    column = program % tiles
    rows = row * BLOCK + tl.arange(0, BLOCK)
    columns = column * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, STEP):
        step = start + tl.arange(0, STEP)
        left = tl.load(a + rows[:, None] * n + step[None, :], mask=(rows < n)[:, None] & (step < n)[None, :], other=0.0)
        right = tl.load(b + step[:, None] * n + columns[None, :], mask=(step < n)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows < n)[:, None] & (columns < n)[None, :])


def run(a, b, c, block):
    n = a.shape[0]
    product[(triton.cdiv(n, block) ** 2,)](a, b, c, n, BLOCK=block, STEP=block)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, BLOCK: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    tiles = tl.cdiv(n, BLOCK)
    row, column = tl.swizzle2d(program // tiles, program % tiles, tiles, tiles, GROUP)
    rows = row * BLOCK + tl.arange(0, BLOCK)
    columns = column * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, STEP):
        step = start + tl.arange(0, STEP)
        left = tl.load(a + rows[:, None] * n + step[None, :], mask=(rows < n)[:, None] & (step < n)[None, :], other=0.0)
        right = tl.load(b + step[:, None] * n + columns[None, :], mask=(step < n)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows < n)[:, None] & (columns < n)[None, :])


def run(a, b, c, block):
    n = a.shape[0]
    product[(triton.cdiv(n, block) ** 2,)](a, b, c, n, BLOCK=block, STEP=block, GROUP=8)
```

## Sources
[Matrix multiplication, a tutorial of Triton](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html),
section "L2 Cache Optimizations".
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        let Some((row, column)) = split(facts) else { continue };
        let makes_tiles =
            facts.accesses.iter().filter(|access| access.kind == AccessKind::Store).filter_map(index).any(|index| {
                let lanes: Vec<u32> = index.axes.iter().flatten().copied().collect();
                let moves = |atom: &Atom| lanes.iter().any(|lane| moves(facts, &index.poly, atom, *lane));
                moves(&named(row)) && moves(&named(column))
            });
        let in_loop =
            facts.accesses.iter().filter(|access| access.kind == AccessKind::Load && !access.loops.is_empty()).count()
                >= 2;
        if makes_tiles
            && in_loop
            && !facts.products.is_empty()
            && !seen.contains(&row.span)
            && !orders(context, kernel)
            && !context.is_for_other_compiler()
        {
            seen.push(row.span);
            let message = "programs take the tiles row by row, so that those which run together share little in the L2 cache; take them in \
                           groups of rows (`tl.swizzle2d`)";
            findings.push(
                Diagnostic::new(&RULE.declaration, row.span, message)
                    .with_related(column.span, "the column of the tile"),
            );
        }
    }
}

/// The `//` and the `%` of the program index, where the kernel has no others.
fn split(facts: &KernelAnalysis) -> Option<(&Division, &Division)> {
    let program = Poly::atom(Atom::Program(0));
    let of_program: Vec<&Division> =
        facts.divisions.iter().filter(|division| depends_on_program(&division.left.poly)).collect();
    let [first, second] = of_program.as_slice() else { return None };
    let fits = |division: &Division| {
        division.left.poly == program && division.right.as_ref().is_some_and(|right| right.as_number().is_none())
    };
    if !fits(first) || !fits(second) || first.right != second.right {
        return None;
    }
    match (first.op.as_str(), second.op.as_str()) {
        ("//", "%") => Some((first, second)),
        ("%", "//") => Some((second, first)),
        _ => None,
    }
}

/// The result of a division as an atom.
fn named(division: &Division) -> Atom {
    let right = division.right.as_ref().map(Poly::to_string).unwrap_or_default();
    Atom::Param(format!("({} {} {right})", division.left.poly, division.op).into())
}

/// Whether `atom` moves the lane by whole tiles.
fn moves(facts: &KernelAnalysis, poly: &Poly, atom: &Atom, lane: u32) -> bool {
    let tile = || {
        let size = Poly::of_dim(&facts.lanes.get(lane as usize)?.size)?;
        poly.factor_of(&Atom::Lane(lane))?.times(&size)
    };
    tile().is_some_and(|tile| poly.factor_of(atom) == Some(tile))
}

/// Whether the kernel calls a function that orders its tiles.
fn orders(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        if let Some(call) = expr.as_call() {
            found |= call.func.dotted().is_some_and(|path| path.last().is_some_and(|name| name.contains("swizzle")));
        }
    });
    found || context.source.slice(kernel.def_span).contains("GROUP")
}
