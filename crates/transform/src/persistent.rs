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

/// The numbers of programs per multiprocessor that are tried, and those for kernels with matrix products, whose tiles
/// fill a multiprocessor.
const PROGRAMS: [i64; 5] = [1, 2, 4, 8, 16];
const OF_PRODUCTS: [i64; 3] = [1, 2, 4];
/// Numbers of iterations whose loads are in flight at once, each with the numbers of programs, where the loop over
/// programs is the kernel's only loop: without this, such a loop is no faster.
const PIPELINED: [(i64, &[i64]); 2] = [(3, &[1, 2, 4]), (2, &[1, 2])];
/// Programs per multiprocessor where the loop over programs is merged with that of a product: large tiles fill a
/// multiprocessor.
const FLAT: [i64; 1] = [1];

/// The form of the loop over programs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LoopForm {
    Plain,
    /// The loads of this many iterations are in flight at once.
    Pipelined(i64),
    /// The loop is merged with that of the kernel: loads of the next program begin before the current one has ended.
    Flat,
}

/// The number of programs up to which one iteration each suffices on the devices in question.
const FEWEST: i64 = 128;

/// Launches some programs for each multiprocessor, and puts the kernel's body into a loop over the original programs.
/// This saves the start of many small programs, computes once what they have in common, and lets loads of a later
/// iteration begin while an earlier one computes ([`super::loop_options`]). A grid of two axes is processed in its
/// order.
pub(super) struct Persistent;

impl Skill for Persistent {
    fn name(&self) -> &'static str {
        "persistent"
    }

    fn about(&self) -> &'static str {
        "A loop over the programs, of which only a few are launched for each multiprocessor: this saves the start of many small programs."
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
                // These are the names of `loop_options`.
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

/// The number of loops in the kernel.
fn loops(subject: &Subject<'_>) -> usize {
    let mut loops = 0;
    walk_statements(&subject.kernel.body, &mut |stmt| {
        loops += usize::from(matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. }));
    });
    loops
}

/// Whether one of the loops is a counting loop outside of any branch.
fn has_own_loop(subject: &Subject<'_>) -> bool {
    subject.kernel.body.iter().any(|stmt| matches!(stmt.kind, StmtKind::For { .. }))
}

/// Whether the recorded launch had so few programs that none would have a second iteration.
fn has_few_programs(subject: &Subject<'_>) -> bool {
    let of_kernel = subject.records();
    let known = of_kernel.filter(|launch| !launch.grid.is_empty());
    known.map(|launch| launch.grid.iter().product::<i64>()).max().is_some_and(|most| most <= FEWEST)
}

#[cfg(test)]
mod tests;
