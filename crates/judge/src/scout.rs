//! Finds out about the original what candidates are going to ask, while they load and compile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::ahead::{MOST, MOST_MEANWHILE};
use super::baseline::{Baseline, Undecided};
use super::bench::Bench;
use super::judge::Task;

/// Sets what it has when it goes, however that is left in which it is.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something while a scout goes ahead of it. A scout that is not done leaves the rest to that of the next candidate.
pub(super) fn scouted<T>(baseline: &Baseline, bench: &Bench, what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One of them does it. What fails is met again by whoever asks for it.
            if let Ok(_only) = baseline.scout.try_lock() {
                let _ = baseline.go_ahead(bench, (MOST, &|| !is_over.load(Ordering::Relaxed)));
            }
        });
        let _ends = SetAtEnd(&is_over);
        what()
    })
}

/// Does something while that is found out which every candidate is held against first, unless somebody has begun with it.
pub(super) fn foreseen<T>(baseline: &Baseline, bench: &Bench, what: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let ahead = (!baseline.is_asked()).then(|| scope.spawn(|| baseline.foresee(bench)));
        let done = what();
        if let Some(ahead) = ahead {
            let _ = ahead.join();
            baseline.forget_failure();
        }
        done
    })
}

impl Bench {
    /// Finds out of originals what will be asked when a candidate is judged thoroughly, beside others that are judged, for as long as that is
    /// wanted. Blocks.
    pub(super) fn go_ahead(&self, task: &Task, wanted: &(dyn Fn() -> bool + Sync)) {
        if task.effort.sanitizer.is_some() {
            self.start_checkers();
        }
        for workload in &task.workloads {
            // What fails is met again by whoever asks for it.
            let Ok(baseline) = self.baseline((&task.original, &task.folder), workload, true) else { continue };
            if let (true, Ok(_only)) = (wanted(), baseline.scout.try_lock()) {
                let _ = baseline.go_ahead(self, (MOST_MEANWHILE, wanted));
            }
        }
    }
}

impl Baseline {
    /// In the order in which a candidate asks: what it compiles for, what its recorded call is held against, the rest.
    fn go_ahead(&self, bench: &Bench, (most, wanted): (usize, &(dyn Fn() -> bool + Sync))) -> Result<(), Undecided> {
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
            self.habits(bench)?;
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
        // Offers ask for it.
        if wanted() {
            self.kernels(bench)?;
        }
        Ok(())
    }
}
