//! N013: a division by a largest magnitude, which may be 0.

use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};

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

```python
import triton
import triton.language as tl


@triton.jit
def quantize(x, y, scales, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(value), axis=0) / 127.0
    result = (value / scale).to(tl.int8)
    tl.store(y + offsets, result, mask=offsets < n)
    tl.store(scales + pid, scale)
```

## When it is silent
When something is added to the scale, when it is limited or chosen (`tl.maximum`, `tl.clamp`, `tl.where`), when the quotient is chosen with `tl.where`, and
when the kernel compares anything with 0. When the kernel clamps a number or makes integers: then NaN becomes some code, which the scale 0
makes 0 again.

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
            is_guarded |= is_coded(reader, expr);
            if let ExprKind::Compare { left, rest } = &expr.kind {
                let is_zero = |side: &Expr| matches!(side.kind, ExprKind::Int(0) | ExprKind::Float(0.0));
                is_guarded |= is_zero(left) || rest.iter().any(|(_, right)| is_zero(right));
            }
        });
        if is_guarded { Vec::new() } else { found }
    }));
}

/// Whether an expression is clamped or becomes an integer: NaN then becomes some code, which the scale 0 makes 0 again.
fn is_coded(reader: &FormulaReader<'_>, expr: &Expr) -> bool {
    let Some(call) = expr.as_call() else { return false };
    let is_integer = |dtype: &Expr| {
        let member = reader.module.language_member(reader.kernel, dtype);
        member.is_some_and(|member| member.starts_with("int") || member.starts_with("uint"))
    };
    let casts_to = |at: usize| call.args.get(at).is_some_and(|dtype| is_integer(&dtype.value));
    match (reader.member(call), &call.func.kind) {
        (Some(member), _) => {
            let of_quotient = || call.args.first().is_some_and(|input| divides(reader, &input.value, 0));
            member == "clamp" || member == "cast" && casts_to(1) && of_quotient()
        }
        (None, ExprKind::Attribute { value, name, .. }) => {
            name == "clamp" || name == "to" && casts_to(0) && divides(reader, value, 0)
        }
        (None, _) => false,
    }
}

/// Whether an expression, or some value of a name in it, has a quotient.
fn divides(reader: &FormulaReader<'_>, expr: &Expr, depth: usize) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Binary { op, .. } if op == "/"));
    if found || depth > 3 {
        return found;
    }
    let mut names = Vec::new();
    expr.walk(&mut |part| names.extend(part.as_name()));
    walk_statements(&reader.kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
            && !found
            && targets.iter().filter_map(Expr::as_name).any(|name| names.contains(&name))
        {
            found = divides(reader, value, depth + 1);
        }
    });
    found
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
