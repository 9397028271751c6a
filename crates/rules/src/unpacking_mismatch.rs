//! L025 `unpacking-mismatch`: an assignment to more or fewer names than the value has parts.

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
        code: "L025",
        name: "unpacking-mismatch",
        severity: Severity::Error,
        summary: "an assignment to several names of something that has not as many parts",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unpacking_mismatch.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Unpacking], fix, findings);
}

/// `[a, b] = x` → `(a, b) = x`
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (_, stmt) = fix_edits::statement_at(context, problem.span)?;
    let StmtKind::Assign { targets, .. } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let edits = fix_edits::tuple_for_list(context, target)?;
    Some(Fix { title: "Unpack into a tuple".to_owned(), edits })
}
