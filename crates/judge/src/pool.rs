//! Where candidates are judged: on every device of this machine, on another machine, or in a pool.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use protocol::{Environment, PROTOCOL};
use runtime::python::ForkerError;

use super::bench::Bench;
use super::judge::Task;
use super::limits::Limits;
use super::model::{Gpu, Predictor};
use super::profile::Profiles;
use super::remote::{Hello, Remote};
use super::verdict::Verdict;
use super::way::{Elsewhere, Way};
use super::{Devices, devices};

/// Counts up when the checks change: what was refused by others is judged again.
const JUDGE: u32 = 8;

/// What can be done without a GPU.
const INSTEAD: &str =
    "with `evaluator.predict = \"h200\"` (`--predict h200`) candidates are ranked by a model of one instead";

/// More candidates on one device wait for it longer than they take themselves.
const MOST_ON_A_DEVICE: usize = 16;
/// The driver does one thing after the other for all devices of a machine (`docs/results/pool.md`); but each has some. As in `pool/room.py`.
const MOST_ON_A_MACHINE: usize = 48;
const LEAST_ON_A_DEVICE: usize = 8;

/// Where candidates are judged. Used from several threads at once.
pub struct Evaluator(Place);

/// Whether there can be something to judge on: a device of this machine, or whatever a command or a pool leads to.
///
/// # Errors
/// Why not, in words that say what to do.
pub fn can_judge(elsewhere: &Elsewhere) -> Result<(), String> {
    match (elsewhere.predict.as_str(), elsewhere.is_linked()) {
        ("", false) => devices().name().map(drop).map_err(|why| format!("{why}; {INSTEAD}")),
        ("", true) => Ok(()),
        (gpu, _) => Gpu::named(gpu).map(drop),
    }
}

enum Place {
    /// Each device with how many candidates are on it.
    Here(Vec<(Bench, AtomicUsize)>),
    There(Box<Remote>),
    /// Nowhere: a model speaks.
    Nowhere(Box<Predictor>),
}

impl Evaluator {
    /// The devices of this machine; or those that a command or a pool leads to, when there is one.
    ///
    /// # Errors
    /// [`ForkerError`] says what is missing.
    pub fn start(
        python: &Path,
        elsewhere: &Elsewhere,
        limits: &Limits,
        waiting: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, ForkerError> {
        if !elsewhere.predict.is_empty() {
            let gpu = Gpu::named(&elsewhere.predict).map_err(ForkerError::Unfit)?;
            return Ok(Self(Place::Nowhere(Box::new(Predictor::start(python, gpu, limits.clone(), waiting)?))));
        }
        if elsewhere.is_linked() {
            let way = Way::new(python, elsewhere);
            return Ok(Self(Place::There(Box::new(Remote::start(way, waiting)?))));
        }
        let count = match devices() {
            Devices::Found(found) => found.len(),
            Devices::Missing(reason) => return Err(ForkerError::Unfit(format!("judging needs a GPU: {reason}"))),
        };
        // Each imports torch: side by side.
        let started: Vec<_> = std::thread::scope(|scope| {
            let start = |at| {
                let device = (count > 1).then_some(at);
                scope.spawn(move || Bench::start(python, device, limits.clone(), waiting))
            };
            let threads: Vec<_> = (0..count).map(start).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let ended = |_| Err(ForkerError::Unfit("a thread that starts processes broke off".to_owned()));
        let benches = started.into_iter().map(|bench| Ok((bench.unwrap_or_else(ended)?, AtomicUsize::new(0))));
        Ok(Self(Place::Here(benches.collect::<Result<_, ForkerError>>()?)))
    }

    /// Whether a process of this machine that judges has ended; a link is made again by itself.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.0 {
            Place::Here(benches) => benches.iter().any(|(bench, _)| bench.is_gone()),
            Place::There(_) => false,
            Place::Nowhere(predictor) => predictor.bench().is_gone(),
        }
    }

    /// The processor cores of the machine that judges.
    #[must_use]
    pub fn cores(&self) -> usize {
        match &self.0 {
            Place::Here(_) | Place::Nowhere(_) => std::thread::available_parallelism().map_or(1, usize::from),
            Place::There(remote) => remote.hello().cores.max(1),
        }
    }

    /// How many candidates are best judged at once: each takes a core for its compiler, and each device serves a few.
    #[must_use]
    pub fn at_once(&self) -> usize {
        let each = match &self.0 {
            // Its client has counted so for each node.
            Place::There(remote) if !remote.hello().model.is_empty() => MOST_ON_A_DEVICE,
            _ => (MOST_ON_A_MACHINE / self.devices()).clamp(LEAST_ON_A_DEVICE, MOST_ON_A_DEVICE),
        };
        self.cores().min(each * self.devices()).max(self.devices())
    }

    /// How long candidates have used each device here, on average; of devices elsewhere nobody knows.
    #[must_use]
    pub fn used(&self) -> Duration {
        match &self.0 {
            Place::Here(benches) => {
                let all: Duration = benches.iter().map(|(bench, _)| bench.meter.total()).sum();
                all / u32::try_from(benches.len()).unwrap_or(1).max(1)
            }
            Place::There(_) | Place::Nowhere(_) => Duration::ZERO,
        }
    }

    /// How many devices there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        match &self.0 {
            Place::Here(benches) => benches.len(),
            Place::There(remote) => remote.hello().devices.max(1),
            Place::Nowhere(_) => 1,
        }
    }

    /// The versions and the device.
    #[must_use]
    pub fn environment(&self) -> Environment {
        match &self.0 {
            Place::Here(benches) => benches.first().map(|(bench, _)| bench.environment().clone()).unwrap_or_default(),
            Place::There(remote) => remote.hello().environment,
            Place::Nowhere(predictor) => predictor.bench().environment().clone(),
        }
    }

    /// Which judge this is: what it says of a candidate, another one need not.
    #[must_use]
    pub fn judge_version(&self) -> String {
        match &self.0 {
            Place::Here(_) | Place::Nowhere(_) => format!("{} {PROTOCOL} {JUDGE}", env!("CARGO_PKG_VERSION")),
            Place::There(remote) => remote.hello().judge,
        }
    }

    /// Starts while something else is done that takes as long, such as recording a call; given up when that fails. `waiting` is
    /// asked now and then whether to go on.
    ///
    /// # Errors
    /// Those of `meanwhile` first, then those of [`Self::start`].
    pub fn start_beside<T, E: From<ForkerError>>(
        python: &Path,
        (elsewhere, limits): (&Elsewhere, &Limits),
        waiting: &(dyn Fn() -> bool + Sync),
        meanwhile: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        let is_wanted = AtomicBool::new(true);
        let waiting = || is_wanted.load(Ordering::Relaxed) && waiting();
        std::thread::scope(|scope| {
            let started = scope.spawn(|| Self::start(python, elsewhere, limits, &waiting));
            let done = meanwhile();
            is_wanted.store(done.is_ok(), Ordering::Relaxed);
            let broke = |_| Err(ForkerError::Unfit("the thread that starts processes broke off".to_owned()));
            let started = started.join().unwrap_or_else(broke);
            done.and_then(|done| Ok((started?, done)))
        })
    }

    /// What is told to the other end of a link.
    pub(super) fn hello(&self) -> Hello {
        let (environment, judge) = (self.environment(), self.judge_version());
        Hello { environment, cores: self.cores(), devices: self.devices(), judge, model: String::new() }
    }

    /// Judges a candidate on the device that has the fewest. Blocks.
    #[must_use]
    pub fn judge(&self, task: &Task) -> Verdict {
        match &self.0 {
            Place::There(remote) => remote.judge(task),
            Place::Nowhere(predictor) => predictor.judge(task),
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

    /// Finds out of the originals of a task what judging a candidate of it thoroughly will ask, while others are judged; ends some seconds after
    /// it is no longer wanted. Where a model speaks, nothing is done. Blocks.
    pub fn go_ahead(&self, task: &Task, wanted: &(dyn Fn() -> bool + Sync)) {
        match &self.0 {
            // A single candidate is judged on the first.
            Place::Here(benches) => {
                if let Some((bench, _)) = benches.first() {
                    bench.go_ahead(task, wanted);
                }
            }
            Place::There(remote) => remote.go_ahead(task, wanted),
            Place::Nowhere(_) => {}
        }
    }

    /// Counts what these kernels do in the first call of a task's original, where the machine allows that. Blocks for seconds.
    ///
    /// # Errors
    /// Why nothing was counted.
    pub fn profile(&self, task: &Task, kernels: &[String], is_unwanted: &dyn Fn() -> bool) -> Result<Profiles, String> {
        match &self.0 {
            Place::Here(benches) => match benches.first() {
                Some((bench, _)) => bench.profile(task, kernels, is_unwanted),
                None => Err("there is no device".to_owned()),
            },
            Place::There(_) | Place::Nowhere(_) => Err("the device is not here".to_owned()),
        }
    }

    /// Ends everything that is being judged, which is then undecided; from `false` on, new candidates are judged again.
    pub fn abandon(&self, unwanted: bool) {
        match &self.0 {
            Place::Here(benches) => benches.iter().for_each(|(bench, _)| bench.abandon(unwanted)),
            Place::There(remote) => remote.abandon(unwanted),
            Place::Nowhere(predictor) => predictor.bench().abandon(unwanted),
        }
    }

    /// Has the processes that judge here remove a folder when they end, whatever becomes of this one.
    pub fn owns(&self, folder: &Path) {
        let bench = match &self.0 {
            Place::Here(benches) => benches.first().map(|(bench, _)| bench),
            Place::Nowhere(predictor) => Some(predictor.bench()),
            Place::There(_) => None,
        };
        // What has ended already is noticed elsewhere.
        let _ = bench.map(|bench| bench.forker.owns(folder));
    }

    /// Ends everything that is being judged, for good: whoever drops this then does not wait until all processes are gone.
    pub fn leave(&self) {
        match &self.0 {
            Place::Here(benches) => benches.iter().for_each(|(bench, _)| bench.leave()),
            Place::There(remote) => remote.abandon(true),
            Place::Nowhere(predictor) => predictor.bench().leave(),
        }
    }
}
