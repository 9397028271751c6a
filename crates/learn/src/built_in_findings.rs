//! What the built-in rules say about failures: learned rules are worth something where these are silent.

use model::api::TritonTarget;
use model::syntax::Span;
use rules::{Selection, check};

use super::failure::CompileFailure;
use super::oracle::Oracle;
use super::parsed_files::Parsed;

/// The rules about what Triton's front end refuses.
fn family() -> Selection {
    Selection { select: vec!["L".to_owned()], ignore: Vec::new() }
}

/// The codes of the built-in rules that flag the line at which a program fails.
pub(super) fn flagged_by(failure: &CompileFailure, target: TritonTarget) -> Vec<&'static str> {
    let parsed = Parsed::new(&failure.program.text);
    let line = |at: usize| parsed.source.lines().line_of(at);
    let is_there = |span: Span| {
        failure.failing.span.is_none_or(|place| (line(place.start)..=line(place.end)).contains(&line(span.start)))
    };
    let found = check(&parsed.context(target), &family());
    found.iter().filter(|one| is_there(one.span)).map(|one| one.code).collect()
}

/// Whether a built-in rule reports an error at a place. The findings of these rules in published kernels have been
/// audited.
pub(super) fn is_flagged(file: &Parsed, span: Span, target: TritonTarget) -> bool {
    check(&file.context(target), &family()).iter().any(|found| found.span.meets(span))
}

/// The failures that no built-in rule flags.
#[must_use]
pub fn silent(oracle: &Oracle, failures: &[CompileFailure], target: TritonTarget) -> Vec<CompileFailure> {
    let flagged = oracle.parallel(failures, |_, failure| !flagged_by(failure, target).is_empty());
    failures.iter().zip(flagged).filter(|(_, is_flagged)| !is_flagged).map(|(failure, _)| failure.clone()).collect()
}
