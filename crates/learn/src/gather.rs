//! Gathering failures: kernels are made up, changed, and shown to Triton.

use super::failure::Failure;
use super::mutate::{Mutant, mutants};
use super::oracle::{Oracle, Verdict};
use super::program::Program;
use super::synthesize::{Task, tasks};

/// What was gathered.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The tasks whose kernels compile.
    pub tasks: Vec<Task>,
    /// How many kernels of tasks do not, and are left out.
    pub unfit: usize,
    /// Programs that compile: the kernels of the tasks, and changed ones.
    pub passing: Vec<Program>,
    /// Programs that do not.
    pub failures: Vec<Failure>,
    /// How many programs got no verdict.
    pub unknown: usize,
}

/// Makes `count` tasks of a seed, changes the kernel of each in `changes` ways, and asks about all of them.
#[must_use]
pub fn gather(oracle: &Oracle, count: usize, changes: usize, seed: u64) -> Gathered {
    let all = tasks(count, seed);
    let made = oracle.share(&all, |asker, task| {
        let typed = asker.types(&task.program)?;
        let asked: Vec<(Mutant, Verdict)> = mutants(task, &typed, changes, seed)
            .into_iter()
            .map(|mutant| {
                let verdict = asker.verdict(&mutant.program);
                (mutant, verdict)
            })
            .collect();
        Some(asked)
    });
    let mut gathered = Gathered::default();
    for (task, asked) in all.into_iter().zip(made) {
        let Some(asked) = asked else {
            gathered.unfit += 1;
            continue;
        };
        gathered.passing.push(task.program.clone());
        for (Mutant { program, .. }, verdict) in asked {
            match verdict {
                Verdict::Accepted => gathered.passing.push(program),
                Verdict::Refused(failing) => gathered.failures.push(Failure {
                    origin: format!("task {}", task.number),
                    program,
                    passing: Some(task.program.clone()),
                    failing,
                }),
                Verdict::Unknown => gathered.unknown += 1,
            }
        }
        gathered.tasks.push(task);
    }
    gathered
}
