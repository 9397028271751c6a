//! L018 `invalid-reshape`: a change of shape that does not fit the tile.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L018",
        name: "invalid-reshape",
        severity: Severity::Error,
        summary: "a change of shape that the tile does not fit",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_reshape.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::ShapeChange], findings);
}
