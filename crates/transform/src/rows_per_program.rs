//! Gives each program several rows where it processes one.

use base::rng::Rng;

use super::candidate::Change;
use super::lift::{RowSource, lift};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::untuned::without_tuner;

/// The numbers of rows that are tried.
const ROWS: [i64; 5] = [2, 4, 8, 16, 32];

/// The sources of a kernel's row index that are tried.
const WAYS: [(RowSource, &str); 4] = [
    (RowSource::Programs(0), "several rows for each program"),
    (RowSource::Programs(1), "several rows of the second axis for each program"),
    (RowSource::Programs(2), "several rows of the third axis for each program"),
    (RowSource::Rounds, "several rows for each iteration"),
];

/// Lets a kernel process tiles of rows where each program, or each iteration of a loop that advances by the number of
/// programs, processes one row: program `p` takes the rows from `p * ROWS` on, scalars of a row become columns, tiles
/// along the row become tiles of rows, and reductions are along the second axis. Short rows leave the threads of a
/// program nearly idle, and data that all rows share is loaded once for several of them. Rows that are columns in
/// memory are loaded contiguously.
pub(super) struct RowsPerProgram;

impl Skill for RowsPerProgram {
    fn name(&self) -> &'static str {
        "rows_per_program"
    }

    fn about(&self) -> &'static str {
        "Several rows for each program, where each takes one, along any axis of the grid, or goes over them one by one: \
         short rows leave the threads of a program with little to do, and neighbouring columns are loaded side by side."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let turn = |way: RowSource, said: &str, rows: i64| {
            let mut size = String::new();
            let edits = without_tuner(subject, |subject| {
                let lifted = lift(subject, way, rows)?;
                size = lifted.size;
                Some(lifted.edits)
            })?;
            let changes = vec![Change::Structure(said.to_owned()), Change::Number { name: size, from: 1, to: rows }];
            Some(Proposal { kind: "rows_per_program".to_owned(), edits, changes })
        };
        let ways = WAYS.iter().flat_map(|(way, said)| ROWS.into_iter().map_while(|rows| turn(*way, said, rows)));
        ways.collect()
    }
}
