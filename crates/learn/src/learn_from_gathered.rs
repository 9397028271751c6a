//! Learning from synthetic kernels: their failures become rules, unless a program that compiles refutes them.

use std::path::PathBuf;

use base::clock;
use model::api::VersionError;
use rules::learned::{LearnedRule, RuleOrigin};

use super::api_sweep::{spelled, sweep};
use super::compiling_programs::CompilingPrograms;
use super::gather::GatheredFailures;
use super::learn::learn;
use super::learning_stage::LearningStage;
use super::oracle::Oracle;
use super::parsed_files::Parsed;
use super::prove::{ProofContext, ProofResult, merged, programs, published};

/// The number of programs for each function, operator and statement in the sweep over everything that Triton offers.
const SWEPT: usize = 40;

/// The settings for learning from synthetic kernels.
#[derive(Clone, Debug)]
pub struct GatheredLearning<'a> {
    /// The seed that the kernels were generated from. Equal seeds give equal rules.
    pub seed: u64,
    /// Folders with kernels that are known to compile.
    pub sound: &'a [PathBuf],
    /// The date of the rules, such as `2026-11-25`; today if it is `None`.
    pub day: Option<String>,
}

/// The result of learning from synthetic kernels.
#[derive(Clone, Debug)]
pub struct LearnedFromGathered {
    /// The rules of the proven patterns.
    pub rules: Vec<LearnedRule>,
    /// The patterns that are refuted.
    pub refuted: Vec<RefutedPattern>,
    /// The number of patterns that were found.
    pub found: usize,
    /// The number of patterns that remain after merging; each of them is proven or refuted.
    pub merged: usize,
    /// The number of files that are known or assumed to compile.
    pub sound: usize,
}

/// A pattern that became no rule.
#[derive(Clone, Debug)]
pub struct RefutedPattern {
    /// The pattern as a tree-sitter query.
    pub query: String,
    /// The reason, as text for the user.
    pub why: String,
}

/// Learns from synthetic kernels. The rules are proven on the oracle's release, and the other oracles determine their
/// range of releases. `report` is called at the end of each stage.
///
/// # Errors
/// Returns an error when the oracle's release cannot be read.
pub fn learn_from_gathered(
    oracle: &Oracle,
    others: &[Oracle],
    gathered: &GatheredFailures,
    settings: &GatheredLearning<'_>,
    report: &dyn Fn(LearningStage),
) -> Result<LearnedFromGathered, VersionError> {
    let target = oracle.target()?;
    let mut sound: Vec<Parsed> = gathered.passing.iter().map(|program| Parsed::new(&program.text)).collect();
    // Files with a signature comment are compiled; the others are assumed to compile.
    let (programs, published) = programs(published(settings.sound));
    let mut swept = sweep(target.table, SWEPT, settings.seed);
    swept.extend(spelled());
    for asked in [&programs, &swept] {
        sound.extend(oracle.accepted(asked));
    }
    report(LearningStage::Swept);
    let known = CompilingPrograms { known: &sound, unasked: &[] };
    let lessons = learn(oracle, &gathered.failures, known, target, settings.seed, &|| true);
    report(LearningStage::Learned);
    sound.extend(lessons.counter.iter().map(|program| Parsed::new(&program.text)));
    let found = lessons.learned.len();
    let learned = merged(oracle, lessons.learned, &gathered.failures, target);
    report(LearningStage::Merged);
    let court = ProofContext {
        oracle,
        others,
        sound: CompilingPrograms { known: &sound, unasked: &[] },
        programs: &programs,
        published: &published,
        today: settings.day.clone().unwrap_or_else(|| clock::day(clock::now().as_secs())),
        origin: RuleOrigin::Synthesised(settings.seed),
    };
    let proofs = court.prove(&learned, &gathered.failures, 1);
    report(LearningStage::Proven);
    let (mut rules, mut refuted) = (Vec::new(), Vec::new());
    for (proof, one) in proofs.into_iter().zip(&learned) {
        match proof {
            ProofResult::Rule(rule) => rules.push(*rule),
            ProofResult::Refuted(why) => refuted.push(RefutedPattern { query: one.query.clone(), why }),
        }
    }
    Ok(LearnedFromGathered { rules, refuted, found, merged: learned.len(), sound: sound.len() + published.len() })
}
