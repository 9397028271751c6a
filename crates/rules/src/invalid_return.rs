//! L014 `invalid-return`: a `return` where a kernel cannot have one, or of a value that it cannot return.

use model::analysis::types::{Problem, ProblemKind};
use model::kernel::ast::StmtKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
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
}

/// `return [a, b]` → `return (a, b)`
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (_, stmt) = fix_edits::statement_at(context, problem.span)?;
    let StmtKind::Return(Some(value)) = &stmt.kind else { return None };
    let edits = fix_edits::tuple_for_list(context, value)?;
    Some(Fix { title: "Return a tuple".to_owned(), edits })
}
