//! N010: an index that is computed in fewer than 32 bits.

use model::analysis::types::{AbstractValue, LaneType};
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;

use super::formula_reader::{FormulaReader, MAX_DEPTH};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N010",
        name: "narrow-index",
        severity: Severity::Warning,
        summary: "a product of a loaded index that is computed in 8 or 16 bits and wraps",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds products and shifts of an integer of 8 or 16 bits in the address of an access, whose result has no more bits.

## Why is this bad?
The product of two `int16` is an `int16`, which wraps beyond 32,767; the access then reads in front of the tensor. From Triton 3.2 on
a number in the source does not widen the other operand either: an `int16` times 128 wraps from 256 on.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def gather(x, rows, sizes, out, n, BLOCK: tl.constexpr):
    first = tl.load(rows + tl.program_id(0)) * tl.load(sizes)
    #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    value = tl.load(x + first * n + columns, mask=mask)
    tl.store(out + tl.program_id(0) * n + columns, value, mask=mask)


def run(x, rows, sizes):
    rows, sizes = rows.to(torch.int16), sizes.to(torch.int16)
    out = torch.empty((rows.numel(), 1024), device=x.device, dtype=x.dtype)
    gather[(rows.numel(),)](x, rows, sizes, out, 1024, BLOCK=1024)
    return out
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def gather(x, rows, sizes, out, n, BLOCK: tl.constexpr):
    first = tl.load(rows + tl.program_id(0)).to(tl.int32) * tl.load(sizes)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    value = tl.load(x + first * n + columns, mask=mask)
    tl.store(out + tl.program_id(0) * n + columns, value, mask=mask)


def run(x, rows, sizes):
    rows, sizes = rows.to(torch.int16), sizes.to(torch.int16)
    out = torch.empty((rows.numel(), 1024), device=x.device, dtype=x.dtype)
    gather[(rows.numel(),)](x, rows, sizes, out, 1024, BLOCK=1024)
    return out
```

## When it is silent
Where the type of the index is not known: it comes from a signature comment, from casts, and from the tensors that the launches of
the file pass.

## Sources
[stk#17](https://github.com/stanford-futuredata/stk/issues/17).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (at, kernel) in context.module.kernels.iter().enumerate() {
        if kernel.has_error || !context.mentions(kernel, &["load"]) || !may_be_narrow(context, at) {
            continue;
        }
        let reader = FormulaReader::new(context.module, kernel);
        let values = context.values(at);
        let mut addresses: Vec<&Expr> = Vec::new();
        walk_expressions(&kernel.body, &mut |expr| {
            let call = reader.call_of(expr, &["load", "store", "atomic_add"]);
            addresses.extend(call.and_then(|call| call.argument("pointer", Some(0))));
        });
        for address in addresses {
            each_part(&reader, address, 0, &mut |part| {
                let ExprKind::Binary { op, .. } = &part.kind else { return };
                let Some(AbstractValue::Tile(tile)) = values.get(&part.span) else { return };
                let LaneType::Number(number) = tile.element else { return };
                let is_narrow = number.is_int() && (8..32).contains(&number.bits());
                if is_narrow && matches!(op.as_str(), "*" | "<<") && !seen.contains(&part.span) {
                    seen.push(part.span);
                    let message =
                        format!("this index is computed in `{number}`, in which it wraps: cast it to `tl.int32` first");
                    findings.push(
                        Diagnostic::new(&RULE.declaration, part.span, message)
                            .with_related(address.span, "the address of this access"),
                    );
                }
            });
        }
    }
}

/// Whether a pointer of the kernel certainly points to integers of 8 or 16 bits: a cheap test before the analysis.
fn may_be_narrow(context: &RuleContext<'_>, at: usize) -> bool {
    context.facts()[at].accesses.iter().any(|access| match access.pointer.element {
        LaneType::Pointer(Some(number)) => number.is_int() && (8..32).contains(&number.bits()),
        _ => false,
    })
}

/// Calls `visit` on each part of a sum or product, through names that are assigned once.
fn each_part<'a>(reader: &FormulaReader<'a>, expr: &'a Expr, depth: usize, visit: &mut dyn FnMut(&'a Expr)) {
    if depth > MAX_DEPTH {
        return;
    }
    let expr = reader.definitions.behind(expr);
    visit(expr);
    match &expr.kind {
        ExprKind::Binary { left, right, .. } => {
            each_part(reader, left, depth + 1, visit);
            each_part(reader, right, depth + 1, visit);
        }
        ExprKind::Subscript { value, .. } => each_part(reader, value, depth + 1, visit),
        _ => {}
    }
}
