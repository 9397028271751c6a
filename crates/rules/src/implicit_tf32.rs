//! N001: a product of fp32 tiles without an explicit precision, which Triton computes in TF32.

use model::analysis::types::access::Product;
use model::analysis::types::dtype::Dtype;
use model::syntax::Span;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "N001",
        name: "implicit-tf32",
        severity: Severity::Hint,
        summary: "a `tl.dot` of fp32 tiles without a precision, which is therefore computed in tf32",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("implicit_tf32.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let is_fp32 = |product: &&Product| product.operands.iter().all(|tile| tile.element.number() == Some(Dtype::Fp32));
    let products = context.facts().iter().flat_map(|facts| &facts.products);
    let mut spans: Vec<Span> =
        products.filter(|product| !product.has_precision).filter(is_fp32).map(|product| product.span).collect();
    spans.sort_unstable();
    spans.dedup();
    if spans.is_empty() || context.is_for_other_compiler() {
        return;
    }
    let message = "both operands are fp32, and `tl.dot` rounds them to tf32 (10 bits of mantissa) where the GPU has it; \
                   pass `input_precision=\"ieee\"` for fp32, or `\"tf32\"` to say that this is meant";
    findings.extend(spans.into_iter().map(|span| Diagnostic::new(&RULE.declaration, span, message)));
}
