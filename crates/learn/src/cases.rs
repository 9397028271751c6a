//! Programs as patterns look at them, kept parsed, and what patterns flag of those that fail.

use model::api::Target;
use model::kernel::{Module, RecordedLaunch};
use model::syntax::{Source, Span};
use rules::Context;
use rules::learned::Pattern;

use super::failure::Failure;

/// A parsed file.
#[derive(Debug)]
pub struct Parsed {
    /// Its text and trees.
    pub source: Source,
    /// Its model.
    pub module: Module,
    /// What it is called where it comes from; empty for a program that was made up.
    pub name: String,
}

impl Parsed {
    /// Parses a program that was made up.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::named(text, String::new())
    }

    /// Parses a file.
    #[must_use]
    pub fn named(text: &str, name: String) -> Self {
        let source = Source::parse(text);
        let module = Module::build(&source);
        Self { source, module, name }
    }

    /// Parses a file whose kernels were launched so.
    #[must_use]
    pub(super) fn launched(text: &str, launches: &[RecordedLaunch]) -> Self {
        let mut file = Self::new(text);
        file.module.observe(launches.into());
        file
    }

    /// It as rules look at it.
    #[must_use]
    pub fn context(&self, target: Target) -> Context<'_> {
        Context::new(&self.source, &self.module, target)
    }
}

/// Whether a pattern flags the place of a failure: what Triton names, or some of it.
pub(crate) fn flags(pattern: &Pattern, context: &Context<'_>, place: Option<Span>) -> bool {
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

/// The places of a failure that may be what is wrong: what Triton names, and what differs from the passing program.
pub(crate) fn places(failure: &Failure) -> Vec<Span> {
    let passing = failure.passing.as_ref();
    let changed = passing.and_then(|passing| super::difference::changed(&passing.text, &failure.program.text));
    let mut places: Vec<Span> = failure.failing.span.into_iter().chain(changed).collect();
    places.dedup();
    places
}
