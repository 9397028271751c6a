//! N012: a difference of narrow unsigned integers that is used as a signed number.

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{AbstractValue, Const};
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N012",
        name: "unsigned-difference",
        severity: Severity::Warning,
        summary: "a number is subtracted from 8 or 16 unsigned bits before they are widened: negative results wrap",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds the difference of a tile of `uint8` or `uint16` and a constant that is cast to a float or a wider integer afterwards.

## Why is this bad?
The difference has the narrow unsigned type: `3 - 127` is 132 in eight bits. The cast comes too late.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BIAS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + offsets, mask=offsets < n, other=0).to(tl.uint8, bitcast=True)
    exponent = bits - 127
    #          ^^^^^^^^^^
    tl.store(y + offsets, tl.exp2(exponent.to(tl.float32)), mask=offsets < n)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BIAS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + offsets, mask=offsets < n, other=0).to(tl.uint8, bitcast=True)
    exponent = bits.to(tl.int32) - 127
    tl.store(y + offsets, tl.exp2(exponent.to(tl.float32)), mask=offsets < n)
```

## When it is silent
When the type of the tile is not certain, and when the result is cast to a signed type of the same width, which undoes the wrapping.

## Sources
[FBGEMM](https://github.com/pytorch/FBGEMM), `_kernel_dequantize_mx4`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains(".to(") && text.contains(" - ");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let Some(values) = reader.values(context) else { return Vec::new() };
        let number = |expr: &Expr| match values.get(&expr.span) {
            Some(AbstractValue::Tile(tile)) => tile.element.number(),
            _ => None,
        };
        let unsigned = |expr: &'_ _| {
            let behind = last_before(reader, expr);
            let of = number(expr).or_else(|| cast(reader, behind).map(|(_, to)| to));
            of.filter(|of| of.is_int() && !of.is_signed() && matches!(of.bits(), 8 | 16))
        };
        let constant = |expr: &Expr| match values.get(&expr.span) {
            Some(AbstractValue::Const(Const::Int(number))) => *number > 0,
            Some(AbstractValue::Const(Const::Symbol(_))) => true,
            _ => false,
        };
        let mut casts = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            casts.extend(cast(reader, expr).map(|(operand, to)| (expr, operand, to)));
        });
        let mut found = Vec::new();
        for (cast, operand, to) in casts {
            let difference = last_before(reader, operand);
            let ExprKind::Binary { op, left, right } = &difference.kind else { continue };
            if op != "-" || !constant(right) {
                continue;
            }
            let Some(narrow) = unsigned(left) else { continue };
            if to.is_float() || to.bits() > narrow.bits() {
                let message = format!(
                    "this is computed in `{narrow}`, where a negative difference wraps to a large number, and widened too late: cast the \
                     left side first"
                );
                let found_here = Diagnostic::new(&RULE.declaration, difference.span, message);
                found.push(found_here.with_related(cast.span, "widened here"));
            }
        }
        found
    }));
}

/// The operand and the type of `x.to(type)`.
fn cast<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<(&'a Expr, Dtype)> {
    let call = expr.as_call()?;
    let ExprKind::Attribute { value, name, .. } = &call.func.kind else { return None };
    if name != "to" || reader.member(call).is_some() {
        return None;
    }
    let to = reader.module.language_member(reader.kernel, call.argument("dtype", Some(0))?)?;
    Some((value, Dtype::of_member(&to)?))
}

/// What a name was last assigned above its use; any other expression itself.
fn last_before<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> &'a Expr {
    let Some(name) = expr.as_name() else { return expr };
    let mut last = expr;
    walk_statements(&reader.kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
            && stmt.span.end <= expr.span.start
            && targets.iter().any(|target| target.as_name() == Some(name))
        {
            last = value;
        }
    });
    last
}
