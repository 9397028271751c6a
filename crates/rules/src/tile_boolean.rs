//! L026: `and` and `or` of tiles.

use model::analysis::definitions::Definitions;
use model::analysis::types::AbstractValue;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;

use super::context::SpanValues;
use super::formula_reader::MAX_DEPTH;
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L026",
        name: "tile-boolean",
        severity: Severity::Warning,
        summary: "`and` or `or` of tiles, which Triton deprecates in favour of `&` and `|`",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds `and` and `or` with a tile on one side.

## Why is this bad?
Python's `and` decides about one value, and a tile has many. Triton computes both sides and combines them lane by lane, with a warning that this will go;
releases differ in which operands they take.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, first, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n and offsets >= first
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, first, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offsets < n) & (offsets >= first)
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)
```

## Fix
Writes `&` or `|` with the parentheses that they need.

## Sources
[lmdeploy](https://github.com/InternLM/lmdeploy), where attention stopped working with Triton 3.4.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let found = context.kept_in_kernels(RULE.declaration.code, |at| found(context, at));
    if !found.is_empty() && !context.is_for_other_compiler() {
        findings.extend(found);
    }
}

/// The findings in the kernel with this index.
fn found(context: &RuleContext<'_>, at: usize) -> Vec<Diagnostic> {
    let kernel = &context.module.kernels[at];
    if kernel.has_error || !context.mentions(kernel, &[" and ", " or ", ") and", ") or"]) {
        return Vec::new();
    }
    let mut parts = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        if let ExprKind::BoolOp { op, left, right } = &expr.kind {
            parts.push((expr, op.as_str(), left.as_ref(), right.as_ref()));
        }
    });
    if parts.is_empty() {
        return Vec::new();
    }
    let (values, definitions) = (context.values(at), Definitions::of(kernel));
    let is_tile = |side: &Expr| is_tile(&values, &definitions, side, 0);
    let mut found: Vec<Diagnostic> = Vec::new();
    for (expr, op, left, right) in parts {
        let is_within = found.iter().any(|outer| outer.span.contains(expr.span));
        if !is_within && (is_tile(left) || is_tile(right)) {
            found.push(report(context, expr, op, left, right));
        }
    }
    found
}

/// Whether an expression certainly is a tile: its value is known to be one, or something in it is, since a tile stays one in
/// comparisons and arithmetic.
fn is_tile(values: &SpanValues, definitions: &Definitions<'_>, expr: &Expr, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let within = |part: &Expr| is_tile(values, definitions, part, depth + 1);
    if let Some(AbstractValue::Tile(tile)) = values.get(&expr.span)
        && tile.is_block()
    {
        return true;
    }
    match &expr.kind {
        ExprKind::Compare { left, rest } => within(left) || rest.iter().any(|(_, right)| within(right)),
        ExprKind::Binary { left, right, .. } | ExprKind::BoolOp { left, right, .. } => within(left) || within(right),
        ExprKind::Unary { operand, .. } => within(operand),
        ExprKind::Name(name) => definitions.only(name).is_some_and(within),
        // `mask[:, None]`
        ExprKind::Subscript { index, .. } => index.iter().any(|index| index.kind == ExprKind::None),
        _ => false,
    }
}

fn report(context: &RuleContext<'_>, expr: &Expr, op: &str, left: &Expr, right: &Expr) -> Diagnostic {
    let bits = if op == "and" { "&" } else { "|" };
    let message = format!("`{op}` of a tile works lane by lane, like `{bits}`, and is deprecated: write `{bits}`");
    let mut found = Diagnostic::new(&RULE.declaration, expr.span, message);
    let between = Span::new(left.span.end, right.span.start);
    // A side that is in parentheses keeps them: they are part of the text in between.
    if let Some((before, after)) = context.source.slice(between).split_once(op) {
        let mut edits = Vec::new();
        let start = between.start + before.len();
        edits.push(Edit { span: Span::new(start, start + op.len()), text: bits.to_owned() });
        let is_closed = |text: &str| text.contains(')') || text.contains('(');
        for (side, has_own) in [(left, is_closed(before)), (right, is_closed(after))] {
            if !has_own && !is_tight(side) {
                edits.push(Edit { span: Span::new(side.span.start, side.span.start), text: "(".to_owned() });
                edits.push(Edit { span: Span::new(side.span.end, side.span.end), text: ")".to_owned() });
            }
        }
        edits.sort_by_key(|edit| edit.span.start);
        found.fix = Some(Fix { title: format!("Write `{bits}`"), edits });
    }
    found
}

/// Whether `&` binds no tighter than what the expression consists of.
fn is_tight(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Name(_)
            | ExprKind::Call(_)
            | ExprKind::Subscript { .. }
            | ExprKind::Attribute { .. }
            | ExprKind::Int(_)
    )
}
