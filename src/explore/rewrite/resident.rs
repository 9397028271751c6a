//! Other numbers of programs for each multiprocessor, one at a time.

use super::launched::only_launch;
use super::written::grid_of;
use super::{Change, Skill, Subject, Turn};
use crate::chance::Chance;
use crate::explore::tree::Step;
use crate::kernel::Host;
use crate::kernel::ast::{Expr, ExprKind, walk_statements};
use crate::rules::Edit;

/// Not more than a multiprocessor has places for.
const MOST: i64 = 32;

/// Turns `4` in a grid of `4 * multiprocessors` programs: twice, half. How many there is room for depends on what one takes, which other
/// turns change.
pub(super) struct Resident;

impl Skill for Resident {
    fn name(&self) -> &'static str {
        "resident"
    }

    fn about(&self) -> &'static str {
        "How many programs there are for each multiprocessor, where the grid says that."
    }

    fn step(&self) -> Step {
        Step::Small
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Chance) -> Vec<Turn> {
        let Some((number, from)) = factor(subject) else { return Vec::new() };
        let turn = |(to, direction): (i64, &str)| {
            let change = Change::Number { name: "programs per multiprocessor".to_owned(), from, to };
            let edits = vec![Edit { span: number.span, text: to.to_string() }];
            (1..=MOST).contains(&to).then(|| Turn {
                kind: format!("programs {direction}"),
                edits,
                changes: vec![change],
            })
        };
        [(from * 2, "up"), (from / 2, "down")].into_iter().filter_map(turn).collect()
    }
}

/// What stands before the number of multiprocessors in a grid.
fn factor<'a>(subject: &'a Subject<'a>) -> Option<(&'a Expr, i64)> {
    let module = &subject.candidate.module;
    let launch = only_launch(subject)?;
    let host = &module.hosts[launch.host?];
    let mut found = None;
    grid_of(module, launch)?.walk(&mut |expr| {
        if let ExprKind::Binary { op, left, right } = &expr.kind
            && op == "*"
            && right.as_name().is_some_and(|name| is_multiprocessors(host, name))
        {
            found = left.as_int().and_then(|number| Some((left.as_ref(), i64::try_from(number).ok()?)));
        }
    });
    found.filter(|(_, number)| (1..=MOST).contains(number))
}

/// Whether a name holds what the device says of itself.
fn is_multiprocessors(host: &Host, name: &str) -> bool {
    let mut says_so = false;
    walk_statements(&host.body, &mut |stmt| {
        if stmt.targets().iter().any(|target| target.as_name() == Some(name)) {
            for expr in stmt.exprs() {
                expr.walk(&mut |part| {
                    says_so |=
                        matches!(&part.kind, ExprKind::Attribute { name, .. } if name == "multi_processor_count");
                });
            }
        }
    });
    says_so
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::candidate::Candidate;
    use crate::protocol::Workload;
    use crate::rules::apply_edits;

    fn turned(grid: &str, of: &str) -> Vec<String> {
        let text = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n):\n    pass\n\ndef run(x, n, p):\n    count = p.{of}\n    k[({grid},)](x, n)\n"
        );
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let turns = Resident.turns(&subject, &mut Chance::new(1));
        let line = |turn: &Turn| apply_edits(&text, &turn.edits).lines().last().unwrap_or_default().to_owned();
        turns.iter().map(|turn| format!("{}: {}", turn.kind, line(turn))).collect()
    }

    #[test]
    fn the_number_is_doubled_and_halved() {
        let expected =
            ["programs up:     k[(min(n, 8 * count),)](x, n)", "programs down:     k[(min(n, 2 * count),)](x, n)"];
        assert_eq!(turned("min(n, 4 * count)", "multi_processor_count"), expected);
        assert_eq!(turned("1 * count", "multi_processor_count"), ["programs up:     k[(2 * count,)](x, n)"]);
    }

    #[test]
    fn other_numbers_are_left_alone() {
        assert!(turned("4 * count", "shape").is_empty());
        assert!(turned("4 * n", "multi_processor_count").is_empty());
        assert!(turned("64 * count", "multi_processor_count").is_empty());
    }
}
