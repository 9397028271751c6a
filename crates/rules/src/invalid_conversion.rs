//! L022 `invalid-conversion`: a conversion that Triton cannot make, or a number that does not fit its type.

use model::analysis::types::{Problem, ProblemKind};
use model::kernel::ast::{ExprKind, StmtKind, walk_statements};
use model::syntax::Span;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::{Edit, Fix};
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L022",
        name: "invalid-conversion",
        severity: Severity::Error,
        summary: "a conversion that Triton cannot make, or a number that does not fit its type",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("invalid_conversion.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Conversion, ProblemKind::Overflow], fix, findings);
}

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    cast(context, problem).or_else(|| annotation(context, problem))
}

/// `float(x)` → `x.to(tl.float32)`
fn cast(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (kernel, call) = fix_edits::call_at(context, problem.span)?;
    let dtype = match call.func.as_name()? {
        "float" => "float32",
        "int" => "int32",
        _ => return None,
    };
    let argument = fix_edits::only_argument(call)?;
    let dtype = context.module.language_name(kernel, dtype)?;
    let fixed = format!("{}.to({dtype})", fix_edits::operand(context, argument));
    Some(fix_edits::replace(format!("Use `.to({dtype})`"), problem.span, fixed))
}

/// `mode = "…"` → `mode: tl.constexpr = "…"`, where the name is bound nowhere else.
fn annotation(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (kernel, stmt) = fix_edits::statement_at(context, problem.span)?;
    let StmtKind::Assign { targets, annotation: None, value: Some(value) } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let name = target.as_name().filter(|_| matches!(value.kind, ExprKind::Str(_)))?;
    let mut repeated = kernel.param(name).is_some();
    walk_statements(&kernel.body, &mut |other| {
        let is_loop = matches!(other.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let text = context.source.slice(other.span);
        let binds = match &other.kind {
            StmtKind::Assign { targets, .. } => {
                other.span != stmt.span && targets.iter().any(|target| target.mentions(name))
            }
            StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => target.mentions(name),
            StmtKind::Block(_) | StmtKind::Other(_) => text.contains(name),
            _ => false,
        };
        repeated |= binds || is_loop && other.span.contains(stmt.span);
    });
    let constexpr = context.module.language_name(kernel, "constexpr").filter(|_| !repeated)?;
    let end = target.span.end;
    let edit = Edit { span: Span::new(end, end), text: format!(": {constexpr}") };
    Some(Fix { title: format!("Annotate `{name}` as `{constexpr}`"), edits: vec![edit] })
}
