//! Loads a whole row into one tile where several passes go over it in parts.

use base::rng::Rng;
use model::kernel::ast::{Arg, Expr, Stmt, StmtKind, walk_statements};
use model::kernel::{Kernel, Module};
use protocol::WorkloadSource;
use rules::Edit;

use super::candidate::Change;
use super::launched::passed_for;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::untuned::without_tuner;
use super::words::indent_of;

/// Makes the tile as long as the row, so that `for start in range(0, n, BLOCK)`, or `range(tl.cdiv(n, BLOCK))`, has a
/// single iteration, and removes the loops: values that the first pass loads are still in registers for the others, and
/// Triton drops repeated loads. Rows that do not fit into the registers of a program spill, which the judge measures. A
/// row without elements has a tile of one.
pub(super) struct SingleTile;

/// A loop along a row.
struct Pass<'a> {
    variable: &'a str,
    /// The parameters for the length of the row and of the tile.
    length: &'a str,
    tile: &'a str,
    statement: &'a Stmt,
    body: &'a [Stmt],
}

impl Skill for SingleTile {
    fn name(&self) -> &'static str {
        "single_tile"
    }

    fn about(&self) -> &'static str {
        "The whole row in one tile, where several passes go over it in parts: it is loaded once. Of an autotuned kernel the tuner goes."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let edits = without_tuner(subject, single_tile);
        let changes = vec![Change::Structure("the whole row in one tile".to_owned())];
        edits.map(|edits| Proposal { kind: "single_tile".to_owned(), edits, changes }).into_iter().collect()
    }
}

fn single_tile(subject: &Subject<'_>) -> Option<Vec<Edit>> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let is_set = kernel.autotune.is_some() || kernel.heuristics.as_ref().is_none_or(|names| !names.is_empty());
    if subject.workload.source == WorkloadSource::Launch || is_set || kernel.has_error {
        return None;
    }
    let passes = passes(&subject.candidate.module, kernel)?;
    let first = passes.first()?;
    // A product cannot take a whole row at once.
    if subject.has_product() {
        return None;
    }
    if passes.iter().any(|pass| (pass.length, pass.tile) != (first.length, first.tile)) {
        return None;
    }
    let mut edits = Vec::new();
    for pass in &passes {
        edits.push(Edit { span: pass.statement.span, text: straightened(text, pass)? });
    }
    let module = &subject.candidate.module;
    let triton = module.imports.aliases_of("triton").into_iter().next()?;
    for launch in module.launches_of(&kernel.name) {
        let of = |name: &str| passed_for(kernel, launch, name).filter(|_| !launch.has_error);
        let (length, tile) = (of(first.length)?, of(first.tile)?);
        let length = text.get(length.span.start..length.span.end)?;
        edits.push(Edit { span: tile.span, text: format!("{triton}.next_power_of_2(max({length}, 1))") });
    }
    (edits.len() > passes.len()).then_some(edits)
}

/// The loops of a kernel, if all of them are along a row and none is nested.
fn passes<'a>(module: &Module, kernel: &'a Kernel) -> Option<Vec<Pass<'a>>> {
    let mut loops = 0;
    walk_statements(&kernel.body, &mut |stmt| {
        loops += usize::from(matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. }));
    });
    let passes: Vec<Pass<'a>> = kernel.body.iter().filter_map(|stmt| pass(module, kernel, stmt)).collect();
    (loops == passes.len()).then_some(passes)
}

/// `for start in range(0, n, BLOCK)`, `for i in range(tl.cdiv(n, BLOCK))`
fn pass<'a>(module: &Module, kernel: &'a Kernel, statement: &'a Stmt) -> Option<Pass<'a>> {
    let StmtKind::For { target, iter, body, orelse } = &statement.kind else { return None };
    let call = iter.as_call().filter(|call| orelse.is_empty() && call.args.iter().all(|arg| arg.keyword.is_none()))?;
    let is_range = call.func.as_name() == Some("range")
        || call.func.dotted().is_some_and(|path| path.len() == 2 && path[1] == "range");
    let is_zero = |start: &Arg| start.value.as_int() == Some(0);
    let (length, tile) = match call.args.as_slice() {
        [start, end, step] if is_zero(start) => (&end.value, &step.value),
        [end] => tiles(module, kernel, &end.value)?,
        [start, end] if is_zero(start) => tiles(module, kernel, &end.value)?,
        _ => return None,
    };
    let param = |expr: &'a Expr| kernel.param(expr.as_name()?);
    let tile = param(tile).filter(|tile| tile.constexpr && is_range)?;
    Some(Pass {
        variable: target.as_name()?,
        length: param(length).map(|length| length.name.as_str()).filter(|length| *length != tile.name)?,
        tile: tile.name.as_str(),
        statement,
        body,
    })
}

/// `tl.cdiv(n, BLOCK)`
fn tiles<'a>(module: &Module, kernel: &Kernel, count: &'a Expr) -> Option<(&'a Expr, &'a Expr)> {
    let call = count.as_call()?;
    let is_count = module.language_member(kernel, &call.func).as_deref() == Some("cdiv");
    match call.args.as_slice() {
        [length, tile] if is_count && !call.has_star() => Some((&length.value, &tile.value)),
        _ => None,
    }
}

/// The body of a loop that has one iteration, in place of the loop.
fn straightened(text: &str, pass: &Pass<'_>) -> Option<String> {
    let (first, last) = (pass.body.first()?, pass.body.last()?);
    let (outer, inner) = (indent_of(text, pass.statement.span.start)?, indent_of(text, first.span.start)?);
    let deeper = inner.strip_prefix(outer).filter(|deeper| !deeper.is_empty())?;
    let mut lines = vec![format!("{} = 0", pass.variable)];
    let body = text.get(first.span.start - inner.len()..last.span.end)?;
    for line in body.lines() {
        let dedented = line.strip_prefix(outer).and_then(|line| line.strip_prefix(deeper));
        match dedented {
            Some(dedented) => lines.push(format!("{outer}{dedented}")),
            None if line.trim().is_empty() => lines.push(String::new()),
            None => return None,
        }
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;
    use rules::apply_edits;

    fn rewritten(text: &str) -> Option<String> {
        let candidate = Candidate::original(text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
        Some(apply_edits(text, &single_tile(&subject)?))
    }

    const TWO: &str = "import triton
import triton.language as tl

@triton.jit
def k(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, B):
        at = start + tl.arange(0, B)  # along the row

        total += tl.sum(tl.load(x + row * n + at,
                                mask=at < n, other=0.0))
    for start in tl.range(0, n, B):
        at = start + tl.arange(0, B)
        tl.store(y + row * n + at, total, mask=at < n)

def run(x):
    k[(x.shape[0],)](x, x, x.shape[1], 64, num_warps=4)
";

    #[test]
    fn loops_along_a_row_become_one_tile() {
        let expected = "import triton
import triton.language as tl

@triton.jit
def k(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    start = 0
    at = start + tl.arange(0, B)  # along the row

    total += tl.sum(tl.load(x + row * n + at,
                            mask=at < n, other=0.0))
    start = 0
    at = start + tl.arange(0, B)
    tl.store(y + row * n + at, total, mask=at < n)

def run(x):
    k[(x.shape[0],)](x, x, x.shape[1], triton.next_power_of_2(max(x.shape[1], 1)), num_warps=4)
";
        assert_eq!(rewritten(TWO).unwrap(), expected);
        assert_eq!(rewritten(expected), None, "there is no loop any more");
    }

    #[test]
    fn loops_that_count_tiles_become_one_tile() {
        let counted = TWO.replace("start in range(0, n, B)", "i in range(0, tl.cdiv(n, B))");
        let counted = counted
            .replace("start in tl.range(0, n, B)", "i in range(tl.cdiv(n, B))")
            .replace("start + tl", "i * B + tl");
        let new = rewritten(&counted.replace("y, n, B", "y, n: tl.constexpr, B")).unwrap();
        assert_eq!(new.matches("    i = 0\n    at = i * B + tl.arange(0, B)").count(), 2, "{new}");
        assert!(new.contains("x.shape[1], triton.next_power_of_2(max(x.shape[1], 1)), num_warps=4"), "{new}");
        assert_eq!(rewritten(&counted.replace("tl.sum(tl.load", "tl.dot(tl.load")), None);
    }

    #[test]
    fn loops_not_along_a_row_are_kept() {
        for (old, new) in [
            (
                "range(0, n, B):\n        at = start + tl.arange(0, B)  #",
                "range(1, n, B):\n        at = start + tl.arange(0, B)  #",
            ),
            ("tl.range(0, n, B)", "range(0, n, 64)"),
            ("tl.range(0, n, B)", "range(n)"),
            ("tl.range(0, n, B)", "range(tl.cdiv(B, n))"),
            ("tl.range(0, n, B)", "range(tl.cdiv(n, 64))"),
            ("x.shape[1], 64", "*given"),
        ] {
            assert_eq!(TWO.matches(old).count(), 1, "{old}");
            assert_eq!(rewritten(&TWO.replace(old, new)), None, "{new}");
        }
    }
}
