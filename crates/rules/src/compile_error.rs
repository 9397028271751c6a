//! C001: errors of Triton's own front end.

use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "C001",
        name: "compile-error",
        severity: Severity::Error,
        summary: "an error of the installed Triton's own front end",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("compile_error.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for kernel in &context.module.kernels {
        let Some(verdict) = FrontEndVerdict::of(kernel) else { continue };
        let FrontEndOutcome::Refused { span, message, related } = &verdict.outcome else { continue };
        let found = Diagnostic::new(&RULE.declaration, *span, message.as_str());
        let explained = |found: Diagnostic, (span, message): &(_, String)| found.with_related(*span, message.as_str());
        findings.push(related.iter().fold(found, explained));
    }
}
