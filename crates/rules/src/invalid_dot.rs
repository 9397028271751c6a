//! L020 `invalid-dot`: operands that `tl.dot` cannot multiply.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L020",
        name: "invalid-dot",
        severity: Severity::Error,
        summary: "operands that `tl.dot` cannot multiply",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_dot.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::Dot], findings);
}
