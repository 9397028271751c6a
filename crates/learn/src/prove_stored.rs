//! Proof of rules in a user's store on the release of Triton at hand.

use model::api::{TritonTarget, Version};
use rules::learned::{LearnedRule, Releases, RuleState};
use store::Store;

use super::gather::gather;
use super::learning_error::LearningError;
use super::memory::SkillMemory as _;
use super::oracle::Oracle;
use super::parsed_files::Parsed;
use super::rule_assessment::{Evidence, RuleAssessment, judged};
use super::stored_evidence;

/// The numbers of synthetic tasks, and of mutants of each, on which rules are tried in addition to the store.
const TASKS: usize = 48;
const CHANGES: usize = 40;
const SEED: u64 = 11;

/// Tries rules on the oracle's release, with the store's programs and with synthetic kernels. The assessments are in
/// the order of the rules. Those of the user's own rules are written into the store.
///
/// # Errors
/// Returns an error when the store cannot be read or written, or when the oracle's release cannot be read.
pub fn prove_stored(
    store: &mut Store,
    oracle: &Oracle,
    rules: &[LearnedRule],
) -> Result<Vec<RuleAssessment>, LearningError> {
    let (release, version) = (oracle.release(), oracle.version()?);
    let target = TritonTarget::of(version);
    let (mut failures, mut sound) =
        (stored_evidence::failures(store, release)?, stored_evidence::sound(store, release)?);
    let made = gather(oracle, TASKS, CHANGES, SEED);
    failures.extend(made.failures);
    sound.extend(made.passing.iter().map(|program| Parsed::new(&program.text)));
    let undisproved = stored_evidence::undisproved(store, release, target, rules.to_vec())?;
    let evidence = Evidence { failures: &failures, sound: &sound, target };
    let mut assessments = oracle.parallel(rules, |asker, rule| judged(asker, rule, evidence));
    for (rule, assessment) in rules.iter().zip(&mut assessments) {
        if assessment.state == RuleState::Promoted && undisproved.iter().all(|one| one.code != rule.code) {
            assessment.state = RuleState::Demoted;
            "it flags a kernel of yours that compiles".clone_into(&mut assessment.why);
        }
        if rule.is_own() {
            store.change_rule(&rule.code, |rule| settle(rule, assessment, version))?;
        }
    }
    Ok(assessments)
}

/// Stores the result of a trial on a release in the rule.
fn settle(rule: &mut LearnedRule, assessment: &RuleAssessment, version: Version) {
    rule.state = assessment.state;
    rule.failures = rule.failures.max(assessment.failures);
    if !rule.triton.tried.contains(&version) {
        rule.triton.tried.push(version);
        rule.triton.tried.sort_unstable();
    }
    if assessment.state == RuleState::Promoted {
        let Releases { since, until, .. } = &mut rule.triton;
        *since = Some(since.map_or(version, |since| since.min(version)));
        *until = until.filter(|until| *until >= version);
    }
}
