//! Trials of rules that come from elsewhere or that a user objects to, against known failures and programs that
//! compile.

use std::collections::BTreeSet;

use model::api::TritonTarget;
use rules::learned::{LearnedRule, Pattern, RuleState};

use super::failure::{CompileFailure, ErrorSignature};
use super::learn::INDEPENDENT;
use super::oracle::{OracleClient, OracleVerdict};
use super::parsed_files::{Parsed, flags};
use super::program::KernelProgram;

/// The programs known for one release.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'e> {
    /// Programs that fail to compile.
    pub failures: &'e [CompileFailure],
    /// Programs that compile.
    pub sound: &'e [Parsed],
    /// The release of Triton that these verdicts come from.
    pub target: TritonTarget,
}

/// The result of the trial of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleAssessment {
    /// The state that the rule should have.
    pub state: RuleState,
    /// The reason, as text for the user.
    pub why: String,
    /// The number of independent failures of the predicted error that the rule flags.
    pub failures: u32,
}

/// Tries a rule. To be promoted, its bad example must fail, enough independent failures with the same error must match
/// it, and no known program that compiles may be flagged.
pub fn judged(asker: &mut OracleClient<'_>, rule: &LearnedRule, evidence: Evidence<'_>) -> RuleAssessment {
    let candidate = |why: &str| RuleAssessment { state: RuleState::Candidate, why: why.to_owned(), failures: 0 };
    let Ok(pattern) = Pattern::compile(&rule.pattern) else {
        return candidate("it has no pattern, so nothing can be compared with it");
    };
    let matches = |text: &str| {
        let parsed = Parsed::new(text);
        !pattern.matches(&parsed.context(evidence.target)).is_empty()
    };
    let demoted = |text: &str| RuleAssessment {
        state: RuleState::Demoted,
        why: format!("it flags what compiles:\n{text}"),
        failures: 0,
    };
    if let Some(file) = evidence.sound.iter().find(|file| !pattern.matches(&file.context(evidence.target)).is_empty()) {
        return demoted(file.source.text());
    }
    let Some(bad) = program_of(&rule.bad) else { return candidate("its bad example holds no kernel") };
    let failing = match asker.verdict(&bad) {
        OracleVerdict::Accepted if matches(&rule.bad) => return demoted(&rule.bad),
        OracleVerdict::Refused(failing) if matches(&rule.bad) => failing,
        OracleVerdict::Unknown => {
            return candidate("its bad example cannot be lowered; it needs a comment with its signature");
        }
        _ => return candidate("its pattern does not flag its bad example, or that compiles"),
    };
    let signature = ErrorSignature::of(&failing);
    let is_like = |failure: &&CompileFailure| {
        ErrorSignature::of(&failure.failing) == signature && {
            let parsed = Parsed::new(&failure.program.text);
            flags(&pattern, &parsed.context(evidence.target), failure.failing.span)
        }
    };
    let origins: BTreeSet<&str> =
        evidence.failures.iter().filter(is_like).map(|failure| failure.origin.as_str()).collect();
    let (count, failures) = (origins.len(), u32::try_from(origins.len()).unwrap_or(u32::MAX));
    if count < INDEPENDENT {
        let why = format!("only {count} independent failures are like its example; it takes {INDEPENDENT}");
        return RuleAssessment { state: RuleState::Candidate, why, failures };
    }
    RuleAssessment {
        state: RuleState::Promoted,
        why: format!("{count} independent failures are like its example"),
        failures,
    }
}

/// The last kernel of a text, which should give its signature in a comment.
pub(super) fn program_of(text: &str) -> Option<KernelProgram> {
    let parsed = Parsed::new(text);
    let kernel = parsed.module.kernels.last()?;
    Some(KernelProgram::new(text, kernel.name.clone()))
}
