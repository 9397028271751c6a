//! N008: a float that is cast to eight bits without rounding or bounds.

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{AbstractValue, Const, LaneType};
use model::kernel::ast::{Call, Expr, ExprKind};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N008",
        name: "wrapping-cast",
        severity: Severity::Warning,
        summary: "a quotient that is cast to eight bits and neither rounded nor kept in range",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `(x / scale).to(tl.int8)`, and the same for `uint8` and products, where nothing on the way rounds the value or keeps it in
range.

## Why is this bad?
The cast cuts towards zero, which makes the error of quantization twice as large and biased. Beyond the range it wraps: 128.2
becomes -128.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def quantize(x, scale, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    factor = tl.load(scale)
    tl.store(y + offsets, (value / factor).to(tl.int8), mask=mask)
    #                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def quantize(x, scale, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    value = value / tl.load(scale)
    value = tl.where(value >= 0, tl.floor(value + 0.5), tl.ceil(value - 0.5))
    value = tl.minimum(tl.maximum(value, -127.0), 127.0)
    tl.store(y + offsets, value.to(tl.int8), mask=mask)
```

## When it is silent
When the value was rounded, clamped or chosen on the way, when a maximum of the same values is its divisor and it is rounded, and when
anything on the way is not followed.

## Sources
[aiter#4637](https://github.com/ROCm/aiter/issues/4637),
[leetgpu-challenges#118](https://github.com/AlphaGPU/leetgpu-challenges/issues/118).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("int8") && (text.contains('/') || text.contains('*'));
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        model::kernel::ast::walk_expressions(&reader.kernel.body, &mut |expr| {
            if let Some((operand, to)) = cast(reader, expr)
                && is_unbounded(context, reader, operand)
            {
                let message = format!(
                    "this cast to `{to}` cuts towards zero and wraps beyond the range: round the value first, and keep it \
                     in range with `tl.clamp`"
                );
                found.push(Diagnostic::new(&RULE.declaration, expr.span, message));
            }
        });
        found
    }));
}

/// The operand of `x.to(tl.int8)` or `tl.cast(x, tl.int8)`, with the type.
fn cast<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<(&'a Expr, Dtype)> {
    let call = expr.as_call()?;
    let (operand, to) = match &call.func.kind {
        ExprKind::Attribute { value, name, .. } if name == "to" => (value.as_ref(), call.argument("dtype", Some(0))?),
        _ => {
            let call = reader.call_of(expr, &["cast"])?;
            (call.argument("input", Some(0))?, call.argument("dtype", Some(1))?)
        }
    };
    if is_bitcast(call) {
        return None;
    }
    let name = reader.module.language_member(reader.kernel, to)?;
    let to = Dtype::of_member(&name).filter(|to| matches!(to, Dtype::Int8 | Dtype::UInt8))?;
    Some((operand, to))
}

fn is_bitcast(call: &Call) -> bool {
    call.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == "bitcast"))
}

/// Whether a value is a quotient or product of floats that nothing bounds.
fn is_unbounded<'a>(context: &RuleContext<'a>, reader: &FormulaReader<'a>, operand: &'a Expr) -> bool {
    let operand = reader.definitions.behind(operand);
    let ExprKind::Binary { op, left, right } = &operand.kind else { return false };
    if !matches!(op.as_str(), "/" | "*") {
        return false;
    }
    let Some(values) = reader.values(context) else { return false };
    let is_float = match values.get(&operand.span) {
        Some(AbstractValue::Tile(tile)) => matches!(tile.element, LaneType::Number(number) if number.is_float()),
        _ => false,
    };
    // Bits and codes are multiplied as well; only what was loaded as a float is quantized.
    (op == "/" || is_float)
        && [left, right].iter().all(|part| is_free(reader, part, 0))
        && !is_constant(&values.get(&right.span))
}

fn is_constant(value: &Option<&AbstractValue<'_>>) -> bool {
    matches!(value, Some(AbstractValue::Const(Const::Int(_) | Const::Float(_))))
}

/// Whether nothing in an expression rounds a value or keeps it in range. A loaded value is free.
fn is_free(reader: &FormulaReader<'_>, expr: &Expr, depth: usize) -> bool {
    if depth > formula_reader::MAX_DEPTH {
        return false;
    }
    let of = |part: &Expr| is_free(reader, part, depth + 1);
    match &expr.kind {
        ExprKind::Name(name) => match reader.definitions.only(name) {
            Some(value) => of(value),
            None => reader.kernel.param(name).is_some(),
        },
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::Unary { operand, .. } => of(operand),
        ExprKind::Binary { op, left, right } => matches!(op.as_str(), "+" | "-" | "*" | "/") && of(left) && of(right),
        ExprKind::Subscript { value, .. } => of(value),
        ExprKind::Call(call) => match &call.func.kind {
            ExprKind::Attribute { value, name, .. } if name == "to" && !is_bitcast(call) => of(value),
            _ => reader.call_of(expr, &["load"]).is_some(),
        },
        _ => false,
    }
}
