//! A scout: a thread that computes ahead what candidates will need from the original, while they load and compile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::baseline::{Baseline, MOST};
use super::bench::Bench;
use super::case::Task;
use super::precompile::MOST_MEANWHILE;
use super::undecided::Undecided;

/// Sets a flag when it is dropped, however its scope is left.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `what` while a scout runs ahead of it. The scout of the next candidate does what this one does not finish.
pub(super) fn with_prefetch<T>(baseline: &Baseline, bench: &Bench, what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Only one thread does this at a time. A failure shows again when the result is needed.
            if let Ok(_only) = baseline.prefetching.try_lock() {
                let _ = baseline.prefetch(bench, (MOST, &|| !is_over.load(Ordering::Relaxed)));
            }
        });
        let _ends = SetOnDrop(&is_over);
        what()
    })
}

/// Calls `what` while the original's recorded call is computed, unless another thread has begun with that.
pub(super) fn with_first_check<T>(baseline: &Baseline, bench: &Bench, what: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let ahead = (!baseline.is_asked()).then(|| scope.spawn(|| baseline.prefetch_recorded_call(bench)));
        let done = what();
        if let Some(ahead) = ahead {
            let _ = ahead.join();
            baseline.forget_failure();
        }
        done
    })
}

impl Bench {
    /// Computes, for a task's originals, what a thorough judgement will need, while others are judged and `wanted`
    /// returns true. Blocks.
    pub(super) fn prefetch(&self, task: &Task, wanted: &(dyn Fn() -> bool + Sync)) {
        if task.effort.sanitizer.is_some() {
            self.start_checkers();
        }
        for workload in &task.workloads {
            // A failure shows again when the result is needed.
            let Ok(baseline) = self.baseline((&task.original, &task.folder), workload, true) else { continue };
            if let (true, Ok(_only)) = (wanted(), baseline.prefetching.try_lock()) {
                let _ = baseline.prefetch(self, (MOST_MEANWHILE, wanted));
            }
        }
    }
}

impl Baseline {
    /// Follows the order of a judgement: what is compiled, the recorded call, the rest.
    fn prefetch(&self, bench: &Bench, (most, wanted): (usize, &(dyn Fn() -> bool + Sync))) -> Result<(), Undecided> {
        let (first, later): (Vec<usize>, Vec<usize>) =
            (0..self.trials.len()).partition(|&at| self.trials[at].specializes);
        for at in first {
            self.prepare(bench, at, (most, wanted))?;
            if !wanted() {
                return Ok(());
            }
            self.takes(bench, at)?;
        }
        if wanted() {
            self.traits(bench)?;
        }
        for at in later {
            if !wanted() {
                return Ok(());
            }
            self.takes(bench, at)?;
        }
        if wanted() {
            self.needs(bench)?;
        }
        // Only offers need this.
        if wanted() {
            self.kernels(bench)?;
        }
        Ok(())
    }
}
