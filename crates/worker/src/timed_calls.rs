//! The timed calls of a runner.

use std::time::Instant;

use pyo3::prelude::*;

use protocol::runner::{RunnerReply, Timing};

use super::compile::{Hooks, LaunchMode};
use super::errors::failed;
use super::replay::ReplayedArguments;
use super::result_export::CallResults;
use super::runner::{Gradients, Runner};
use super::tamper_check::TamperCheck;
use super::timing::{PendingTiming, Timer};

/// The inputs of this many timed requests are kept, so that no request gets the addresses of the previous request's
/// inputs.
const KEPT: usize = 3;
/// The factor by which the device is kept busy for longer than launching the timed calls takes.
const HELD_UP: f64 = 2.0;

impl<'py> Runner<'py, '_> {
    pub(super) fn measure(&mut self, timing: &Timing, guard: &TamperCheck<'py>) -> PyResult<RunnerReply> {
        let sets = timing.inputs.iter().map(|one| self.replay.arguments(one)).collect::<PyResult<Vec<_>>>()?;
        let Some(first) = timing.inputs.first() else { return Err(failed("nothing to measure")) };
        // All calls of a request use the same weights, so no time is spent on setting them in between.
        self.reset_weights(first)?;
        if self.timer.is_none() {
            self.timer = Some(Timer::new(self.py, self.simulated)?);
        }
        let hooks = if self.simulated { Some(Hooks::install(self.py, LaunchMode::Watch)?) } else { None };
        let outcome = self.timed(timing, &sets);
        if let Some(hooks) = hooks {
            hooks.remove()?;
        }
        let Timed { milliseconds, walls, outran, outs } = outcome?;
        let left = sets.into_iter().zip(outs);
        let results: Vec<_> =
            left.map(|(arguments, (out, gradients))| CallResults { out, arguments, gradients }).collect();
        let exported = if timing.export { self.exporter.export(&results, true)? } else { Vec::new() };
        self.kept.insert(0, results.into_iter().map(|one| one.arguments).collect());
        self.kept.truncate(KEPT);
        let tampered = guard.changed();
        Ok(RunnerReply::Measured { milliseconds, walls, outran, results: exported, tampered })
    }

    fn timed(&self, timing: &Timing, sets: &[ReplayedArguments<'py>]) -> PyResult<Timed<'py>> {
        let timer = self.timer.as_ref().ok_or_else(|| failed("there is no timer"))?;
        let calls = timing.calls.max(sets.len());
        let (mut spans, mut walls) = (Vec::with_capacity(calls), Vec::new());
        let mut outs = Vec::new();
        outs.resize_with(sets.len(), || None);
        timer.synchronize()?;
        if !timing.synced {
            timer.hold_up(HELD_UP * self.launching.get().unwrap_or(0.0) * calls as f64)?;
        }
        let begun = Instant::now();
        for at in 0..calls {
            let (set, inputs) = (&sets[at % sets.len()], &timing.inputs[at % sets.len()]);
            self.seed(inputs)?;
            if timing.cold {
                timer.flush()?;
            }
            if timing.synced {
                timer.synchronize()?;
            }
            let start = Instant::now();
            let mut left = None;
            let span: PendingTiming = timer.measure(|| {
                let out = self.invoke(set)?;
                let gradients = if timing.gradients { self.gradients(&out, set, inputs)? } else { Vec::new() };
                left = Some((out, gradients));
                Ok(())
            })?;
            if timing.synced {
                timer.synchronize()?;
                walls.push(start.elapsed().as_secs_f64() * 1000.0);
            }
            outs[at % sets.len()] = left;
            spans.push(span);
        }
        let outran = !timing.synced && spans.first().is_some_and(PendingTiming::is_begun);
        if !timing.synced {
            // A call that waits for the device appears to take longer to launch than it does; one for which memory is
            // allocated really takes longer.
            let each = begun.elapsed().as_secs_f64() * 1000.0 / calls as f64;
            let least = self.launching.get().unwrap_or(each).min(each);
            self.launching.set(Some(if outran { each } else { least }));
        }
        timer.synchronize()?;
        let milliseconds = spans.into_iter().map(PendingTiming::milliseconds).collect::<PyResult<Vec<f64>>>()?;
        if self.simulated && timing.synced {
            walls.clone_from(&milliseconds);
        }
        Ok(Timed { milliseconds, walls, outran, outs: outs.into_iter().flatten().collect() })
    }
}

/// The results of timed calls: see [`RunnerReply::Measured`].
struct Timed<'py> {
    milliseconds: Vec<f64>,
    walls: Vec<f64>,
    outran: bool,
    /// The results of the last call on each set of inputs, and its gradients.
    outs: Vec<(Bound<'py, PyAny>, Gradients<'py>)>,
}
