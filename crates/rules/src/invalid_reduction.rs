//! L021 `invalid-reduction`: a reduction or scan along an axis, or of a type, that is not possible.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L021",
        name: "invalid-reduction",
        severity: Severity::Error,
        summary: "a reduction or scan along an axis, or of a type, that it cannot have",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_reduction.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::Reduction], findings);
}
