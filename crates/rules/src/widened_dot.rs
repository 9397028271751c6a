//! P005: a product of half-precision tiles that are cast to fp32 first.

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{AbstractValue, KernelAnalysis, infer};
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use model::syntax::Span;

use super::formula_reader::{FormulaReader, find};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P005",
        name: "widened-dot",
        severity: Severity::Hint,
        summary: "a `tl.dot` of half-precision tiles that are cast to fp32 first",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("widened_dot.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("dot") && text.contains("float32");
    findings.extend(find(context, &RULE, &may_be, |reader| {
        let mut products: Vec<(Span, [&Expr; 2])> = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            if let Some(narrow) = reader.call_of(expr, &["dot"]).and_then(|call| reader.widened(call)) {
                products.push((expr.span, narrow));
            }
        });
        let is_it = |kernel: &Kernel| kernel.span == reader.kernel.span;
        let at = context.module.kernels.iter().position(is_it).filter(|_| !products.is_empty());
        let Some(at) = at else { return Vec::new() };
        // Signature comments elsewhere in the file may give the types.
        context.ask_everything();
        let facts = infer(context.module, context.source.text(), context.target, at, true);
        products.into_iter().filter_map(|(dot, narrow)| report(&facts, dot, narrow)).collect()
    }));
}

fn report(facts: &KernelAnalysis, dot: Span, narrow: [&Expr; 2]) -> Option<Diagnostic> {
    let [left, right] = narrow.map(|tile| half(facts, tile.span));
    let name = left.filter(|left| Some(*left) == right)?.name();
    let message = format!(
        "both operands are {name} before they are cast to fp32, which adds no precision: `tl.dot` of the {name} tiles has the same \
         products, adds them up in fp32, and runs on tensor cores at twice the rate of tf32 or more (\"Optimize this kernel\" measures it)"
    );
    let related = |found: Diagnostic, tile: &Expr| found.with_related(tile.span, format!("this is {name}"));
    Some(narrow.iter().fold(Diagnostic::new(&RULE.declaration, dot, message), |found, tile| related(found, tile)))
}

/// The type of a half-precision tile, where it is the same each time that the place is evaluated.
fn half(facts: &KernelAnalysis, place: Span) -> Option<Dtype> {
    let mut kinds = facts.types.iter().filter(|(span, _)| *span == place).map(|(_, value)| match value {
        AbstractValue::Tile(tile) => tile.element.number(),
        _ => None,
    });
    let first = kinds.next()??;
    (matches!(first, Dtype::Fp16 | Dtype::Bf16) && kinds.all(|kind| kind == Some(first))).then_some(first)
}

impl<'a> FormulaReader<'a> {
    /// The operands of a product before they are cast to fp32.
    fn widened(&self, call: &'a Call) -> Option<[&'a Expr; 2]> {
        let [left, right] = [("input", 0), ("other", 1)].map(|(name, at)| call.argument(name, Some(at)));
        let is_plain = call.argument("out_dtype", None).is_none() && !call.has_star();
        Some([self.before_cast(left.filter(|_| is_plain)?)?, self.before_cast(right?)?])
    }

    /// `x` of `x.to(tl.float32)`.
    fn before_cast(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let call = self.definitions.behind(expr).as_call()?;
        let ExprKind::Attribute { value, name, .. } = &call.func.kind else { return None };
        let is_cast = name == "to" && call.args.len() == 1 && self.module.resolve_in(self.kernel, &call.func).is_none();
        let to = call.args.first().filter(|_| is_cast)?;
        (self.module.language_member(self.kernel, &to.value)? == "float32").then_some(value)
    }
}
