//! Sums whose terms are far larger than the sums.
//!
//! The rounding of a sum is relative to the magnitudes of its terms, in whatever order they are added. Where they cancel
//! on the values of a trial, and hardly do on moved ones, what the original's own error shows is too little for another
//! order, such as that of a split product.

use protocol::runner::{FloatContents, Inputs, Terms};

use super::baseline::Ready;
use super::case::Case;
use super::stop_reason::Stop;
use super::trials::Trial;
use super::verdict::Reason;

impl Case<'_> {
    /// Returns `stop`, unless the original sums products of its inputs, and the results in `slot` differ from its own by
    /// no more than the rounding of terms of their magnitudes. The caller holds the device.
    pub(super) fn sums_otherwise(&mut self, known: &Ready, slot: u32, trial: &Trial, stop: Stop) -> Result<(), Stop> {
        let is_wrong = matches!(stop, Stop::Refused(Reason::Values, ..)) && trial.reason == Reason::Values;
        let is_finite = !matches!(trial.inputs.values, FloatContents::Infinite | FloatContents::Nan);
        if !is_wrong || !is_finite || known.is_exact || self.bench.environment().torch.is_empty() {
            return Err(stop);
        }
        let mut slots = Vec::new();
        for terms in [Terms::Doubled, Terms::Absolute] {
            let inputs = Inputs { terms: Some(terms), ..trial.inputs.clone() };
            match self.baseline.original.run(self.bench, &self.baseline.call(inputs, false))? {
                Ok((_, slot)) => slots.push(slot),
                Err(_) => {
                    self.bench.drop_slots(slots)?;
                    return Err(stop);
                }
            }
        }
        let found = self.differences(&known.compared(slot, false, (Vec::new(), Some([slots[0], slots[1]]))))?;
        self.bench.drop_slots(slots)?;
        if !found.is_empty() {
            return Err(stop);
        }
        self.passed(&trial.name, "agrees with the original within the rounding of the terms that both sum");
        Ok(())
    }
}
