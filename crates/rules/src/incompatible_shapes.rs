//! L005 `incompatible-shapes`: shapes that cannot be broadcast to one another.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L005",
        name: "incompatible-shapes",
        severity: Severity::Error,
        summary: "shapes that cannot be broadcast to one another",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("incompatible_shapes.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::Broadcast], findings);
}
