//! Programs that compile, which no rule may flag. Programs that were generated for this check are compiled only when a
//! pattern flags them, because a program that no pattern flags cannot disprove one.

use model::api::TritonTarget;
use model::syntax::Span;
use rules::RuleContext;
use rules::learned::Pattern;

use super::oracle::OracleClient;
use super::parsed_files::Parsed;
use super::program::KernelProgram;

/// A program that has not been compiled yet.
#[derive(Debug)]
pub struct UncheckedProgram {
    program: KernelProgram,
    parsed: Parsed,
}

impl UncheckedProgram {
    /// Parses a program without compiling it.
    #[must_use]
    pub fn new(program: KernelProgram) -> Self {
        Self { parsed: Parsed::new(&program.text), program }
    }
}

/// The programs that rules must not flag.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompilingPrograms<'a> {
    /// Files that are known to compile.
    pub known: &'a [Parsed],
    /// Programs that count only if they compile.
    pub unasked: &'a [UncheckedProgram],
}

/// The same programs with the contexts that patterns are matched against.
#[derive(Debug)]
pub(crate) struct ParsedPrograms<'a> {
    known: Vec<RuleContext<'a>>,
    unasked: Vec<(&'a KernelProgram, RuleContext<'a>)>,
}

impl<'a> ParsedPrograms<'a> {
    pub(crate) fn new(sound: CompilingPrograms<'a>, target: TritonTarget) -> Self {
        Self::some(sound, target, usize::MAX)
    }

    /// At most `most` of the files known to compile, evenly spaced, and all uncompiled programs.
    pub(crate) fn some(sound: CompilingPrograms<'a>, target: TritonTarget, most: usize) -> Self {
        let stride = sound.known.len().div_ceil(most.max(1)).max(1);
        let unasked = sound.unasked.iter().map(|one| (&one.program, one.parsed.context(target)));
        Self {
            known: sound.known.iter().step_by(stride).map(|file| file.context(target)).collect(),
            unasked: unasked.collect(),
        }
    }

    /// The text of a program that compiles and that a pattern flags. Texts without one of the words are skipped.
    pub(crate) fn first_hit(
        &self,
        pattern: &Pattern,
        words: &[String],
        asker: &mut OracleClient<'_>,
    ) -> Option<&'a str> {
        let is_flagged = |context: &RuleContext<'a>| has(context, words) && !pattern.matches(context).is_empty();
        if let Some(found) = self.known.iter().find(|context| is_flagged(context)) {
            return Some(found.source.text());
        }
        // Programs known to be rejected are skipped. Programs known to compile come first, because they need no
        // compilation.
        let may_count = |(program, context): &&(&KernelProgram, RuleContext<'a>)| {
            has(context, words) && asker.is_taken(program) != Some(false)
        };
        let (taken, open): (Vec<_>, Vec<_>) =
            self.unasked.iter().filter(may_count).partition(|(program, _)| asker.is_taken(program) == Some(true));
        let found = taken.into_iter().find(|(_, context)| is_flagged(context)).or_else(|| {
            let mut open = open.into_iter();
            open.find(|(program, context)| is_flagged(context) && asker.verdict(program).is_accepted())
        });
        found.map(|(_, context)| &**context.source.text())
    }

    /// All matches in the files known to compile, as the file's index and the span.
    pub(crate) fn all_hits(&self, pattern: &Pattern, words: &[String]) -> Vec<(usize, Span)> {
        let contexts = self.known.iter().enumerate().filter(|(_, context)| has(context, words));
        contexts.flat_map(|(at, context)| pattern.matches(context).into_iter().map(move |span| (at, span))).collect()
    }
}

/// Whether a text contains all of these words.
fn has(context: &RuleContext<'_>, words: &[String]) -> bool {
    let text = context.source.text().as_bytes();
    words.iter().all(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
}
