//! L024 `unsupported-syntax`: Python syntax that kernels cannot contain.

use model::analysis::types::{Problem, ProblemKind};
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::{Edit, Fix};
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L024",
        name: "unsupported-syntax",
        severity: Severity::Error,
        summary: "Python that kernels cannot contain",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unsupported_syntax.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Syntax, ProblemKind::Nesting], fix, findings);
}

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let span = problem.span;
    let is_chain =
        |expr: &Expr| expr.span == span && matches!(expr.kind, ExprKind::Compare { .. } | ExprKind::BoolOp { .. });
    let (_, expr) = fix_edits::find(context, is_chain)?;
    match &expr.kind {
        ExprKind::Compare { left, rest } => pairs(context, expr, left, rest),
        // `a and b and c` → `(a and b) and c`
        ExprKind::BoolOp { left, .. } if matches!(left.kind, ExprKind::BoolOp { .. }) => {
            let edit = |at: usize, text: &str| Edit { span: Span::new(at, at), text: text.to_owned() };
            let edits = vec![edit(left.span.start, "("), edit(left.span.end, ")")];
            Some(Fix { title: "Write parentheses".to_owned(), edits })
        }
        _ => None,
    }
}

/// `a <= b < c` → `(a <= b) & (b < c)`
fn pairs(context: &RuleContext<'_>, expr: &Expr, left: &Expr, rest: &[(String, Expr)]) -> Option<Fix> {
    let [(first, middle), (second, right)] = rest else { return None };
    let orders = |op: &str| matches!(op, "<" | "<=" | ">" | ">=" | "==" | "!=");
    // The fix would evaluate the middle operand twice, so it must be a name or a number.
    let is_simple = matches!(middle.kind, ExprKind::Name(_) | ExprKind::Int(_));
    if !is_simple || !orders(first) || !orders(second) || !fix_edits::is_plain(context.source.slice(expr.span)) {
        return None;
    }
    let (text, middle) = (context.source.text(), context.source.slice(middle.span));
    let at = left.span.end + text[left.span.end..right.span.start].find(first.as_str())?;
    let (low, high) = (text[expr.span.start..at].trim(), context.source.slice(right.span));
    let high =
        if matches!(right.kind, ExprKind::Name(_) | ExprKind::Int(_)) { high.to_owned() } else { format!("({high})") };
    let fixed = format!("({low} {first} {middle}) & ({middle} {second} {high})");
    Some(fix_edits::replace("Compare pair by pair", expr.span, fixed))
}
