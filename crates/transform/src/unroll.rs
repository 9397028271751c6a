//! Processes several iterations at once of a loop that adds one row per iteration to a sum.

use std::collections::HashSet;

use base::rng::Rng;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use super::candidate::Change;
use super::names::uses;
use super::parameter::add_constexpr;
use super::pointwise::is_function;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};

/// The numbers of iterations that are tried.
const ROUNDS: [i64; 4] = [8, 16, 32, 64];
/// Loads a tile of rows where a loop loads one row per iteration and adds it to a sum: more loads are in flight at a
/// time, and more threads have work. The sum gets a row for each row of the tile, and these are added up after the
/// loop. Iterations beyond the loop's end load nothing and add nothing.
pub(super) struct RoundsAtOnce;

impl Skill for RoundsAtOnce {
    fn name(&self) -> &'static str {
        "rounds_at_once"
    }

    fn about(&self) -> &'static str {
        "Several iterations at once of a loop that sums rows: more loads are in flight."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let is_plain = subject.kernel.plain && subject.kernel.autotune.is_none() && !subject.kernel.has_error;
        if subject.workload.source == WorkloadSource::Launch || !is_plain {
            return Vec::new();
        }
        let turn = |rounds: i64| {
            let (edits, size) = subject.kernel.body.iter().find_map(|stmt| at_once(subject, stmt, rounds))?;
            let changes = vec![
                Change::Structure("several iterations of the loop at once".to_owned()),
                Change::Number { name: size, from: 1, to: rounds },
            ];
            Some(Proposal { kind: "rounds_at_once".to_owned(), edits, changes })
        };
        ROUNDS.into_iter().map_while(turn).collect()
    }
}

/// A loop over single rows.
struct Rows<'a> {
    subject: &'a Subject<'a>,
    /// The loop variable, which becomes a column.
    variable: &'a str,
    /// The name of the mask of existing iterations.
    exist: String,
    /// The names whose values differ from iteration to iteration.
    differ: HashSet<&'a str>,
    /// The sums, each with the shape and type of its first value, and the name of its tile.
    sums: Vec<Sum<'a>>,
    edits: Vec<Edit>,
}

struct Sum<'a> {
    name: &'a str,
    tile: String,
    /// `(BLOCK,), dtype=tl.float32`, the arguments without the parentheses.
    shape: &'a Expr,
    dtype: &'a Expr,
}

fn at_once(subject: &Subject<'_>, stmt: &Stmt, rounds: i64) -> Option<(Vec<Edit>, String)> {
    let StmtKind::For { target, iter, body, orelse } = &stmt.kind else { return None };
    let text = subject.candidate.text.as_str();
    let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
    let (arange, zeros, sum) = (of("arange")?, of("zeros")?, of("sum")?);
    let (start, end) = range(subject, iter).filter(|_| orelse.is_empty())?;
    let slice = |span: Span| text.get(span.start..span.end);
    let (first, size, exist) = (fresh(text, "first"), fresh(text, "ROUNDS"), fresh(text, "in_loop"));
    let variable = target.as_name()?;
    let (differ, sums, edits) = (HashSet::from([variable]), Vec::new(), Vec::new());
    let mut rows = Rows { subject, variable, exist: exist.clone(), differ, sums, edits };
    body.iter().try_for_each(|stmt| rows.statement(stmt))?;
    let is_alone = |sum: &Sum<'_>| uses(body, sum.name) == 1;
    if rows.sums.is_empty() || !rows.sums.iter().all(is_alone) || !rows.is_closed(stmt) {
        return None;
    }
    let (outer, inner) = (indent_of(text, stmt.span.start)?, indent_of(text, body.first()?.span.start)?);
    let (from, to) = (start.map_or(Some("0"), |start| slice(start.span))?, slice(end.span)?);
    let Rows { sums, mut edits, .. } = rows;
    let mut before = String::new();
    let mut after = String::new();
    for Sum { name, tile, shape, dtype } in &sums {
        let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &shape.kind else { return None };
        let [part] = parts.as_slice() else { return None };
        let (part, dtype) = (slice(part.span)?, slice(dtype.span)?);
        before += &format!("{tile} = {zeros}(({size}, {part}), dtype={dtype})\n{outer}");
        after += &format!("\n{outer}{name} += {sum}({tile}, axis=0)");
    }
    let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
    edits.push(put(stmt.span.start, before));
    edits.push(Edit { span: target.span, text: first.clone() });
    edits.push(Edit { span: iter.span, text: format!("range({from}, {to}, {size})") });
    let head = format!(
        "{variable} = ({first} + {arange}(0, {size}))[:, None]\n{inner}{exist} = {variable} < {}\n{inner}",
        if end.as_name().is_some() || end.as_int().is_some() { to.to_owned() } else { format!("({to})") }
    );
    edits.push(put(body.first()?.span.start, head));
    edits.push(put(body.last()?.span.end, after));
    edits.extend(add_constexpr(subject, &size, rounds)?);
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    Some((edits, size))
}

/// The start and the stop of a `range(…)` without a step.
fn range<'a>(subject: &Subject<'_>, iter: &'a Expr) -> Option<(Option<&'a Expr>, &'a Expr)> {
    let call = iter.as_call().filter(|call| call.args.iter().all(|arg| arg.keyword.is_none()))?;
    let is_range = call.func.as_name() == Some("range")
        || subject.candidate.module.language_member(subject.kernel, &call.func).as_deref() == Some("range");
    match call.args.as_slice() {
        [end] if is_range => Some((None, &end.value)),
        [start, end] if is_range => Some((Some(&start.value), &end.value)),
        _ => None,
    }
}

impl<'a> Rows<'a> {
    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let [target] = targets.as_slice() else { return None };
                let name = target.as_name().filter(|name| *name != self.variable)?;
                if self.expr(value)? {
                    self.differ.insert(name);
                }
                Some(())
            }
            StmtKind::AugAssign { target, value, .. } => {
                let name = target.as_name()?;
                let text = self.subject.candidate.text.as_str();
                let operator = text.get(target.span.end..value.span.start)?.trim();
                let is_first = self.sums.iter().all(|sum| sum.name != name);
                if operator != "+=" || !is_first || !self.expr(value)? {
                    return None;
                }
                let (shape, dtype) = self.begins(name)?;
                let tile = fresh(text, &format!("{name}_rows"));
                let of = self.subject.candidate.module.language_name(self.subject.kernel, "where")?;
                self.edits.push(Edit { span: target.span, text: tile.clone() });
                let start = format!("{of}({}, ", self.exist);
                self.edits.push(Edit { span: Span::new(value.span.start, value.span.start), text: start });
                self.edits.push(Edit { span: Span::new(value.span.end, value.span.end), text: ", 0.0)".to_owned() });
                self.sums.push(Sum { name, tile, shape, dtype });
                Some(())
            }
            _ => None,
        }
    }

    /// `acc = tl.zeros((BLOCK,), dtype=tl.float32)`, the only other assignment of a sum.
    fn begins(&self, name: &str) -> Option<(&'a Expr, &'a Expr)> {
        let mut found = Vec::new();
        walk_statements(&self.subject.kernel.body, &mut |stmt| {
            if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
                && targets.iter().any(|target| target.as_name() == Some(name))
            {
                found.push(value);
            }
        });
        let [value] = found.as_slice() else { return None };
        let call = value.as_call().filter(|call| self.subject.member(call).as_deref() == Some("zeros"))?;
        Some((call.argument("shape", Some(0))?, call.argument("dtype", Some(1))?))
    }

    /// Whether a value differs from iteration to iteration; `None` where it is not known to be elementwise.
    fn expr(&mut self, expr: &'a Expr) -> Option<bool> {
        match &expr.kind {
            ExprKind::Name(name) => {
                let is_sum = self.sums.iter().any(|sum| sum.name == name);
                (!is_sum).then(|| self.differ.contains(name.as_str()))
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Str(_) => {
                Some(false)
            }
            ExprKind::Attribute { value, .. } => {
                let differs = self.expr(value)?;
                Some(differs && !matches!(&expr.kind, ExprKind::Attribute { name, .. } if name == "dtype"))
            }
            ExprKind::Binary { left, right, .. } => Some(self.expr(left)? | self.expr(right)?),
            ExprKind::Unary { operand, op } if op != "not" => self.expr(operand),
            ExprKind::Compare { left, rest } if rest.len() == 1 => Some(self.expr(left)? | self.expr(&rest[0].1)?),
            ExprKind::Call(call) if !call.has_star() => self.call(call),
            _ => None,
        }
    }

    fn call(&mut self, call: &'a Call) -> Option<bool> {
        let name = self.subject.member(call);
        if let ExprKind::Attribute { value, name: method, .. } = &call.func.kind
            && name.is_none()
        {
            let others = call.args.iter().try_fold(false, |any, arg| Some(any | self.expr(&arg.value)?))?;
            return (method == "to" && !others).then(|| self.expr(value))?;
        }
        let differs = call.args.iter().try_fold(false, |any, arg| Some(any | self.expr(&arg.value)?))?;
        match name.as_deref()? {
            "load" => {
                if differs {
                    self.mask(call)?;
                }
                Some(differs)
            }
            name if is_function(name) => Some(differs),
            _ => None,
        }
    }

    /// Masks the load of iterations that do not exist.
    fn mask(&mut self, call: &'a Call) -> Option<()> {
        let exist = self.exist.clone();
        match call.argument("mask", Some(1)) {
            Some(mask) => {
                self.edits.push(Edit { span: Span::new(mask.span.start, mask.span.start), text: "(".to_owned() });
                self.edits.push(Edit { span: Span::new(mask.span.end, mask.span.end), text: format!(") & {exist}") });
            }
            None => {
                let end = call.args.last()?.span.end;
                self.edits.push(Edit { span: Span::new(end, end), text: format!(", mask={exist}") });
            }
        }
        Some(())
    }

    /// Whether nothing else in the kernel uses the names that become tiles of rows.
    fn is_closed(&self, whole: &Stmt) -> bool {
        let mut is_closed = true;
        walk_statements(&self.subject.kernel.body, &mut |stmt| {
            if whole.span.start <= stmt.span.start && stmt.span.end <= whole.span.end {
                return;
            }
            for expr in stmt.exprs() {
                expr.walk(&mut |expr| {
                    is_closed &= !expr.as_name().is_some_and(|name| self.differ.contains(name));
                });
            }
        });
        is_closed
    }
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
        let turn = RoundsAtOnce.turns(&subject, &mut Rng::new(1)).into_iter().next()?;
        Some(apply_edits(text, &turn.edits))
    }

    const SUM: &str = "import triton
import triton.language as tl

@triton.jit
def k(x_ptr, w, out_ptr, m, n, B: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    mask = cols < n
    acc = tl.zeros((B,), dtype=tl.float32)
    for row in range(m):  # one by one
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
        acc += x * tl.load(w + row)
    tl.store(out_ptr + cols, acc, mask=mask)

def run(x):
    k[(7,)](x, x, x, 8, 9, B=32)
";

    #[test]
    fn a_sum_over_rows_is_unrolled_to_a_tile_of_rows() {
        let expected = "import triton
import triton.language as tl

@triton.jit
def k(x_ptr, w, out_ptr, m, n, B: tl.constexpr, ROUNDS: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    mask = cols < n
    acc = tl.zeros((B,), dtype=tl.float32)
    acc_rows = tl.zeros((ROUNDS, B), dtype=tl.float32)
    for first in range(0, m, ROUNDS):  # one by one
        row = (first + tl.arange(0, ROUNDS))[:, None]
        in_loop = row < m
        x = tl.load(x_ptr + row * n + cols, mask=(mask) & in_loop, other=0.0).to(tl.float32)
        acc_rows += tl.where(in_loop, x * tl.load(w + row, mask=in_loop), 0.0)
    acc += tl.sum(acc_rows, axis=0)
    tl.store(out_ptr + cols, acc, mask=mask)

def run(x):
    k[(7,)](x, x, x, 8, 9, B=32, ROUNDS=8)
";
        assert_eq!(rewritten(SUM).unwrap(), expected);
        assert_eq!(rewritten(expected), None, "once is enough");
    }

    #[test]
    fn other_loops_are_not_unrolled() {
        for (old, new) in [
            ("range(m)", "range(0, m, 2)"),
            ("acc += x", "acc *= x"),
            ("acc += x", "acc += acc + x"),
            ("acc += x", "acc += tl.sum(x, 0)"),
            ("acc += x * tl.load(w + row)", "acc += 1.0"),
            ("        acc += x", "        tl.store(out_ptr + row, 1.0)\n        acc += x"),
            ("        acc += x", "        out_ptr += n\n        acc += x"),
            ("out_ptr + cols, acc,", "out_ptr + cols, acc + row,"),
            ("tl.zeros((B,), dtype=tl.float32)", "tl.load(w + cols)"),
            ("B=32)", "*args)"),
        ] {
            assert_eq!(SUM.matches(old).count(), 1, "{old}");
            assert_eq!(rewritten(&SUM.replace(old, new)), None, "{new}");
        }
    }
}
