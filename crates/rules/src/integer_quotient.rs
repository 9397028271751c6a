//! N009: `/` between integers whose result is stored as an integer.

use model::analysis::types::access::{AccessKind, MemoryAccess};
use model::analysis::types::{AbstractValue, LaneType};
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::formula_reader::FormulaReader;
use super::memory_accesses::call_at;
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N009",
        name: "integer-quotient",
        severity: Severity::Warning,
        summary: "`/` between integers whose result becomes an integer again",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds quotients by `/` of two integers that are stored to a tensor of integers.

## Why is this bad?
`/` computes in fp32, which has 24 bits: large integers lose their last digits before the division, and the store cuts the
result, so that 1.9999999 becomes 1.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def ratio(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left = tl.load(x + offsets, mask=mask, other=0)
    right = tl.load(y + offsets, mask=mask, other=1)
    tl.store(out + offsets, left / right, mask=mask)
    #                       ^^^^^^^^^^^^


def run(n):
    x = torch.arange(n, device="cuda", dtype=torch.int64)
    y = torch.ones(n, device="cuda", dtype=torch.int64)
    out = torch.empty(n, device="cuda", dtype=torch.int64)
    ratio[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def ratio(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    left = tl.load(x + offsets, mask=mask, other=0)
    right = tl.load(y + offsets, mask=mask, other=1)
    tl.store(out + offsets, left // right, mask=mask)


def run(n):
    x = torch.arange(n, device="cuda", dtype=torch.int64)
    y = torch.ones(n, device="cuda", dtype=torch.int64)
    out = torch.empty(n, device="cuda", dtype=torch.int64)
    ratio[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
```

## When it is silent
Where the types are not known: they come from a signature comment, from casts, and from the tensors that the launches of the file
pass.

## Fix
Replaces `/` by `//`, which cuts towards zero in kernels.

## Sources
[triton#605](https://github.com/triton-lang/triton/issues/605).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (at, (kernel, facts)) in context.module.kernels.iter().zip(context.facts().iter()).enumerate() {
        if kernel.has_error || !context.source.slice(kernel.def_span).contains('/') {
            continue;
        }
        let is_of_integers = |access: &&MemoryAccess| match access.pointer.element {
            LaneType::Pointer(Some(to)) => access.kind == AccessKind::Store && to.is_int() && to.bits() > 1,
            _ => false,
        };
        let mut stores = facts.accesses.iter().filter(is_of_integers).peekable();
        if stores.peek().is_none() {
            continue;
        }
        let (reader, values) = (FormulaReader::new(context.module, kernel), context.values(at));
        for access in stores {
            let Some(value) = call_at(context, access.span).and_then(|call| call.argument("value", Some(1))) else {
                continue;
            };
            let value = reader.definitions.behind(value);
            let ExprKind::Binary { op, left, right } = &value.kind else { continue };
            let is_integer = |expr: &Expr| match values.get(&expr.span) {
                Some(AbstractValue::Tile(tile)) => {
                    matches!(tile.element, LaneType::Number(number) if number.is_int() && number.bits() > 1)
                }
                _ => expr.as_int().is_some(),
            };
            if op == "/" && is_integer(left) && is_integer(right) && !seen.contains(&value.span) {
                seen.push(value.span);
                findings.push(report(context, value, left, right, access.span));
            }
        }
    }
}

fn report(context: &RuleContext<'_>, value: &Expr, left: &Expr, right: &Expr, store: Span) -> Diagnostic {
    let message = "`/` divides integers in fp32, and the store cuts the result to an integer again: write `//`";
    let found = Diagnostic::new(&RULE.declaration, value.span, message.to_owned())
        .with_related(store, "stored as an integer here");
    let between = Span::new(left.span.end, right.span.start);
    match context.source.slice(between).find('/') {
        Some(at) => {
            let span = Span::new(between.start + at, between.start + at + 1);
            found.with_fix("Write `//`".to_owned(), vec![Edit { span, text: "//".to_owned() }])
        }
        None => found,
    }
}
