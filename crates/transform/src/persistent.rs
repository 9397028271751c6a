//! Persistent kernels: launches only as many programs as the device runs at a time, each of which loops over several of
//! the original programs.

mod body;
mod grid;

use base::rng::Rng;
use model::kernel::ast::{StmtKind, walk_statements};
use protocol::WorkloadSource;

use crate::candidate::Change;
use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

use grid::Grid;

/// So many programs are tried for each multiprocessor, and so many where the kernel multiplies matrices, whose tiles fill one.
const PROGRAMS: [i64; 5] = [1, 2, 4, 8, 16];
const OF_PRODUCTS: [i64; 3] = [1, 2, 4];
/// Numbers of rounds whose loads are under way at once, and of programs with each, where the rounds are the kernel's only loop: without
/// that, such a loop alone is no faster.
const PIPELINED: [(i64, &[i64]); 2] = [(3, &[1, 2, 4]), (2, &[1, 2])];
/// Programs for each multiprocessor where the loop over them is one with that of a product: large tiles fill one.
const FLAT: [i64; 1] = [1];

/// A loop over the programs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LoopForm {
    Plain,
    /// Loads of so many rounds are under way at once.
    Pipelined(i64),
    /// It is one loop with that of the kernel: loads of the next program begin before one has ended.
    Flat,
}

/// With no more programs than this there is one round on the devices that are searched on.
const FEWEST: i64 = 128;

/// Launches some programs for each multiprocessor, and puts the kernel's body into a loop over the programs that there were. Nothing is
/// started anew for each of many small programs, what they have in common is computed once, and loads of a later round may
/// begin while an earlier one is computed ([`super::loop_options`]). A grid of two axes is gone through in its order.
pub(super) struct Persistent;

impl Skill for Persistent {
    fn name(&self) -> &'static str {
        "persistent"
    }

    fn about(&self) -> &'static str {
        "A loop over the programs, of which only some are launched for each multiprocessor: nothing is started anew for each of many small ones."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let kernel = subject.kernel;
        let is_plain = kernel.plain && !kernel.has_error && kernel.params.iter().all(|param| !param.variadic);
        if subject.workload.source == WorkloadSource::Launch || !is_plain || has_few_programs(subject) {
            return Vec::new();
        }
        let Some(grid) = Grid::of(subject) else { return Vec::new() };
        let turns = |form: LoopForm, choices: &[i64]| -> Vec<Proposal> {
            let Some(body) = body::edits(subject, &grid.counts, form) else { return Vec::new() };
            let turn = |&programs: &i64| {
                let edits = body.iter().cloned().chain(grid.edits(programs)).collect();
                let mut changes = vec![Change::Structure("a loop over the programs".to_owned())];
                changes.push(Change::Chosen { name: "programs per multiprocessor".to_owned(), to: programs });
                // As `loop_options` has it.
                let (kind, more) = match form {
                    LoopForm::Plain => ("persistent", None),
                    LoopForm::Pipelined(to) => {
                        ("persistent pipelined", Some(Change::Chosen { name: "num_stages of loop 1".to_owned(), to }))
                    }
                    LoopForm::Flat => {
                        ("persistent flattened", Some(Change::Structure("flatten for loop 1".to_owned())))
                    }
                };
                changes.extend(more);
                Proposal { kind: kind.to_owned(), edits, changes }
            };
            choices.iter().map(turn).collect()
        };
        let (has_product, loops) = (subject.has_product(), loops(subject));
        let mut all = turns(LoopForm::Plain, if has_product { &OF_PRODUCTS } else { &PROGRAMS });
        if !all.is_empty() && !has_product && loops == 0 {
            all.extend(PIPELINED.iter().flat_map(|&(stages, choices)| turns(LoopForm::Pipelined(stages), choices)));
        }
        if !all.is_empty() && has_product && loops == 1 && has_own_loop(subject) {
            all.extend(turns(LoopForm::Flat, &FLAT));
        }
        all
    }
}

/// How many loops the kernel has.
fn loops(subject: &Subject<'_>) -> usize {
    let mut loops = 0;
    walk_statements(&subject.kernel.body, &mut |stmt| {
        loops += usize::from(matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. }));
    });
    loops
}

/// Whether one of them counts, and stands under no condition.
fn has_own_loop(subject: &Subject<'_>) -> bool {
    subject.kernel.body.iter().any(|stmt| matches!(stmt.kind, StmtKind::For { .. }))
}

/// Whether it was launched with so few programs that none would have a second round.
fn has_few_programs(subject: &Subject<'_>) -> bool {
    let of_kernel = subject.records();
    let known = of_kernel.filter(|launch| !launch.grid.is_empty());
    known.map(|launch| launch.grid.iter().product::<i64>()).max().is_some_and(|most| most <= FEWEST)
}

#[cfg(test)]
mod tests;
