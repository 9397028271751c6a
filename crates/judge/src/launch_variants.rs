//! Results that depend on how the original's kernels are launched.
//!
//! The index that `argmax` returns for a row with several NaN depends on the number of warps, and what a loop over the
//! chunks of a row returns for it on their size. The author of a kernel chose neither for that, so the original is no
//! reference for such results: launched otherwise it is as right, and has others.

use std::sync::Arc;

use protocol::runner::{ComparerRequest, EntryCall, FloatContents, LaunchVariant};

use super::baseline::{Baseline, Ready, TrialBaseline};
use super::bench::Bench;
use super::case::Case;
use super::child_processes::RunnerProcess;
use super::locks::lock;
use super::stop_reason::Stop;
use super::trials::{Trial, means_nan};
use super::undecided::Undecided;
use super::verdict::Reason;

/// Other launches that are tried. Larger tiles read farther, which shows faults of padding that small tiles hide, so
/// tiles change only where inputs hold infinities and NaN.
const VARIANTS: [LaunchVariant; 7] = [
    LaunchVariant { warps: -1, tiles: 0 },
    LaunchVariant { warps: 1, tiles: 0 },
    LaunchVariant { warps: -2, tiles: 0 },
    LaunchVariant { warps: 2, tiles: 0 },
    LaunchVariant { warps: 0, tiles: -1 },
    LaunchVariant { warps: 0, tiles: 1 },
    LaunchVariant { warps: 1, tiles: -1 },
];

impl Case<'_> {
    /// Returns `stop`, unless the results in `slot` are wrong only where the original's own results are others when its
    /// kernels are launched with other numbers of warps or tile sizes. The caller holds the device.
    pub(super) fn depends_on_launch(
        &mut self,
        (known, recorded): (&Ready, &TrialBaseline),
        slot: u32,
        trial: &Trial,
        stop: Stop,
    ) -> Result<(), Stop> {
        let TrialBaseline::Ready(recorded) = recorded else { return Err(stop) };
        let is_wrong = matches!(stop, Stop::Refused(Reason::Values, ..)) && trial.reason == Reason::Values;
        if !is_wrong || known.is_exact || self.bench.environment().torch.is_empty() {
            return Err(stop);
        }
        let call = self.baseline.call(trial.inputs.clone(), false);
        let variants = known.varied(self.bench, &self.baseline, recorded, &call)?;
        if variants.is_empty() {
            return Err(stop);
        }
        let found = self.differences(&known.compared(slot, means_nan(&trial.inputs), (variants.clone(), None)))?;
        if !known.is_kept {
            // Otherwise they serve the next candidate.
            lock(&known.variants).take();
            self.bench.drop_slots(variants)?;
        }
        if !found.is_empty() {
            return Err(stop);
        }
        self.passed(
            &trial.name,
            "agrees but for results that are others in the original as well, with other numbers of warps or tile sizes",
        );
        Ok(())
    }
}

impl Ready {
    /// The request to compare a candidate's results with these.
    pub(super) fn compared(
        &self,
        candidate: u32,
        holds_nan: bool,
        (variants, terms): (Vec<u32>, Option<[u32; 2]>),
    ) -> ComparerRequest {
        ComparerRequest::Compare {
            original: self.original,
            candidate,
            reference: self.reference,
            jittered: self.jittered.clone(),
            holds_nan,
            exact: self.is_exact,
            level: None,
            variants,
            terms,
        }
    }

    /// The slots of the original's results for the call of this trial with other launches, as far as these agree on
    /// the recorded call.
    fn varied(
        &self,
        bench: &Bench,
        baseline: &Baseline,
        recorded: &Ready,
        call: &EntryCall,
    ) -> Result<Vec<u32>, Undecided> {
        let mut found = lock(&self.variants);
        if let Some(slots) = found.as_ref() {
            return Ok(slots.clone());
        }
        let spreads = matches!(call.inputs.values, FloatContents::Infinite | FloatContents::Nan);
        // Tiles that leave their memory must not harm the process that all candidates are compared with.
        let mut running = None;
        let mut slots = Vec::new();
        for &variant in baseline.launch_variants(bench, recorded, &mut running)?.iter() {
            if variant.tiles == 0 || spreads {
                slots.extend(baseline.run_varied(bench, call, variant, &mut running)?);
            }
        }
        Ok(found.insert(slots).clone())
    }
}

impl Baseline {
    /// The other launches with which the original gives the same results for the recorded call.
    fn launch_variants(
        &self,
        bench: &Bench,
        recorded: &Ready,
        running: &mut Option<RunnerProcess>,
    ) -> Result<Arc<Vec<LaunchVariant>>, Undecided> {
        let mut known = lock(&self.variants);
        if let Some(variants) = known.as_ref() {
            return Ok(Arc::clone(variants));
        }
        let call = self.call(self.trials[0].inputs.clone(), false);
        let mut variants = Vec::new();
        for variant in VARIANTS {
            let Some(slot) = self.run_varied(bench, &call, variant, running)? else { continue };
            let ask = recorded.compared(slot, true, Default::default());
            let found = bench.compare(|comparer| Ok(comparer.differences(&ask)?))?;
            bench.drop_slots(vec![slot])?;
            if found.is_empty() {
                variants.push(variant);
            }
        }
        Ok(Arc::clone(known.insert(Arc::new(variants))))
    }

    /// The slot of the original's results with other launches; `None` if it refuses them.
    fn run_varied(
        &self,
        bench: &Bench,
        call: &EntryCall,
        variant: LaunchVariant,
        running: &mut Option<RunnerProcess>,
    ) -> Result<Option<u32>, Undecided> {
        let call = EntryCall { variant: Some(variant), ..call.clone() };
        let ran = self.original.run_in(running, bench, &call, bench.limits.call)?;
        Ok(ran.ok().map(|(_, slot)| slot))
    }
}
