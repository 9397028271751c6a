//! N002: a running total in half precision.

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::formula_reader::MAX_FOUND;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N002",
        name: "half-accumulator",
        severity: Severity::Warning,
        summary: "a running total in fp16 or bf16",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("half_accumulator.md"),
    },
    check,
};

/// A tile in half precision that is assigned to a name and may initialise a running total.
struct Zeros<'a> {
    name: &'a str,
    statement: &'a Stmt,
    /// The span of the dtype.
    dtype: Span,
    half: &'static str,
}

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut found = context.in_kernels(&RULE, |kernel| found(context, kernel));
    found.sort_by_key(|diagnostic: &Diagnostic| diagnostic.span);
    found.dedup_by_key(|diagnostic| diagnostic.span);
    if !found.is_empty() && !context.is_for_other_compiler() {
        findings.extend(found);
    }
}

fn found(context: &RuleContext<'_>, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut zeros = if kernel.has_error { Vec::new() } else { zeros(context.module, kernel) };
    zeros.truncate(MAX_FOUND);
    if !zeros.is_empty() {
        walk_statements(&kernel.body, &mut |stmt| {
            if let StmtKind::For { body, .. } | StmtKind::While { body, .. } = &stmt.kind {
                for zeros in zeros.iter().filter(|zeros| zeros.statement.span.end <= stmt.span.start) {
                    if let Some(total) = total(context.module, kernel, body, zeros.name) {
                        found.push(report(context, zeros, total));
                    }
                }
            }
        });
    }
    found
}

/// The names that are initialised to zeros, or another number, in half precision.
fn zeros<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<Zeros<'a>> {
    let mut found: Vec<Zeros<'a>> = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
            && let [target] = targets.as_slice()
            && let Some(name) = target.as_name()
            && let Some((dtype, half)) = half_zeros(module, kernel, value)
        {
            found.push(Zeros { name, statement: stmt, dtype, half });
        }
    });
    found
}

/// The span and name of the dtype in `tl.zeros(…, tl.float16)` or `tl.full(…, 1.0, tl.float16)`.
fn half_zeros(module: &Module, kernel: &Kernel, value: &Expr) -> Option<(Span, &'static str)> {
    let call = value.as_call()?;
    let at = match module.language_member(kernel, &call.func)?.as_str() {
        "zeros" => 1,
        "full" if matches!(call.argument("value", Some(1))?.kind, ExprKind::Int(_) | ExprKind::Float(_)) => 2,
        _ => return None,
    };
    let dtype = call.argument("dtype", Some(at))?;
    let half = match module.language_member(kernel, dtype)?.as_str() {
        "float16" => "fp16",
        "bfloat16" => "bf16",
        _ => return None,
    };
    Some((dtype.span, half))
}

/// The statement of a loop's body that adds to `name`, where nothing else in the body changes it.
fn total<'a>(module: &Module, kernel: &Kernel, body: &'a [Stmt], name: &str) -> Option<&'a Stmt> {
    let (mut adds, mut others) = (None, false);
    walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::AugAssign { target, op, .. } if target.as_name() == Some(name) => match op.as_str() {
            "+" => adds = Some(stmt),
            "*" | "/" => {}
            _ => others = true,
        },
        StmtKind::Assign { targets, value, .. } => {
            let mut binds = false;
            targets.iter().for_each(|target| target.walk(&mut |expr| binds |= expr.as_name() == Some(name)));
            match value {
                Some(value) if binds && adds_to(module, kernel, value, name) => adds = Some(stmt),
                // A rescaled total is still a running total.
                Some(value) if binds && is_scaled(value, name) => {}
                _ => others |= binds,
            }
        }
        _ => {}
    });
    adds.filter(|_| !others)
}

/// `name + x`, `x + name * y`, `tl.dot(a, b, name)`
fn adds_to(module: &Module, kernel: &Kernel, value: &Expr, name: &str) -> bool {
    let is_total = |value: &Expr| value.as_name() == Some(name) || is_scaled(value, name);
    match &value.kind {
        ExprKind::Binary { op, left, right } => op == "+" && (is_total(left) || is_total(right)),
        ExprKind::Call(call) => {
            let accumulator = |call: &Call| call.argument("acc", Some(2)).and_then(Expr::as_name) == Some(name);
            accumulator(call) && module.language_member(kernel, &call.func).as_deref() == Some("dot")
        }
        _ => false,
    }
}

/// `name * x`, `x * name`, `name / x`
fn is_scaled(value: &Expr, name: &str) -> bool {
    match &value.kind {
        ExprKind::Binary { op, left, right } => {
            let is = |expr: &Expr| expr.as_name() == Some(name);
            (op == "*" && (is(left) || is(right))) || (op == "/" && is(left))
        }
        _ => false,
    }
}

fn report(context: &RuleContext<'_>, zeros: &Zeros<'_>, total: &Stmt) -> Diagnostic {
    let bits = if zeros.half == "fp16" { "11" } else { "8" };
    let message = format!(
        "`{}` is a running total in {}, which keeps {bits} bits: small addends are lost as it grows; add up in fp32 and cast behind the loop",
        zeros.name, zeros.half,
    );
    let line = context.line_of(total.span);
    Diagnostic::new(&RULE.declaration, zeros.dtype, message)
        .with_related(total.span, format!("each iteration adds to it on line {line}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    fn found(body: &str) -> usize {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        messages(
            &format!("import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, a, b, n, D: tl.constexpr):\n{body}"),
            "N002",
        )
        .len()
    }

    #[test]
    fn running_totals_in_half_precision_are_found() {
        for round in [
            "acc += tl.dot(a, b)",
            "acc = acc + tl.dot(a, b)",
            "acc = x + acc",
            "acc = tl.dot(a, b, acc)",
            "acc = tl.dot(a, b, acc=acc)",
            "acc = acc * x\n    acc = tl.dot(a, b, acc)",
            "acc *= x\n    acc += x",
            "acc = acc * x + b",
            "if n > 3:\n        acc += x",
        ] {
            for zeros in ["tl.zeros((16, 16), tl.float16)", "tl.full((16, 16), 1.0, dtype=tl.bfloat16)"] {
                assert_eq!(found(&format!("acc = {zeros}\nfor i in range(n):\n    {round}")), 1, "{round}");
            }
        }
        assert_eq!(found("acc = tl.zeros((16,), tl.float16)\nwhile n > 0:\n    acc += x"), 1);
    }

    #[test]
    fn wide_accumulators_and_other_assignments_are_not_flagged() {
        for dtype in ["tl.float32", "tl.int32", "D", "x.dtype.element_ty"] {
            assert_eq!(
                found(&format!("acc = tl.zeros((16, 16), {dtype})\nfor i in range(n):\n    acc += x")),
                0,
                "{dtype}"
            );
        }
        for round in ["acc = x", "acc += x\n    acc = b", "acc = tl.maximum(acc, x)", "acc -= x", "b += acc"] {
            let text = format!("acc = tl.zeros((16, 16), tl.float16)\nfor i in range(n):\n    {round}");
            assert_eq!(found(&text), 0, "{round}");
        }
        assert_eq!(found("acc = tl.zeros((16, 16), tl.float16)\nacc += x"), 0, "no loop");
        assert_eq!(found("for i in range(n):\n    acc = tl.zeros((16, 16), tl.float16)\n    acc += x"), 0);
    }
}
