//! L019 `invalid-memory-access`: a load, store or atomic whose arguments do not fit together.

use model::analysis::types::ProblemKind;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::findings::Findings;
use super::language;
use super::rule::Rule;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L019",
        name: "invalid-memory-access",
        severity: Severity::Error,
        summary: "a load, store or atomic whose arguments do not go together",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("invalid_memory_access.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report(
        context,
        &RULE.declaration,
        &[ProblemKind::MemoryAccess, ProblemKind::BlockPointerRemoved],
        findings,
    );
}
