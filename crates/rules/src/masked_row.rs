//! N004: an online softmax that is NaN for rows that are masked out entirely.

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::formula_reader::{FormulaReader, MAX_FOUND, find, is_infinite};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N004",
        name: "masked-row",
        severity: Severity::Hint,
        summary: "an online softmax that is NaN for rows of which the mask leaves nothing",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("masked_row.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("exp") && text.contains("inf");
    findings.extend(find(context, &RULE, &may_be, |reader| {
        let kernel = reader.kernel;
        let (mut rescales, mut is_guarded) = (Vec::new(), false);
        walk_expressions(&kernel.body, &mut |expr| {
            if rescales.len() < MAX_FOUND {
                rescales.extend(reader.rescale(expr).filter(|_| !is_conditional(kernel, expr.span)));
            }
            if let ExprKind::Compare { left, rest } = &expr.kind {
                is_guarded |= is_infinite(left) || rest.iter().any(|(_, right)| is_infinite(right));
            }
        });
        if is_guarded { Vec::new() } else { rescales }
    }));
}

/// Whether a span is inside a branch, whose condition may be that the row is not masked out entirely. A condition on
/// compile-time parameters is not about a row.
fn is_conditional(kernel: &Kernel, at: Span) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::If { branches, .. } = &stmt.kind
            && stmt.span.contains(at)
        {
            branches.iter().for_each(|(test, _)| {
                test.walk(&mut |part| {
                    let is_open = |name| kernel.param(name).is_none_or(|param| !param.constexpr);
                    found |= part.as_name().is_some_and(is_open);
                });
            });
        }
    });
    found
}

impl<'a> FormulaReader<'a> {
    /// `tl.exp(m - m_new)` where `m` starts at minus infinity and `m_new` is its maximum with scores that a loaded mask sets
    /// to minus infinity.
    fn rescale(&self, expr: &'a Expr) -> Option<Diagnostic> {
        let call = self.call_of(expr, &["exp", "exp2"])?;
        let ExprKind::Binary { op, left, right } = &call.args.first()?.value.kind else { return None };
        let (old, new) = (left.as_name().filter(|_| op == "-")?, right.as_name()?);
        let updates: Option<Vec<&'a Expr>> =
            self.definitions.all(new)?.into_iter().map(|value| self.other_operand(value, old)).collect();
        let updates = updates?;
        if let Some(merged) = self.merged(expr, old, new, &updates) {
            return Some(merged);
        }
        if !self.definitions.all(old)?.into_iter().any(|value| self.starts_infinite(value)) {
            return None;
        }
        if let Some(padded) = updates.iter().find_map(|tile| self.padded(tile)) {
            let message = format!(
                "a lane that the mask of the load never keeps holds -inf in `{old}` and `{new}`, and -inf - -inf is NaN, which spreads when \
                 the lanes are summed; use 0 for `{new}` there: `tl.where({new} == float(\"-inf\"), 0.0, {new})`"
            );
            return Some(
                Diagnostic::new(&RULE.declaration, expr.span, message)
                    .with_related(padded.span, "filled with -inf here"),
            );
        }
        let [row] = updates.as_slice() else { return None };
        let scores = self.call_of(self.definitions.behind(row), &["max"])?.argument("input", Some(0))?;
        let masked = self.definitions.all(scores.as_name()?)?.into_iter().find_map(|value| self.masked(value))?;
        let message = format!(
            "where the mask leaves nothing of a row, `{old}` and `{new}` are both -inf, and -inf - -inf is NaN; \
             use 0 for `{new}` there: `tl.where({new} == float(\"-inf\"), 0.0, {new})`"
        );
        Some(
            Diagnostic::new(&RULE.declaration, expr.span, message)
                .with_related(masked.span, "a mask that is loaded sets scores to -inf here"),
        )
    }

    /// `tl.exp(a - m)` where `m` is the maximum of two loaded logarithms of sums, which are minus infinity for empty parts.
    fn merged(&self, expr: &'a Expr, old: &str, new: &str, others: &[&'a Expr]) -> Option<Diagnostic> {
        let [other] = others else { return None };
        let is_sum = |name: &str| name.contains("lse") || name.contains("logsumexp");
        let loaded = |value: &'a Expr| self.call_of(self.uncast(value), &["load"]);
        let (one, two) = (loaded(self.definitions.only(old)?)?, loaded(other)?);
        let named = |call: &'a Call| {
            let mut found = false;
            call.args.iter().for_each(|arg| arg.value.walk(&mut |part| found |= part.as_name().is_some_and(is_sum)));
            found
        };
        if !(is_sum(old) || named(one)) || !(other.as_name().is_some_and(is_sum) || named(two)) {
            return None;
        }
        let message = format!(
            "where both parts are empty their logarithms are -inf, and -inf - -inf is NaN; use 0 for `{new}` there: \
             `tl.where({new} == float(\"-inf\"), 0.0, {new})`"
        );
        Some(Diagnostic::new(&RULE.declaration, expr.span, message))
    }

    /// Whether a mask contains something that was loaded for each lane.
    fn depends_on_tile(&self, mask: &'a Expr) -> bool {
        self.contains(mask, &|part| {
            self.call_of(part, &["load"]).is_some_and(|load| {
                load.argument("pointer", Some(0))
                    .is_some_and(|pointer| self.contains(pointer, &|part| self.call_of(part, &["arange"]).is_some()))
            })
        })
    }

    /// The operand beside `old` in `tl.maximum(old, …)`.
    fn other_operand(&self, value: &'a Expr, old: &str) -> Option<&'a Expr> {
        let updated = self.call_of(value, &["maximum"])?;
        let [first, second] = updated.args.as_slice() else { return None };
        match (first.value.as_name() == Some(old), second.value.as_name() == Some(old)) {
            (true, false) => Some(&second.value),
            (false, true) => Some(&first.value),
            _ => None,
        }
    }

    /// The load behind a tile, lane by lane, where it fills the lanes that its mask turns off with minus infinity.
    fn padded(&self, tile: &'a Expr) -> Option<&'a Expr> {
        let values = match tile.as_name() {
            Some(name) => self.definitions.all(name)?,
            None => vec![tile],
        };
        values.into_iter().map(|value| self.uncast(value)).find(|value| {
            self.call_of(value, &["load"]).is_some_and(|load| {
                let fill = load.argument("other", Some(2)).map(|fill| self.definitions.behind(fill));
                fill.is_some_and(is_infinite) && load.argument("mask", Some(1)).is_some()
            })
        })
    }

    /// `tl.full(…, -float("inf"), …)` and `tl.zeros(…) - float("inf")`
    fn starts_infinite(&self, value: &'a Expr) -> bool {
        match &value.kind {
            ExprKind::Binary { op, left, right } => {
                (op == "-" || op == "+") && is_infinite(right) && self.call_of(left, &["zeros"]).is_some()
            }
            _ if is_infinite(value) => true,
            _ => self
                .call_of(value, &["full"])
                .and_then(|call| call.argument("value", Some(1)))
                .is_some_and(|value| is_infinite(self.definitions.behind(value))),
        }
    }

    /// `tl.where(mask, …, -float("inf"))` with a mask that was loaded.
    fn masked(&self, value: &'a Expr) -> Option<&'a Expr> {
        if let Some(load) = self.call_of(self.uncast(value), &["load"]) {
            // A load whose own mask depends on loaded indices.
            let fill = load.argument("other", Some(2)).map(|fill| self.definitions.behind(fill))?;
            let mask = load.argument("mask", Some(1))?;
            return (is_infinite(fill) && self.depends_on_tile(mask)).then_some(value);
        }
        let call = self.call_of(value, &["where"])?;
        let [condition, _, no] = call.args.as_slice() else { return None };
        // Positions are compared with a size, and then a row has at least one.
        let is_of_positions = matches!(&self.definitions.behind(&condition.value).kind,
            ExprKind::Compare { rest, .. } if rest.iter().all(|(op, _)| matches!(op.as_str(), "<" | "<=" | ">" | ">=")));
        let is_loaded =
            !is_of_positions && self.contains(&condition.value, &|part| self.call_of(part, &["load"]).is_some());
        (is_infinite(&no.value) && is_loaded).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// The findings in an online softmax with these changes made.
    fn found(changes: &[(&str, &str)]) -> usize {
        let mut text = "
import triton
import triton.language as tl

@triton.jit
def k(q, keep, y, n, B: tl.constexpr):
    c = tl.arange(0, B)
    m = tl.full((1,), -float('inf'), tl.float32)
    l = 0.0
    for start in range(0, n, B):
        s = tl.load(q + start + c)
        a = tl.load(keep + start + c)
        s = tl.where(a != 0, s, -float('inf'))
        m_new = tl.maximum(m, tl.max(s, 0))
        l = l * tl.exp(m - m_new)
        m = m_new
    tl.store(y, l)
"
        .to_owned();
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        messages(&text, "N004").len()
    }

    #[test]
    fn lanes_that_a_load_never_fills_are_found() {
        let lanes = [
            ("    c = tl.arange(0, B)\n", "    c = tl.arange(0, B)\n    keep = c < n\n"),
            ("tl.full((1,)", "tl.full((B,)"),
            (
                "        s = tl.load(q + start + c)\n",
                "        s = tl.load(q + start + c, mask=keep, other=-float('inf'))\n",
            ),
            ("        a = tl.load(keep + start + c)\n", ""),
            ("        s = tl.where(a != 0, s, -float('inf'))\n", ""),
            ("tl.max(s, 0)", "s"),
        ];
        assert_eq!(found(&lanes), 1);
        let with = |more| [lanes.as_slice(), &[more]].concat();
        assert_eq!(found(&with(("other=-float('inf')", "other=0.0"))), 0, "a finite number");
        assert_eq!(found(&with(("tl.maximum", "tl.minimum"))), 0);
        let branch = "if B > 1:\n            l = l * tl.exp(m - m_new)";
        assert_eq!(found(&with(("l = l * tl.exp(m - m_new)", branch))), 1, "a condition on a compile-time parameter");
        assert_eq!(
            found(&with((
                "        l = l",
                "        m_new = tl.where(m_new == -float('inf'), 0.0, m_new)\n        l = l"
            ))),
            0
        );
    }

    #[test]
    fn only_a_loaded_mask_without_a_guard_is_found() {
        assert_eq!(found(&[]), 1);
        assert_eq!(
            found(&[("tl.full((1,), -float('inf'), tl.float32)", "tl.zeros((1,), tl.float32) - float('inf')")]),
            1
        );
        assert_eq!(found(&[("tl.exp(m", "tl.exp2(m")]), 1);
        assert_eq!(found(&[("a != 0", "start + c < n")]), 0, "a mask of positions");
        assert_eq!(found(&[("s, -float('inf')", "s, -1e30")]), 0, "a finite number");
        assert_eq!(found(&[("(1,), -float('inf')", "(1,), 0.0")]), 0);
        assert_eq!(found(&[("m = m_new\n", "m = tl.where(m_new == -float('inf'), 0.0, m_new)\n")]), 0, "a guard");
        let branch = "if tl.max(a) > 0:\n            l = l * tl.exp(m - m_new)";
        assert_eq!(found(&[("l = l * tl.exp(m - m_new)", branch)]), 0);
    }
}
