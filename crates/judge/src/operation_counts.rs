//! Counts of bytes and operations in the compiled kernels of original and candidate. They are for information only: no
//! check depends on them.

use protocol::runner::{Inputs, RunnerReply, RunnerRequest, Tuned};

use super::baseline::Baseline;
use super::bench::Bench;
use super::case::Case;
use super::child_processes::RunnerProcess;
use super::locks::{lock, lock_first};
use super::model::{Gpu, predict};
use super::verdict::Counted;

impl Baseline {
    /// The work of the original's recorded call; `None` where it cannot be counted.
    fn counted(&self, bench: &Bench, gpu: &Gpu) -> Option<Counted> {
        let mut known = lock_first(&self.counted);
        *known.get_or_insert_with(|| {
            let chosen = lock(&self.original.chosen).clone();
            let mut running = self.original.process(bench).ok()?;
            let mut runner = running.take()?;
            let counted = counted(&mut runner, (&self.trials[0].inputs, &chosen), bench, gpu);
            // A process that did not answer is started again when it is needed next.
            *running = counted.is_some().then_some(runner);
            counted
        })
    }
}

impl Case<'_> {
    /// Counts the work of the recorded call, on devices whose data sheet is known.
    pub(super) fn count(&mut self) {
        let Some(gpu) = Gpu::of_device(&self.bench.environment().device) else { return };
        let (baseline, bench) = (self.baseline.clone(), self.bench);
        let of_candidate = counted(&mut self.place.runner, (&baseline.trials[0].inputs, &self.chosen), bench, &gpu);
        let of_original = of_candidate.and_then(|_| baseline.counted(bench, &gpu));
        if let Some(measured) = self.measured.last_mut() {
            measured.counted = of_original.zip(of_candidate);
        }
    }
}

fn counted(
    runner: &mut RunnerProcess,
    (inputs, chosen): (&Inputs, &[Tuned]),
    bench: &Bench,
    gpu: &Gpu,
) -> Option<Counted> {
    let request = RunnerRequest::Compile { inputs: inputs.clone(), chosen: chosen.to_vec(), drafts: true };
    let reply = runner.ask(&request, bench.limits.compile);
    let Ok(RunnerReply::Compiled { failed, drafts, .. }) = reply else { return None };
    (failed.is_none() && !drafts.launches.is_empty())
        .then(|| predict(&drafts, gpu).ok())?
        .map(|predicted| predicted.counted)
}
