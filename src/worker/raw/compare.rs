//! The comparer without torch: `compare.py` on the host, for tensors that our own runners made.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;

use pyo3::prelude::*;

use crate::numbers::{ARITHMETIC, Element, FACTOR, Floats, Kind, Run, Scales};
use crate::protocol::runner::{ComparerReply, ComparerRequest, Difference, Exported, LeafValue};
use crate::protocol::{is_simulated, read_frame, write_frame};
use crate::worker::comparer::Source;
use crate::worker::failed;

/// Serves the judge until it closes the stream.
pub(in crate::worker) fn serve(py: Python<'_>, mut stream: UnixStream) -> PyResult<()> {
    if !is_simulated() {
        super::start(py, false)?;
    }
    let mut comparer = Comparer::default();
    while let Some(request) = read_frame(&mut stream)? {
        write_frame(&mut stream, &comparer.reply(request))?;
    }
    Ok(())
}

/// A value inside results, with its elements one behind the other.
struct Leaf {
    path: String,
    value: LeafValue,
    bytes: Option<(Element, Vec<u8>)>,
}

impl Leaf {
    fn run(&self) -> Option<Run<'_>> {
        self.bytes.as_ref().map(|(element, bytes)| Run { element: *element, bytes })
    }

    fn shape(&self) -> &[i64] {
        match &self.value {
            LeafValue::Tensor { shape, .. } => shape,
            LeafValue::Plain { .. } => &[],
        }
    }
}

/// Results by which one is judged: the original's, at a higher precision, on moved inputs.
type Slots = (u32, Option<u32>, Vec<u32>);

/// Holds results, and what was found out about them.
#[derive(Default)]
pub(in crate::worker) struct Comparer {
    slots: HashMap<u32, Vec<Leaf>>,
    scales: HashMap<(Slots, usize), Scales>,
    levels: HashMap<Slots, Vec<Option<f64>>>,
}

impl Comparer {
    /// The answer to a request.
    pub(in crate::worker) fn reply(&mut self, request: ComparerRequest) -> ComparerReply {
        self.answer(request).unwrap_or_else(|error| {
            let why = error.to_string();
            ComparerReply::Failed { is_memory: why.contains("out of memory"), why }
        })
    }

    fn answer(&mut self, request: ComparerRequest) -> PyResult<ComparerReply> {
        Ok(match request {
            ComparerRequest::Keep { slot, results } => {
                self.forget(slot);
                self.slots.insert(slot, leaves(results)?);
                ComparerReply::Done
            }
            ComparerRequest::Drop { slots } => {
                slots.into_iter().for_each(|slot| self.forget(slot));
                ComparerReply::Done
            }
            ComparerRequest::Compare { original, candidate, reference, jittered, holds_nan, exact, level } => {
                let levels = match level {
                    None => Vec::new(),
                    Some(slots) => self.level(&slots)?,
                };
                let slots = (original, reference, jittered);
                ComparerReply::Differences(self.compare(&slots, candidate, holds_nan, exact, &levels)?)
            }
            ComparerRequest::Stand { original, reference, jittered, dense } => {
                self.stand(&(original, reference, jittered), dense)?
            }
            ComparerRequest::Changed { one, other } => {
                ComparerReply::Differences(changed(self.slot(one)?, self.slot(other)?))
            }
            // A launch by itself allocates nothing that could have been filled.
            ComparerRequest::Unwritten { slot } => {
                self.slot(slot)?;
                ComparerReply::Differences(Vec::new())
            }
        })
    }

    fn forget(&mut self, slot: u32) {
        self.slots.remove(&slot);
        let stays = |(original, reference, jittered): &Slots| {
            *original != slot && *reference != Some(slot) && !jittered.contains(&slot)
        };
        self.scales.retain(|(slots, _), _| stays(slots));
        self.levels.retain(|slots, _| stays(slots));
    }

    fn slot(&self, slot: u32) -> PyResult<&Vec<Leaf>> {
        self.slots.get(&slot).ok_or_else(|| failed(format!("nothing is kept under {slot}")))
    }

    /// The other runs of a leaf, as far as they are like it.
    fn runs(&self, (original, reference, jittered): &Slots, at: usize) -> PyResult<(Option<Run<'_>>, Vec<Run<'_>>)> {
        let all = self.slot(*original)?;
        let of = |slot: &u32| -> PyResult<Option<Run<'_>>> {
            let leaves = self.slot(*slot)?;
            let leaf = leaves.get(at).filter(|leaf| leaves.len() == all.len() && leaf.shape() == all[at].shape());
            Ok(leaf.and_then(Leaf::run))
        };
        let reference = reference.as_ref().map(of).transpose()?.flatten();
        let jittered = jittered.iter().map(of).collect::<PyResult<Vec<_>>>()?;
        Ok((reference, jittered.into_iter().flatten().collect()))
    }

    fn known(&self, slots: &Slots, at: usize, holds_nan: bool) -> PyResult<Option<Floats<'_>>> {
        let all = self.slot(slots.0)?;
        let Some(run) = all[at].run().filter(|run| run.element.is_float() && run.count() > 0) else { return Ok(None) };
        let (reference, jittered) = self.runs(slots, at)?;
        let known = self.scales.get(&(slots.clone(), at)).copied();
        let rounding = arithmetic_of(all);
        Ok(Some(Floats::new(run, all[at].shape(), reference, jittered, rounding, (holds_nan, None), known)))
    }

    /// What is known of each leaf of floats.
    fn floats(&self, slots: &Slots) -> PyResult<Vec<Option<Floats<'_>>>> {
        (0..self.slot(slots.0)?.len()).map(|at| self.known(slots, at, false)).collect()
    }

    /// What each leaf of floats may be off on other inputs.
    fn level(&mut self, slots: &Slots) -> PyResult<Vec<Option<f64>>> {
        if let Some(known) = self.levels.get(slots) {
            return Ok(known.clone());
        }
        let found: Vec<_> = self.floats(slots)?.into_iter().map(|it| it.map(|it| it.level())).collect();
        self.levels.insert(slots.clone(), found.clone());
        Ok(found)
    }

    fn stand(&mut self, slots: &Slots, dense: Option<u32>) -> PyResult<ComparerReply> {
        let (mut is_credible, mut is_exact) = (true, slots.1.is_some());
        let mut found = Vec::new();
        for (at, floats) in self.floats(slots)?.into_iter().enumerate() {
            let Some(floats) = floats else { continue };
            let (reference, _) = self.runs(slots, at)?;
            is_credible &= reference.is_none() || floats.is_believed();
            let mine = self.slot(slots.0)?[at].run();
            let is_equal = |(a, b): (Run<'_>, Run<'_>)| (0..a.count()).all(|at| a.value(at) == b.value(at));
            is_exact &= mine.zip(reference).is_some_and(is_equal);
            found.push(((slots.clone(), at), floats.scales()));
        }
        self.scales.extend(found);
        is_credible &= dense.is_none_or(|dense| self.agree(slots, dense).unwrap_or(false));
        Ok(ComparerReply::Standing { is_credible, is_exact })
    }

    /// What is wrong with the elements of a leaf.
    fn difference(
        &self,
        slots: &Slots,
        at: usize,
        leaf: &Leaf,
        holds_nan: bool,
        exact: bool,
        level: Option<f64>,
    ) -> PyResult<Option<Difference>> {
        let one = self.slot(slots.0)?;
        let (Some(o), Some(c)) = (one[at].run(), leaf.run()) else { return Ok(None) };
        if o.bytes == c.bytes {
            return Ok(None);
        }
        if exact {
            return Ok(unequal(leaf, o, c, |at| !is_same_number(o, c, at)));
        }
        let ((reference, jittered), rounding) = (self.runs(slots, at)?, arithmetic_of(one));
        if o.element.is_float() {
            let known = self.scales.get(&(slots.clone(), at)).copied().filter(|_| level.is_none());
            let shape = one[at].shape();
            let floats = Floats::new(o, shape, reference, jittered, rounding, (holds_nan, level), known);
            return Ok(too_far(leaf, &floats, c));
        }
        // Inputs of fewer bits move by more than the arithmetic rounds.
        let takes_moved = reference.is_none() || rounding.1 >= 1.0;
        let runs = reference.into_iter().chain(jittered.into_iter().filter(|_| takes_moved));
        Ok(integers(leaf, o, c, runs.filter(|run| run.element == o.element && o.element.kind != Kind::Bool)))
    }

    /// Whether results hold the same, however they lie in memory.
    fn agree(&self, slots: &Slots, dense: u32) -> PyResult<bool> {
        let (one, other) = (self.slot(slots.0)?, self.slot(dense)?);
        if one.len() != other.len() {
            return Ok(false);
        }
        for (at, (a, b)) in one.iter().zip(other).enumerate() {
            let (Some(o), Some(c)) = (a.run(), b.run()) else { continue };
            let is_alike = a.shape() == b.shape() && o.element == c.element;
            if !is_alike || self.difference(slots, at, b, true, false, None)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compare(
        &self,
        slots: &Slots,
        candidate: u32,
        holds_nan: bool,
        exact: bool,
        levels: &[Option<f64>],
    ) -> PyResult<Vec<Difference>> {
        let (one, other) = (self.slot(slots.0)?, self.slot(candidate)?);
        if let Some(wrong) = count_difference(one, other) {
            return Ok(vec![wrong]);
        }
        let mut found = Vec::new();
        for (at, (a, b)) in one.iter().zip(other).enumerate() {
            if let Some(wrong) = shape_difference(a, b) {
                found.push(wrong);
                continue;
            }
            if let (LeafValue::Plain { text, .. }, LeafValue::Plain { text: other, .. }) = (&a.value, &b.value) {
                // What a launch returns is nothing.
                found.extend((text != other).then(|| difference(b, format!("{other} instead of {text}"), true)));
                continue;
            }
            let level = levels.get(at).copied().flatten().filter(|_| levels.len() == one.len());
            let wrong = self.difference(slots, at, b, holds_nan, exact, level)?;
            found.extend(wrong);
        }
        Ok(found)
    }
}

fn leaves(results: Exported) -> PyResult<Vec<Leaf>> {
    let mut source = results.buffer.as_ref().map(Source::open).transpose()?;
    let mut all = Vec::with_capacity(results.leaves.len());
    for crate::protocol::runner::Leaf { path, value } in results.leaves {
        let mut bytes = None;
        if let (Some(source), LeafValue::Tensor { dtype, shape, at, .. }) = (&mut source, &value) {
            let element = super::element(dtype)?;
            let sizes = shape.iter().map(|&size| usize::try_from(size)).collect::<Result<Vec<_>, _>>()?;
            let count = sizes.iter().try_fold(element.size, |product, &size| product.checked_mul(size));
            let count = count.ok_or_else(|| failed("a tensor is larger than memory"))?;
            bytes = Some((element, source.read(*at, count)?));
        }
        all.push(Leaf { path, value, bytes });
    }
    Ok(all)
}

fn difference(leaf: &Leaf, what: String, is_value: bool) -> Difference {
    Difference { path: leaf.path.clone(), what, is_value, count: 1, excess: None }
}

fn count_difference(one: &[Leaf], other: &[Leaf]) -> Option<Difference> {
    let what = || format!("{} values instead of {}", other.len(), one.len());
    let found = || Difference { path: "result".to_owned(), what: what(), count: 1, ..Difference::default() };
    (one.len() != other.len()).then(found)
}

/// Types and layouts.
fn shape_difference(one: &Leaf, other: &Leaf) -> Option<Difference> {
    if one.path != other.path {
        return Some(difference(other, format!("stands where the original has {}", one.path), false));
    }
    if one.bytes.is_some() != other.bytes.is_some() {
        return Some(difference(other, "has contents on one side only".to_owned(), false));
    }
    let fields = |leaf: &Leaf| match &leaf.value {
        LeafValue::Plain { class, .. } => vec![("type", class.clone())],
        LeafValue::Tensor { class, dtype, device, shape, stride, requires_grad, shares, .. } => vec![
            ("type", class.clone()),
            ("dtype", dtype.clone()),
            ("device", device.clone()),
            ("shape", format!("{shape:?}")),
            ("strides", format!("{stride:?}")),
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

/// Which leaves are not the same bit by bit; NaN equals NaN.
fn changed(one: &[Leaf], other: &[Leaf]) -> Vec<Difference> {
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

/// How much of what moved inputs do to results the rounding of the arithmetic would do.
fn arithmetic_of(leaves: &[Leaf]) -> (f64, f64) {
    let arguments = leaves.iter().filter(|leaf| leaf.path.starts_with("argument")).filter_map(Leaf::run);
    let places = arguments.filter(|run| run.element.is_float()).map(|run| run.element.eps());
    let rounding = places.fold(0.0, f64::max);
    let rounding = if rounding == 0.0 { ARITHMETIC } else { rounding };
    (rounding.min(ARITHMETIC), (ARITHMETIC / rounding).min(1.0))
}

/// The way to an element.
fn index(leaf: &Leaf, mut at: usize) -> String {
    let mut all = Vec::new();
    for &size in leaf.shape().iter().rev() {
        let size = usize::try_from(size).unwrap_or(1).max(1);
        all.push((at % size).to_string());
        at /= size;
    }
    all.reverse();
    format!("({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
}

fn is_same_number(a: Run<'_>, b: Run<'_>, at: usize) -> bool {
    let (one, other) = (a.value(at), b.value(at));
    if a.element.is_float() { one == other || (one.is_nan() && other.is_nan()) } else { a.bits(at) == b.bits(at) }
}

fn shown(run: Run<'_>, at: usize) -> String {
    match run.element.kind {
        Kind::Float { .. } => short(run.value(at)),
        Kind::Bool => (run.bits(at) != 0).to_string(),
        _ => run.element.integer(run.bits(at)).to_string(),
    }
}

/// What to say of the elements that are wrong.
fn unequal(leaf: &Leaf, o: Run<'_>, c: Run<'_>, is_wrong: impl Fn(usize) -> bool) -> Option<Difference> {
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

/// Integers are equal. Where the original rounds or chooses, some of its own are not when the inputs move; then a few times as
/// many may differ in a candidate, by no more.
fn integers<'a>(leaf: &Leaf, o: Run<'a>, c: Run<'a>, runs: impl Iterator<Item = Run<'a>>) -> Option<Difference> {
    let runs: Vec<Run<'_>> = runs.collect();
    let of = |run: Run<'_>, at| run.element.integer(run.bits(at));
    let step = |a: Run<'_>, b: Run<'_>, at| of(a, at).abs_diff(of(b, at));
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

/// A number in few letters.
fn short(value: f64) -> String {
    let text = value.to_string();
    if text.len() <= 12 { text } else { format!("{value:.8e}") }
}

/// Floats that are off by more than rounding.
fn too_far(leaf: &Leaf, floats: &Floats<'_>, candidate: Run<'_>) -> Option<Difference> {
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
