//! Swaps the factors of a product: Bᵀ·Aᵀ = (A·B)ᵀ.

use base::rng::Rng;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;
use rules::Edit;

use super::names;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::indent_of;

/// Accumulates the transposed product in a loop, with the factors swapped, and transposes the sum after it. A warp
/// group takes at least 64 rows of a tile on tensor cores, and as few as 8 columns, so products with few rows gain
/// where they have many columns. The terms and their order stay the same.
pub(super) struct SwappedFactors;

impl Skill for SwappedFactors {
    fn name(&self) -> &'static str {
        "swapped_factors"
    }

    fn about(&self) -> &'static str {
        "The transposed product, with its factors in the other order, transposed in the end: tensor cores take many rows and few columns better than few rows and many columns."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error || !subject.has_product() {
            return Vec::new();
        }
        let mut edits = Vec::new();
        each_body(&subject.kernel.body, &mut |body| {
            for at in 0..body.len() {
                edits.extend(sums_of(subject, body, at).iter().flat_map(|sum| sum.edits(subject, &body[at])).flatten());
            }
        });
        edits.sort_by_key(|edit: &Edit| (edit.span.start, edit.span.end));
        Proposal::of_structure("swapped_factors", "the transposed product", edits).into_iter().collect()
    }
}

/// Calls `visit` on a list of statements and on all nested lists.
fn each_body<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a [Stmt])) {
    visit(body);
    for stmt in body {
        stmt.bodies().into_iter().for_each(|inner| each_body(inner, visit));
    }
}

/// An accumulator to which a loop only adds products.
struct Sum<'a> {
    name: &'a str,
    /// Both sizes of its initial tile.
    sizes: [&'a Expr; 2],
    products: Vec<&'a Call>,
}

/// The accumulators of a loop among the statements around it.
fn sums_of<'a>(subject: &Subject<'_>, body: &'a [Stmt], at: usize) -> Vec<Sum<'a>> {
    let (StmtKind::For { orelse, .. } | StmtKind::While { orelse, .. }) = &body[at].kind else { return Vec::new() };
    if !orelse.is_empty() {
        return Vec::new();
    }
    let sums = body[..at].iter().enumerate().filter_map(|(first, stmt)| {
        let (name, sizes) = begins(subject, stmt)?;
        let products = added(subject, &body[at], name)?;
        let is_turned = body.get(at + 1).is_some_and(|next| is_transposed(subject, next, name));
        let is_used = names::uses(&body[first + 1..at], name) > 0;
        (!is_used && !is_turned && !products.is_empty()).then_some(Sum { name, sizes, products })
    });
    sums.collect()
}

/// `acc = tl.zeros((M, N), dtype=…)`
fn begins<'a>(subject: &Subject<'_>, stmt: &'a Stmt) -> Option<(&'a str, [&'a Expr; 2])> {
    let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let call = value.as_call().filter(|call| !call.has_star())?;
    if !matches!(subject.member(call).as_deref(), Some("zeros" | "full")) {
        return None;
    }
    let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &call.argument("shape", Some(0))?.kind else { return None };
    let [rows, columns] = parts.as_slice() else { return None };
    Some((target.as_name()?, [rows, columns]))
}

/// The products that a loop adds to a name; `None` where it uses the name otherwise.
fn added<'a>(subject: &Subject<'_>, around: &'a Stmt, name: &str) -> Option<Vec<&'a Call>> {
    let (mut products, mut is_known) = (Vec::new(), true);
    walk_statements(std::slice::from_ref(around), &mut |stmt| {
        let count: usize = stmt.exprs().into_iter().map(|expr| uses(expr, name)).sum();
        if count == 0 || !is_known {
            return;
        }
        match addition(subject, stmt, name) {
            // The name occurs as the target and, in a plain assignment, once more as a term.
            Some((product, own)) if own == count => products.push(product),
            _ => is_known = false,
        }
    });
    is_known.then_some(products)
}

/// The product that a statement adds to a name, and how often the name occurs in the statement.
fn addition<'a>(subject: &Subject<'_>, stmt: &'a Stmt, name: &str) -> Option<(&'a Call, usize)> {
    let is_name = |expr: &Expr| expr.as_name() == Some(name);
    let product = |expr: &'a Expr| {
        let call = expr.as_call().filter(|call| !call.has_star() && subject.member(call).as_deref() == Some("dot"))?;
        call.argument("input", Some(0)).and(call.argument("other", Some(1)))?;
        Some(call)
    };
    let to = |call: &'a Call| call.argument("acc", Some(2));
    match &stmt.kind {
        StmtKind::AugAssign { target, op, value } if op == "+" && is_name(target) => {
            product(value).filter(|call| to(call).is_none()).map(|call| (call, 1))
        }
        StmtKind::Assign { targets, annotation: None, value: Some(value) } => {
            let [target] = targets.as_slice() else { return None };
            if !is_name(target) {
                return None;
            }
            let call = match &value.kind {
                ExprKind::Binary { op, left, right } if op == "+" && is_name(left) => product(right)?,
                ExprKind::Binary { op, left, right } if op == "+" && is_name(right) => product(left)?,
                _ => {
                    let call = product(value)?;
                    return to(call).filter(|acc| is_name(acc)).map(|_| (call, 2));
                }
            };
            to(call).is_none().then_some((call, 2))
        }
        _ => None,
    }
}

/// `acc = tl.trans(acc)`
fn is_transposed(subject: &Subject<'_>, stmt: &Stmt, name: &str) -> bool {
    let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return false };
    let is_name = |expr: &Expr| expr.as_name() == Some(name);
    let of = value.as_call().filter(|call| subject.member(call).as_deref() == Some("trans"));
    targets.iter().all(is_name) && of.is_some_and(|call| call.args.iter().all(|arg| is_name(&arg.value)))
}

impl Sum<'_> {
    /// The edits; `None` where the name of `tl.trans` is unknown, or where the loop is not on lines of its own.
    fn edits(&self, subject: &Subject<'_>, around: &Stmt) -> Option<Vec<Edit>> {
        let text = subject.candidate.text.as_str();
        let trans = subject.candidate.module.language_name(subject.kernel, "trans")?;
        let indent = indent_of(text, around.span.start)?;
        let slice = |span: Span| text[span.start..span.end].to_owned();
        let [rows, columns] = self.sizes.map(|size| size.span);
        let mut edits = vec![Edit { span: rows, text: slice(columns) }, Edit { span: columns, text: slice(rows) }];
        for product in &self.products {
            let [left, right] = [product.argument("input", Some(0))?, product.argument("other", Some(1))?];
            for (place, factor) in [(left, right), (right, left)] {
                let text = match subject.untransposed(factor) {
                    Some(inner) => slice(inner.span),
                    None => format!("{trans}({})", slice(factor.span)),
                };
                edits.push(Edit { span: place.span, text });
            }
        }
        let end = Span::new(around.span.end, around.span.end);
        edits.push(Edit { span: end, text: format!("\n{indent}{0} = {trans}({0})", self.name) });
        Some(edits)
    }
}

/// How often a name occurs in an expression.
fn uses(expr: &Expr, name: &str) -> usize {
    let mut count = 0;
    expr.walk(&mut |expr| count += usize::from(expr.as_name() == Some(name)));
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turned::turned_by;

    const KERNEL: &str = "import triton
import triton.language as tl

@triton.jit
def k(x, y, o, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, B):
        a = tl.load(x + rows[:, None] * K + start + ks)
        b = tl.load(y + cols[:, None] * K + start + ks)
        acc = tl.dot(a, tl.trans(b), acc, input_precision=\"ieee\")
    # Behind it.
    tl.store(o + rows[:, None] * N + cols, acc)

def run(x, y, o):
    k[(1,)](x, y, o, 64, M=16, N=64, B=32)
";
    const PRODUCT: &str = "acc = tl.dot(a, tl.trans(b), acc, input_precision=\"ieee\")";

    fn turned(text: &str) -> Vec<String> {
        turned_by(&SwappedFactors, text)
    }

    fn swapped(product: &str) -> String {
        KERNEL.replace("((M, N)", "((N, M)").replace(PRODUCT, &format!("{product}\n    acc = tl.trans(acc)"))
    }

    #[test]
    fn factors_change_places_and_the_sum_is_transposed_behind_the_loop() {
        let expected = swapped("acc = tl.dot(b, tl.trans(a), acc, input_precision=\"ieee\")");
        assert_eq!(turned(KERNEL), [expected.as_str()]);
        assert!(turned(&expected).is_empty(), "it is not turned twice");
    }

    #[test]
    fn all_forms_of_accumulating_products_are_recognized() {
        for (product, expected) in [
            ("acc += tl.dot(a, b.T)", "acc += tl.dot(b, tl.trans(a))"),
            ("acc = acc + tl.dot(a.trans(), other=b * 2)", "acc = acc + tl.dot(tl.trans(b * 2), other=a)"),
            ("acc = tl.dot(a, b) + acc", "acc = tl.dot(tl.trans(b), tl.trans(a)) + acc"),
            ("acc = tl.dot(a, b, acc=acc)", "acc = tl.dot(tl.trans(b), tl.trans(a), acc=acc)"),
        ] {
            assert_eq!(turned(&KERNEL.replace(PRODUCT, product)), [swapped(expected)]);
        }
    }

    /// The accumulator is initialized in each iteration of the outer loop.
    #[test]
    fn products_in_nested_loops_are_swapped() {
        let indented: String = KERNEL
            .lines()
            .map(|line| {
                let is_inner = ["    acc", "    for", "        ", "    #", "    tl.store"]
                    .iter()
                    .any(|head| line.starts_with(head));
                format!("{}{line}\n", if is_inner { "    " } else { "" })
            })
            .collect();
        let text = indented.replace("        acc = tl.zeros", "    for _ in range(K):\n        acc = tl.zeros");
        let turned = turned(&text);
        assert_eq!(turned.len(), 1);
        assert!(
            turned[0].contains("((N, M)") && turned[0].contains("\n        acc = tl.trans(acc)\n        # Behind it."),
            "{}",
            turned[0]
        );
    }

    #[test]
    fn accumulators_with_other_uses_are_not_swapped() {
        for (old, new) in [
            // A use in the loop, between its assignments, or in another form.
            (PRODUCT, "acc = tl.dot(a, b, acc) * 2"),
            (PRODUCT, "acc = tl.dot(a, b, acc)\n        tl.store(o, acc)"),
            (PRODUCT, "acc -= tl.dot(a, b)"),
            (PRODUCT, "acc = tl.dot(acc, b, acc)"),
            (PRODUCT, "acc += tl.dot(a, b, acc)"),
            (PRODUCT, "acc = tl.dot(*[a, b, acc])"),
            ("    for start", "    acc += 1\n    for start"),
            ("tl.zeros((M, N), dtype=tl.float32)", "tl.load(o + rows[:, None] * N + cols)"),
            ("tl.zeros((M, N), ", "tl.zeros((1, M, N), "),
            ("for start in range(0, K, B):", "for start in range(0, K + acc, B):"),
        ] {
            let text = KERNEL.replacen(old, new, 1);
            assert!(text != KERNEL && turned(&text).is_empty(), "{new}: {:?}", turned(&text));
        }
    }
}
