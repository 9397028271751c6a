//! Finds out about the original what candidates are going to ask, while they load and compile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::baseline::{Baseline, Undecided};
use super::bench::Bench;

/// Does something while a scout goes ahead of it. A scout that is not done leaves the rest to that of the next candidate.
pub(super) fn scouted<T>(baseline: &Baseline, bench: &Bench, what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One of them does it. What fails is met again by whoever asks for it.
            if let Ok(_only) = baseline.scout.try_lock() {
                let _ = baseline.go_ahead(bench, &|| !is_over.load(Ordering::Relaxed));
            }
        });
        let done = what();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

impl Baseline {
    /// In the order in which a candidate asks: what it compiles for, what its recorded call is held against, the rest.
    fn go_ahead(&self, bench: &Bench, wanted: &(dyn Fn() -> bool + Sync)) -> Result<(), Undecided> {
        let (first, later): (Vec<usize>, Vec<usize>) =
            (0..self.trials.len()).partition(|&at| self.trials[at].specializes);
        for at in first {
            self.prepare(bench, at, wanted)?;
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
