//! As many programs as the device runs at a time, each of which goes through several of those that were launched.

mod body;
mod grid;

use super::{Change, Skill, Subject, Turn};
use crate::chance::Chance;
use crate::explore::tree::Step;
use crate::protocol::Source;

use grid::Grid;

/// So many programs are tried for each multiprocessor, and so many where the kernel multiplies matrices, whose tiles fill one.
const PROGRAMS: [i64; 5] = [1, 2, 4, 8, 16];
const OF_PRODUCTS: [i64; 3] = [1, 2, 4];
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

    fn step(&self) -> Step {
        Step::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Chance) -> Vec<Turn> {
        let kernel = subject.kernel;
        let is_plain = kernel.plain && !kernel.has_error && kernel.params.iter().all(|param| !param.variadic);
        if subject.workload.source == Source::Launch || !is_plain || has_few_programs(subject) {
            return Vec::new();
        }
        let Some(grid) = Grid::of(subject) else { return Vec::new() };
        let Some(body) = body::edits(subject, &grid.counts) else { return Vec::new() };
        let turn = |programs: i64| {
            let edits = body.iter().cloned().chain(grid.edits(programs)).collect();
            let structure = Change::Structure("a loop over the programs".to_owned());
            let number = Change::Chosen { name: "programs per multiprocessor".to_owned(), to: programs };
            Turn { kind: "persistent".to_owned(), edits, changes: vec![structure, number] }
        };
        let choices = if subject.has_product() { OF_PRODUCTS.as_slice() } else { PROGRAMS.as_slice() };
        choices.iter().map(|&programs| turn(programs)).collect()
    }
}

/// Whether it was launched with so few programs that none would have a second round.
fn has_few_programs(subject: &Subject<'_>) -> bool {
    let of_kernel = subject.workload.launches.iter().filter(|launch| launch.kernel == subject.kernel.name);
    let known = of_kernel.filter(|launch| !launch.grid.is_empty());
    known.map(|launch| launch.grid.iter().product::<i64>()).max().is_some_and(|most| most <= FEWEST)
}

#[cfg(test)]
mod tests;
