//! Learning from the failures in a user's store. Proven rules are added to the same store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::clock;
use model::api::TritonTarget;
use rules::learned::{LearnedRule, RuleOrigin};
use store::Store;

use super::api_sweep::{spelled, sweep};
use super::compiling_programs::{CompilingPrograms, UncheckedProgram};
use super::failure::CompileFailure;
use super::learn::{LearnedPattern, learn};
use super::learning_error::LearningError;
use super::learning_stage::LearningStage;
use super::memory::SkillMemory as _;
use super::oracle::Oracle;
use super::parsed_files::Parsed;
use super::program::KernelProgram;
use super::prove::{ProofContext, merged};
use super::stored_evidence::{UnexplainedFailures, failures, named, sound, undisproved, unexplained};
use super::synthesize::tasks;

/// The number of synthetic kernels that learned rules must not flag.
const TASKS: usize = 200;
/// The number of random calls of each function in the sweep; those that compile must not be flagged.
const SWEPT: usize = 3;

/// The settings for learning from a store.
#[derive(Clone, Debug)]
pub struct StoreLearning {
    /// The seed for the search for counter-examples.
    pub seed: u64,
    /// The time after which no further signature is begun. Each process of the oracle begins one in any case.
    pub time: Duration,
    /// The source of the failures, as a word for the origin of the rules: `editor`, or a path.
    pub origin: String,
}

/// The result of learning from a store.
#[derive(Clone, Debug)]
pub struct LearnedFromStore {
    /// The rules, with their codes in the store.
    pub rules: Vec<LearnedRule>,
    /// The number of failures that were read.
    pub failures: usize,
    /// The number of those that a rule flags already.
    pub explained: usize,
    /// The number of signatures that are left for the next time.
    pub left: usize,
}

/// Learns from the failures in the store that no built-in rule and no proven learned one flags. The rules that are proven on the oracle's
/// release are added to the store, which remembers the signatures that were examined. `report` is called at the end of
/// each stage.
///
/// # Errors
/// Returns an error when the store cannot be read or written, when the oracle's release cannot be read, or when the
/// oracle is stopped.
pub fn learn_from_store(
    store: &mut Store,
    oracle: &Oracle,
    settings: &StoreLearning,
    report: &dyn Fn(LearningStage),
) -> Result<LearnedFromStore, LearningError> {
    let (release, target) = (oracle.release(), oracle.target()?);
    let (read, mut sound) = (failures(store, release)?, sound(store, release)?);
    let count = read.len();
    report(LearningStage::Read);
    let looked_at = store.learned_counts(release)?;
    let found = unexplained(oracle, &store.memory()?, read, target, &looked_at);
    let UnexplainedFailures { failures, mut signatures, mut left, known } = found;
    report(LearningStage::Divided);
    let unasked = made_up(oracle, &failures, target, settings.seed);
    report(LearningStage::CounterexamplesMade);
    let all_sound = CompilingPrograms { known: &sound, unasked: &unasked };
    let in_time = turns_within(settings.time, oracle.processes());
    let going = || in_time() && !oracle.is_stopped();
    let lessons = learn(oracle, &failures, all_sound, target, settings.seed, &going);
    report(LearningStage::Learned);
    if oracle.is_stopped() {
        return Err(LearningError::Stopped);
    }
    signatures.retain(|(name, _)| !lessons.left.iter().any(|one| named(one) == *name));
    left += lessons.left.len();
    sound.extend(lessons.counter.iter().map(|program| Parsed::new(&program.text)));
    let mut found = merged(oracle, lessons.learned, &failures, target);
    report(LearningStage::Merged);
    found.retain(LearnedPattern::stands_alone);
    let court = ProofContext {
        oracle,
        others: &[],
        sound: CompilingPrograms { known: &sound, unasked: &unasked },
        programs: &[],
        published: &[],
        today: clock::day(clock::now().as_secs()),
        origin: RuleOrigin::Learned(settings.origin.clone()),
    };
    let rules = court.rules(&found, &failures, 1);
    report(LearningStage::Proven);
    let mut rules = undisproved(store, release, target, rules)?;
    report(LearningStage::Compared);
    // Without its verdicts nothing is proven.
    if oracle.is_stopped() {
        return Err(LearningError::Stopped);
    }
    let codes = store.add_rules(&rules)?;
    store.set_learned_counts(release, &signatures)?;
    for (rule, code) in rules.iter_mut().zip(codes) {
        rule.code = code;
    }
    Ok(LearnedFromStore { rules, failures: count, explained: known, left })
}

/// A function that returns whether to begin one more signature: until the time is up and, so that each call makes
/// progress, once for each process in any case.
fn turns_within(limit: Duration, processes: usize) -> impl Fn() -> bool + Sync {
    let (started, begun) = (Instant::now(), AtomicUsize::new(0));
    move || begun.fetch_add(1, Ordering::Relaxed) < processes || started.elapsed() < limit
}

/// Further programs, many of which compile: variants of the failures, synthetic kernels, and a sweep over everything
/// that Triton offers. Without them, code that a store with few kernels does not contain would count as wrong.
fn made_up(oracle: &Oracle, failures: &[CompileFailure], target: TritonTarget, seed: u64) -> Vec<UncheckedProgram> {
    let relatives = failures.iter().filter_map(|failure| failure.passing.clone());
    let made = tasks(TASKS, seed).into_iter().map(|task| task.program);
    let mut programs: Vec<KernelProgram> = relatives.chain(made).collect();
    programs.extend(sweep(target.table, SWEPT, seed));
    programs.extend(spelled());
    programs.sort();
    programs.dedup();
    oracle.parallel(&programs, |_, program| UncheckedProgram::new(program.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_zero_time_limit_each_process_begins_one_signature() {
        let going = turns_within(Duration::ZERO, 2);
        assert_eq!([going(), going(), going()], [true, true, false]);
    }
}
