//! Several rows for each program, where each has one.

use super::lift::{Lifted, lift};
use super::{Change, Skill, Subject, Turn};
use crate::chance::Chance;
use crate::explore::tree::Step;

/// So many rows are tried.
const ROWS: [i64; 4] = [2, 4, 8, 16];

/// Makes tiles of rows of a kernel whose programs take one row each: program `p` takes the rows from `p * ROWS` on, scalars of a row
/// become columns, tiles along the row become tiles of rows, and reductions go along the second axis. Short rows leave the threads of
/// a program with little to do, and what all rows share is loaded once for several of them.
pub(super) struct RowsPerProgram;

impl Skill for RowsPerProgram {
    fn name(&self) -> &'static str {
        "rows_per_program"
    }

    fn about(&self) -> &'static str {
        "Several rows for each program, where each takes one: short rows leave the threads of a program with little to do."
    }

    fn step(&self) -> Step {
        Step::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Chance) -> Vec<Turn> {
        let turn = |rows: i64| {
            let Lifted { edits, size } = lift(subject, rows)?;
            let changes = vec![
                Change::Structure("several rows for each program".to_owned()),
                Change::Number { name: size, from: 1, to: rows },
            ];
            Some(Turn { kind: "rows_per_program".to_owned(), edits, changes })
        };
        ROWS.into_iter().map_while(turn).collect()
    }
}
