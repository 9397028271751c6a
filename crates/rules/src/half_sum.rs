//! N007: a sum over lanes in half precision.

use model::api::{TritonTarget, VersionCertainty};
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;

use super::formula_reader::{FormulaReader, find};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N007",
        name: "half-sum",
        severity: Severity::Hint,
        summary: "a `tl.sum` of what was cast to half precision, which adds up in half precision",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("half_sum.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("float16") && text.contains("sum");
    findings.extend(find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            found.extend(reader.half_sum(expr, context.target).map(report))
        });
        found
    }));
}

fn report((sum, cast, half): (Span, Span, &'static str)) -> Diagnostic {
    let message = format!(
        "this adds up in {half}, and rounds after each addition; sum the value before the cast, and cast the result"
    );
    Diagnostic::new(&RULE.declaration, sum, message).with_related(cast, format!("it becomes {half} here"))
}

impl<'a> FormulaReader<'a> {
    /// `tl.sum(x.to(tl.float16))`: the sum, the cast, and the type.
    fn half_sum(&self, expr: &'a Expr, target: TritonTarget) -> Option<(Span, Span, &'static str)> {
        let call = self.call_of(expr, &["sum"])?;
        if call.has_star() || call.argument("dtype", None).is_some() {
            return None;
        }
        let cast = self.definitions.behind(call.argument("input", Some(0))?);
        let to = cast.as_call()?;
        let ExprKind::Attribute { name, .. } = &to.func.kind else { return None };
        if name != "to" || self.module.resolve_in(self.kernel, &to.func).is_some() {
            return None;
        }
        let half = match self.module.language_member(self.kernel, &to.args.first()?.value)?.as_str() {
            "float16" => "fp16",
            "bfloat16" if keeps_bfloat16(target) => "bf16",
            _ => return None,
        };
        Some((expr.span, cast.span, half))
    }
}

/// Whether `tl.sum` keeps bf16 in this version: before 3.3 it summed bf16 in fp32.
fn keeps_bfloat16(target: TritonTarget) -> bool {
    target.certainty == VersionCertainty::Known && target.table.version.series() >= (3, 3)
}
