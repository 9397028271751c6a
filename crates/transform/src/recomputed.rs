//! Recomputes values in a loop instead of loading what the loop before has stored.

use base::rng::Rng;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::lines::{line_start, lines_of};
use super::loads::{Loaded, loaded, root, written};
use super::names::{bound_in, in_expr, uses};
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::{fresh, indent_of};
use super::written::{assigned, bindings};

/// Recomputes a value that an earlier loop over the same tiles has stored at the place of this loop's results: the
/// memory is written once instead of twice, and the inputs of the value are loaded instead of it. The value also keeps
/// its full precision then.
pub(super) struct Recomputed;

impl Skill for Recomputed {
    fn name(&self) -> &'static str {
        "recomputed"
    }

    fn about(&self) -> &'static str {
        "What one loop stores for the next one, which overwrites it, is computed again there from what it was computed from: arithmetic in \
         exchange for a pass over the memory."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let kernel = subject.kernel;
        let Some(written) = written(subject, &kernel.body).filter(|_| !kernel.has_error) else { return Vec::new() };
        let mut blocks = vec![kernel.body.as_slice()];
        walk_statements(&kernel.body, &mut |stmt| blocks.extend(stmt.bodies()));
        let mut turns = Vec::new();
        for block in blocks {
            for (first, at) in
                block.iter().enumerate().flat_map(|(first, _)| (first + 1..block.len()).map(move |at| (first, at)))
            {
                let Some(loops) = Loops::of(subject, &written, &block[first..=at]) else { continue };
                for stored in loops.first.iter().filter_map(|stmt| Stored::of(subject, stmt)) {
                    let Some((name, edits)) = loops.recomputed(&stored) else { continue };
                    turns.extend(Proposal::of_structure("recomputed", &format!("`{name}` computed again"), edits));
                }
            }
        }
        turns
    }
}

/// `tl.store(pointer, value, mask)`
struct Stored<'a> {
    statement: &'a Stmt,
    pointer: &'a Expr,
    value: &'a Expr,
    mask: Option<&'a Expr>,
}

impl<'a> Stored<'a> {
    fn of(subject: &Subject<'_>, statement: &'a Stmt) -> Option<Self> {
        let StmtKind::Expr(expr) = &statement.kind else { return None };
        let call =
            expr.as_call().filter(|call| subject.member(call).as_deref() == Some("store") && !call.has_star())?;
        let (pointer, value) = (call.argument("pointer", Some(0))?, call.argument("value", Some(1))?);
        Some(Self { statement, pointer, value, mask: call.argument("mask", Some(2)) })
    }
}

/// Two consecutive loops over the same tiles.
struct Loops<'a> {
    subject: &'a Subject<'a>,
    /// The parameters that the kernel writes to.
    written: &'a [&'a str],
    variable: &'a str,
    first: &'a [Stmt],
    second: &'a [Stmt],
    /// Names that are bound in the loops, or between them.
    bound: Vec<&'a str>,
}

impl<'a> Loops<'a> {
    /// The two loops at the first and the last of some statements.
    fn of(subject: &'a Subject<'a>, written: &'a [&'a str], block: &'a [Stmt]) -> Option<Self> {
        let header = |stmt: &'a Stmt| {
            let StmtKind::For { target, iter, body, orelse } = &stmt.kind else { return None };
            target.as_name().filter(|_| orelse.is_empty()).map(|variable| (variable, iter, body.as_slice()))
        };
        let ((variable, iter, first), (other, again, second)) = (header(block.first()?)?, header(block.last()?)?);
        let bound: Vec<&str> = bound_in(block)?.into_iter().collect();
        let loops = Self { subject, written, variable, first, second, bound };
        let is_same = variable == other && loops.text(iter) == loops.text(again);
        let is_steady = in_expr(iter).iter().all(|name| !loops.bound.contains(name));
        (is_same && is_steady && loops.binding(first, variable).is_none()).then_some(loops)
    }

    /// The text of an expression, in one line.
    fn text(&self, expr: &Expr) -> String {
        let text = &self.subject.candidate.text[expr.span.start..expr.span.end];
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The only assignment to a name among the top-level statements of a loop.
    fn binding(&self, body: &'a [Stmt], name: &str) -> Option<(usize, &'a Expr)> {
        let (at, value) = body.iter().enumerate().find_map(|(at, stmt)| Some((at, assigned(stmt, name)?)))?;
        (bindings(body, name).len() == 1).then_some((at, value))
    }

    /// Whether an expression of the first loop and one of the second have the same value in the same iteration.
    fn is_same(&self, one: &Expr, other: &Expr) -> bool {
        self.text(one) == self.text(other)
            && in_expr(one).into_iter().all(|name| {
                name == self.variable
                    || !self.bound.contains(&name)
                    || match (self.binding(self.first, name), self.binding(self.second, name)) {
                        (Some((_, one)), Some((_, other))) => !one.mentions(name) && self.is_same(one, other),
                        _ => false,
                    }
            })
    }

    fn is_same_mask(&self, one: Option<&Expr>, other: Option<&Expr>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => self.is_same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// The name to which the second loop binds the loaded value, and the edits that compute it there instead.
    fn recomputed(&self, stored: &Stored<'_>) -> Option<(&'a str, Vec<Edit>)> {
        let text = self.subject.candidate.text.as_str();
        let to = root(self.subject, stored.pointer)?;
        let (at, name, load) = self.load(stored)?;
        let is_overwritten = self.second[at..]
            .iter()
            .filter_map(|stmt| Stored::of(self.subject, stmt))
            .any(|over| self.is_same(stored.pointer, over.pointer) && self.is_same_mask(stored.mask, over.mask));
        // Nothing else may read the dropped store, and the first loop must not become empty.
        if !is_overwritten || self.loads_from(to) != 1 || self.first.len() == 1 {
            return None;
        }
        let mut again = Again { loops: self, before: at, names: Vec::new(), lines: Vec::new() };
        let stops = self.first.iter().position(|stmt| std::ptr::eq(stmt, stored.statement))?;
        again.follow(stored.value, stops)?;
        let value = again.renamed(stored.value);
        let value = match (load.argument("mask", Some(1)), load.argument("other", Some(2))) {
            (Some(mask), Some(other)) => {
                let ExprKind::Attribute { value: module, .. } = &load.func.kind else { return None };
                let [module, mask, other] = [module.as_ref(), mask, other].map(|part| self.text(part));
                format!("{module}.where({mask}, {value}, {other})")
            }
            _ => format!("({value})"),
        };
        let indent = indent_of(text, self.second[at].span.start)?;
        let start = line_start(text, self.second[at].span.start);
        let lines: String = again.lines.iter().map(|line| format!("{indent}{line}\n")).collect();
        let gone = lines_of(text, stored.statement)?;
        let mut edits = vec![
            Edit { span: Span::new(gone.start, (gone.end + 1).min(text.len())), text: String::new() },
            Edit { span: Span::new(start, start), text: lines },
            Edit { span: self.call_span(at)?, text: value },
        ];
        edits.retain(|edit| !edit.text.is_empty() || edit.span.start < edit.span.end);
        Some((name, edits))
    }

    /// The statement of the second loop that loads the stored value: its index, the name that it binds, and the call.
    fn load(&self, stored: &Stored<'_>) -> Option<(usize, &'a str, &'a Call)> {
        self.second.iter().enumerate().find_map(|(at, stmt)| {
            let StmtKind::Assign { targets, .. } = &stmt.kind else { return None };
            let [target] = targets.as_slice() else { return None };
            let (_, call) = self.only_load(stmt)?;
            let pointer = call.argument("pointer", Some(0))?;
            let is_of_it = self.is_same(stored.pointer, pointer)
                && self.is_same_mask(stored.mask, call.argument("mask", Some(1)))
                && call.argument("volatile", None).is_none();
            is_of_it.then_some((at, target.as_name()?, call))
        })
    }

    /// The only load of a statement.
    fn only_load(&self, stmt: &'a Stmt) -> Option<(Span, &'a Call)> {
        let mut found = Vec::new();
        walk_expressions(std::slice::from_ref(stmt), &mut |expr| {
            let call = expr.as_call().filter(|call| self.subject.member(call).as_deref() == Some("load"));
            found.extend(call.map(|call| (expr.span, call)));
        });
        if let [only] = found.as_slice() { (!only.1.has_star()).then_some(*only) } else { None }
    }

    fn call_span(&self, at: usize) -> Option<Span> {
        self.only_load(&self.second[at]).map(|(span, _)| span)
    }

    /// How often the kernel loads through a parameter, or through a pointer that may be it.
    fn loads_from(&self, param: &str) -> usize {
        let mut count = 0;
        walk_expressions(&self.subject.kernel.body, &mut |expr| {
            let call = expr.as_call().filter(|call| self.subject.member(call).as_deref() == Some("load"));
            let from =
                call.map(|call| call.argument("pointer", Some(0)).and_then(|pointer| root(self.subject, pointer)));
            count += usize::from(from.is_some_and(|from| from.is_none_or(|from| from == param)));
        });
        count
    }
}

/// The statements that are computed again in the second loop.
struct Again<'l, 'a> {
    loops: &'l Loops<'a>,
    /// The index of the statement of the second loop before which they go.
    before: usize,
    /// Names of the first loop, and their names in the second.
    names: Vec<(&'a str, String)>,
    lines: Vec<String>,
}

impl<'a> Again<'_, 'a> {
    /// Collects the statements of the first loop, before index `stops`, that a value depends on.
    fn follow(&mut self, value: &Expr, stops: usize) -> Option<()> {
        let loops = self.loops;
        if loaded(loops.subject, value, loops.written) == Loaded::Unknown {
            return None;
        }
        for name in in_expr(value) {
            if name == loops.variable
                || !loops.bound.contains(&name)
                || self.names.iter().any(|(known, _)| *known == name)
            {
                continue;
            }
            // An accumulated name has another value by the end of the first loop.
            let (at, given) = loops.binding(loops.first, name).filter(|(at, _)| *at < stops)?;
            let StmtKind::Assign { targets, .. } = &loops.first[at].kind else { return None };
            let name = targets.first()?.as_name()?;
            let there = loops.binding(loops.second, name);
            if there.is_some_and(|(place, same)| place < self.before && loops.is_same(given, same)) {
                self.names.push((name, name.to_owned()));
                continue;
            }
            self.follow(given, at)?;
            let line = self.renamed(given);
            let is_free = uses(loops.second, name) == 0 && self.is_forgotten(name);
            let called =
                if is_free { name.to_owned() } else { fresh(&loops.subject.candidate.text, &format!("{name}_again")) };
            self.lines.push(format!("{called} = {line}"));
            self.names.push((name, called));
        }
        Some(())
    }

    /// Whether nothing after the first loop reads a name.
    fn is_forgotten(&self, name: &str) -> bool {
        let (body, end) = (&self.loops.subject.kernel.body, self.loops.first.last().map_or(0, |stmt| stmt.span.end));
        let mut is_read = false;
        walk_expressions(body, &mut |expr| is_read |= expr.span.start >= end && expr.as_name() == Some(name));
        !is_read
    }

    /// The text of an expression of the first loop, with the names of the second.
    fn renamed(&self, expr: &Expr) -> String {
        let text = &self.loops.subject.candidate.text;
        let mut places = Vec::new();
        expr.walk(&mut |part| {
            let called = part.as_name().and_then(|name| self.names.iter().find(|(known, _)| *known == name));
            places.extend(called.map(|(_, called)| (part.span, called)));
        });
        places.sort_by_key(|(span, _)| span.start);
        let (mut out, mut from) = (String::new(), expr.span.start);
        for (span, called) in places {
            out += &text[from..span.start];
            out += called;
            from = span.end;
        }
        out += &text[from..expr.span.end];
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    const KERNEL: &str = "import triton
import triton.language as tl

@triton.jit
def k(x, y, N, B: tl.constexpr):
    row = tl.program_id(0)
    m = -float('inf')
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        a = tl.load(x + row * N + cols, mask=cols < N, other=-float('inf'))
        m = tl.maximum(m, tl.max(a, axis=0))
    total = 0.0
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        a = tl.load(x + row * N + cols, mask=cols < N, other=-float('inf')).to(tl.float32)
        e = tl.exp(a - m)
        total += tl.sum(e, axis=0)
        tl.store(y + row * N + cols, e, mask=cols < N)
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        e = tl.load(y + row * N + cols, mask=cols < N)
        tl.store(y + row * N + cols, e / total, mask=cols < N)

def run(x, y):
    k[(4,)](x, y, 1000, B=256)
";

    fn turned(text: &str) -> Vec<String> {
        turned_by(&Recomputed, text)
    }

    #[test]
    fn overwritten_intermediate_values_are_recomputed() {
        let expected = KERNEL.replace("        tl.store(y + row * N + cols, e, mask=cols < N)\n", "").replace(
            "        e = tl.load(y + row * N + cols, mask=cols < N)\n",
            "        a = tl.load(x + row * N + cols, mask=cols < N, other=-float('inf')).to(tl.float32)
        e_again = tl.exp(a - m)
        e = (e_again)
",
        );
        assert_eq!(turned(KERNEL), [expected.as_str()]);
        assert!(turned(&expected).is_empty(), "it is done");
    }

    #[test]
    fn masked_lanes_keep_the_loads_other_value() {
        let text = KERNEL.replace(
            "e = tl.load(y + row * N + cols, mask=cols < N)",
            "e = tl.load(y + row * N + cols, mask=cols < N, other=1.0)",
        );
        assert!(turned(&text)[0].contains("e = tl.where(cols < N, e_again, 1.0)\n"), "{:?}", turned(&text));
    }

    #[test]
    fn values_that_differ_in_the_second_loop_are_not_recomputed() {
        for (old, new) in [
            // Another address, another mask, another loop length.
            ("e = tl.load(y + row * N + cols, mask=cols < N)", "e = tl.load(y + row + cols, mask=cols < N)"),
            ("e = tl.load(y + row * N + cols, mask=cols < N)", "e = tl.load(y + row * N + cols, mask=cols < N - 1)"),
            (
                "e = tl.load(y + row * N + cols, mask=cols < N)",
                "cols = cols + 1\n        e = tl.load(y + row * N + cols, mask=cols < N)",
            ),
            (
                "    total = 0.0\n    for start in range(0, N, B)",
                "    total = 0.0\n    for start in range(0, N, 2 * B)",
            ),
            // The value is not overwritten, or is read elsewhere.
            (
                "tl.store(y + row * N + cols, e / total, mask=cols < N)",
                "tl.store(x + row * N + cols, e / total, mask=cols < N)",
            ),
            ("        e = tl.load(y", "        f = tl.load(y + cols)\n        e = tl.load(y"),
            // An input changes, either in each iteration or because it is written to.
            ("e = tl.exp(a - m)", "m = m + 1.0\n        e = tl.exp(a - m)"),
            ("e = tl.exp(a - m)", "e = tl.exp(a - total)"),
            (
                "        total += tl.sum(e, axis=0)\n",
                "        total += tl.sum(e, axis=0)\n        tl.store(x + cols, e)\n",
            ),
            ("e = tl.exp(a - m)", "e = f(a - m)"),
            ("e = tl.exp(a - m)", "e = tl.exp(a - m)\n        e = e * 2"),
        ] {
            let text = KERNEL.replacen(old, new, 1);
            assert!(text != KERNEL && turned(&text).is_empty(), "{new}: {:?}", turned(&text));
        }
    }
}
