//! Trying rules that come from elsewhere, or that somebody objects to: what stands for them, and what against them.

use std::collections::BTreeSet;

use model::api::Target;
use rules::learned::{LearnedRule, Pattern, State};

use super::cases::{Parsed, flags};
use super::failure::{Failure, Signature};
use super::learn::INDEPENDENT;
use super::oracle::{Asker, Verdict};
use super::program::Program;

/// What is known of a release: programs that fail, and programs that compile.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'e> {
    /// Programs that fail.
    pub failures: &'e [Failure],
    /// Programs that compile.
    pub sound: &'e [Parsed],
    /// The release.
    pub target: Target,
}

/// What a trial says of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it is to be.
    pub state: State,
    /// Why.
    pub why: String,
    /// How many independent failures it flags, of the error that it predicts.
    pub failures: u32,
}

/// Tries a rule: its example must fail as it says, enough independent failures must be like it, and nothing that compiles may be flagged.
pub fn judged(asker: &mut Asker<'_>, rule: &LearnedRule, evidence: Evidence<'_>) -> Judgement {
    let candidate = |why: &str| Judgement { state: State::Candidate, why: why.to_owned(), failures: 0 };
    let Ok(pattern) = Pattern::compile(&rule.pattern) else {
        return candidate("it has no pattern, so nothing can be compared with it");
    };
    let matches = |text: &str| {
        let parsed = Parsed::new(text);
        !pattern.matches(&parsed.context(evidence.target)).is_empty()
    };
    let demoted =
        |text: &str| Judgement { state: State::Demoted, why: format!("it flags what compiles:\n{text}"), failures: 0 };
    if let Some(file) = evidence.sound.iter().find(|file| !pattern.matches(&file.context(evidence.target)).is_empty()) {
        return demoted(file.source.text());
    }
    let Some(bad) = program_of(&rule.bad) else { return candidate("its bad example holds no kernel") };
    let failing = match asker.verdict(&bad) {
        Verdict::Accepted if matches(&rule.bad) => return demoted(&rule.bad),
        Verdict::Refused(failing) if matches(&rule.bad) => failing,
        Verdict::Unknown => {
            return candidate("its bad example cannot be lowered; it needs a comment with its signature");
        }
        _ => return candidate("its pattern does not flag its bad example, or that compiles"),
    };
    let signature = Signature::of(&failing);
    let is_like = |failure: &&Failure| {
        Signature::of(&failure.failing) == signature && {
            let parsed = Parsed::new(&failure.program.text);
            flags(&pattern, &parsed.context(evidence.target), failure.failing.span)
        }
    };
    let origins: BTreeSet<&str> =
        evidence.failures.iter().filter(is_like).map(|failure| failure.origin.as_str()).collect();
    let (count, failures) = (origins.len(), u32::try_from(origins.len()).unwrap_or(u32::MAX));
    if count < INDEPENDENT {
        let why = format!("only {count} independent failures are like its example; it takes {INDEPENDENT}");
        return Judgement { state: State::Candidate, why, failures };
    }
    Judgement { state: State::Promoted, why: format!("{count} independent failures are like its example"), failures }
}

/// The last kernel of a text, which gives its signature in a comment.
pub(super) fn program_of(text: &str) -> Option<Program> {
    let parsed = Parsed::new(text);
    let kernel = parsed.module.kernels.last()?;
    Some(Program::new(text, kernel.name.clone()))
}
