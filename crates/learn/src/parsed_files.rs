//! Parsed programs, which patterns are matched against, and the test whether a pattern flags the place of a failure.

use model::api::TritonTarget;
use model::kernel::{Module, RecordedLaunch};
use model::syntax::{Source, Span};
use rules::RuleContext;
use rules::learned::Pattern;

use super::failure::CompileFailure;

/// A file with its syntax trees and its kernel model.
#[derive(Debug)]
pub struct Parsed {
    /// The text and its syntax trees.
    pub source: Source,
    /// The kernel model of the file.
    pub module: Module,
    /// The path of the file; empty for a synthetic program.
    pub name: String,
}

impl Parsed {
    /// Parses a synthetic program.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::named(text, String::new())
    }

    /// Parses a file with a name.
    #[must_use]
    pub fn named(text: &str, name: String) -> Self {
        let source = Source::parse(text);
        let module = Module::build(&source);
        Self { source, module, name }
    }

    /// Parses a file and adds recorded launches of its kernels to the model.
    #[must_use]
    pub(super) fn launched(text: &str, launches: &[RecordedLaunch]) -> Self {
        let mut file = Self::new(text);
        file.module.observe(launches.into());
        file
    }

    /// The context in which rules check this file for a release of Triton.
    #[must_use]
    pub fn context(&self, target: TritonTarget) -> RuleContext<'_> {
        RuleContext::new(&self.source, &self.module, target)
    }
}

/// Whether a pattern flags the place that Triton names: a match overlaps it or begins on one of its lines. Without a
/// place, any match counts.
pub(crate) fn flags(pattern: &Pattern, context: &RuleContext<'_>, place: Option<Span>) -> bool {
    let found = pattern.matches(context);
    match place {
        None => !found.is_empty(),
        Some(place) => {
            let line = |at: usize| context.source.lines().line_of(at);
            let rows = |span: Span| line(span.start)..=line(span.end);
            found.iter().any(|span| place.meets(*span) || rows(place).contains(&line(span.start)))
        }
    }
}

/// The places that may be the cause of a failure: the one that Triton names, then the difference to the passing
/// program.
pub(crate) fn places(failure: &CompileFailure) -> Vec<Span> {
    let passing = failure.passing.as_ref();
    let changed = passing.and_then(|passing| super::delta_debugging::changed(&passing.text, &failure.program.text));
    let mut places: Vec<Span> = failure.failing.span.into_iter().chain(changed).collect();
    places.dedup();
    places
}
