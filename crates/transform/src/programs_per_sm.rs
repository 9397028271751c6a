//! Changes the number of programs of a kernel whose programs loop over the work.

use std::ops::RangeInclusive;

use base::rng::Rng;
use model::kernel::ast::{Expr, ExprKind};
use model::kernel::{Launch, Module};
use model::syntax::Span;
use rules::Edit;

use super::candidate::Change;
use super::proposal::Proposal;
use super::rounds::may_loop;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::subject_launch::only_launch;
use super::written::{grid_of, literal, only_value, parts_of};

/// The possible numbers of programs per multiprocessor; the upper limit is what a multiprocessor has room for.
const EACH: RangeInclusive<i64> = 1..=32;
/// The possible total numbers of programs: smaller ones are numbers of something else, such as warps or parts.
const ALL: RangeInclusive<i64> = 16..=16_384;

/// Doubles or halves the `4` in a grid of `4 * multiprocessors` programs, or the total number of programs. How many
/// programs fit depends on the resources of each, which other proposals change.
pub(super) struct Resident;

impl Skill for Resident {
    fn name(&self) -> &'static str {
        "resident"
    }

    fn about(&self) -> &'static str {
        "How many programs there are for each multiprocessor, or in all, where the grid says that and they go through the rest in a loop."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let Some(count) = only_launch(subject).and_then(|launch| count(subject, launch)) else { return Vec::new() };
        let twice = [(count.number * 2, "up"), (count.number / 2, "down")];
        twice.into_iter().filter_map(|(to, direction)| count.turn(to, direction)).collect()
    }
}

/// A number of programs in the source.
struct Count {
    name: &'static str,
    number: i64,
    /// The span of the number, or an empty span after the expression that would be multiplied by it.
    span: Span,
    may_be: RangeInclusive<i64>,
}

impl Count {
    fn turn(&self, to: i64, direction: &str) -> Option<Proposal> {
        let is_new = self.span.start == self.span.end;
        let text = if is_new { format!(" * {to}") } else { to.to_string() };
        let change = Change::Number { name: self.name.to_owned(), from: self.number, to };
        self.may_be.contains(&to).then(|| Proposal {
            kind: format!("programs {direction}"),
            edits: vec![Edit { span: self.span, text }],
            changes: vec![change],
        })
    }
}

/// The number of programs in the grid of the only launch.
fn count(subject: &Subject<'_>, launch: &Launch) -> Option<Count> {
    let module = &subject.candidate.module;
    let grid = grid_of(module, launch).unwrap_or(&launch.grid);
    let each = |(number, span)| Count { name: "programs per multiprocessor", number, span, may_be: EACH };
    if let Some(factor) = factor(module, launch, grid) {
        return Some(each(factor)).filter(|count| EACH.contains(&count.number));
    }
    if !may_loop(module, subject.kernel) {
        return None;
    }
    let is_tile = |span: Span| subject.knobs.iter().any(|knob| knob.spans().contains(&span));
    let mut numbers = parts_of(grid).iter().filter_map(|part| literal(module, launch, part));
    let (number, span) = numbers.find(|(number, span)| ALL.contains(number) && !is_tile(*span))?;
    Some(Count { name: "programs", number, span, may_be: ALL })
}

/// The factor of the number of multiprocessors in a grid, or in the value of its name there.
fn factor(module: &Module, launch: &Launch, grid: &Expr) -> Option<(i64, Span)> {
    let is_it = |expr: &Expr| holds_multiprocessors(expr) || valued(module, launch, expr).is_some();
    let mut found = multiplied(grid, &is_it);
    grid.walk(&mut |part| {
        let value = valued(module, launch, part).filter(|_| found.is_none());
        found = found.or_else(|| multiplied(value?, &holds_multiprocessors).or_else(|| alone(value?)));
    });
    found.or_else(|| alone(grid))
}

/// `4` of `4 * multiprocessors`
fn multiplied(expr: &Expr, is_it: &impl Fn(&Expr) -> bool) -> Option<(i64, Span)> {
    let mut found = None;
    expr.walk(&mut |part| {
        let ExprKind::Binary { op, left, right } = &part.kind else { return };
        for (one, other) in [(left, right), (right, left)] {
            if op == "*" && is_it(other) {
                found = found.or(one.as_int().and_then(|number| Some((i64::try_from(number).ok()?, one.span))));
            }
        }
    });
    found
}

/// The factor 1 after a property of the device that stands alone, where nothing else depends on it.
fn alone(value: &Expr) -> Option<(i64, Span)> {
    let mut found = None;
    value.walk(&mut |part| {
        if is_attribute(part) {
            found = Some((1, Span::new(part.span.end, part.span.end)));
        }
    });
    found.filter(|_| !matches!(value.kind, ExprKind::IfExp { .. }))
}

/// The value of a name for the number of multiprocessors.
fn valued<'a>(module: &'a Module, launch: &Launch, expr: &Expr) -> Option<&'a Expr> {
    let name = expr.as_name()?;
    let own = only_value(&module.hosts[launch.host?].body, name);
    let global = || module.globals.iter().find(|global| global.name == name).map(|global| &global.value);
    own.or_else(global).filter(|value| holds_multiprocessors(value))
}

fn is_attribute(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Attribute { name, .. } if name == "multi_processor_count")
}

fn holds_multiprocessors(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= is_attribute(part));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;
    use rules::apply_edits;

    /// The lines that the proposals change.
    fn turned_in(body: &str, host: &str) -> Vec<String> {
        let text = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n):\n    {body}\n\ndef run(x, n, p):\n{host}"
        );
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let turns = Resident.turns(&subject, &mut Rng::new(1));
        let line = |turn: &Proposal| {
            let new = apply_edits(&text, &turn.edits);
            new.lines().zip(text.lines()).find(|(new, old)| new != old).map(|(new, _)| new.trim().to_owned()).unwrap()
        };
        turns.iter().map(|turn| format!("{}: {}", turn.kind, line(turn))).collect()
    }

    fn turned(grid: &str, of: &str) -> Vec<String> {
        turned_in("pass", &format!("    count = p.{of}\n    k[({grid},)](x, n)\n"))
    }

    #[test]
    fn the_program_count_per_multiprocessor_is_doubled_and_halved() {
        let expected = ["programs up: k[(min(n, 8 * count),)](x, n)", "programs down: k[(min(n, 2 * count),)](x, n)"];
        assert_eq!(turned("min(n, 4 * count)", "multi_processor_count"), expected);
        assert_eq!(turned("count * 1", "multi_processor_count"), ["programs up: k[(count * 2,)](x, n)"]);
        // The user has another expression for the number.
        assert_eq!(turned("1 * count", "multi_processor_count if p else 1"), ["programs up: k[(2 * count,)](x, n)"]);
    }

    #[test]
    fn a_plain_multiprocessor_count_gets_a_factor() {
        assert_eq!(turned("count", "multi_processor_count"), ["programs up: count = p.multi_processor_count * 2"]);
        let twice = turned("count", "multi_processor_count * 2");
        assert_eq!(
            twice,
            ["programs up: count = p.multi_processor_count * 4", "programs down: count = p.multi_processor_count * 1"]
        );
        let expected = ["programs up: k[(p.multi_processor_count * 2,)](x, n)"];
        assert_eq!(turned("p.multi_processor_count", "other"), expected);
    }

    #[test]
    fn a_literal_program_count_is_changed_only_if_programs_loop() {
        let rounds = "for i in range(n):\n        pass";
        let host = "    count = 132\n    k[(min(n, count), 1, 1)](x, n)\n";
        assert_eq!(turned_in(rounds, host), ["programs up: count = 264", "programs down: count = 66"]);
        assert!(turned_in("pass", host).is_empty());
        assert!(turned_in(rounds, &host.replace("132", "4")).is_empty());
    }

    #[test]
    fn numbers_that_are_no_program_counts_are_unchanged() {
        assert!(turned("4 * count", "shape").is_empty());
        assert!(turned("4 * n", "multi_processor_count").is_empty());
        assert!(turned("64 * count", "multi_processor_count").is_empty());
    }
}
