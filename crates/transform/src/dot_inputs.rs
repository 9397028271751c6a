//! Removes casts to fp32 from half-precision inputs of `tl.dot`.

use std::collections::BTreeMap;

use base::rng::Rng;
use model::analysis::types::dtype::Dtype;
use model::analysis::types::{AbstractValue, KernelAnalysis, infer};
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;
use rules::Edit;

use crate::proposal::Proposal;
use crate::skill::Skill;
use crate::step::StepSize;
use crate::subject::Subject;

/// Removes casts to fp32 of half-precision data that is an input of a product: the terms stay the same and are
/// accumulated in fp32, and tensor cores process half precision at least twice as fast as tf32. Where the other factor
/// is computed in fp32, as the probabilities of attention are, a second proposal rounds that one. The judge decides
/// whether the result is still precise enough.
pub(super) struct DotInputs;

impl Skill for DotInputs {
    fn name(&self) -> &'static str {
        "dot_inputs"
    }

    fn about(&self) -> &'static str {
        "Half-precision tiles go into `tl.dot` as they were loaded, where they are cast to fp32 first; a factor that is computed in fp32 is rounded to the type of the other one, if results stay precise enough."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn keeps_contract(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let Some(found) = Products::of(subject) else { return Vec::new() };
        let exact = Proposal::of_structure("dot_inputs", "factors as they were loaded", found.exact());
        exact
            .into_iter()
            .chain(Proposal::of_structure("dot_inputs rounded", "factors in half precision", found.rounded()))
            .collect()
    }
}

/// A factor that is cast to fp32.
#[derive(Clone)]
struct Cast<'a> {
    /// The operand of the cast.
    value: &'a Expr,
    /// The span from the operand's end to the cast's end: `.to(tl.float32)`
    cut: Span,
    /// The name of the result, where the cast is a statement of its own.
    name: Option<&'a str>,
}

/// The products of a kernel, each with its two factors and their casts.
struct Products<'a> {
    text: &'a str,
    kernel: &'a Kernel,
    all: Vec<[(&'a Expr, Option<Cast<'a>>); 2]>,
}

impl<'a> Products<'a> {
    fn of(subject: &Subject<'a>) -> Option<Self> {
        let (module, kernel) = (&subject.candidate.module, subject.kernel);
        let text: &'a str = &subject.candidate.text;
        if kernel.has_error || !subject.has_product() {
            return None;
        }
        let mut products: Vec<&'a Call> = Vec::new();
        walk_expressions(&kernel.body, &mut |expr| {
            let is_product = |call: &&Call| module.language_member(kernel, &call.func).as_deref() == Some("dot");
            products.extend(expr.as_call().filter(is_product));
        });
        let at = module.kernels.iter().position(|one| std::ptr::eq(one, kernel))?;
        let facts = infer(module, text, subject.target, at, true);
        let given = given(kernel);
        let is_fp32 = |expr: &Expr| module.language_member(kernel, expr).as_deref() == Some("float32");
        let cast = |factor: &'a Expr| {
            let plain = subject.untransposed(factor).unwrap_or(factor);
            let (value, name) = match plain.as_name() {
                Some(name) => (*given.get(name)?.as_ref()?, Some(name)),
                None => (plain, None),
            };
            let call = value.as_call()?;
            let ExprKind::Attribute { value: inner, name: method, name_span } = &call.func.kind else { return None };
            let [to] = call.args.as_slice() else { return None };
            let fits = method == "to" && is_fp32(&to.value) && may_be_half(&facts, inner.span);
            // The operand may be in parentheses.
            let dot = text[..name_span.start].rfind('.').filter(|_| fits)?;
            Some(Cast { value: inner, cut: Span::new(dot, value.span.end), name })
        };
        let factors =
            products.into_iter().filter(|call| call.argument("out_dtype", None).is_none() && !call.has_star());
        let both = factors.filter_map(|call| {
            let [left, right] = [("input", 0), ("other", 1)].map(|(name, at)| call.argument(name, Some(at)));
            Some([left?, right?].map(|factor| (factor, cast(factor))))
        });
        Some(Self { text, kernel, all: both.collect() })
    }

    /// The edits that remove the casts of products both of whose factors have one.
    fn exact(&self) -> Vec<Edit> {
        let casts: Vec<&Cast<'a>> = self.all.iter().filter_map(both).flatten().collect();
        let mut edits: Vec<Edit> = Vec::new();
        for product in self.all.iter().filter_map(both) {
            if product.iter().all(|cast| self.is_for_products(cast, &casts)) {
                edits.extend(product.iter().map(|cast| Edit { span: cast.cut, text: String::new() }));
            }
        }
        once(edits)
    }

    /// The edits that round the factors beside those that are cast.
    fn rounded(&self) -> Vec<Edit> {
        let casts: Vec<&Cast<'a>> = self.all.iter().flatten().filter_map(|(_, cast)| cast.as_ref()).collect();
        let mut edits = Vec::new();
        let mut has_rounded = false;
        for [left, right] in &self.all {
            match (left, right) {
                ((_, Some(left)), (_, Some(right)))
                    if [left, right].iter().all(|cast| self.is_for_products(cast, &casts)) =>
                {
                    edits.extend([left, right].map(|cast| Edit { span: cast.cut, text: String::new() }));
                }
                ((wide, None), (_, Some(cast))) | ((_, Some(cast)), (wide, None)) => {
                    let Some(dtype) = self.dtype(cast).filter(|_| self.is_for_products(cast, &casts)) else { continue };
                    edits.push(Edit { span: cast.cut, text: String::new() });
                    let span = Span::new(wide.span.end, wide.span.end);
                    let is_simple =
                        matches!(wide.kind, ExprKind::Name(_) | ExprKind::Call(_) | ExprKind::Attribute { .. });
                    let open = Edit { span: Span::new(wide.span.start, wide.span.start), text: "(".to_owned() };
                    edits.extend((!is_simple).then_some(open));
                    edits.push(Edit { span, text: format!("{}.to({dtype})", if is_simple { "" } else { ")" }) });
                    has_rounded = true;
                }
                _ => {}
            }
        }
        if has_rounded { once(edits) } else { Vec::new() }
    }

    /// The type of the operand, as an expression at the product.
    fn dtype(&self, cast: &Cast<'a>) -> Option<String> {
        let of = |span: Span| &self.text[span.start..span.end];
        match (cast.name, &cast.value.kind) {
            // The name then holds the value before the cast.
            (Some(name), _) => Some(format!("{name}.dtype")),
            (None, ExprKind::Name(_)) => Some(format!("{}.dtype", of(cast.value.span))),
            (None, _) => None,
        }
    }

    /// Whether a name is read only by products that are all changed.
    fn is_for_products(&self, cast: &Cast<'a>, casts: &[&Cast<'a>]) -> bool {
        let Some(name) = cast.name else { return true };
        let mut read = 0;
        walk_expressions(&self.kernel.body, &mut |expr| read += usize::from(expr.as_name() == Some(name)));
        // One of the occurrences is the assignment.
        read == 1 + casts.iter().filter(|other| other.name == Some(name)).count()
    }
}

/// The casts of a product both of whose factors are cast.
fn both<'b, 'a>(product: &'b [(&'a Expr, Option<Cast<'a>>); 2]) -> Option<[&'b Cast<'a>; 2]> {
    let [(_, Some(left)), (_, Some(right))] = product else { return None };
    Some([left, right])
}

/// The value of each name of a kernel; `None` for names that have several values, or something other than a value.
fn given(kernel: &Kernel) -> BTreeMap<&str, Option<&Expr>> {
    let mut given: BTreeMap<&str, Option<&Expr>> = BTreeMap::new();
    walk_statements(&kernel.body, &mut |stmt| {
        let value = match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } if matches!(targets.as_slice(), [one] if one.as_name().is_some()) => {
                Some(value)
            }
            _ => None,
        };
        for target in stmt.targets() {
            target.walk(&mut |expr| {
                if let Some(name) = expr.as_name() {
                    let is_first = !given.contains_key(name);
                    given.insert(name, value.filter(|_| is_first));
                }
            });
        }
    });
    given
}

/// Whether the value at a place may be half precision; an unknown type may be.
fn may_be_half(facts: &KernelAnalysis, place: Span) -> bool {
    let mut kinds = facts.types.iter().filter(|(span, _)| *span == place).map(|(_, value)| match value {
        AbstractValue::Tile(tile) => tile.element.number(),
        _ => None,
    });
    kinds.all(|kind| kind.is_none_or(|kind| matches!(kind, Dtype::Fp16 | Dtype::Bf16)))
}

/// The edits in order, without duplicates.
fn once(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits.dedup();
    edits
}

#[cfg(test)]
mod tests;
