//! M024: `a & b < c`, which compares `a & b`.

use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M024",
        name: "mask-precedence",
        severity: Severity::Warning,
        summary: "a comparison next to `&` or `|` without parentheses, which compares something else",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds comparisons in kernels one side of which is a `&` or `|` without parentheses, such as `mask & start < n`.

## Why is this bad?
`&` and `|` bind tighter than `<`: `mask & start < n` is `(mask & start) < n`, the comparison of a number with `n`, which holds for
most lanes.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask & offsets < m, other=0.0)
    #                                 ^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, value * 2, mask=mask)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, m, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask & (offsets < m), other=0.0)
    tl.store(y + offsets, value * 2, mask=mask)
```

## When it is silent
When the number next to the operator is a literal (`flags & 1 == 0`), which may be meant as it is.

## Fix
Puts the comparison into parentheses.

## Sources
[lmdeploy](https://github.com/InternLM/lmdeploy), `fused_moe`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(context.in_kernels(&RULE, |kernel| {
        let mut found = Vec::new();
        if !kernel.has_error && context.mentions(kernel, &["& ", "| ", " &", " |"]) {
            walk_expressions(&kernel.body, &mut |expr| found.extend(look(context, expr)));
        }
        found
    }));
}

fn look(context: &RuleContext<'_>, expr: &Expr) -> Option<Diagnostic> {
    let ExprKind::Compare { left, rest } = &expr.kind else { return None };
    let [(op, right)] = rest.as_slice() else { return None };
    // The span of an operand leaves out its parentheses, and that of the comparison does not.
    let ExprKind::Binary { op: bits, left: other, right: near } = &left.kind else { return None };
    if left.span.start != expr.span.start || !matches!(bits.as_str(), "&" | "|") {
        return None;
    }
    let is_literal = |side: &Expr| side.as_int().is_some() || matches!(side.kind, ExprKind::Bool(_));
    if is_literal(near) || is_literal(other) || is_literal(right) || is_number(near) {
        return None;
    }
    let (meant, shown) = (near.span.start..right.span.end, context.source.slice(left.span));
    let text = context.source.text().get(meant.clone())?;
    let message = format!("this compares `{shown}` {op} …, since `&` and `|` bind tighter: write `({text})`");
    let mut found = Diagnostic::new(&RULE.declaration, expr.span, message);
    let (start, end) = (meant.start, meant.end);
    let span = |at| model::syntax::Span::new(at, at);
    let edits = vec![Edit { span: span(start), text: "(".to_owned() }, Edit { span: span(end), text: ")".to_owned() }];
    found.fix = Some(Fix { title: format!("Write `({text})`"), edits });
    Some(found)
}

/// Whether an operand is written as a number, so that the bits of it may be meant.
fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) => true,
        ExprKind::Unary { operand, .. } => is_number(operand),
        ExprKind::Binary { left, right, .. } => is_number(left) && is_number(right),
        _ => false,
    }
}
