//! Hoists loads of loop-invariant addresses out of a loop.

use base::rng::Rng;
use model::kernel::ast::{Expr, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::candidate::Change;
use super::lines::{line_start, lines_with_comments};
use super::loads::{Loaded, loaded, written};
use super::names::{bound_by, in_expr};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::indent_of;
use super::written::bindings;

/// Moves a loop-invariant load, with the same address and the same mask in each iteration, in front of the loop,
/// together with the statements that it depends on. Triton does not move such loads, since it does not know that the
/// loop does not write there.
pub(super) struct HoistedLoads;

impl Skill for HoistedLoads {
    fn name(&self) -> &'static str {
        "hoisted_loads"
    }

    fn about(&self) -> &'static str {
        "Values that all iterations of a loop load from the same address, such as weights, are loaded once before the loop, at the cost of registers."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error {
            return Vec::new();
        }
        let (mut turns, mut count) = (Vec::new(), 0);
        walk_statements(&subject.kernel.body, &mut |stmt| {
            let (StmtKind::For { body, .. } | StmtKind::While { body, .. }) = &stmt.kind else { return };
            count += 1;
            if let Some(edits) = hoisted(subject, stmt, body) {
                let changes = vec![Change::Structure(format!("loads before loop {count}"))];
                turns.push(Proposal { kind: "hoisted_loads".to_owned(), edits, changes });
            }
        });
        turns
    }
}

/// The edits that move all movable statements; `None` where no load is among them.
fn hoisted(subject: &Subject<'_>, around: &Stmt, body: &[Stmt]) -> Option<Vec<Edit>> {
    let steady = Steady::of(subject, around, body, true)?;
    if !steady.loads || steady.statements.len() == body.len() {
        return None;
    }
    moved(subject, around, &steady.statements)
}

/// The loop-invariant parts of a loop.
pub(super) struct Steady<'a> {
    /// The loop-invariant statements, in order.
    pub(super) statements: Vec<&'a Stmt>,
    /// The names whose values differ from iteration to iteration.
    pub(super) differs: Vec<&'a str>,
    loads: bool,
}

impl<'a> Steady<'a> {
    /// The invariant statements, with or without loads; `None` where it is unknown which memory the loop writes.
    pub(super) fn of(subject: &Subject<'_>, around: &'a Stmt, body: &'a [Stmt], with_loads: bool) -> Option<Self> {
        let mut differs: Vec<&str> = around.targets().iter().flat_map(in_expr).collect();
        walk_statements(body, &mut |stmt| differs.extend(bound_by(stmt).unwrap_or_default()));
        let written = written(subject, body)?;
        let (mut statements, mut loads): (Vec<&Stmt>, bool) = (Vec::new(), false);
        for stmt in body {
            let Some((name, value)) = once(subject, stmt) else { continue };
            if in_expr(value).iter().any(|read| differs.contains(read)) {
                continue;
            }
            match loaded(subject, value, &written) {
                Loaded::Some if with_loads => loads = true,
                Loaded::None => {}
                Loaded::Some | Loaded::Unknown => continue,
            }
            differs.retain(|other| *other != name);
            statements.push(stmt);
        }
        Some(Self { statements, differs, loads })
    }
}

/// The edits that move statements of a loop in front of it.
pub(super) fn moved(subject: &Subject<'_>, around: &Stmt, statements: &[&Stmt]) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let indent = indent_of(text, around.span.start)?;
    let mut edits = Vec::new();
    let mut before = String::new();
    for stmt in statements {
        let lines = lines_with_comments(text, stmt)?;
        let deeper = indent_of(text, stmt.span.start)?;
        for line in text[lines.start..lines.end].lines() {
            // Further lines of a statement keep their relative indentation.
            before += &format!("{indent}{}\n", line.strip_prefix(deeper).unwrap_or(line.trim_start()));
        }
        edits.push(Edit { span: Span::new(lines.start, (lines.end + 1).min(text.len())), text: String::new() });
    }
    let start = line_start(text, around.span.start);
    edits.insert(0, Edit { span: Span::new(start, start), text: before });
    Some(edits)
}

/// `name = value`, for a name without another binding.
pub(super) fn once<'a>(subject: &Subject<'_>, stmt: &'a Stmt) -> Option<(&'a str, &'a Expr)> {
    let StmtKind::Assign { targets, annotation: None, value: Some(value) } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let name = target.as_name()?;
    let is_param = subject.kernel.params.iter().any(|param| param.name == name);
    (!is_param && bindings(&subject.kernel.body, name).len() == 1).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    const KERNEL: &str = "import triton
import triton.language as tl

@triton.jit
def k(x, w, out, rows, N, B: tl.constexpr):
    first = tl.program_id(0)
    cols = tl.arange(0, B)
    for row in range(first, rows, 4):
        a = tl.load(x + row * N + cols, mask=cols < N, other=0.0)
        # the weights
        scale = tl.load(
            w + cols, mask=cols < N, other=0.0,
        ).to(tl.float32)
        twice = scale * 2  # of them
        tl.store(out + row * N + cols, a * twice, mask=cols < N)

def run(x, w, out):
    k[(4,)](x, w, out, 7, 8, B=64)
";

    fn turned(text: &str) -> Vec<String> {
        turned_by(&HoistedLoads, text)
    }

    #[test]
    fn loop_invariant_loads_are_moved_before_the_loop() {
        let expected = KERNEL
            .replace(
                "    for row in range",
                "    # the weights
    scale = tl.load(
        w + cols, mask=cols < N, other=0.0,
    ).to(tl.float32)
    twice = scale * 2  # of them
    for row in range",
            )
            .replace(
                "        # the weights
        scale = tl.load(
            w + cols, mask=cols < N, other=0.0,
        ).to(tl.float32)
        twice = scale * 2  # of them
",
                "",
            );
        assert_eq!(turned(KERNEL), [expected.as_str()]);
        assert!(turned(&expected).is_empty());
        // The address may have a name of its own.
        let named =
            KERNEL.replace("w + cols, mask", "base, mask").replace("    for row", "    base = w + cols\n    for row");
        assert_eq!(turned(&named).len(), 1);
    }

    #[test]
    fn loads_that_may_vary_stay_in_the_loop() {
        for (old, new) in [
            ("w + cols, mask", "w + row, mask"),
            ("w + cols, mask=cols < N", "w + cols, mask=cols < N - row"),
            // The loop writes to that memory, or may do so.
            ("out + row * N", "w + row * N"),
            ("        twice", "        helper(w)\n        twice"),
            ("w + cols, mask", "f(w) + cols, mask"),
            ("other=0.0,\n", "other=0.0, volatile=True,\n"),
            ("        twice", "        scale = scale + row\n        twice"),
            ("        twice = scale * 2  # of them\n", "        twice = scale * 2\n        w += 1\n"),
        ] {
            let text = KERNEL.replacen(old, new, 1);
            assert!(text != KERNEL && turned(&text).is_empty(), "{new}: {:?}", turned(&text));
        }
        let random = KERNEL.replace("scale * 2", "scale * tl.rand(7, cols)");
        assert!(turned(&random)[0].contains("        twice"), "{:?}", turned(&random));
    }
}
