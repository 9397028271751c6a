//! Exponentials and logarithms to base 2, which the device computes directly.

mod fold;

use std::collections::HashMap;

use base::rng::Rng;
use model::kernel::ast::{Arg, Call, Expr, ExprKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};
use model::syntax::Span;
use rules::{Edit, apply_edits};

use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

const LOG2_E: &str = "1.4426950408889634";
const LN_2: &str = "0.6931471805599453";

/// Replaces `tl.exp(e)` by `tl.exp2(e * 1.4426950408889634)`, and `tl.log(e)` by `tl.log2(e) * 0.6931471805599453`,
/// everywhere in a kernel at once. Both functions accept only `fp32` and `fp64`, so the values are certainly floats.
/// Where the exponent is computed from values that are multiplied by a number anyway, as the scores of attention are,
/// that number absorbs the factor, which saves the multiplication before each exponential.
pub(super) struct Exp2;

impl Skill for Exp2 {
    fn name(&self) -> &'static str {
        "exp2"
    }

    fn about(&self) -> &'static str {
        "`tl.exp2` and `tl.log2` for `tl.exp` and `tl.log`, with the factor in a scale where there is one."
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
        let folded = Rewrite::of(subject).folded();
        let folded = folded.and_then(|folded| {
            Proposal::of_structure("exp2 folded", "exp2 for exp, with its factor in the scale", folded.edits())
        });
        let plain = Proposal::of_structure("exp2", "exp2 for exp", Rewrite::of(subject).plain().edits());
        folded.into_iter().chain(plain).collect()
    }
}

/// The replacements of expressions, which are identified by their addresses in memory.
struct Rewrite<'a> {
    text: &'a str,
    module: &'a Module,
    kernel: &'a Kernel,
    /// The arguments of exponentials.
    exponents: Vec<&'a Expr>,
    /// The spans of function names, and their replacements.
    renamed: HashMap<*const Expr, (Span, String)>,
    /// Expressions that are multiplied by a number.
    times: HashMap<*const Expr, &'static str>,
}

impl<'a> Rewrite<'a> {
    fn of(subject: &Subject<'a>) -> Self {
        let (candidate, kernel) = (subject.candidate, subject.kernel);
        let (exponents, renamed, times) = Default::default();
        let mut rewrite = Self { text: &candidate.text, module: &candidate.module, kernel, exponents, renamed, times };
        walk_expressions(&kernel.body, &mut |expr| {
            if let Some(call) = expr.as_call() {
                rewrite.call(expr, call);
            }
        });
        rewrite
    }

    /// Replaces the function of a call by that of the other base, if it has one.
    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Option<()> {
        let (operand, name) = match (self.module.language_member(self.kernel, &call.func), &call.func.kind) {
            (Some(member), _) => {
                let [Arg { value, .. }] = call.args.as_slice() else { return None };
                (value, member.strip_prefix("math.").unwrap_or(&member).to_owned())
            }
            (None, ExprKind::Attribute { value, name, .. }) if call.args.is_empty() => (&**value, name.clone()),
            _ => return None,
        };
        if !["exp", "log"].contains(&name.as_str()) || call.has_star() {
            return None;
        }
        let renamed = match &call.func.kind {
            ExprKind::Attribute { name_span, .. } => (*name_span, format!("{name}2")),
            _ => (call.func.span, self.module.language_name(self.kernel, &format!("{name}2"))?),
        };
        self.renamed.insert(&raw const call.func, renamed);
        if name == "exp" {
            self.exponents.push(operand);
        } else {
            self.times.insert(expr, LN_2);
        }
        Some(())
    }

    /// The rewrite with a factor in each exponential.
    fn plain(mut self) -> Self {
        for exponent in std::mem::take(&mut self.exponents) {
            self.multiply(exponent, LOG2_E);
        }
        self
    }

    /// The rewrite with the factor in existing multiplications, as far as that is known to keep the meaning; `None`
    /// where there is none.
    fn folded(mut self) -> Option<Self> {
        for (expr, factor) in fold::folded(self.module, self.kernel, &self.exponents)? {
            self.multiply(expr, factor);
        }
        Some(self)
    }

    fn multiply(&mut self, expr: *const Expr, factor: &'static str) {
        // The two factors cancel each other: `tl.exp(tl.log(x))`
        if self.times.remove(&expr).is_none() {
            self.times.insert(expr, factor);
        }
    }

    fn edits(&self) -> Vec<Edit> {
        let mut edits = Vec::new();
        walk_statements(&self.kernel.body, &mut |stmt| {
            for expr in stmt.exprs() {
                let text = self.written(expr, true);
                if text != self.text[expr.span.start..expr.span.end] {
                    edits.push(Edit { span: expr.span, text });
                }
            }
        });
        edits
    }

    /// The text of an expression. A product needs no parentheses where `loose` is set.
    fn written(&self, expr: &Expr, loose: bool) -> String {
        let is_loose = |at: usize| match &expr.kind {
            ExprKind::Call(_) => at > 0,
            ExprKind::Binary { op, .. } => op == "+" || op == "-",
            _ => false,
        };
        let children = expr.children().into_iter().enumerate();
        let mut edits: Vec<Edit> =
            children.map(|(at, child)| Edit { span: child.span, text: self.written(child, is_loose(at)) }).collect();
        if let Some((span, name)) = self.renamed.get(&std::ptr::from_ref(expr)) {
            edits.push(Edit { span: *span, text: name.clone() });
        }
        for edit in &mut edits {
            edit.span = Span::new(edit.span.start - expr.span.start, edit.span.end - expr.span.start);
        }
        let text = apply_edits(&self.text[expr.span.start..expr.span.end], &edits);
        let Some(factor) = self.times.get(&std::ptr::from_ref(expr)) else { return text };
        let is_loose = match &expr.kind {
            ExprKind::Binary { op, .. } => !["*", "/"].contains(&op.as_str()),
            ExprKind::Compare { .. } | ExprKind::BoolOp { .. } | ExprKind::IfExp { .. } => true,
            _ => false,
        };
        let product = if is_loose { format!("({text}) * {factor}") } else { format!("{text} * {factor}") };
        if loose { product } else { format!("({product})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::Workload;

    const HEAD: &str =
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, n, scale, B: tl.constexpr):\n";
    const TAIL: &str = "\ndef run(x):\n    k[(1,)](x, x, 7, 0.5, 8)\n";

    /// The kind of each proposal, with the changed body.
    fn turned(body: &str) -> Vec<(String, String)> {
        let text = format!("{HEAD}{body}{TAIL}");
        let candidate = Candidate::original(&text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let turns = Exp2.turns(&subject, &mut Rng::new(1)).into_iter();
        let body = |turn: &Proposal| {
            let new = apply_edits(&text, &turn.edits);
            new.strip_prefix(HEAD).and_then(|new| new.strip_suffix(TAIL)).unwrap().to_owned()
        };
        turns.map(|turn| (turn.kind.clone(), body(&turn))).collect()
    }

    fn only(body: &str) -> String {
        let mut turns = turned(body);
        assert_eq!(turns.len(), 1, "{turns:?}");
        assert_eq!(turns[0].0, "exp2");
        turns.remove(0).1
    }

    #[test]
    fn each_exponential_and_logarithm_is_to_the_base_2() {
        let body = "    v = tl.load(x)
    a = tl.exp(v - tl.max(v))  # at most one
    b = tl.math.exp(
        -v  # minus
    ) + tl.exp(tl.exp(v)) / tl.log(a)
    c = a.exp() * (v + b).log() + tl.exp(tl.log(b))
    tl.store(y, a + tl.log(b))
";
        let expected = "    v = tl.load(x)
    a = tl.exp2((v - tl.max(v)) * 1.4426950408889634)  # at most one
    b = tl.math.exp2(
        -v * 1.4426950408889634  # minus
    ) + tl.exp2(tl.exp2(v * 1.4426950408889634) * 1.4426950408889634) / (tl.log2(a) * 0.6931471805599453)
    c = (a * 1.4426950408889634).exp2() * ((v + b).log2() * 0.6931471805599453) + tl.exp2(tl.log2(b))
    tl.store(y, a + tl.log2(b) * 0.6931471805599453)
";
        assert_eq!(only(body), expected);
        assert_eq!(turned(expected), []);
    }

    #[test]
    fn functions_imported_by_name_are_converted() {
        let text = "import triton\nfrom triton.language import exp, load, store\n@triton.jit\ndef k(x):\n    store(x, exp(load(x)))\ndef run(x):\n    k[(1,)](x)\n";
        let candidate = Candidate::original(text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
        let turns = Exp2.turns(&subject, &mut Rng::new(1));
        let new = apply_edits(text, &turns[0].edits);
        assert!(new.contains("store(x, triton.language.exp2(load(x) * 1.4426950408889634))"), "{new}");
    }

    #[test]
    fn exponentials_of_other_modules_are_unchanged() {
        for body in [
            "    v = exp(tl.load(x))\n",
            "    v = math.exp(2.0)\n",
            "    v = tl.exp(*x)\n",
            "    v = tl.exp2(tl.load(x))\n",
        ] {
            assert_eq!(turned(body), [], "{body}");
        }
    }

    /// The scores have the factor from the scaling on, and so has the running maximum.
    #[test]
    fn the_scale_of_attention_absorbs_the_factor() {
        let body = "    m = tl.zeros([B], dtype=tl.float32) - float(\"inf\")
    l = tl.zeros([B], dtype=tl.float32)
    q = tl.load(x)
    for i in range(n):
        s = tl.zeros([B, B], dtype=tl.float32)
        s += tl.dot(q, tl.load(x + i))
        s *= scale  # once
        s = tl.where(i < n, s, float(\"-inf\"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        l = l * tl.exp(m - m_new) + tl.sum(p, 1)
        m = m_new
    tl.store(y, m + tl.log(l))
";
        let turns = turned(body);
        let kinds: Vec<&String> = turns.iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["exp2 folded", "exp2"]);
        let expected = body
            .replace("*= scale  #", "*= scale * 1.4426950408889634  #")
            .replace("tl.exp(", "tl.exp2(")
            .replace("m + tl.log(l)", "m * 0.6931471805599453 + tl.log2(l) * 0.6931471805599453");
        assert_eq!(turns[0].1, expected);
    }

    #[test]
    fn factors_and_bounds_in_one_expression_are_scaled() {
        let body = "    v = tl.load(x) / scale
    w = tl.where(v > 0, v, -1e6) - tl.max(v * 0.5)
    tl.store(y, tl.exp(w) + tl.exp(-0.5 * w) + tl.exp(tl.load(x)))
";
        let turns = turned(body);
        // The operand that `v` is compared with stays, so that `v` keeps its meaning elsewhere.
        assert_eq!(
            turns[0].1,
            "    v = tl.load(x) / (scale * 0.6931471805599453)
    w = tl.where((v * 0.6931471805599453) > 0, v, -(1e6 * 1.4426950408889634)) - tl.max((v * 0.6931471805599453) * (0.5 * 1.4426950408889634))
    tl.store(y, tl.exp2(w) + tl.exp2((-0.5 * 1.4426950408889634) * (w * 0.6931471805599453)) + tl.exp2(tl.load(x) * 1.4426950408889634))
"
        );
    }

    #[test]
    fn values_with_other_uses_in_a_loop_are_not_scaled() {
        let body = |rest: &str| {
            format!("    for i in range(n):\n        s = tl.load(x) * scale\n        p = tl.exp(s - tl.max(s))\n{rest}")
        };
        assert_eq!(turned(&body("")).len(), 2);
        for rest in ["        tl.store(y, s)\n", "        s += 1.0\n        tl.store(y, s)\n"] {
            assert_eq!(turned(&body(rest)).len(), 1, "{rest}");
        }
    }
}
