//! Gathering of failures: synthetic kernels are mutated and compiled with Triton.

use super::failure::CompileFailure;
use super::mutate::mutants;
use super::oracle::{Oracle, OracleVerdict};
use super::program::KernelProgram;
use super::synthesize::{SyntheticTask, tasks};

/// The programs that were gathered, by verdict.
#[derive(Debug, Default)]
pub struct GatheredFailures {
    /// The tasks whose kernels compile.
    pub tasks: Vec<SyntheticTask>,
    /// The number of tasks whose kernel does not compile and that are left out.
    pub unfit: usize,
    /// Programs that compile: the kernels of the tasks and their mutants.
    pub passing: Vec<KernelProgram>,
    /// Mutants that fail to compile.
    pub failures: Vec<CompileFailure>,
    /// The number of mutants without a verdict.
    pub unknown: usize,
}

/// Creates `count` tasks from a seed, makes up to `changes` mutants of each kernel, and compiles all of them.
#[must_use]
pub fn gather(oracle: &Oracle, count: usize, changes: usize, seed: u64) -> GatheredFailures {
    let all = tasks(count, seed);
    let made = oracle.parallel(&all, |asker, task| {
        let typed = asker.types(&task.program)?;
        let asked: Vec<(KernelProgram, OracleVerdict)> = mutants(task, &typed, changes, seed)
            .into_iter()
            .map(|mutant| {
                let verdict = asker.verdict(&mutant);
                (mutant, verdict)
            })
            .collect();
        Some(asked)
    });
    let mut gathered = GatheredFailures::default();
    for (task, asked) in all.into_iter().zip(made) {
        let Some(asked) = asked else {
            gathered.unfit += 1;
            continue;
        };
        gathered.passing.push(task.program.clone());
        for (program, verdict) in asked {
            match verdict {
                OracleVerdict::Accepted => gathered.passing.push(program),
                OracleVerdict::Refused(failing) => gathered.failures.push(CompileFailure {
                    origin: format!("task {}", task.number),
                    program,
                    passing: Some(task.program.clone()),
                    failing,
                }),
                OracleVerdict::Unknown => gathered.unknown += 1,
            }
        }
        gathered.tasks.push(task);
    }
    gathered
}
