//! L015 `invalid-condition`: a condition that is neither a scalar nor a compile-time value.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L015",
        name: "invalid-condition",
        severity: Severity::Error,
        summary: "a condition that is neither a scalar nor known while compiling",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_condition.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::Condition], findings);
}
