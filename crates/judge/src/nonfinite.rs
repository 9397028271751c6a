//! Infinities and NaN that a kernel multiplies by zero.
//!
//! `tl.dot(p, v)` computes NaN from a row of `v` that zeros in `p` mask. Which results become NaN then depends on the
//! number of rows in a tile: a kernel with other tiles has others, and both are correct wherever the inputs are finite.
//! An original that does so is no reference for these results.

use std::cmp::Reverse;
use std::iter;

use protocol::is_float;
use protocol::runner::{ComparerRequest, Finite, FloatContents, Inputs};

use super::baseline::{Ready, TrialBaseline};
use super::case::Case;
use super::stop_reason::Stop;
use super::trials::Trial;

/// The most tensors that are made finite alone: each requires two more calls of original and candidate.
const MOST: usize = 4;

impl Case<'_> {
    /// Returns `stop`, unless only infinities and NaN of this kind are wrong in `slot`, the original has some of this
    /// kind itself, and all results are right with finite numbers in their places, by what is known of the recorded
    /// call. The caller holds the device.
    pub(super) fn spills(
        &mut self,
        (known, recorded): (&Ready, &TrialBaseline),
        slot: u32,
        trial: &Trial,
        stop: Stop,
    ) -> Result<(), Stop> {
        let TrialBaseline::Ready(recorded) = recorded else { return Err(stop) };
        let spreads = matches!(trial.inputs.values, FloatContents::Infinite | FloatContents::Nan);
        if !spreads || !matches!(stop, Stop::Refused(..)) || self.bench.environment().torch.is_empty() {
            return Err(stop);
        }
        let mut slots = Vec::new();
        let answer = self.explained((known, recorded), slot, trial, &mut slots);
        self.bench.drop_slots(slots)?;
        if !answer? {
            return Err(stop);
        }
        let name = &trial.name;
        self.passed(
            name,
            "agrees but for where both multiply infinities or NaN by zero, and with numbers in their places everywhere",
        );
        Ok(())
    }

    /// Whether this explains the difference. Finite numbers in all tensors explain most cases. Where infinities of one
    /// tensor are meaningful, those of another tensor that are multiplied by zero show only when that other tensor
    /// alone is made finite.
    fn explained(
        &mut self,
        (known, recorded): (&Ready, &Ready),
        slot: u32,
        trial: &Trial,
        slots: &mut Vec<u32>,
    ) -> Result<bool, Stop> {
        let (mut finite, mut candidate_finite) = (Vec::new(), Vec::new());
        for tensor in iter::once(None).chain(self.tensors().into_iter().map(Some)) {
            let Some([theirs, mine]) = self.both_with_numbers(trial, tensor, slots)? else { return Ok(false) };
            // Large numbers overflow in one order of calculation and not in another.
            if tensor.is_none() && !self.differences(&recorded.by_level(theirs[0], mine[0]))?.is_empty() {
                return Ok(false);
            }
            finite.push(theirs);
            candidate_finite.push(mine);
            let found = self.differences(&ComparerRequest::Spilled {
                original: known.original,
                finite: finite.clone(),
                candidate: slot,
                candidate_finite: candidate_finite.clone(),
                reference: known.reference,
                jittered: known.jittered.clone(),
            })?;
            if found.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The ids of the greatest float tensors, if there are several float tensors.
    fn tensors(&self) -> Vec<usize> {
        let mut floats = self.baseline.original.workload.specs();
        floats.retain(|spec| is_float(&spec.dtype) && !spec.shape.is_empty());
        floats.sort_by_key(|spec| (Reverse(spec.shape.iter().product::<i64>()), spec.id));
        floats.dedup_by_key(|spec| spec.id);
        if floats.len() < 2 { Vec::new() } else { floats.iter().take(MOST).map(|spec| spec.id).collect() }
    }

    /// The results of original and candidate with usual and with large finite numbers; `None` if the original refuses
    /// these calls.
    fn both_with_numbers(
        &mut self,
        trial: &Trial,
        tensor: Option<usize>,
        slots: &mut Vec<u32>,
    ) -> Result<Option<[[u32; 2]; 2]>, Stop> {
        let calls = [Finite::Usual, Finite::Great].map(|finite| {
            let inputs = Inputs { finite: Some(finite), finite_in: tensor, ..trial.inputs.clone() };
            self.baseline.call(inputs, false)
        });
        let (mut theirs, mut mine) = ([0; 2], [0; 2]);
        for (call, made) in calls.iter().zip(&mut theirs) {
            let Ok((_, slot)) = self.baseline.original.run(self.bench, call)? else { return Ok(None) };
            *made = slot;
            slots.push(slot);
        }
        for (call, made) in calls.iter().zip(&mut mine) {
            *made = self.run(call)?.1;
            slots.push(*made);
        }
        Ok(Some([theirs, mine]))
    }
}
