//! M030: a parameter that a loop scales again in each iteration.

use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M030",
        name: "compounding-scale",
        severity: Severity::Warning,
        summary: "a parameter that is multiplied by a constant in a loop: each iteration scales it again",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds, in a loop, `scale *= 1.44` and the like, where `scale` is a parameter of the kernel and the factor is a number.

## Why is this bad?
The second iteration multiplies what the first one has multiplied already. A factor that changes the unit of a scale, such as log2(e), is meant once.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, scale, n, BLOCK: tl.constexpr):
    sum = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        scale *= 1.44269504
      # ^^^^^^^^^^^^^^^^^^^
        sum += tl.exp2(tl.load(x + offsets, mask=offsets < n, other=0.0) * scale)
    tl.store(y, tl.sum(sum))
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, scale, n, BLOCK: tl.constexpr):
    sum = tl.zeros((BLOCK,), tl.float32)
    scale *= 1.44269504
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        sum += tl.exp2(tl.load(x + offsets, mask=offsets < n, other=0.0) * scale)
    tl.store(y, tl.sum(sum))
```

## When it is silent
When the loop assigns the parameter in any other way.

## Sources
[FlagGems](https://github.com/FlagOpen/FlagGems), `_attn_fwd_inner`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let found = context.in_kernels(&RULE, |kernel| {
        let mut found = Vec::new();
        if !kernel.has_error && context.mentions(kernel, &["*="]) {
            look(kernel, &kernel.body, None, &mut found);
        }
        found
    });
    if !found.is_empty() && !context.is_for_other_compiler() {
        findings.extend(found);
    }
}

fn look(kernel: &Kernel, body: &[Stmt], around: Option<&[Stmt]>, found: &mut Vec<Diagnostic>) {
    for stmt in body {
        let around = match &stmt.kind {
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => Some(body.as_slice()),
            _ => around,
        };
        if let (Some(within), StmtKind::AugAssign { target, op, value }) = (around, &stmt.kind)
            && op.trim_end_matches('=') == "*"
            && let Some(name) = target.as_name()
            && kernel.param(name).is_some_and(|param| !param.constexpr)
            && is_number(value)
            && !is_set(within, name)
        {
            let message = format!("each iteration multiplies `{name}` again: scale it before the loop");
            found.push(Diagnostic::new(&RULE.declaration, stmt.span, message));
        }
        for body in stmt.bodies() {
            look(kernel, body, around, found);
        }
    }
}

fn is_number(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Float(_) => true,
        ExprKind::Int(_) => value.as_int().is_some_and(|number| number > 1),
        ExprKind::Binary { left, right, .. } => is_number(left) && is_number(right),
        _ => false,
    }
}

/// Whether statements assign a name anew.
fn is_set(body: &[Stmt], name: &str) -> bool {
    let mut found = false;
    model::kernel::ast::walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => found |= targets.iter().any(|target| target.mentions(name)),
        StmtKind::For { target, .. } => found |= target.mentions(name),
        _ => {}
    });
    found
}
