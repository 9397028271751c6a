//! N011: `log(1 + exp(x))`, which overflows.

use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N011",
        name: "overflowing-softplus",
        severity: Severity::Warning,
        summary: "`log(1 + exp(x))` of a number that may be large: infinite where the result is about x",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.log(1 + tl.exp(x))` where nothing limits `x` and no `tl.where` chooses another result for large ones.

## Why is this bad?
`exp` is infinite in fp32 above 88.7, and the logarithm of that is infinite, while the right result is almost `x`.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def softplus(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    result = tl.log(1.0 + tl.exp(value))
    #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, result, mask=offsets < n)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def softplus(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    result = tl.where(value > 20.0, value, tl.log(1.0 + tl.exp(value)))
    tl.store(y + offsets, result, mask=offsets < n)


@triton.jit
def stable(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    result = tl.maximum(value, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(value)))
    tl.store(y + offsets, result, mask=offsets < n)
```

## When it is silent
When the kernel uses `tl.where`, a maximum or a minimum anywhere near: on the result, or on the number. In a helper, whose callers may choose.

## Sources
[mamba](https://github.com/state-spaces/mamba), `_selective_scan_update_kernel`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("log") && text.contains("exp");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        if returns_value(reader.kernel) {
            return Vec::new();
        }
        let (mut found, mut chosen): (Vec<&Expr>, Vec<&Expr>) = (Vec::new(), Vec::new());
        walk_expressions(&reader.kernel.body, &mut |expr| {
            if softplus(reader, expr).is_some() {
                found.push(expr);
            }
            if reader.call_of(expr, &["where", "maximum", "minimum", "clamp"]).is_some()
                || matches!(expr.kind, ExprKind::IfExp { .. })
            {
                chosen.push(expr);
            }
        });
        found.retain(|expr| !chosen.iter().any(|choice| decides(reader, choice, expr)));
        let message = "`exp` is infinite above 88.7, and so is this, where the result is almost the number itself: choose that for large numbers, \
                       such as with `tl.where(x > 20, x, …)`";
        found.into_iter().map(|expr| Diagnostic::new(&RULE.declaration, expr.span, message.to_owned())).collect()
    }));
}

/// Whether a kernel is a helper that returns something, from which its callers may choose.
fn returns_value(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Return(Some(_))));
    found
}

/// The number in `log(1 + exp(number))`, where it may be large.
fn softplus<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<&'a Expr> {
    let call = reader.call_of(expr, &["log", "log2", "log1p"])?;
    let argument = reader.definitions.behind(&call.args.first()?.value);
    let power = match &argument.kind {
        ExprKind::Binary { op, left, right } if op == "+" => {
            let is_one = |side: &Expr| match &side.kind {
                ExprKind::Int(_) => side.as_int() == Some(1),
                ExprKind::Float(number) => *number == 1.0,
                _ => false,
            };
            match (is_one(left), is_one(right)) {
                (true, false) => right,
                (false, true) => left,
                _ => return None,
            }
        }
        _ if reader.member(call)? == "log1p" => argument,
        _ => return None,
    };
    let power = reader.call_of(reader.definitions.behind(power), &["exp", "exp2"])?;
    let number = &power.args.first()?.value;
    let is_limited = reader.contains(number, &|part| {
        reader.call_of(part, &["abs", "minimum", "maximum", "where", "clamp", "max", "min"]).is_some()
    });
    (!is_limited).then_some(number)
}

/// Whether a choice has the result as one of its parts, directly or by a name.
fn decides<'a>(reader: &FormulaReader<'a>, choice: &'a Expr, result: &'a Expr) -> bool {
    choice.span.contains(result.span) || reader.contains(choice, &|part| part.span == result.span)
}
