//! Computes offsets in 32 bits in calls whose tensors are small enough.

mod flow;
mod number;

use base::rng::Rng;
use model::syntax::Span;
use rules::Edit;

use super::candidate::Change;
use super::heuristic;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::words::fresh;

use flow::{Cast, Demands, Flow};

const NAME: &str = "NARROW";

/// Omits `.to(tl.int64)` where `@triton.heuristics` finds that a call's offsets fit into 32 bits:
/// `(row if NARROW else row.to(tl.int64))`. Triton compiles only the branch that the constexpr selects.
///
/// A number that is only added to pointers fits where it matters if all terms that are added to them are non-negative,
/// and no tensor's memory has 2³¹ or more elements: then each term of an offset is at most the whole, which is inside
/// the memory wherever something is accessed. Elsewhere (masked off) it may wrap around without effect, since only
/// products and sums are computed from it. A number that is compared or divided matters in every program, so it needs a
/// known bound.
pub(super) struct NarrowOffsets;

impl Skill for NarrowOffsets {
    fn name(&self) -> &'static str {
        "narrow_offsets"
    }

    fn about(&self) -> &'static str {
        "Offsets in 32 bits, where the kernel casts them to 64 and a call's tensors are small enough: `@triton.heuristics` decides that for each call. That saves the most where offsets are divided."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn is_fine(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        let is_said = subject.kernel.params.iter().any(|param| param.name.starts_with(NAME));
        let found = if is_said || !heuristic::is_open(subject) { None } else { Flow::of(subject) };
        let turn = |(casts, demands): (Vec<Cast>, Demands<'_>)| {
            let edits = edits(subject, &casts, &demands)?;
            let changes = vec![Change::Structure("offsets in 32 bits where they fit".to_owned())];
            Some(Proposal { kind: "narrow_offsets".to_owned(), edits, changes })
        };
        found.and_then(turn).into_iter().collect()
    }
}

fn edits(subject: &Subject<'_>, casts: &[Cast], demands: &Demands<'_>) -> Option<Vec<Edit>> {
    let text = subject.candidate.text.as_str();
    let name = fresh(text, NAME);
    let mut edits = heuristic::decided(subject, &name, &test(demands)?)?;
    edits.extend(casts.iter().map(|cast| {
        let slice = |span: Span| &text[span.start..span.end];
        let text = format!("({} if {name} else {})", slice(cast.operand), slice(cast.whole));
        Edit { span: cast.whole, text }
    }));
    Some(edits)
}

/// The demands as a Python expression for the host. Its evaluation never raises: for values that are no numbers or have
/// no memory of torch, the kernel stays as it was.
fn test(demands: &Demands<'_>) -> Option<String> {
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        (!quoted.is_empty()).then(|| quoted.join(", "))
    };
    let numbers = list(&mut demands.numbers.iter().copied())
        .map(|names| format!("all(isinstance(args[name], int) and args[name] >= 0 for name in [{names}])"));
    let tensors = list(&mut demands.tensors.iter().copied()).map(|names| {
        format!(
            "all(hasattr(args[name], \"untyped_storage\") and args[name].untyped_storage().nbytes() // \
             args[name].element_size() < 2**31 for name in [{names}])"
        )
    });
    let bounds = demands.bounds.iter().map(|most| format!("{most} < 2**31"));
    let is_any = tensors.is_some() || !demands.bounds.is_empty();
    let parts: Vec<String> = numbers.into_iter().chain(bounds).chain(tensors).collect();
    is_any.then(|| parts.join("\n    and "))
}

#[cfg(test)]
mod tests;
