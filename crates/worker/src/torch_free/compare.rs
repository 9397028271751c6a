//! The comparer without torch: the rules of `compare.py` on the host, for the tensors of `torch_free`.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;

use pyo3::prelude::*;

use protocol::runner::{Compared, ComparerReply, ComparerRequest, Difference, LeafValue};
use protocol::{is_simulated, read_frame, write_frame};

use super::leaf::{
    DenseLeaf, arithmetic_of, changed, count_difference, difference, integers, is_same_number, leaves,
    shape_difference, too_far, unequal,
};
use crate::buffers::Buffers;
use crate::comparer::failure;
use crate::errors::{MissingSlot, failed};
use crate::numbers::{ElementBytes, Floats, Scales};

/// Serves the judge until it closes the stream.
pub(crate) fn serve(py: Python<'_>, mut stream: UnixStream) -> PyResult<()> {
    if !is_simulated() {
        super::start(py, false)?;
    }
    let mut comparer = TorchFreeComparer::default();
    while let Some(request) = read_frame(&mut stream)? {
        write_frame(&mut stream, &Compared { reply: comparer.reply(py, request), held: 0 })?;
    }
    Ok(())
}

/// The slots of the results that serve as a reference: the original's, that at a higher precision, and those on moved
/// inputs.
type Slots = (u32, Option<u32>, Vec<u32>);

/// Holds results, and what was computed from them.
#[derive(Default)]
pub(crate) struct TorchFreeComparer {
    slots: HashMap<u32, Vec<DenseLeaf>>,
    buffers: Buffers,
    scales: HashMap<(Slots, usize), Scales>,
    levels: HashMap<Slots, Vec<Option<f64>>>,
}

impl TorchFreeComparer {
    /// The reply to a request.
    pub(crate) fn reply(&mut self, py: Python<'_>, request: ComparerRequest) -> ComparerReply {
        self.answer(request)
            .unwrap_or_else(|error| ComparerReply::Failed { cause: failure(py, &error), why: error.to_string() })
    }

    fn answer(&mut self, request: ComparerRequest) -> PyResult<ComparerReply> {
        Ok(match request {
            ComparerRequest::Keep { owner, kept } => {
                for (slot, results) in kept {
                    self.forget(slot);
                    let source = results.buffer.as_ref().map(|buffer| self.buffers.open(owner, buffer)).transpose()?;
                    self.slots.insert(slot, leaves(results, source)?);
                }
                ComparerReply::Done
            }
            ComparerRequest::Leave { owners } => {
                self.buffers.leave(&owners);
                ComparerReply::Done
            }
            ComparerRequest::Drop { slots } => {
                slots.into_iter().for_each(|slot| self.forget(slot));
                ComparerReply::Done
            }
            ComparerRequest::Compare { original, candidate, reference, jittered, holds_nan, exact, level, .. } => {
                let levels = match level {
                    None => Vec::new(),
                    Some(slots) => self.level(&slots)?,
                };
                let slots = (original, reference, jittered);
                ComparerReply::Differences(self.compare(&slots, candidate, holds_nan, exact, &levels)?)
            }
            ComparerRequest::Spilled { .. } => {
                return Err(failed("what is multiplied by zero is looked at with torch only"));
            }
            ComparerRequest::Stand { original, reference, jittered, alike } => {
                self.stand(&(original, reference, jittered), alike)?
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

    fn slot(&self, slot: u32) -> PyResult<&Vec<DenseLeaf>> {
        self.slots.get(&slot).ok_or_else(|| MissingSlot::new_err(format!("nothing is kept under {slot}")))
    }

    /// A leaf in the other runs, as far as they have a similar one.
    fn runs(
        &self,
        (original, reference, jittered): &Slots,
        at: usize,
    ) -> PyResult<(Option<ElementBytes<'_>>, Vec<ElementBytes<'_>>)> {
        let all = self.slot(*original)?;
        let of = |slot: &u32| -> PyResult<Option<ElementBytes<'_>>> {
            let leaves = self.slot(*slot)?;
            let leaf = leaves.get(at).filter(|leaf| leaves.len() == all.len() && leaf.shape() == all[at].shape());
            Ok(leaf.and_then(DenseLeaf::run))
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

    /// The error model of each float leaf; `None` for other leaves.
    fn floats(&self, slots: &Slots) -> PyResult<Vec<Option<Floats<'_>>>> {
        (0..self.slot(slots.0)?.len()).map(|at| self.known(slots, at, false)).collect()
    }

    /// The error that each float leaf may have on other inputs.
    fn level(&mut self, slots: &Slots) -> PyResult<Vec<Option<f64>>> {
        if let Some(known) = self.levels.get(slots) {
            return Ok(known.clone());
        }
        let found: Vec<_> = self.floats(slots)?.into_iter().map(|it| it.map(|it| it.level())).collect();
        self.levels.insert(slots.clone(), found.clone());
        Ok(found)
    }

    fn stand(&mut self, slots: &Slots, alike: Option<u32>) -> PyResult<ComparerReply> {
        let (mut is_credible, mut is_exact, mut is_finer, mut is_whole) = (true, slots.1.is_some(), false, true);
        let mut found = Vec::new();
        for (at, floats) in self.floats(slots)?.into_iter().enumerate() {
            let leaf = &self.slot(slots.0)?[at];
            let (Some(floats), Some(mine)) = (floats, leaf.run()) else { continue };
            let (reference, _) = self.runs(slots, at)?;
            is_credible &= reference.is_none() || floats.is_believed();
            is_exact &= reference.is_some_and(|other| (0..mine.count()).all(|at| mine.value(at) == other.value(at)));
            is_finer |= !leaf.is_argument() && reference.is_some_and(|other| mine.is_coarser_than(other));
            is_whole &= mine.is_whole();
            found.push(((slots.clone(), at), floats.scales()));
        }
        self.scales.extend(found);
        is_credible &= alike.is_none_or(|alike| self.agree(slots, alike).unwrap_or(false));
        Ok(ComparerReply::Standing { is_credible, is_exact, is_finer, is_whole })
    }

    /// The difference between the elements of two leaves.
    fn difference(
        &self,
        slots: &Slots,
        at: usize,
        leaf: &DenseLeaf,
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
        // Inputs with fewer bits move by more than the rounding of the arithmetic.
        let takes_moved = reference.is_none() || rounding.share >= 1.0;
        let runs = reference.into_iter().chain(jittered.into_iter().filter(|_| takes_moved));
        Ok(integers(leaf, o, c, runs.filter(|run| run.element == o.element)))
    }

    /// Whether two results are equal, whatever their memory layout.
    fn agree(&self, slots: &Slots, alike: u32) -> PyResult<bool> {
        let (one, other) = (self.slot(slots.0)?, self.slot(alike)?);
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
                // A launch returns nothing.
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
