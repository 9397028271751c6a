//! N013: a division by a largest magnitude, which may be 0.

use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::formula_reader::{self, FormulaReader, MAX_DEPTH};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N013",
        name: "zero-scale",
        severity: Severity::Warning,
        summary: "a division by the largest magnitude of a tile, which is 0 where the tile is",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds divisions by `tl.max(tl.abs(x))`, scaled or not, where nothing keeps it from being 0.

## Why is this bad?
A tile of zeros, such as one of padding, has the scale 0. The quotient of its numbers is 0 / 0, which is NaN, and the inverse of the scale is infinite.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def quantize(x, y, scales, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(value), axis=0) / 448.0
    result = value / scale
    #        ^^^^^^^^^^^^^
    tl.store(y + offsets, result.to(tl.float8e4nv), mask=offsets < n)
    tl.store(scales + pid, scale)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def quantize(x, y, scales, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), axis=0), 1e-12) / 448.0
    result = value / scale
    tl.store(y + offsets, result.to(tl.float8e4nv), mask=offsets < n)
    tl.store(scales + pid, scale)
```

## When it is silent
When something is added to the scale, when it is limited or chosen (`tl.maximum`, `tl.clamp`, `tl.where`), when the quotient is chosen with `tl.where`, and
when the kernel compares anything with 0.

## Sources
[kernels-community#680](https://github.com/huggingface/kernels-community/issues/680).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("abs") && text.contains("max") && text.contains('/');
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let (mut found, mut is_guarded) = (Vec::new(), false);
        walk_expressions(&reader.kernel.body, &mut |expr| {
            found.extend(look(reader, expr));
            if let ExprKind::Compare { left, rest } = &expr.kind {
                let is_zero = |side: &Expr| matches!(side.kind, ExprKind::Int(0) | ExprKind::Float(0.0));
                is_guarded |= is_zero(left) || rest.iter().any(|(_, right)| is_zero(right));
            }
        });
        if is_guarded { Vec::new() } else { found }
    }));
}

fn look<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<Diagnostic> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return None };
    // A number divided by the scale alone is its inverse: infinite, and NaN with the zeros that it multiplies.
    if op != "/" || reader.contains(left, &|part| reader.call_of(part, &["where"]).is_some()) {
        return None;
    }
    let largest = largest(reader, right, 0)?;
    let message = "the largest magnitude of a tile of zeros is 0, and this is NaN or infinite: bound it from below, such as with \
                   `tl.maximum(…, 1e-12)`";
    Some(
        Diagnostic::new(&RULE.declaration, expr.span, message.to_owned())
            .with_related(largest.span, "0 where all numbers are"),
    )
}

/// The call `tl.max(tl.abs(…))` that an expression scales.
fn largest<'a>(reader: &FormulaReader<'a>, expr: &'a Expr, depth: usize) -> Option<&'a Expr> {
    if depth > MAX_DEPTH {
        return None;
    }
    let expr = reader.uncast(expr);
    match &expr.kind {
        ExprKind::Binary { op, left, right } => {
            let is_number = |side: &Expr| matches!(side.kind, ExprKind::Int(_) | ExprKind::Float(_));
            let is_constant = |side: &Expr| {
                is_number(side)
                    || side.as_name().is_some_and(|name| reader.kernel.param(name).is_some_and(|param| param.constexpr))
            };
            match op.as_str() {
                "/" if is_constant(right) => largest(reader, left, depth + 1),
                "*" if is_constant(right) => largest(reader, left, depth + 1),
                "*" if is_constant(left) => largest(reader, right, depth + 1),
                _ => None,
            }
        }
        _ => {
            let call = reader.call_of(expr, &["max"])?;
            let input = reader.definitions.behind(call.argument("input", Some(0))?);
            reader.call_of(input, &["abs"]).map(|_| expr)
        }
    }
}
