//! The least and greatest value of an index, as far as the text of a kernel determines them.

use super::types::KernelAnalysis;
use super::types::index::{Atom, Poly};

/// An inclusive range, open where a bound is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub least: Option<i128>,
    /// The greatest value.
    pub greatest: Option<i128>,
}

/// The range of `poly`, assuming that nothing overflows.
#[must_use]
pub fn range(facts: &KernelAnalysis, poly: &Poly) -> Range {
    range_at(facts, poly, 0)
}

fn range_at(facts: &KernelAnalysis, poly: &Poly, depth: u32) -> Range {
    let mut sum = Range { least: Some(poly.constant), greatest: Some(poly.constant) };
    for (atoms, factor) in &poly.terms {
        let mut product = Range { least: Some(1), greatest: Some(1) };
        for atom in atoms {
            let Some(one) = of_atom(facts, atom, depth) else { return Range::default() };
            let times = |a: Option<i128>, b: Option<i128>| a?.checked_mul(b?);
            product = Range { least: times(product.least, one.least), greatest: times(product.greatest, one.greatest) };
        }
        let scaled = |bound: Option<i128>| bound?.checked_mul(*factor);
        let (mut least, mut greatest) = (scaled(product.least), scaled(product.greatest));
        if *factor < 0 {
            (least, greatest) = (greatest, least);
        }
        let plus = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        sum = Range { least: plus(sum.least, least), greatest: plus(sum.greatest, greatest) };
    }
    sum
}

/// The range of an atom; `None` unless the atom is known to be nonnegative.
fn of_atom(facts: &KernelAnalysis, atom: &Atom, depth: u32) -> Option<Range> {
    let range = match atom {
        Atom::Program(_) => Range { least: Some(0), greatest: None },
        Atom::Programs(_) => Range { least: Some(1), greatest: None },
        Atom::Lane(lane) => {
            let lane = facts.lanes.get(*lane as usize)?;
            let greatest = lane.size.known().and_then(|size| lane.start?.checked_add(i128::from(size) - 1));
            Range { least: lane.start, greatest }
        }
        Atom::Loop(id) if depth < 4 => {
            let around = facts.loops.get(*id as usize)?;
            // Only loops that count upwards.
            around.step.as_ref()?.as_number().filter(|step| *step > 0)?;
            let last = around.end.as_ref().and_then(|end| range_at(facts, end, depth + 1).greatest);
            let greatest = last.and_then(|last| last.checked_sub(1));
            Range { least: range_at(facts, around.start.as_ref()?, depth + 1).least, greatest }
        }
        _ => return None,
    };
    range.least.is_some_and(|least| least >= 0).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::types::{AbstractValue, infer};
    use crate::api::TritonTarget;
    use crate::kernel::Module;
    use crate::syntax::Source;

    /// The range of the value that the last statement assigns.
    fn last(body: &str) -> (Option<i128>, Option<i128>) {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n# warpsmith: signature x=*fp16 n=i32\n@triton.jit\ndef k(x, n, B: \
             tl.constexpr):\n    pid = tl.program_id(0)\n    i = tl.arange(0, 64)\n    {body}\n"
        );
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let facts = infer(&module, &text, TritonTarget::newest(), 0, true);
        let Some((_, AbstractValue::Tile(tile))) = facts.types.last() else { panic!("{:?}", facts.types.last()) };
        let Range { least, greatest } = range(&facts, &tile.about.index().unwrap().poly);
        (least, greatest)
    }

    #[test]
    fn index_ranges_are_computed() {
        for (body, expected) in [
            ("v = i * 2 + 1", (Some(1), Some(127))),
            ("v = 63 - i", (Some(0), Some(63))),
            ("v = pid * 64 + i", (Some(0), None)),
            ("v = i - pid", (None, Some(63))),
            ("v = pid * B", (None, None)),
            ("v = i + n", (None, None)),
            ("for j in range(0, 10):\n        v = j * 64 + i", (Some(0), Some(639))),
            ("for j in range(0, n, 16):\n        v = j + i", (Some(0), None)),
            ("for j in range(10, 0, -1):\n        v = j + i", (None, None)),
        ] {
            assert_eq!(last(body), expected, "{body}");
        }
    }
}
