//! N003: a quotient of exponentials that overflow.

use rustc_hash::FxHashSet as HashSet;

use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::formula_reader::{FormulaReader, MAX_DEPTH, find, is_infinite};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N003",
        name: "overflowing-exponential",
        severity: Severity::Warning,
        summary: "a quotient of exponentials of what was loaded, which is NaN once they overflow",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("overflowing_exponential.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("exp(");
    findings.extend(find(context, &RULE, &may_be, |reader| {
        let mut quotients = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            quotients.extend(reader.quotient(expr).map(|diagnostic| (expr.span, diagnostic)));
        });
        if quotients.is_empty() {
            return Vec::new();
        }
        let chosen = reader.chosen();
        let left = quotients.into_iter().filter(|(span, _)| !chosen.contains(span));
        left.map(|(_, diagnostic)| diagnostic).collect()
    }));
}

impl<'a> FormulaReader<'a> {
    /// `e / tl.sum(e)` and `(e - 1) / (e + 1)` where `e` is the exponential of an unbounded value.
    fn quotient(&self, expr: &'a Expr) -> Option<Diagnostic> {
        let (top, bottom) = match &expr.kind {
            ExprKind::Binary { op, left, right } if op == "/" => (left.as_ref(), right.as_ref()),
            ExprKind::Call(call) if matches!(self.member(call)?.as_str(), "fdiv" | "div_rn") => {
                (&call.args.first()?.value, &call.args.get(1)?.value)
            }
            _ => return None,
        };
        let (exponential, argument) = self.scaled_exponential(top)?;
        let divisor = self.uncast(bottom);
        let (divisor, is_sum) = match self.sum(divisor) {
            Some(summed) => (self.uncast(summed), true),
            None => (divisor, false),
        };
        let (below, _) = self.exponential(divisor, 0)?;
        let is_shifted = matches!(&divisor.kind, ExprKind::Binary { .. });
        if below.span != exponential.span || !(is_sum || is_shifted) || !self.is_unbounded(argument, 0) {
            return None;
        }
        let advice = if is_sum {
            "subtract the maximum before: `tl.exp(x - tl.max(x, axis=…))`"
        } else {
            "take the exponential of `-tl.abs(x)`, or use the function of `libdevice`"
        };
        let message = format!(
            "the exponential is infinite for arguments above 88, and the quotient of two infinities is NaN; {advice}"
        );
        Some(
            Diagnostic::new(&RULE.declaration, exponential.span, message)
                .with_related(expr.span, "the quotient of exponentials"),
        )
    }

    /// The exponential in a quotient's upper part, which may be multiplied with something.
    fn scaled_exponential(&self, top: &'a Expr) -> Option<(&'a Expr, &'a Expr)> {
        let top = self.uncast(top);
        match &top.kind {
            ExprKind::Binary { op, left, right } if op == "*" => {
                self.exponential(left, 0).or_else(|| self.exponential(right, 0))
            }
            _ => self.exponential(top, 0),
        }
    }

    /// The spans inside of selections, whose other alternative may handle large arguments.
    fn chosen(&self) -> HashSet<Span> {
        let (mut found, mut seen) = (HashSet::default(), HashSet::default());
        walk_expressions(&self.kernel.body, &mut |expr| {
            if let Some(call) = self.call_of(expr, &["where"]) {
                for arm in call.args.iter().skip(1) {
                    self.walk_through(&arm.value, &mut seen, &mut |part| {
                        found.insert(part.span);
                    });
                }
            }
        });
        found
    }

    /// The operand of `tl.sum(…)`.
    fn sum(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let call = expr.as_call().filter(|call| self.member(call).as_deref() == Some("sum"))?;
        call.argument("input", Some(0))
    }

    /// The exponential in `e`, `e + 1`, `e - 1`, `1 - e`, and its argument.
    fn exponential(&self, expr: &'a Expr, depth: usize) -> Option<(&'a Expr, &'a Expr)> {
        let expr = self.uncast(expr);
        match &expr.kind {
            ExprKind::Call(call) => match self.member(call)?.as_str() {
                "exp" => Some((expr, call.args.first().map(|arg| &arg.value)?)),
                // The `tl.where` excludes padding from the sum.
                "where" if depth == 0 => {
                    let [_, yes, no] = call.args.as_slice() else { return None };
                    let is_zero = matches!(no.value.kind, ExprKind::Int(0) | ExprKind::Float(0.0));
                    if is_zero { self.exponential(&yes.value, depth + 1) } else { None }
                }
                _ => None,
            },
            ExprKind::Binary { op, left, right } if depth == 0 && (op == "+" || op == "-") => {
                let one = |expr: &Expr| matches!(expr.kind, ExprKind::Int(1) | ExprKind::Float(1.0));
                if one(right) {
                    self.exponential(left, depth + 1)
                } else if one(left) {
                    self.exponential(right, depth + 1)
                } else {
                    // `exp(x) - exp(-x)` beside `exp(x) + exp(-x)`
                    self.exponential(right, depth + 1).and(self.exponential(left, depth + 1))
                }
            }
            _ => None,
        }
    }

    /// Whether a name is the parameter of a helper that computes something from it.
    fn is_operand(&self, name: &str) -> bool {
        let mut returns = false;
        let mut is_changed = false;
        walk_statements(&self.kernel.body, &mut |stmt| {
            returns |= matches!(stmt.kind, StmtKind::Return(Some(_)));
            is_changed |= stmt.targets().iter().any(|target| target.mentions(name));
        });
        returns && !is_changed && self.kernel.param(name).is_some_and(|param| !param.constexpr)
    }

    /// Whether an expression is a loaded value or a product, which may be cast, scaled, masked or added to another
    /// loaded value.
    fn is_unbounded(&self, expr: &'a Expr, depth: usize) -> bool {
        let expr = self.uncast(expr);
        if depth > MAX_DEPTH {
            return false;
        }
        let is_scale = |expr: &'a Expr| {
            matches!(expr.kind, ExprKind::Int(_) | ExprKind::Float(_))
                || expr.as_name().is_some_and(|name| self.kernel.param(name).is_some())
        };
        match &expr.kind {
            ExprKind::Name(name) => self.is_operand(name),
            ExprKind::Call(call) => match self.member(call).as_deref() {
                Some("load" | "dot") => true,
                Some("where") => {
                    call.args.get(1).is_some_and(|arg| self.is_unbounded(&arg.value, depth + 1))
                        && call.args.get(2).is_some_and(|arg| is_infinite(&arg.value))
                }
                _ => false,
            },
            ExprKind::Binary { op, left, right } => match op.as_str() {
                "*" | "/" => {
                    (is_scale(right) && self.is_unbounded(left, depth + 1))
                        || (op == "*" && is_scale(left) && self.is_unbounded(right, depth + 1))
                }
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    fn found(body: &str) -> usize {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, c, scale):\n    v = tl.load(x + c)\n";
        messages(&format!("{head}{body}    tl.store(y, s)\n"), "N003").len()
    }

    #[test]
    fn quotients_of_exponentials_without_a_bound_are_found() {
        for body in [
            "e = tl.exp(v)\ns = e / tl.sum(e)",
            "e = tl.exp(v.to(tl.float32) * scale)\ns = e / tl.sum(e, axis=1)[:, None]",
            "e = tl.exp(tl.where(c < 4, v, -float('inf')))\nd = tl.sum(e)\ns = e / d",
            "e = tl.exp(tl.dot(v, v))\ns = e / tl.sum(e, 1)",
            "e = tl.where(c < 4, tl.exp(v), 0.0)\ns = e / tl.sum(e)",
            "e = tl.exp(2 * v)\ns = (e - 1) / (e + 1)",
            "e = tl.math.exp(v)\ns = e / (1 + e)",
            "e = tl.exp(v)\ns = tl.fdiv(e, tl.sum(e))",
        ] {
            assert_eq!(found(body), 1, "{body}");
        }
    }

    #[test]
    fn bounded_exponentials_and_other_quotients_are_not_flagged() {
        for body in [
            "e = tl.exp(v - tl.max(v))\ns = e / tl.sum(e)",
            "v2 = v - tl.max(v)\ne = tl.exp(v2)\ns = e / tl.sum(e)",
            "e = tl.exp(tl.minimum(v, 10.0))\ns = e / tl.sum(e)",
            "e = tl.exp(helper(v))\ns = e / tl.sum(e)",
            "e = tl.exp(v)\nv = v + 1\ns = 1 / (1 + tl.exp(-v))",
            "e = tl.exp(-tl.abs(v))\ns = (1 - e) / (1 + e)",
            "e = tl.exp(v)\ns = e / scale",
            "e = tl.exp(v)\nf = tl.exp(v * 2)\ns = e / tl.sum(f)",
            "e = tl.exp(v)\ne = e * 0.5\ns = e / tl.sum(e)",
            "e = tl.exp(v)\nlow = e / (1 + e)\ns = tl.where(v > 0, 1 / (1 + tl.exp(-v)), low)",
        ] {
            assert_eq!(found(body), 0, "{body}");
        }
    }
}
