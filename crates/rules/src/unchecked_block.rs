//! M010: a block pointer without `boundary_check` that may exceed the bounds of its tensor.

use model::analysis::launches::promises_full_tiles;
use model::analysis::types::access::{AccessKind, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::memory_accesses::{covers, kernel_around, kernels};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M010",
        name: "unchecked-block",
        severity: Severity::Hint,
        summary: "a block pointer without `boundary_check` along an axis that the grid covers by rounding up",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds loads and stores through a block pointer, without `boundary_check`, whose offset along an axis is `program · BLOCK` of a
size that the launch covers with `triton.cdiv(size, BLOCK)` programs.

## Why is this bad?
`shape` alone checks nothing: without `boundary_check` the last block is read and written over the edge, unless the size is a
multiple of the block. If it always is, state this with an `assert` in the launching function, which disables this finding.

## Bad
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(y, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    value = tl.load(source)
    #       ^^^^^^^^^^^^^^^
    tl.store(target, value * 2, boundary_check=(0,))


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(y, shape=(n,), strides=(1,), offsets=(start,), block_shape=(BLOCK,), order=(0,))
    value = tl.load(source, boundary_check=(0,), padding_option="zero")
    tl.store(target, value * 2, boundary_check=(0,))


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)


def run_full(x, y):
    n = x.numel()
    assert n % 1024 == 0
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it is silent
When the block pointer is moved on or chosen in a branch, and when the host checks that a size is a multiple of a tile's. Block
pointers are gone in Triton 3.9: descriptors check always.

## Sources
[triton#2138](https://github.com/triton-lang/triton/issues/2138), [triton#1946](https://github.com/triton-lang/triton/issues/1946),
[triton-shared#203](https://github.com/microsoft/triton-shared/issues/203).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        let unchecked = |access: &&MemoryAccess| {
            access.is_block_pointer
                && access.is_checked == Some(false)
                && access.kind != AccessKind::Atomic
                && !access.is_uncertain
                && access.branches == 0
                && !access.is_after_return
        };
        for access in facts.accesses.iter().filter(unchecked) {
            if !seen.contains(&access.span)
                && kernel_around(context, access.span).is_some_and(|around| around.span == kernel.span)
                && let Some((made, size, grid)) = over_the_edge(context, kernel, access)
                && !context.is_for_other_compiler()
                && !promises_full_tiles(context.module, kernel)
            {
                seen.push(access.span);
                let message = format!(
                    "without `boundary_check` the last block goes over the edge when `{size}` is no multiple of the block; check the axis, or \
                     assert that it is one where the kernel is launched"
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, access.span, message)
                        .with_related(made, "the block pointer")
                        .with_related(grid, "the grid rounds up"),
                );
            }
        }
    }
}

/// The span where the block pointer is created, a size that its blocks may not divide, and the span of the grid.
fn over_the_edge<'c>(
    context: &RuleContext<'c>,
    kernel: &'c Kernel,
    access: &MemoryAccess,
) -> Option<(Span, &'c str, Span)> {
    let mut pointer: Option<&Expr> = None;
    walk_expressions(&kernel.body, &mut |expr| {
        if expr.span == access.span {
            pointer = expr.as_call().and_then(|call| call.argument("pointer", Some(0)));
        }
    });
    let made = only_value(kernel, pointer?.as_name()?)?;
    let call = made.as_call()?;
    let items = |name: &str, at: usize| list(call, name, at);
    let (shape, offsets, block) = (items("shape", 1)?, items("offsets", 3)?, items("block_shape", 4)?);
    let parts = shape.iter().zip(offsets).zip(block);
    parts.into_iter().find_map(|((size, offset), block)| {
        let (size, block) = (size.as_name()?, block.as_name()?);
        let axis = program_times(context, kernel, offset, block)?;
        if kernel.param(size).is_none_or(|param| param.constexpr) {
            return None;
        }
        let grid = covers(context, kernel, axis, size, &Poly::atom(Atom::Param(block.into())))?;
        Some((made.span, size, grid))
    })
}

fn list<'a>(call: &'a Call, name: &str, at: usize) -> Option<&'a [Expr]> {
    match &call.argument(name, Some(at))?.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => Some(items),
        _ => None,
    }
}

/// The value of a name that the kernel assigns once.
fn only_value<'a>(kernel: &'a Kernel, name: &str) -> Option<&'a Expr> {
    let mut values: Vec<Option<&Expr>> = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value, .. } => {
            for target in targets {
                if target.as_name() == Some(name) {
                    values.push(value.as_ref());
                } else {
                    target.walk(&mut |inner| values.extend((inner.as_name() == Some(name)).then_some(None)));
                }
            }
        }
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            target.walk(&mut |inner| values.extend((inner.as_name() == Some(name)).then_some(None)));
        }
        _ => {}
    });
    match values.as_slice() {
        [Some(value)] if kernel.param(name).is_none() => Some(value),
        _ => None,
    }
}

/// The axis of `tl.program_id(axis) * block`.
fn program_times(context: &RuleContext<'_>, kernel: &Kernel, expr: &Expr, block: &str) -> Option<u8> {
    let value = match expr.as_name() {
        Some(name) => only_value(kernel, name)?,
        None => expr,
    };
    let ExprKind::Binary { op, left, right } = &value.kind else { return None };
    let program = match (left.as_name() == Some(block), right.as_name() == Some(block)) {
        (false, true) => left.as_ref(),
        (true, false) => right.as_ref(),
        _ => return None,
    };
    let program = match program.as_name() {
        Some(name) => only_value(kernel, name)?,
        None => program,
    };
    let call = program.as_call().filter(|_| op == "*")?;
    let is_program = context.module.language_member(kernel, &call.func).as_deref() == Some("program_id");
    let axis = call.argument("axis", Some(0)).and_then(Expr::as_int).filter(|_| is_program)?;
    u8::try_from(axis).ok()
}
