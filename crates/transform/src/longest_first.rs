//! Reverses the order of the programs where later ones have longer loops, so that the longest start first.

use std::collections::BTreeSet;

use base::rng::Rng;
use model::kernel::ast::{Expr, StmtKind, walk_statements};
use rules::Edit;

use super::grouped_order::{axis, calls};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;

/// The axes of a grid.
const AXES: [i64; 3] = [0, 1, 2];

/// Reverses the program indices of an axis, `tl.num_programs(0) - 1 - tl.program_id(0)`, where they bound one side of a
/// loop, as the rows of causal attention do: there the last programs have the most iterations. The device starts
/// programs in order, so at the end it waits for a few long ones; with the longest first it waits for short ones. This
/// is a permutation of the programs. Programs that wait for each other may depend on their order, and stay as they are.
pub(super) struct LongestFirst;

impl Skill for LongestFirst {
    fn name(&self) -> &'static str {
        "longest_first"
    }

    fn about(&self) -> &'static str {
        "The programs with the most loop iterations start first, so that the device waits for short ones at the end."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error || may_wait(subject) {
            return Vec::new();
        }
        AXES.into_iter().filter_map(|at| turned(subject, at)).collect()
    }
}

/// Whether programs may wait for each other, or already run in a chosen order.
fn may_wait(subject: &Subject<'_>) -> bool {
    let mut waits = false;
    walk_statements(&subject.kernel.body, &mut |stmt| waits |= matches!(stmt.kind, StmtKind::While { .. }));
    let is_own = |member: String| member.starts_with("atomic") || member == "swizzle2d";
    waits || calls(subject.kernel).iter().any(|(_, call)| subject.member(call).is_some_and(is_own))
}

fn turned(subject: &Subject<'_>, at: i64) -> Option<Proposal> {
    let text = subject.candidate.text.as_str();
    let count = subject.candidate.module.language_name(subject.kernel, "num_programs")?;
    let ids: Vec<&Expr> = calls(subject.kernel)
        .into_iter()
        .filter(|(expr, _)| axis(subject, expr) == Some(at))
        .map(|(expr, _)| expr)
        .collect();
    let before = format!("{count}({at}) - 1 - ");
    let is_turned = ids.iter().any(|id| text[..id.span.start].ends_with(&before));
    if ids.is_empty() || is_turned || !bounds_a_loop(subject, at) {
        return None;
    }
    let edit = |id: &&Expr| Edit { span: id.span, text: format!("({before}{})", &text[id.span.start..id.span.end]) };
    Proposal::of_structure(
        "longest_first",
        &format!("programs of axis {at} the other way around"),
        ids.iter().map(edit).collect(),
    )
}

/// Whether exactly one bound of a loop depends on the program index of an axis. A loop whose bounds both depend on it
/// has the same number of iterations in all programs.
fn bounds_a_loop(subject: &Subject<'_>, at: i64) -> bool {
    let mut known = BTreeSet::new();
    let depends = |expr: &Expr, known: &BTreeSet<&str>| {
        let mut found = false;
        expr.walk(&mut |part| {
            found |= axis(subject, part) == Some(at) || part.as_name().is_some_and(|name| known.contains(name))
        });
        found
    };
    // Values assigned in a loop may be used earlier in its body.
    loop {
        let before = known.len();
        walk_statements(&subject.kernel.body, &mut |stmt| {
            let values = match &stmt.kind {
                StmtKind::Assign { value: Some(value), .. } | StmtKind::AugAssign { value, .. } => Some(value),
                _ => None,
            };
            if values.is_some_and(|value| depends(value, &known)) {
                stmt.targets().iter().for_each(|target| target.walk(&mut |part| known.extend(part.as_name())));
            }
        });
        if known.len() == before {
            break;
        }
    }
    let mut found = false;
    walk_statements(&subject.kernel.body, &mut |stmt| {
        let StmtKind::For { iter, .. } = &stmt.kind else { return };
        let Some(call) = iter.as_call() else { return };
        let plain: Vec<&Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
        found |= match plain[..] {
            [stop] => depends(stop, &known),
            // A loop over programs advances by their number.
            [start, stop] | [start, stop, _] => {
                depends(start, &known) != depends(stop, &known) && !is_over_programs(subject, iter)
            }
            _ => false,
        };
    });
    found
}

fn is_over_programs(subject: &Subject<'_>, iter: &Expr) -> bool {
    let mut found = false;
    iter.walk(&mut |part| {
        found |= part.as_call().is_some_and(|call| subject.member(call).as_deref() == Some("num_programs"));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    fn turned(body: &str) -> Vec<String> {
        let text = |body: &str| {
            format!(
                "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n{body}\ndef run(x):\n    k[(7, 3)](x, 7, B=8)\n"
            )
        };
        let before = text("");
        let start = before.find("\ndef run").unwrap();
        turned_by(&LongestFirst, &text(body))
            .iter()
            .map(|text| text[start..text.find("\ndef run").unwrap()].to_owned())
            .collect()
    }

    const LOOP: &str = "    for at in range(0, end, B):\n        tl.store(x + at, first)\n";

    #[test]
    fn programs_with_growing_loops_are_reversed() {
        let causal = format!(
            "    first = tl.program_id(0) * B\n    head = tl.program_id(1)\n    end = tl.minimum(first + B, n)\n{LOOP}"
        );
        let expected = causal.replace("tl.program_id(0)", "(tl.num_programs(0) - 1 - tl.program_id(0))");
        assert_eq!(turned(&causal), std::slice::from_ref(&expected));
        assert!(turned(&expected).is_empty(), "once is enough");
        let other = format!(
            "    first = tl.program_id(axis=1) * B\n    end = n\n{}",
            LOOP.replace("range(0, end", "tl.range(first, end")
        );
        assert_eq!(
            turned(&other),
            [other.replace("tl.program_id(axis=1)", "(tl.num_programs(1) - 1 - tl.program_id(axis=1))")]
        );
    }

    #[test]
    fn an_axis_may_be_used_in_several_places() {
        let body = format!("    first = tl.program_id(0) * B\n    end = tl.program_id(0) + 1\n{LOOP}");
        let id = "tl.program_id(0)";
        assert_eq!(turned(&body), [body.replace(id, &format!("(tl.num_programs(0) - 1 - {id})"))]);
    }

    #[test]
    fn programs_with_equally_long_loops_keep_their_order() {
        for body in [
            format!("    first = tl.program_id(0) * B\n    end = n\n{LOOP}"),
            format!(
                "    first = tl.program_id(0) * B\n    end = first + B\n{}",
                LOOP.replace("range(0", "range(first")
            ),
            "    for at in tl.range(tl.program_id(0), n, tl.num_programs(0)):\n        tl.store(x + at, at)\n"
                .to_owned(),
        ] {
            assert!(turned(&body).is_empty(), "{body}");
        }
    }

    #[test]
    fn programs_that_may_wait_for_each_other_keep_their_order() {
        let causal = format!("    first = tl.program_id(0) * B\n    end = first + B\n{LOOP}");
        for more in [
            "    tl.atomic_add(x, 1)\n",
            "    while tl.load(x) < first:\n        end = end\n",
            "    a, b = tl.swizzle2d(first, end, 4, 4, 2)\n",
        ] {
            assert!(turned(&format!("{causal}{more}")).is_empty(), "{more}");
        }
    }
}
