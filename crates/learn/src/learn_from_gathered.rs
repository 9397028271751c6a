//! Learning from synthetic kernels and from a sweep over everything that Triton offers: the failures that no built-in rule
//! flags become rules, unless a program that compiles refutes them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use base::clock;
use model::api::{TritonTarget, VersionError};
use rules::learned::{LearnedRule, Pattern, RuleOrigin, number};

use super::api_sweep::{plain, spelled, sweep};
use super::built_in_findings::silent;
use super::compiling_programs::CompilingPrograms;
use super::failure::CompileFailure;
use super::gather::GatheredFailures;
use super::learn::learn;
use super::learning_stage::LearningStage;
use super::oracle::{Oracle, OracleVerdict};
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
    /// Rules that are known: what they flag is not learned again.
    pub known: &'a [LearnedRule],
    /// The date of the rules, such as `2026-11-25`; today if it is `None`.
    pub day: Option<String>,
}

impl GatheredLearning<'_> {
    /// The first number that no known rule has.
    fn first_code(&self) -> u32 {
        self.known.iter().filter_map(|rule| number(&rule.code)).max().map_or(1, |last| last + 1)
    }

    /// Whether a known rule that is shown flags the example of a new one.
    fn knows(&self, new: &LearnedRule, target: TritonTarget) -> bool {
        let bad = Parsed::new(&new.bad);
        let context = bad.context(target);
        self.known
            .iter()
            .filter(|rule| rule.is_shown())
            .any(|rule| Pattern::compile(&rule.pattern).is_ok_and(|pattern| !pattern.matches(&context).is_empty()))
    }

    /// Gives new rules other names than known ones have, and consecutive codes.
    fn name_apart(&self, rules: &mut [LearnedRule]) {
        let mut names: BTreeSet<String> = self.known.iter().map(|rule| rule.name.clone()).collect();
        for (code, rule) in (self.first_code()..).zip(rules) {
            rule.code = format!("S{code:03}");
            let plain = rule.name.clone();
            let others = (2..).map(|count| format!("{plain}-{count}"));
            let mut all = std::iter::once(plain.clone()).chain(others);
            rule.name = all.find(|name| names.insert(name.clone())).unwrap_or(plain);
        }
    }
}

/// What Triton says about a sweep over everything that it offers: the failures; what compiles is added to `sound`.
fn swept(oracle: &Oracle, target: TritonTarget, seed: u64, sound: &mut Vec<Parsed>) -> Vec<CompileFailure> {
    let mut programs = sweep(target.table, SWEPT, seed);
    programs.extend(spelled());
    let verdicts = oracle.verdicts(&programs);
    let mut failures = Vec::new();
    for (at, (program, verdict)) in programs.into_iter().zip(verdicts).enumerate() {
        match verdict {
            OracleVerdict::Accepted => sound.push(Parsed::new(&program.text)),
            OracleVerdict::Refused(failing) => {
                let origin = format!("sweep {at}");
                failures.push(CompileFailure { origin, program, passing: Some(plain()), failing });
            }
            OracleVerdict::Unknown => {}
        }
    }
    failures
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
    sound.extend(oracle.accepted(&programs));
    let mut failures = gathered.failures.clone();
    failures.extend(swept(oracle, target, settings.seed, &mut sound));
    let failures = silent(oracle, &failures, target);
    report(LearningStage::Swept);
    let known = CompilingPrograms { known: &sound, unasked: &[] };
    let lessons = learn(oracle, &failures, known, target, settings.seed, &|| true);
    report(LearningStage::Learned);
    sound.extend(lessons.counter.iter().map(|program| Parsed::new(&program.text)));
    let found = lessons.learned.len();
    let learned = merged(oracle, lessons.learned, &failures, target);
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
    let proofs = court.prove(&learned, &failures, settings.first_code());
    report(LearningStage::Proven);
    let (mut rules, mut refuted) = (Vec::new(), Vec::new());
    for (proof, one) in proofs.into_iter().zip(&learned) {
        match proof {
            ProofResult::Rule(rule) if settings.knows(&rule, target) => {
                refuted.push(RefutedPattern { query: one.query.clone(), why: "a known rule flags it".to_owned() });
            }
            ProofResult::Rule(rule) => rules.push(*rule),
            ProofResult::Refuted(why) => refuted.push(RefutedPattern { query: one.query.clone(), why }),
        }
    }
    settings.name_apart(&mut rules);
    Ok(LearnedFromGathered { rules, refuted, found, merged: learned.len(), sound: sound.len() + published.len() })
}
