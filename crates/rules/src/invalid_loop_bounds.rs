//! L023 `invalid-loop-bounds`: a `for` loop over something other than a range of integers.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L023",
        name: "invalid-loop-bounds",
        severity: Severity::Error,
        summary: "a `for` over something else than a range of integers",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_loop_bounds.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::LoopBounds], findings);
}
