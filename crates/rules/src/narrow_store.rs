//! N014: a count or a product that is stored in a type that is too narrow.

use model::analysis::types::AbstractValue;
use model::analysis::types::LaneType;
use model::analysis::types::access::{AccessKind, MemoryAccess};
use model::analysis::types::dtype::Dtype;
use model::kernel::Kernel;
use model::kernel::ast::{Expr, StmtKind, walk_statements};

use super::memory_accesses::{call_at, report};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N014",
        name: "narrow-store",
        severity: Severity::Warning,
        summary: "a sum of integers that is stored in 8 bits, or as a truth value, of which the low byte is kept",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds stores of integers of 32 bits and more that come from `tl.sum` or `tl.dot`, to tensors of `int8`, `uint8` or `bool`, without a cast.

## Why is this bad?
A store keeps the low byte. A product of `int8` matrices reaches far beyond 127, and a count of 256 is stored as 0, which is `False`.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def any_positive(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    count = tl.sum((value > 0).to(tl.int32), axis=0)
    tl.store(y + row, count)
  # ^^^^^^^^^^^^^^^^^^^^^^^^


def run(x):
    rows, n = x.shape
    y = torch.empty(rows, device=x.device, dtype=torch.bool)
    any_positive[(rows,)](x, y, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return y
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def any_positive(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    count = tl.sum((value > 0).to(tl.int32), axis=0)
    tl.store(y + row, count > 0)


def run(x):
    rows, n = x.shape
    y = torch.empty(rows, device=x.device, dtype=torch.bool)
    any_positive[(rows,)](x, y, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return y
```

## When it is silent
When the element type of the tensor is not known from a launch, and when the value is cast before.

## Sources
[triton#9991](https://github.com/triton-lang/triton/issues/9991), [triton#2296](https://github.com/triton-lang/triton/issues/2296).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(context, findings, |kernel, _, access| look(context, kernel, access));
}

fn look(context: &RuleContext<'_>, kernel: &Kernel, access: &MemoryAccess) -> Option<Diagnostic> {
    let LaneType::Pointer(Some(to)) = access.pointer.element else { return None };
    let AbstractValue::Tile(value) = &access.value else { return None };
    let from = value.element.number()?;
    let is_narrow = matches!(to, Dtype::Int1 | Dtype::Int8 | Dtype::UInt8);
    if access.kind != AccessKind::Store || !is_narrow || !from.is_int() || from.bits() < 32 {
        return None;
    }
    let stored = call_at(context, access.span)?.argument("value", Some(1))?;
    if !is_sum(context, kernel, stored) {
        return None;
    }
    let message = match to {
        Dtype::Int1 => {
            "the low byte of this sum is stored: a multiple of 256 becomes `False`; store whether it is greater than 0"
                .to_owned()
        }
        _ => format!(
            "the low byte of this sum is stored, since the tensor holds `{to}`: give it a wider type, or scale the sum"
        ),
    };
    Some(Diagnostic::new(&RULE.declaration, access.span, message))
}

/// Whether an expression, or something that its names were assigned, is a sum or a product of tiles.
fn is_sum(context: &RuleContext<'_>, kernel: &Kernel, expr: &Expr) -> bool {
    let (mut names, mut found): (Vec<&str>, bool) = (Vec::new(), false);
    let look = |expr: &Expr, found: &mut bool| {
        let mut more = Vec::new();
        expr.walk(&mut |part| {
            if let Some(call) = part.as_call()
                && let Some(member) = context.module.language_member(kernel, &call.func)
            {
                *found |= matches!(member.as_str(), "sum" | "dot" | "cumsum");
            }
            more.extend(part.as_name().map(str::to_owned));
        });
        more
    };
    let mut waiting = look(expr, &mut found);
    while let Some(name) = waiting.pop() {
        let Some(name) = kernel.locals.get(name.as_str()).map(String::as_str).filter(|name| !names.contains(name))
        else {
            continue;
        };
        names.push(name);
        walk_statements(&kernel.body, &mut |stmt| {
            let value = match &stmt.kind {
                StmtKind::Assign { value: Some(value), .. } | StmtKind::AugAssign { value, .. } => value,
                _ => return,
            };
            if stmt.targets().iter().any(|target| target.as_name() == Some(name)) {
                waiting.extend(look(value, &mut found));
            }
        });
    }
    found
}
