//! L006 `undefined-name`: a name that does not exist where a kernel uses it.

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
        code: "L006",
        name: "undefined-name",
        severity: Severity::Error,
        summary: "a name that does not exist where a kernel uses it",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("undefined_name.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::UndefinedName], fix, findings);
}

/// Built-in functions of Python and their equivalents with one argument in `triton.language`.
const NAMESAKES: &[(&str, &str)] = &[("abs", "abs"), ("sum", "sum"), ("sorted", "sort")];

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let written = context.source.slice(problem.span);
    let (_, member) = NAMESAKES.iter().find(|(name, _)| *name == written)?;
    let is_callee = |expr: &Expr| expr.as_call().is_some_and(|call| call.func.span == problem.span);
    let (kernel, expr) = fix_edits::find(context, is_callee)?;
    let argument = fix_edits::only_argument(expr.as_call()?)?;
    // The sum of a list is not the sum of a tile.
    let is_value = matches!(
        argument.kind,
        ExprKind::Name(_) | ExprKind::Call(_) | ExprKind::Binary { .. } | ExprKind::Subscript { .. }
    );
    let instead = context.module.language_name(kernel, member).filter(|_| is_value)?;
    Some(fix_edits::replace(format!("Use `{instead}`"), problem.span, instead))
}
