//! Helpers of the language rules: each of these rules reports certain kinds of problems from the type analysis.

use std::collections::HashSet;

use model::analysis::dialect;
use model::analysis::types::{Problem, ProblemKind};

use super::context::RuleContext;
use super::declaration::Declaration;
use super::diagnostic::{Diagnostic, Fix};
use super::findings::Findings;

/// Reports all problems of these kinds. Files for other compilers are skipped: their language differs.
pub(super) fn report(
    context: &RuleContext<'_>,
    declaration: &Declaration,
    kinds: &[ProblemKind],
    findings: &mut Findings<'_>,
) {
    report_with(context, declaration, kinds, |_, _| None, findings);
}

/// The same, with the fix that `fix` returns for a problem.
pub(super) fn report_with(
    context: &RuleContext<'_>,
    declaration: &Declaration,
    kinds: &[ProblemKind],
    fix: impl Fn(&RuleContext<'_>, &Problem) -> Option<Fix>,
    findings: &mut Findings<'_>,
) {
    for problem in problems(context, kinds) {
        let mut diagnostic = diagnostic(declaration, problem);
        diagnostic.fix = fix(context, problem);
        findings.push(diagnostic);
    }
}

/// The problems of these kinds in all kernels, each once.
pub(super) fn problems<'c>(context: &'c RuleContext<'_>, kinds: &[ProblemKind]) -> Vec<&'c Problem> {
    let all = context.facts().iter().flat_map(|facts| &facts.problems);
    let mut seen = HashSet::new();
    // A helper is analysed by itself and once for each kernel that calls it.
    let is_new = |problem: &&Problem| kinds.contains(&problem.kind) && seen.insert((problem.kind, problem.span));
    let mut found: Vec<&Problem> = all.filter(is_new).collect();
    let extends_language = || dialect::extends_language(context.source.text());
    if !found.is_empty() && (context.is_for_other_compiler() || extends_language()) {
        found.clear();
    }
    found
}

/// A finding for a problem.
pub(super) fn diagnostic(declaration: &Declaration, problem: &Problem) -> Diagnostic {
    let diagnostic = Diagnostic::new(declaration, problem.span, problem.message.as_str());
    problem
        .related
        .iter()
        .fold(diagnostic, |diagnostic, (span, message)| diagnostic.with_related(*span, message.as_str()))
}
