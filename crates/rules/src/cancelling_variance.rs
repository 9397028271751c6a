//! N006: a variance that is computed as a difference of large numbers, which cancels.

use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Source;

use super::formula_reader::{FormulaReader, find};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N006",
        name: "cancelling-variance",
        severity: Severity::Hint,
        summary: "a variance computed as mean of squares less square of mean, which cancels",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("cancelling_variance.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let message = "where the mean is large beside the spread, the two cancel, and what is left is rounding error, \
                   which may be negative; sum `(x - mean) * (x - mean)` in a second pass, or use Welford's method";
    findings.extend(find(context, &RULE, &|_| true, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            if reader.is_difference(expr, context.source) {
                found.push(Diagnostic::new(&RULE.declaration, expr.span, message));
            }
        });
        found
    }));
}

impl<'a> FormulaReader<'a> {
    /// `a / n - m * m` where `m` is `b / n`.
    fn is_difference(&self, expr: &'a Expr, source: &'a Source) -> bool {
        let ExprKind::Binary { op, left, right } = &expr.kind else { return false };
        let ExprKind::Binary { op: times, left: mean, right: again } = &self.definitions.behind(right).kind else {
            return false;
        };
        let same = mean.as_name().is_some() && mean.as_name() == again.as_name();
        if op != "-" || times != "*" || !same {
            return false;
        }
        let divisor = |expr: &'a Expr| match &self.definitions.behind(expr).kind {
            ExprKind::Binary { op, right, .. } if op == "/" => Some(source.slice(right.span)),
            _ => None,
        };
        matches!((divisor(left), divisor(mean)), (Some(a), Some(b)) if a == b)
    }
}
