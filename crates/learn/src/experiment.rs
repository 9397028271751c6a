//! Evaluation of the skill memory without a language model: the share of mutated kernels that compile, among all of
//! them and among those that no proven rule flags.

use model::api::{TritonTarget, VersionError};
use model::syntax::{Source, Span};
use rules::RuleContext;
use rules::learned::{LearnedRule, LearnedRules, RuleOrigin};

use super::built_in_findings::silent;
use super::failure::CompileFailure;
use super::gather::gather;
use super::oracle::Oracle;
use super::parsed_files::Parsed;
use super::program::KernelProgram;

/// The share of some programs that compiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileRate {
    /// The number of programs that compile.
    pub passing: usize,
    /// The number of all programs.
    pub all: usize,
}

impl CompileRate {
    /// The share in percent; 0 when there are no programs.
    #[must_use]
    pub fn percent(self) -> f64 {
        100.0 * self.passing as f64 / self.all.max(1) as f64
    }
}

/// A mutant that does not compile and that no built-in rule flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentFailure {
    /// The line at which it fails, without its indentation; empty when Triton names none.
    pub line: String,
    /// The message of Triton.
    pub message: String,
    /// The codes of the learned rules that flag this line.
    pub found_by: Vec<String>,
}

/// The result of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentResult {
    /// All mutants.
    pub unfiltered: CompileRate,
    /// The mutants that no proven rule flags.
    pub filtered: CompileRate,
    /// The mutants that compile although a proven rule flags them, with the codes and what is flagged.
    pub lost: Vec<Vec<(String, String)>>,
    /// The mutants that do not compile and that no built-in rule flags.
    pub silent: Vec<SilentFailure>,
}

/// The reason why there is no result of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The rules were learned from the same kernels, so they say nothing about other ones.
    #[error("the memory was learned with seed {0}: choose another one with --seed")]
    SameSeed(u64),
    /// The oracle gives a version of Triton that cannot be read.
    #[error(transparent)]
    Release(#[from] VersionError),
}

/// Mutates synthetic kernels of a seed and filters the mutants with the memory.
///
/// # Errors
/// Returns an error when rules of the memory were learned with the same seed, or when the oracle's release cannot be
/// read.
pub fn experiment(
    oracle: &Oracle,
    memory: &LearnedRules,
    tasks: usize,
    changes: usize,
    seed: u64,
) -> Result<ExperimentResult, ExperimentError> {
    let learned_with = RuleOrigin::Synthesised(seed);
    if memory.rules().any(|rule| rule.origin == learned_with) {
        return Err(ExperimentError::SameSeed(seed));
    }
    let target = oracle.target()?;
    let gathered = gather(oracle, tasks, changes, seed);
    // The unchanged kernels of the tasks are not mutants.
    let bases: Vec<&KernelProgram> = gathered.tasks.iter().map(|task| &task.program).collect();
    let passing = gathered.passing.iter().filter(|program| !bases.contains(program)).map(|program| (program, true));
    let all: Vec<(&KernelProgram, bool)> =
        passing.chain(gathered.failures.iter().map(|failure| (&failure.program, false))).collect();
    let flagged = oracle.parallel(&all, |_, (program, _)| Parsed::new(&program.text).is_refused_by(memory, target));
    let mut outcome = ExperimentResult::default();
    for ((program, passes), flagged) in all.iter().zip(flagged) {
        let one = CompileRate { passing: usize::from(*passes), all: 1 };
        outcome.unfiltered.add(one);
        if flagged {
            outcome.lost.extend(passes.then(|| findings(program, memory, target)));
        } else {
            outcome.filtered.add(one);
        }
    }
    let silent = silent(oracle, &gathered.failures, target);
    outcome.silent = oracle.parallel(&silent, |_, failure| SilentFailure::of(failure, memory, target));
    Ok(outcome)
}

impl SilentFailure {
    fn of(failure: &CompileFailure, memory: &LearnedRules, target: TritonTarget) -> Self {
        let parsed = Parsed::new(&failure.program.text);
        let line_of = |at: usize| parsed.source.lines().line_of(at);
        let line = failure.failing.span.map(|span| line_of(span.start));
        let text = line.and_then(|line| failure.program.text.lines().nth(line));
        let mut found_by: Vec<String> = flagging(memory, &parsed.context(target))
            .into_iter()
            .filter(|(_, span)| line.is_none_or(|line| (line_of(span.start)..=line_of(span.end)).contains(&line)))
            .map(|(rule, _)| rule.code.clone())
            .collect();
        found_by.dedup();
        let message = failure.failing.message.lines().next().unwrap_or_default().to_owned();
        Self { line: text.unwrap_or_default().trim().to_owned(), message, found_by }
    }
}

/// The codes of the proven rules that flag a program, with what each flags.
fn findings(program: &KernelProgram, memory: &LearnedRules, target: TritonTarget) -> Vec<(String, String)> {
    let parsed = Parsed::new(&program.text);
    let found = flagging(memory, &parsed.context(target));
    found.into_iter().map(|(rule, span)| (rule.code.clone(), parsed.source.slice(span).to_owned())).collect()
}

impl CompileRate {
    fn add(&mut self, other: Self) {
        *self = Self { passing: self.passing + other.passing, all: self.all + other.all };
    }
}

impl Parsed {
    /// Whether a proven rule flags any kernel of this file.
    #[must_use]
    pub(crate) fn is_refused_by(&self, memory: &LearnedRules, target: TritonTarget) -> bool {
        !flagging(memory, &self.context(target)).is_empty()
    }
}

fn flagging<'m>(memory: &'m LearnedRules, context: &RuleContext<'_>) -> Vec<(&'m LearnedRule, Span)> {
    let kernels = 0..context.module.kernels.len();
    kernels.flat_map(|at| memory.proven_in(context, at)).map(|(rule, found)| (rule, found.span)).collect()
}

/// The first proven rule that flags a candidate but not its original, with the span. Triton would reject such a
/// candidate.
#[must_use]
pub fn refusal<'m>(
    memory: &'m LearnedRules,
    original: &str,
    candidate: &str,
    target: TritonTarget,
) -> Option<(&'m LearnedRule, Span)> {
    let of = |text: &str| {
        let source = Source::parse(text);
        let module = model::kernel::Module::build(&source);
        flagging(memory, &RuleContext::new(&source, &module, target))
    };
    let found = of(candidate);
    if found.is_empty() {
        return None;
    }
    // A rule that also flags the original is wrong there, because the original compiles.
    let before = of(original);
    found.into_iter().find(|(rule, _)| before.iter().all(|(other, _)| other.code != rule.code))
}
