//! L013 `branch-type-mismatch`: a name that has different types after two branches.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L013",
        name: "branch-type-mismatch",
        severity: Severity::Error,
        summary: "a name that has one type behind one branch and another type behind the other",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("branch_type_mismatch.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::BranchType], findings);
}
