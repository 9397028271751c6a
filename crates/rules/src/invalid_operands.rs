//! L011 `invalid-operands`: operands that an operator does not accept.

use model::analysis::types::{Problem, ProblemKind};
use model::kernel::ast::{Expr, ExprKind};

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L011",
        name: "invalid-operands",
        severity: Severity::Error,
        summary: "operands that an operator does not take",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("invalid_operands.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Operand], fix, findings);
}

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let span = problem.span;
    let is_operator = |expr: &Expr| {
        let known = matches!(expr.kind, ExprKind::Binary { .. } | ExprKind::BoolOp { .. } | ExprKind::Unary { .. });
        known && expr.span == span
    };
    let (kernel, expr) = fix_edits::find(context, is_operator)?;
    let text = context.source.slice(span);
    if !fix_edits::is_plain(text) {
        return None;
    }
    let (title, fixed) = match &expr.kind {
        ExprKind::Binary { op, left, right } => match op.as_str() {
            // `x ** 2`
            "**" if left.as_name().is_some() && right.as_int() == Some(2) => {
                let name = left.as_name()?;
                ("Multiply".to_owned(), format!("({name} * {name})"))
            }
            "@" => {
                let dot = context.module.language_name(kernel, "dot")?;
                let (left, right) = sides(context, expr, left, right, op)?;
                (format!("Use `{dot}`"), format!("{dot}({left}, {right})"))
            }
            _ => return None,
        },
        // Numbers are truth values only in Python: the fix compares them with 0.
        ExprKind::BoolOp { op, left, right } => {
            let lanes = if op == "and" { "&" } else { "|" };
            let fixed = format!("{} {lanes} {}", condition(context, left)?, condition(context, right)?);
            (format!("Compare with 0, and use `{lanes}`"), fixed)
        }
        ExprKind::Unary { op, operand } if op == "not" => {
            ("Compare with 0".to_owned(), format!("{} == 0", fix_edits::operand(context, operand)))
        }
        _ => return None,
    };
    Some(fix_edits::replace(title, span, fixed))
}

/// The texts to the left and the right of an operator, with the parentheses around them.
fn sides<'t>(
    context: &'t RuleContext<'_>,
    expr: &Expr,
    left: &Expr,
    right: &Expr,
    op: &str,
) -> Option<(&'t str, &'t str)> {
    let text = context.source.text();
    let at = left.span.end + text[left.span.end..right.span.start].find(op)?;
    Some((text[expr.span.start..at].trim(), text[at + op.len()..expr.span.end].trim()))
}

fn condition(context: &RuleContext<'_>, expr: &Expr) -> Option<String> {
    match expr.kind {
        ExprKind::Compare { .. } => Some(format!("({})", context.source.slice(expr.span))),
        ExprKind::BoolOp { .. } => None,
        _ => Some(format!("({} != 0)", fix_edits::operand(context, expr))),
    }
}
