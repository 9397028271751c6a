//! N005: a stored maximum or minimum that ignores NaN.

use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::formula_reader::{FormulaReader, find, is_infinite};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N005",
        name: "ignored-nan",
        severity: Severity::Hint,
        summary: "a maximum or minimum of what was loaded that is stored and leaves NaN out",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("ignored_nan.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("store") && (text.contains("max") || text.contains("min"));
    findings.extend(find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| found.extend(reader.stored_extreme(expr)));
        found
    }));
}

impl<'a> FormulaReader<'a> {
    /// `tl.store(…, tl.max(tl.load(…)))`
    fn stored_extreme(&self, expr: &'a Expr) -> Option<Diagnostic> {
        let store = self.call_of(expr, &["store"])?;
        let value = self.uncast(store.argument("value", Some(1))?);
        let call = self.call_of(value, &["max", "min", "maximum", "minimum"])?;
        let name = self.member(call)?;
        let is_reduction = name.len() == 3;
        let operands = if is_reduction { call.args.get(..1)? } else { call.args.get(..2)? };
        let loads: Option<Vec<&'a Expr>> = operands
            .iter()
            .map(|arg| Some(self.uncast(&arg.value)).filter(|value| self.call_of(value, &["load"]).is_some()))
            .collect();
        let is_float = loads?.iter().any(|load| self.is_float(load));
        let has_star = call.has_star() || call.argument("propagate_nan", None).is_some();
        if !is_float || has_star || (!is_reduction && call.args.len() > 2) {
            return None;
        }
        let advice = if is_reduction {
            "to keep it, reduce with `tl.reduce` and a function of `tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)`"
        } else {
            "to keep it, pass `propagate_nan=tl.PropagateNan.ALL`"
        };
        let message = format!("`tl.{name}` gives the other number where one is NaN, unlike `torch`'s; {advice}");
        Some(
            Diagnostic::new(&RULE.declaration, value.span, message)
                .with_related(expr.span, "the result is stored here"),
        )
    }

    /// Whether a load certainly gives floats, judged by its `other`.
    fn is_float(&self, load: &'a Expr) -> bool {
        let other = load.as_call().and_then(|call| call.argument("other", Some(2)));
        other.is_some_and(|other| is_infinite(other) || matches!(other.kind, ExprKind::Float(_)))
    }
}
