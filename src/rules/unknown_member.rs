//! L001: a name that `triton.language` does not have.

use super::{Context, Declaration, Findings, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L001",
        name: "unknown-member",
        severity: Severity::Error,
        summary: "a name that `triton.language` does not have in the Triton version in use",
        since: "0.1.0",
        fixable: true,
        doc: "",
    },
    check,
};

fn check(_context: &Context<'_>, _findings: &mut Findings<'_>) {}
