//! L014 `invalid-return`: a `return` where a kernel cannot have one, or of a value that it cannot return.

use model::analysis::launches::certainly_launched;
use model::analysis::types::{AbstractValue, Problem, ProblemKind};
use model::kernel::ast::{Expr, Stmt, StmtKind, walk_statements};

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::{Diagnostic, Fix};
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L014",
        name: "invalid-return",
        severity: Severity::Error,
        summary: "a `return` where a kernel cannot have one, or of a value that it cannot return",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("invalid_return.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Return], fix, findings);
    for (at, kernel) in context.module.kernels.iter().enumerate() {
        let launch = context.module.launches_of(&kernel.name).next();
        let Some(launch) = launch.filter(|_| !kernel.has_error && certainly_launched(context.module, kernel)) else {
            continue;
        };
        let Some(value) = returned(&kernel.body) else { continue };
        let is_runtime = matches!(context.values(at).get(&value.span), Some(AbstractValue::Tile(_)));
        if is_runtime && !context.is_for_other_compiler() {
            let message = "a kernel that is launched gives nothing back, and this does not compile: store the value";
            let found = Diagnostic::new(&RULE.declaration, value.span, message.to_owned());
            findings.push(found.with_related(launch.target.span, "it is launched here"));
        }
    }
}

/// The value of the first `return` that has one.
fn returned(body: &[Stmt]) -> Option<&Expr> {
    let mut found = None;
    walk_statements(body, &mut |stmt| {
        if let StmtKind::Return(Some(value)) = &stmt.kind {
            found = found.or(Some(value));
        }
    });
    found
}

/// `return [a, b]` → `return (a, b)`
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (_, stmt) = fix_edits::statement_at(context, problem.span)?;
    let StmtKind::Return(Some(value)) = &stmt.kind else { return None };
    let edits = fix_edits::tuple_for_list(context, value)?;
    Some(Fix { title: "Return a tuple".to_owned(), edits })
}
