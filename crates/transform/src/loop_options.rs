//! Options of `tl.range` for a loop: pipeline stages, unrolling, flattening, warp specialization.

use base::rng::Rng;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::candidate::Change;
use super::proposal::Proposal;
use super::reaching::{Given, Reaching};
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;

/// The maximum number of loops that are changed.
const MOST: usize = 4;
/// The options with numbers, and the numbers that are tried.
const NUMBERS: [(&str, &[i64]); 2] = [("num_stages", &[1, 2, 3, 4, 5]), (UNROLL, &[2, 4])];
const UNROLL: &str = "loop_unroll_factor";

/// Gives a loop that loads data an option of `tl.range`, in place of `range` where needed, or changes the number of an
/// existing option. The iterations stay the same. `num_stages` starts loads of later iterations early, also where only
/// a `tl.dot` would cause that otherwise; `loop_unroll_factor` merges several iterations into one, `flatten` merges two
/// nested loops, and with `warp_specialize` some warps load for the others.
pub(super) struct LoopOptions;

/// A loop that loads.
struct Loop<'a> {
    /// A name that distinguishes the loop from others, in source order.
    name: String,
    call: &'a Call,
    /// The function to call in place of `range`.
    range: Option<String>,
    body: &'a [Stmt],
}

impl Skill for LoopOptions {
    fn name(&self) -> &'static str {
        "loop_options"
    }

    fn about(&self) -> &'static str {
        "Options of `tl.range` for a loop that loads: `num_stages`, `loop_unroll_factor`, `flatten`, `warp_specialize`."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let mut turns = Vec::new();
        for it in loops(subject).iter().take(MOST) {
            for (keyword, choices) in NUMBERS {
                if keyword != UNROLL || rises(subject, it.call) {
                    turns.extend(numbers(it, keyword, choices));
                }
            }
            let has_loop = it.body.iter().any(|stmt| matches!(stmt.kind, StmtKind::For { .. }));
            let is_meant = [("flatten", has_loop), ("warp_specialize", calls(subject, it.body, "dot"))];
            for (keyword, _) in is_meant.iter().filter(|(keyword, is_meant)| *is_meant && given(it, keyword).is_none())
            {
                let changes = vec![Change::Structure(format!("{keyword} for {}", it.name))];
                let kind = format!("loop {keyword}");
                turns.extend(with(it, keyword, "True").map(|edits| Proposal { kind, edits, changes }));
            }
        }
        turns
    }
}

/// The loops of a kernel that load data. Loops over `static_range` are unrolled before Triton pipelines anything.
fn loops<'a>(subject: &Subject<'a>) -> Vec<Loop<'a>> {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let (mut all, mut count) = (Vec::new(), 0);
    walk_statements(&kernel.body, &mut |stmt| {
        let StmtKind::For { iter, body, .. } = &stmt.kind else { return };
        count += 1;
        let Some(call) = iter.as_call().filter(|call| !call.has_star() && !call.args.is_empty()) else { return };
        let range = match call.func.as_name() {
            Some("range") if !is_bound(subject, "range") => match module.language_name(kernel, "range") {
                Some(name) => Some(name),
                None => return,
            },
            _ if module.language_member(kernel, &call.func).as_deref() == Some("range") => None,
            _ => return,
        };
        if calls(subject, body, "load") {
            all.push(Loop { name: format!("loop {count}"), call, range, body });
        }
    });
    all
}

/// Whether a loop certainly does not stop below its start. Triton counts the iterations of a loop that it unrolls by an
/// unsigned division (`arith.divui`, 3.3 to 3.9): where the stop is below the start, that gives half a billion
/// iterations instead of none.
fn rises(subject: &Subject<'_>, call: &Call) -> bool {
    let given: Vec<&Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
    let [start, stop, ..] = given.as_slice() else { return true };
    start.as_int() == Some(0) || is_at_least(subject, stop, start).unwrap_or(false)
}

/// Whether `stop` is the maximum of `start` and something else, directly or through all of its assignments.
fn is_at_least(subject: &Subject<'_>, stop: &Expr, start: &Expr) -> Option<bool> {
    let reaching = Reaching::of(subject.kernel)?;
    let value = |expr: &Expr| {
        let mut from = Vec::new();
        expr.walk(&mut |part| from.extend(part.as_name().map(|_| reaching.of_name(part).map(|read| &read.from))));
        (subject.candidate.text.get(expr.span.start..expr.span.end), from)
    };
    let is_greatest = |expr: &Expr| {
        let call = expr.as_call().filter(|call| {
            subject.candidate.module.language_member(subject.kernel, &call.func).as_deref() == Some("maximum")
        });
        call.is_some_and(|call| call.args.iter().any(|arg| value(&arg.value) == value(start)))
    };
    if stop.as_name().is_none() {
        return Some(is_greatest(stop));
    }
    let from = &reaching.of_name(stop)?.from;
    let is_given = |&id: &usize| matches!(reaching.assignments[id].0, Given::Value(given) if is_greatest(given));
    Some(!from.is_empty() && from.iter().all(is_given))
}

/// Whether a builtin name of Python is bound to something else here.
fn is_bound(subject: &Subject<'_>, name: &str) -> bool {
    subject.kernel.locals.contains(name) || subject.candidate.module.bindings.contains_key(name)
}

/// Whether some statements call a function of Triton, or a method of its name: `descriptor.load`.
fn calls(subject: &Subject<'_>, body: &[Stmt], name: &str) -> bool {
    let mut found = false;
    walk_expressions(body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let is_method = matches!(&call.func.kind, ExprKind::Attribute { name: method, .. } if method == name);
        let member = || subject.candidate.module.language_member(subject.kernel, &call.func);
        found |= is_method || member().as_deref() == Some(name);
    });
    found
}

fn given<'a>(it: &Loop<'a>, keyword: &str) -> Option<&'a Expr> {
    let arg = it.call.args.iter().find(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == keyword));
    arg.map(|arg| &arg.value)
}

/// The loop with one more keyword argument.
fn with(it: &Loop<'_>, keyword: &str, value: &str) -> Option<Vec<Edit>> {
    let end = it.call.args.last()?.span.end;
    let renamed = it.range.iter().map(|name| Edit { span: it.call.func.span, text: name.clone() });
    let added = Edit { span: Span::new(end, end), text: format!(", {keyword}={value}") };
    Some(renamed.chain([added]).collect())
}

/// The loop with other numbers for one keyword. An existing value that is not a number stays.
fn numbers(it: &Loop<'_>, keyword: &str, choices: &[i64]) -> Vec<Proposal> {
    let name = format!("{keyword} of {}", it.name);
    let turn = |direction: &str, edits, change| Proposal {
        kind: format!("loop {keyword}{direction}"),
        edits,
        changes: vec![change],
    };
    let Some(value) = given(it, keyword) else {
        let added = choices.iter().filter_map(|&to| {
            let change = Change::Chosen { name: name.clone(), to };
            Some(turn("", with(it, keyword, &to.to_string())?, change))
        });
        return added.collect();
    };
    let ExprKind::Int(from) = value.kind else { return Vec::new() };
    let Ok(from) = i64::try_from(from) else { return Vec::new() };
    // The nearest numbers come first, as for other options.
    let mut others: Vec<i64> = choices.iter().copied().filter(|&to| to != from).collect();
    others.sort_by_key(|to| to.abs_diff(from));
    let others = others.into_iter().map(|to| {
        let edits = vec![Edit { span: value.span, text: to.to_string() }];
        let change = Change::Number { name: name.clone(), from, to };
        turn(if to > from { " up" } else { " down" }, edits, change)
    });
    others.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;

    /// The kind and the description of each proposal, and the loop heads afterwards.
    fn turned(body: &str) -> Vec<String> {
        let text = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y, n, S: tl.constexpr):\n{body}\ndef run(x):\n    k[(1,)](x, x, 7, 2)\n"
        );
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let said = |turn: &Proposal| {
            let made = candidate.with(&turn.edits, &turn.changes);
            let heads = made.text.lines().filter_map(|line| line.trim().strip_prefix("for i in "));
            format!("{}: {}: {}", turn.kind, made.describe(), heads.collect::<Vec<_>>().join(" "))
        };
        LoopOptions.turns(&subject, &mut Rng::new(1)).iter().map(said).collect()
    }

    const LOAD: &str = "        v = tl.load(x + i)\n";

    #[test]
    fn a_loading_loop_gets_num_stages_and_unroll_factors() {
        assert_eq!(
            turned(&format!("    for i in range(0, n):  # all\n{LOAD}")),
            [
                "loop num_stages: num_stages of loop 1 = 1: tl.range(0, n, num_stages=1):  # all",
                "loop num_stages: num_stages of loop 1 = 2: tl.range(0, n, num_stages=2):  # all",
                "loop num_stages: num_stages of loop 1 = 3: tl.range(0, n, num_stages=3):  # all",
                "loop num_stages: num_stages of loop 1 = 4: tl.range(0, n, num_stages=4):  # all",
                "loop num_stages: num_stages of loop 1 = 5: tl.range(0, n, num_stages=5):  # all",
                "loop loop_unroll_factor: loop_unroll_factor of loop 1 = 2: tl.range(0, n, loop_unroll_factor=2):  # all",
                "loop loop_unroll_factor: loop_unroll_factor of loop 1 = 4: tl.range(0, n, loop_unroll_factor=4):  # all",
            ]
        );
    }

    #[test]
    fn only_loops_that_do_not_stop_below_their_start_are_unrolled() {
        let unrolls = |head: &str| {
            let turned = turned(&format!("    first = tl.program_id(0) * 8\n{head}\n{LOAD}"));
            turned.iter().any(|turn| turn.contains("loop_unroll_factor"))
        };
        assert!(unrolls("    for i in range(n):") && unrolls("    for i in range(0, n, 8):"));
        assert!(
            !unrolls("    for i in range(first, n):")
                && !unrolls("    for i in range(first, tl.minimum(first + 8, n)):")
        );
        assert!(unrolls("    for i in range(first, tl.maximum(n, first)):"));
        assert!(unrolls("    last = tl.maximum(tl.minimum(first + 8, n), first)\n    for i in range(first, last, 8):"));
        assert!(!unrolls("    last = tl.minimum(first + 8, n)\n    for i in range(first, last):"));
        // A later assignment changes one of the operands of the maximum.
        assert!(!unrolls("    last = tl.maximum(n, first)\n    last -= 8\n    for i in range(first, last):"));
        assert!(!unrolls("    last = tl.maximum(n, first)\n    first += 8\n    for i in range(first, last):"));
    }

    #[test]
    fn existing_loop_option_numbers_are_changed() {
        assert_eq!(
            turned(&format!("    for i in tl.range(n, num_stages=4, loop_unroll_factor=2):\n{LOAD}")),
            [
                "loop num_stages down: num_stages of loop 1 4 → 3: tl.range(n, num_stages=3, loop_unroll_factor=2):",
                "loop num_stages up: num_stages of loop 1 4 → 5: tl.range(n, num_stages=5, loop_unroll_factor=2):",
                "loop num_stages down: num_stages of loop 1 4 → 2: tl.range(n, num_stages=2, loop_unroll_factor=2):",
                "loop num_stages down: num_stages of loop 1 4 → 1: tl.range(n, num_stages=1, loop_unroll_factor=2):",
                "loop loop_unroll_factor up: loop_unroll_factor of loop 1 2 → 4: tl.range(n, num_stages=4, loop_unroll_factor=4):",
            ]
        );
        let computed = turned(&format!("    for i in tl.range(n, num_stages=S, loop_unroll_factor=S):\n{LOAD}"));
        assert_eq!(computed, Vec::<String>::new());
    }

    #[test]
    fn nested_loops_are_flattened_and_products_are_spread_over_warps() {
        let found = turned(
            "    for j in tl.static_range(2):\n        v = tl.load(x)\n    for i in range(n):\n        for i in range(n):\n            v = tl.dot(tl.load(x), tl.load(x))\n",
        );
        let flags: Vec<&String> = found.iter().filter(|said| said.contains("True")).collect();
        assert_eq!(
            flags,
            [
                "loop flatten: flatten for loop 2: tl.range(n, flatten=True): range(n):",
                "loop warp_specialize: warp_specialize for loop 2: tl.range(n, warp_specialize=True): range(n):",
                "loop warp_specialize: warp_specialize for loop 3: range(n): tl.range(n, warp_specialize=True):",
            ]
        );
        let given = turned(&format!(
            "    for i in tl.range(n, flatten=True):\n{LOAD}        for i in range(2):\n            pass\n"
        ));
        assert!(given.iter().all(|said| !said.starts_with("loop flatten")), "{given:?}");
    }

    #[test]
    fn descriptor_loads_count_as_loads() {
        let found = turned("    for i in range(n):\n        v = x.load([i, 0])\n");
        assert!(found[0].ends_with(": tl.range(n, num_stages=1):") && found.len() == 7, "{found:?}");
    }

    #[test]
    fn loops_without_loads_or_with_unknown_range_get_no_options() {
        for body in [
            "    for i in range(n):\n        tl.store(x + i, 1.0)\n".to_owned(),
            format!("    for i in tl.static_range(4):\n{LOAD}"),
            format!("    for i in range(*S):\n{LOAD}"),
            format!("    for i in S:\n{LOAD}"),
            format!("    range = tl.static_range\n    for i in range(4):\n{LOAD}"),
            "    while n > 0:\n        v = tl.load(x)\n".to_owned(),
        ] {
            assert_eq!(turned(&body), Vec::<String>::new(), "{body}");
        }
    }
}
