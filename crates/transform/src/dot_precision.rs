//! Computes fp32 products on tensor cores: `tf32x3`, three TF32 products with nearly the precision of fp32.

use base::rng::Rng;
use model::kernel::ast::{Arg, Call, Expr, ExprKind, walk_expressions};
use rules::Edit;

use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

/// The requested precision.
const THRICE: &str = "\"tf32x3\"";

/// Requests `tf32x3` where a product requests `ieee`: each factor is split in two, and three products on tensor cores
/// come nearly as close as one in fp32, which tensor cores do not support. The judge decides whether that is precise
/// enough.
pub(super) struct DotPrecision;

impl Skill for DotPrecision {
    fn name(&self) -> &'static str {
        "dot_precision"
    }

    fn about(&self) -> &'static str {
        "`input_precision=\"tf32x3\"` for products that ask for `ieee` (or `allow_tf32=False`): three products on tensor cores instead of one without them, if results stay precise enough."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error {
            return Vec::new();
        }
        let mut edits = Vec::new();
        walk_expressions(&subject.kernel.body, &mut |expr| {
            let is_product = |call: &&Call| subject.member(call).as_deref() == Some("dot");
            edits.extend(expr.as_call().filter(is_product).and_then(thrice));
        });
        Proposal::of_structure("dot_precision", "tf32x3 for ieee", edits).into_iter().collect()
    }
}

/// The edit of one product that requests full fp32 precision.
fn thrice(call: &Call) -> Option<Edit> {
    let keyword = |wanted: &str| call.args.iter().find(|arg| matches!(&arg.keyword, Some((name, _)) if name == wanted));
    let is = |arg: &Arg, holds: fn(&Expr) -> bool| holds(&arg.value);
    if call.has_star() {
        return None;
    }
    match (keyword("input_precision"), keyword("allow_tf32")) {
        (Some(arg), None) if is(arg, |value| matches!(&value.kind, ExprKind::Str(text) if text == "ieee")) => {
            Some(Edit { span: arg.value.span, text: THRICE.to_owned() })
        }
        (None, Some(arg)) if is(arg, |value| matches!(value.kind, ExprKind::Bool(false))) => {
            Some(Edit { span: arg.span, text: format!("input_precision={THRICE}") })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;
    use rules::apply_edits;

    fn turned(products: &str) -> Vec<String> {
        let head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    a = tl.load(x)\n    ";
        let tail = "\n\ndef run(x):\n    k[(1,)](x, 16)\n";
        let text = format!("{head}{products}{tail}");
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let turns = DotPrecision.turns(&subject, &mut Rng::new(1));
        let body = |turn: &Proposal| {
            let new = apply_edits(&text, &turn.edits);
            new.strip_prefix(head).and_then(|new| new.strip_suffix(tail)).unwrap().to_owned()
        };
        turns.iter().map(body).collect()
    }

    #[test]
    fn products_with_ieee_precision_become_tf32x3() {
        let body = "b = tl.dot(a, a, input_precision='ieee') + tl.dot(a, a, allow_tf32=False)";
        let expected = "b = tl.dot(a, a, input_precision=\"tf32x3\") + tl.dot(a, a, input_precision=\"tf32x3\")";
        assert_eq!(turned(body), [expected]);
        assert!(turned(expected).is_empty());
    }

    #[test]
    fn other_products_are_left_alone() {
        for body in [
            "b = tl.dot(a, a)",
            "b = tl.dot(a, a, allow_tf32=True)",
            "b = tl.dot(a, a, input_precision=B)",
            "b = tl.dot(a, a, **{'input_precision': 'ieee'})",
            "b = dot(a, a, input_precision='ieee')",
        ] {
            assert!(turned(body).is_empty(), "{body}: {:?}", turned(body));
        }
    }
}
