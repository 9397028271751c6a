//! Infinities and NaN that a kernel multiplies by zero.
//!
//! `tl.dot(p, v)` makes NaN of a row of `v` that is masked by zeros in `p`. How many rows lie in a tile decides then which results are NaN,
//! so a kernel with other tiles has others, and both are right wherever inputs are finite. An original that does so is no measure there.

use super::baseline::{Known, Ready};
use super::judge::Case;
use super::stop::Stop;
use super::trials::Trial;
use crate::protocol::runner::{Call, ComparerRequest, Finite, Inputs, Values};

impl Case<'_> {
    /// Stops for `stop`, unless all that is wrong in `slot` are infinities and NaN of that kind, the original has some of the kind itself, and
    /// all is right with numbers in their places, by what is known of the recorded call. For whoever uses the device.
    pub(super) fn spills(
        &mut self,
        (known, recorded): (&Ready, &Known),
        slot: u32,
        trial: &Trial,
        stop: Stop,
    ) -> Result<(), Stop> {
        let Known::Ready(recorded) = recorded else { return Err(stop) };
        let spreads = matches!(trial.inputs.values, Values::Infinite | Values::Nan);
        if !spreads || !matches!(stop, Stop::Refused(..)) || self.bench.environment().torch.is_empty() {
            return Err(stop);
        }
        let Some(finite) = self.original_with_numbers(trial)? else { return Err(stop) };
        let mut slots = finite.to_vec();
        let answer = self.explained((known, recorded), slot, trial, finite, &mut slots);
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

    fn explained(
        &mut self,
        (known, recorded): (&Ready, &Ready),
        slot: u32,
        trial: &Trial,
        finite: [u32; 2],
        slots: &mut Vec<u32>,
    ) -> Result<bool, Stop> {
        let mut mine = [0; 2];
        for (at, call) in self.with_numbers(trial).into_iter().enumerate() {
            let (_, made) = self.run(&call)?;
            mine[at] = made;
            slots.push(made);
            // Great numbers overflow in one order of calculation and not in another.
            if at == 0 && !self.differences(&recorded.by_level(finite[0], made))?.is_empty() {
                return Ok(false);
            }
        }
        let found = self.differences(&ComparerRequest::Spilled {
            original: known.original,
            finite,
            candidate: slot,
            candidate_finite: mine,
            reference: known.reference,
            jittered: known.jittered.clone(),
        })?;
        Ok(found.is_empty())
    }

    /// Results of the original, if it takes such calls.
    fn original_with_numbers(&self, trial: &Trial) -> Result<Option<[u32; 2]>, Stop> {
        let mut found = Vec::new();
        for call in self.with_numbers(trial) {
            match self.baseline.original.run(self.bench, &call)? {
                Ok((_, slot)) => found.push(slot),
                Err(_) => break,
            }
        }
        match found[..] {
            [usual, great] => Ok(Some([usual, great])),
            _ => Ok(self.bench.drop_slots(found).map(|()| None)?),
        }
    }

    /// The call of a trial with numbers in place of what is not finite.
    fn with_numbers(&self, trial: &Trial) -> [Call; 2] {
        [Finite::Usual, Finite::Great].map(|finite| {
            let inputs = Inputs { finite: Some(finite), ..trial.inputs.clone() };
            self.baseline.call(inputs, false)
        })
    }
}
