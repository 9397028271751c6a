//! Gives each program several rows where it processes one.

use base::rng::Chance;

use super::lift::{Way, lift};
use super::untuned::without_tuner;
use super::{Change, Skill, Subject, Turn};
use crate::Step;

/// So many rows are tried.
const ROWS: [i64; 5] = [2, 4, 8, 16, 32];

/// Where a kernel's rows may be found.
const WAYS: [(Way, &str); 4] = [
    (Way::Programs(0), "several rows for each program"),
    (Way::Programs(1), "several rows of the second axis for each program"),
    (Way::Programs(2), "several rows of the third axis for each program"),
    (Way::Rounds, "several rows for each round"),
];

/// Makes tiles of rows of a kernel whose programs, or whose rounds of a loop that goes on by the number of programs, take one row
/// each: program `p` takes the rows from `p * ROWS` on, scalars of a row become columns, tiles along the row become tiles of rows, and
/// reductions go along the second axis. Short rows leave the threads of a program with little to do, and what all rows share is loaded
/// once for several of them. Rows whose elements lie side by side (columns) are loaded side by side.
pub(super) struct RowsPerProgram;

impl Skill for RowsPerProgram {
    fn name(&self) -> &'static str {
        "rows_per_program"
    }

    fn about(&self) -> &'static str {
        "Several rows for each program, where each takes one, along any axis of the grid, or goes over them one by one: \
         short rows leave the threads of a program with little to do, and neighbouring columns are loaded side by side."
    }

    fn step(&self) -> Step {
        Step::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Chance) -> Vec<Turn> {
        let turn = |way: Way, said: &str, rows: i64| {
            let mut size = String::new();
            let edits = without_tuner(subject, |subject| {
                let lifted = lift(subject, way, rows)?;
                size = lifted.size;
                Some(lifted.edits)
            })?;
            let changes = vec![Change::Structure(said.to_owned()), Change::Number { name: size, from: 1, to: rows }];
            Some(Turn { kind: "rows_per_program".to_owned(), edits, changes })
        };
        let ways = WAYS.iter().flat_map(|(way, said)| ROWS.into_iter().map_while(|rows| turn(*way, said, rows)));
        ways.collect()
    }
}
