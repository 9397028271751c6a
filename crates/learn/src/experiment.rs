//! What the memory is worth without a model: how many changed kernels compile, and how many of those that it lets pass.

use model::api::Target;
use model::syntax::{Source, Span};
use rules::Context;
use rules::learned::{LearnedRule, Memory};

use super::cases::Parsed;
use super::gather::gather;
use super::oracle::Oracle;
use super::program::Program;

/// How many of some programs compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Those that compile.
    pub passing: usize,
    /// All.
    pub all: usize,
}

impl Share {
    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        100.0 * self.passing as f64 / self.all.max(1) as f64
    }
}

/// What came of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Changed kernels as they come.
    pub unfiltered: Share,
    /// Those that no proven rule flags.
    pub filtered: Share,
    /// How many that compile were flagged all the same.
    pub lost: usize,
}

/// Changes kernels of a seed, which must be another one than that of the learning, and filters them by the memory.
#[must_use]
pub fn experiment(
    oracle: &Oracle,
    memory: &Memory,
    tasks: usize,
    changes: usize,
    seed: u64,
    target: Target,
) -> Outcome {
    let gathered = gather(oracle, tasks, changes, seed);
    // The kernels of the tasks themselves are no changed ones.
    let bases: Vec<&Program> = gathered.tasks.iter().map(|task| &task.program).collect();
    let passing = gathered.passing.iter().filter(|program| !bases.contains(program)).map(|program| (program, true));
    let all: Vec<(&Program, bool)> =
        passing.chain(gathered.failures.iter().map(|failure| (&failure.program, false))).collect();
    let flagged = oracle.share(&all, |_, (program, _)| Parsed::new(&program.text).is_refused_by(memory, target));
    let mut outcome = Outcome::default();
    for ((_, passes), flagged) in all.iter().zip(flagged) {
        let one = Share { passing: usize::from(*passes), all: 1 };
        outcome.unfiltered.add(one);
        if flagged {
            outcome.lost += one.passing;
        } else {
            outcome.filtered.add(one);
        }
    }
    outcome
}

impl Share {
    fn add(&mut self, other: Self) {
        *self = Self { passing: self.passing + other.passing, all: self.all + other.all };
    }
}

impl Parsed {
    /// Whether a proven rule flags some kernel of it.
    #[must_use]
    pub fn is_refused_by(&self, memory: &Memory, target: Target) -> bool {
        !flagging(memory, &self.context(target)).is_empty()
    }
}

fn flagging<'m>(memory: &'m Memory, context: &Context<'_>) -> Vec<(&'m LearnedRule, Span)> {
    let kernels = 0..context.module.kernels.len();
    kernels.flat_map(|at| memory.proven_in(context, at)).map(|(rule, found)| (rule, found.span)).collect()
}

/// The first proven rule that flags a candidate and not the text that it was made of, and where: Triton would refuse it.
#[must_use]
pub fn refusal<'m>(
    memory: &'m Memory,
    original: &str,
    candidate: &str,
    target: Target,
) -> Option<(&'m LearnedRule, Span)> {
    let of = |text: &str| {
        let source = Source::parse(text);
        let module = model::kernel::Module::build(&source);
        flagging(memory, &Context::new(&source, &module, target))
    };
    let found = of(candidate);
    if found.is_empty() {
        return None;
    }
    // What the original has, too, compiles there, whatever a rule says.
    let before = of(original);
    found.into_iter().find(|(rule, _)| before.iter().all(|(other, _)| other.code != rule.code))
}
