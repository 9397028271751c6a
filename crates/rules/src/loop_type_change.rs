//! L012 `loop-type-change`: a name whose type or shape changes between iterations of a loop.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L012",
        name: "loop-type-change",
        severity: Severity::Error,
        summary: "a name whose type or shape changes from one iteration of a loop to the next",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("loop_type_change.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(context, &RULE.declaration, &[ProblemKind::LoopCarried], findings);
}
