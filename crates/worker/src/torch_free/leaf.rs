//! Leaves of results, and descriptions of how two of them differ.

use pyo3::prelude::*;

use protocol::runner::{Difference, ExportedResults, LeafValue};

use crate::buffers::BufferSource;
use crate::errors::failed;
use crate::numbers::{ARITHMETIC, Arithmetic, ElementBytes, ElementKind, ElementType, FACTOR, Floats};

/// A value inside results, with its elements in contiguous memory.
pub(super) struct DenseLeaf {
    pub(super) path: String,
    pub(super) value: LeafValue,
    bytes: Option<(ElementType, Vec<u8>)>,
}

impl DenseLeaf {
    /// Whether it is an argument after the call.
    pub(super) fn is_argument(&self) -> bool {
        self.path.starts_with("argument")
    }

    pub(super) fn run(&self) -> Option<ElementBytes<'_>> {
        self.bytes.as_ref().map(|(element, bytes)| ElementBytes { element: *element, bytes })
    }

    pub(super) fn shape(&self) -> &[i64] {
        match &self.value {
            LeafValue::Tensor { shape, .. } => shape,
            LeafValue::Container { .. } | LeafValue::Plain { .. } | LeafValue::Unread { .. } => &[],
        }
    }
}

/// The leaves of results, with copies of their bytes, as far as these are available.
pub(super) fn leaves(results: ExportedResults, mut source: Option<BufferSource>) -> PyResult<Vec<DenseLeaf>> {
    let mut all = Vec::with_capacity(results.leaves.len());
    for protocol::runner::Leaf { path, value } in results.leaves {
        let mut bytes = None;
        if let (Some(source), LeafValue::Tensor { dtype, shape, at, .. }) = (&mut source, &value) {
            let element = super::element(dtype)?;
            let sizes = shape.iter().map(|&size| usize::try_from(size)).collect::<Result<Vec<_>, _>>()?;
            let count = sizes.iter().try_fold(element.size, |product, &size| product.checked_mul(size));
            let count = count.ok_or_else(|| failed("a tensor is larger than memory"))?;
            bytes = Some((element, source.read(*at, count)?));
        }
        all.push(DenseLeaf { path, value, bytes });
    }
    Ok(all)
}

pub(super) fn difference(leaf: &DenseLeaf, what: String, is_value: bool) -> Difference {
    Difference { path: leaf.path.clone(), what, is_value, count: 1, excess: None }
}

pub(super) fn count_difference(one: &[DenseLeaf], other: &[DenseLeaf]) -> Option<Difference> {
    let what = || format!("{} values instead of {}", other.len(), one.len());
    let found = || Difference { path: "result".to_owned(), what: what(), count: 1, ..Difference::default() };
    (one.len() != other.len()).then(found)
}

/// Describes a difference in type or layout.
pub(super) fn shape_difference(one: &DenseLeaf, other: &DenseLeaf) -> Option<Difference> {
    if one.path != other.path {
        return Some(difference(other, format!("is where the original has {}", one.path), false));
    }
    if let LeafValue::Unread { class, why } = &other.value {
        return Some(difference(other, format!("a {class}, which cannot be read: {why}"), false));
    }
    if one.bytes.is_some() != other.bytes.is_some() {
        return Some(difference(other, "has contents on one side only".to_owned(), false));
    }
    let fields = |leaf: &DenseLeaf| match &leaf.value {
        // A launch returns nothing.
        LeafValue::Plain { class, .. } | LeafValue::Container { class, .. } | LeafValue::Unread { class, .. } => {
            vec![("type", class.clone())]
        }
        LeafValue::Tensor { class, dtype, device, shape, stride, requires_grad, shares, .. } => vec![
            ("type", class.clone()),
            ("dtype", dtype.clone()),
            ("device", device.clone()),
            ("shape", format!("{shape:?}")),
            ("strides", layout(shape, stride)),
            ("requires_grad", requires_grad.to_string()),
            ("shared argument", format!("{shares:?}")),
        ],
    };
    let pairs = fields(one).into_iter().zip(fields(other));
    let wrong: Vec<String> = pairs
        .filter(|(a, b)| a.1 != b.1)
        .map(|((name, original), (_, candidate))| format!("{name} {candidate} instead of {original}"))
        .collect();
    (!wrong.is_empty()).then(|| difference(other, wrong.join(", "), false))
}

/// The strides as text, with `any` for dimensions of at most one element, where the stride does not matter.
fn layout(shape: &[i64], stride: &[i64]) -> String {
    if shape.contains(&0) {
        return String::new();
    }
    let strides =
        shape.iter().zip(stride).map(|(&size, &stride)| if size > 1 { stride.to_string() } else { "any".to_owned() });
    format!("({})", strides.collect::<Vec<_>>().join(", "))
}

/// The leaves that are not bitwise equal; NaN equals NaN.
pub(super) fn changed(one: &[DenseLeaf], other: &[DenseLeaf]) -> Vec<Difference> {
    if let Some(wrong) = count_difference(one, other) {
        return vec![wrong];
    }
    let found = one.iter().zip(other).filter_map(|(a, b)| {
        if let Some(wrong) = shape_difference(a, b) {
            return Some(wrong);
        }
        if let (LeafValue::Plain { text, .. }, LeafValue::Plain { text: now, .. }) = (&a.value, &b.value) {
            return (text != now).then(|| difference(b, format!("{now} instead of {text}"), true));
        }
        let (x, y) = (a.run()?, b.run()?);
        if x.bytes == y.bytes {
            return None;
        }
        let is_same = |at| x.bits(at) == y.bits(at) || (x.value(at).is_nan() && y.value(at).is_nan());
        let count = (0..x.count()).filter(|&at| !is_same(at)).count() as u64;
        let what = format!("{count} of {} elements have other bits", x.count());
        (count > 0).then(|| Difference { count, ..difference(b, what, true) })
    });
    found.collect()
}

/// The rounding of the arithmetic on these arguments.
pub(super) fn arithmetic_of(leaves: &[DenseLeaf]) -> Arithmetic {
    let arguments = leaves.iter().filter(|leaf| leaf.is_argument()).filter_map(DenseLeaf::run);
    let floats: Vec<_> = arguments.filter(|run| run.element.is_float()).collect();
    let rounding = floats.iter().map(|run| run.element.eps()).fold(0.0, f64::max);
    let rounding = if rounding == 0.0 { ARITHMETIC } else { rounding };
    let terms = floats.iter().map(|run| run.count()).max().unwrap_or(1).max(1);
    Arithmetic { rounding: rounding.min(ARITHMETIC), share: (ARITHMETIC / rounding).min(1.0), terms: terms as f64 }
}

/// The index of an element as text.
fn index(leaf: &DenseLeaf, mut at: usize) -> String {
    let mut all = Vec::new();
    for &size in leaf.shape().iter().rev() {
        let size = usize::try_from(size).unwrap_or(1).max(1);
        all.push((at % size).to_string());
        at /= size;
    }
    all.reverse();
    format!("({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
}

pub(super) fn is_same_number(a: ElementBytes<'_>, b: ElementBytes<'_>, at: usize) -> bool {
    let (one, other) = (a.value(at), b.value(at));
    if a.element.is_float() { one == other || (one.is_nan() && other.is_nan()) } else { a.bits(at) == b.bits(at) }
}

fn shown(run: ElementBytes<'_>, at: usize) -> String {
    match run.element.kind {
        ElementKind::Float { .. } => short(run.value(at)),
        ElementKind::Bool => (run.bits(at) != 0).to_string(),
        _ => run.element.integer(run.bits(at)).to_string(),
    }
}

/// Describes the wrong elements of a leaf.
pub(super) fn unequal(
    leaf: &DenseLeaf,
    o: ElementBytes<'_>,
    c: ElementBytes<'_>,
    is_wrong: impl Fn(usize) -> bool,
) -> Option<Difference> {
    let mut wrong = (0..o.count()).filter(|&at| is_wrong(at));
    let first = wrong.next()?;
    let count = wrong.count() as u64 + 1;
    let what = format!(
        "{count} of {} elements are not equal, as they must be; the first at {} is {} instead of {}",
        o.count(),
        index(leaf, first),
        shown(c, first),
        shown(o, first)
    );
    Some(Difference { count, ..difference(leaf, what, true) })
}

/// Integers must be equal. Where the original rounds or selects, some of its own integers change when the inputs move;
/// then a few times as many may differ in a candidate, by no more.
pub(super) fn integers<'a>(
    leaf: &DenseLeaf,
    o: ElementBytes<'a>,
    c: ElementBytes<'a>,
    runs: impl Iterator<Item = ElementBytes<'a>>,
) -> Option<Difference> {
    let runs: Vec<ElementBytes<'_>> = runs.collect();
    let of = |run: ElementBytes<'_>, at| run.element.integer(run.bits(at));
    let step = |a: ElementBytes<'_>, b: ElementBytes<'_>, at| of(a, at).abs_diff(of(b, at));
    let (mut flips, mut greatest_step) = (0, 0);
    for run in &runs {
        flips = flips.max((0..o.count()).filter(|&at| run.bits(at) != o.bits(at)).count());
        greatest_step = (0..o.count()).map(|at| step(*run, o, at)).fold(greatest_step, u64::max);
    }
    let is_wrong = |at: usize| c.bits(at) != o.bits(at) && runs.iter().all(|run| run.bits(at) != c.bits(at));
    let greatest = (0..o.count()).filter(|&at| is_wrong(at)).map(|at| step(c, o, at)).fold(0, u64::max);
    let wrong = unequal(leaf, o, c, is_wrong)?;
    let is_usual = wrong.count as f64 <= FACTOR * flips as f64 && greatest <= greatest_step;
    (!is_usual).then_some(wrong)
}

/// A number in short form.
fn short(value: f64) -> String {
    let text = value.to_string();
    if text.len() <= 12 { text } else { format!("{value:.8e}") }
}

/// Describes floats that differ by more than rounding.
pub(super) fn too_far(leaf: &DenseLeaf, floats: &Floats<'_>, candidate: ElementBytes<'_>) -> Option<Difference> {
    let wrong = floats.wrong(candidate)?;
    let mut what = format!("{} of {} elements differ by more than rounding", wrong.count, candidate.count());
    if wrong.strange > 0 {
        what += &format!(", {} of them are not finite on one side", wrong.strange);
    }
    let (got, expected) = (short(wrong.got), short(wrong.expected));
    what += &format!("; the worst at {}: {got} instead of {expected}", index(leaf, wrong.at));
    if wrong.error < f64::INFINITY {
        what += &format!(", an error of {:.3e} where {:.3e} is allowed", wrong.error, wrong.bound);
    }
    let excess = Some(wrong.excess()).filter(|excess| *excess < 1e300);
    Some(Difference { count: wrong.count as u64, excess, ..difference(leaf, what, true) })
}
