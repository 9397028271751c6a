//! Where candidates are judged: on every device of this machine, or on another machine.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bench::{Bench, Limits};
use super::judge::Task;
use super::remote::Remote;
use super::verdict::Verdict;
use super::{Devices, devices};
use crate::protocol::{Environment, is_simulated};
use crate::python::ForkerError;

/// Where candidates are judged. Used from several threads at once.
pub struct Evaluator(Place);

enum Place {
    /// Each device with how many candidates are on it.
    Here(Vec<(Bench, AtomicUsize)>),
    There(Box<Remote>),
}

impl Evaluator {
    /// The devices of this machine; or what `command` starts, when it is not empty: a `warpsmith worker` on a machine that
    /// has some.
    ///
    /// # Errors
    /// [`ForkerError`] says what is missing.
    pub fn start(
        python: &Path,
        command: &[String],
        limits: &Limits,
        waiting: &dyn Fn() -> bool,
    ) -> Result<Self, ForkerError> {
        if !command.is_empty() {
            return Ok(Self(Place::There(Box::new(Remote::start(command, waiting)?))));
        }
        let count = match devices() {
            Devices::Found(found) if !is_simulated() => found.len(),
            _ => 1,
        };
        let mut benches = Vec::new();
        for at in 0..count {
            let device = (count > 1).then_some(at);
            benches.push((Bench::start(python, device, limits.clone(), waiting)?, AtomicUsize::new(0)));
        }
        Ok(Self(Place::Here(benches)))
    }

    /// How many devices there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        match &self.0 {
            Place::Here(benches) => benches.len(),
            Place::There(_) => 1,
        }
    }

    /// The versions and the device.
    #[must_use]
    pub fn environment(&self) -> Environment {
        match &self.0 {
            Place::Here(benches) => benches.first().map(|(bench, _)| bench.environment().clone()).unwrap_or_default(),
            Place::There(remote) => remote.environment(),
        }
    }

    /// Judges a candidate on the device that has the fewest. Blocks.
    #[must_use]
    pub fn judge(&self, task: &Task) -> Verdict {
        match &self.0 {
            Place::There(remote) => remote.judge(task),
            Place::Here(benches) => {
                let least = benches.iter().min_by_key(|(_, busy)| busy.load(Ordering::Relaxed));
                let Some((bench, busy)) = least else { return Verdict::undecided("there is no device") };
                busy.fetch_add(1, Ordering::Relaxed);
                let verdict = bench.judge(task);
                busy.fetch_sub(1, Ordering::Relaxed);
                verdict
            }
        }
    }

    /// Ends everything that is being judged, which is then undecided; from `false` on, new candidates are judged again.
    pub fn abandon(&self, unwanted: bool) {
        match &self.0 {
            Place::Here(benches) => benches.iter().for_each(|(bench, _)| bench.abandon(unwanted)),
            Place::There(remote) => remote.abandon(unwanted),
        }
    }
}
