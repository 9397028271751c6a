//! L016 `invalid-subscript`: a subscript that Triton does not support, or an assignment to a subscript.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L016",
        name: "invalid-subscript",
        severity: Severity::Error,
        summary: "a subscript that Triton cannot take apart, or an assignment to one",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_subscript.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::Subscript], findings);
}
