//! Gathering of failures: synthetic kernels are mutated and compiled with Triton.

use super::failure::Failure;
use super::mutate::{Mutant, mutants};
use super::oracle::{Oracle, Verdict};
use super::program::Program;
use super::synthesize::{Task, tasks};

/// The programs that were gathered, by verdict.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The tasks whose kernels compile.
    pub tasks: Vec<Task>,
    /// The number of tasks whose kernel does not compile and that are left out.
    pub unfit: usize,
    /// Programs that compile: the kernels of the tasks and their mutants.
    pub passing: Vec<Program>,
    /// Mutants that fail to compile.
    pub failures: Vec<Failure>,
    /// The number of mutants without a verdict.
    pub unknown: usize,
}

/// Creates `count` tasks from a seed, makes up to `changes` mutants of each kernel, and compiles all of them.
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
