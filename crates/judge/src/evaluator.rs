//! The evaluator, which judges candidates on every device of this machine, on another machine, in a pool, or by a
//! model.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use protocol::{PROTOCOL, RuntimeVersions};
use runtime::python::ForkerError;

use super::bench::Bench;
use super::case::Task;
use super::limits::CandidateLimits;
use super::model::{Gpu, Predictor};
use super::profile::Profiles;
use super::remote::{Hello, Remote};
use super::remote_target::{RemoteJudges, RemoteTarget};
use super::undecided::Undecided;
use super::verdict::Verdict;
use super::{Devices, devices};

/// The version of the checks. It increases when the checks change, so that candidates that older checks refused are
/// judged again.
const JUDGE: u32 = 8;

/// Advice for users without a GPU.
const INSTEAD: &str =
    "with `evaluator.predict = \"h200\"` (`--predict h200`) candidates are ranked by a model of one instead";

/// The most candidates that are judged on one device at once. With more, they wait for the device longer than they run.
const MOST_ON_A_DEVICE: usize = 16;
/// The most candidates that are judged on one machine at once. The driver handles one request after the other for all
/// devices of a machine (`docs/results/pool.md`), but each device gets some. Equal to the limit in `pool/placement.py`.
const MOST_ON_A_MACHINE: usize = 48;
const LEAST_ON_A_DEVICE: usize = 8;

/// The place where candidates are judged. Several threads may use it at once.
pub struct Evaluator(JudgeBackend);

/// Checks that there can be a device to judge on: one of this machine, or one that a command or a pool leads to.
///
/// # Errors
/// Returns the reason why there is none, with what to do about it.
pub fn can_judge(elsewhere: &RemoteJudges) -> Result<(), String> {
    match (elsewhere.predict.as_str(), elsewhere.is_linked()) {
        ("", false) => devices().name().map(drop).map_err(|why| format!("{why}; {INSTEAD}")),
        ("", true) => Ok(()),
        (gpu, _) => Gpu::named(gpu).map(drop),
    }
}

enum JudgeBackend {
    /// The devices of this machine, each with the number of candidates that are being judged on it.
    Local(Vec<(Bench, AtomicUsize)>),
    Remote(Box<Remote>),
    /// No device: a model predicts the times.
    Predicted(Box<Predictor>),
}

impl Evaluator {
    /// Starts the judge on the devices of this machine, or on those that a command or a pool leads to.
    ///
    /// # Errors
    /// Returns a [`ForkerError`] that names what is missing.
    pub fn start(
        python: &Path,
        elsewhere: &RemoteJudges,
        limits: &CandidateLimits,
        waiting: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, ForkerError> {
        if !elsewhere.predict.is_empty() {
            let gpu = Gpu::named(&elsewhere.predict).map_err(ForkerError::Unfit)?;
            return Ok(Self(JudgeBackend::Predicted(Box::new(Predictor::start(
                python,
                gpu,
                limits.clone(),
                waiting,
            )?))));
        }
        if elsewhere.is_linked() {
            let way = RemoteTarget::new(python, elsewhere);
            return Ok(Self(JudgeBackend::Remote(Box::new(Remote::start(way, waiting)?))));
        }
        let count = match devices() {
            Devices::Found(found) => found.len(),
            Devices::Missing(reason) => return Err(ForkerError::Unfit(format!("judging needs a GPU: {reason}"))),
        };
        // Each device's process imports torch, so they start in parallel.
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
        Ok(Self(JudgeBackend::Local(benches.collect::<Result<_, ForkerError>>()?)))
    }

    /// Whether a local process of the judge has ended. A broken link does not count, since it reconnects by itself.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match &self.0 {
            JudgeBackend::Local(benches) => benches.iter().any(|(bench, _)| bench.is_gone()),
            JudgeBackend::Remote(_) => false,
            JudgeBackend::Predicted(predictor) => predictor.bench().is_gone(),
        }
    }

    /// The number of processor cores of the machine that judges.
    #[must_use]
    pub fn cores(&self) -> usize {
        match &self.0 {
            JudgeBackend::Local(_) | JudgeBackend::Predicted(_) => {
                std::thread::available_parallelism().map_or(1, usize::from)
            }
            JudgeBackend::Remote(remote) => remote.hello().cores.max(1),
        }
    }

    /// The number of candidates that are best judged at once: each needs a core for its compiler, and each device
    /// serves a few.
    #[must_use]
    pub fn at_once(&self) -> usize {
        let each = match &self.0 {
            // The client of a pool computes the same limit for each node.
            JudgeBackend::Remote(remote) if !remote.hello().model.is_empty() => MOST_ON_A_DEVICE,
            _ => (MOST_ON_A_MACHINE / self.devices()).clamp(LEAST_ON_A_DEVICE, MOST_ON_A_DEVICE),
        };
        self.cores().min(each * self.devices()).max(self.devices())
    }

    /// The average time for which candidates have used each local device; zero for devices elsewhere, whose use is
    /// unknown.
    #[must_use]
    pub fn used(&self) -> Duration {
        match &self.0 {
            JudgeBackend::Local(benches) => {
                let all: Duration = benches.iter().map(|(bench, _)| bench.meter.total()).sum();
                all / u32::try_from(benches.len()).unwrap_or(1).max(1)
            }
            JudgeBackend::Remote(_) | JudgeBackend::Predicted(_) => Duration::ZERO,
        }
    }

    /// The number of devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        match &self.0 {
            JudgeBackend::Local(benches) => benches.len(),
            JudgeBackend::Remote(remote) => remote.hello().devices.max(1),
            JudgeBackend::Predicted(_) => 1,
        }
    }

    /// The versions of the software, and the device.
    #[must_use]
    pub fn environment(&self) -> RuntimeVersions {
        match &self.0 {
            JudgeBackend::Local(benches) => {
                benches.first().map(|(bench, _)| bench.environment().clone()).unwrap_or_default()
            }
            JudgeBackend::Remote(remote) => remote.hello().environment,
            JudgeBackend::Predicted(predictor) => predictor.bench().environment().clone(),
        }
    }

    /// The identity of this judge; verdicts of another judge may differ.
    #[must_use]
    pub fn judge_version(&self) -> String {
        match &self.0 {
            JudgeBackend::Local(_) | JudgeBackend::Predicted(_) => {
                format!("{} {PROTOCOL} {JUDGE}", env!("CARGO_PKG_VERSION"))
            }
            JudgeBackend::Remote(remote) => remote.hello().judge,
        }
    }

    /// Starts the judge while `meanwhile` does something else that takes as long, such as recording a call; stops
    /// starting when that fails. `waiting` is called now and then and returns whether to go on.
    ///
    /// # Errors
    /// Returns the error of `meanwhile` first, then that of [`Self::start`].
    pub fn start_beside<T, E: From<ForkerError>>(
        python: &Path,
        (elsewhere, limits): (&RemoteJudges, &CandidateLimits),
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

    /// The greeting that this judge sends over a link.
    pub(super) fn hello(&self) -> Hello {
        let (environment, judge) = (self.environment(), self.judge_version());
        Hello { environment, cores: self.cores(), devices: self.devices(), judge, model: String::new() }
    }

    /// Judges a candidate on the device with the fewest candidates. Blocks.
    #[must_use]
    pub fn judge(&self, task: &Task) -> Verdict {
        match &self.0 {
            JudgeBackend::Remote(remote) => remote.judge(task),
            JudgeBackend::Predicted(predictor) => predictor.judge(task),
            JudgeBackend::Local(benches) => {
                let least = benches.iter().min_by_key(|(_, busy)| busy.load(Ordering::Relaxed));
                let Some((bench, busy)) = least else { return Undecided::process("there is no device").into() };
                busy.fetch_add(1, Ordering::Relaxed);
                let verdict = bench.judge(task);
                busy.fetch_sub(1, Ordering::Relaxed);
                verdict
            }
        }
    }

    /// Computes, for a task's originals, what a thorough judgement will need, while other candidates are judged. Ends
    /// some seconds after `wanted` returns false. Does nothing where a model predicts. Blocks.
    pub fn prefetch(&self, task: &Task, wanted: &(dyn Fn() -> bool + Sync)) {
        match &self.0 {
            // A single candidate is judged on the first device.
            JudgeBackend::Local(benches) => {
                if let Some((bench, _)) = benches.first() {
                    bench.prefetch(task, wanted);
                }
            }
            JudgeBackend::Remote(remote) => remote.prefetch(task, wanted),
            JudgeBackend::Predicted(_) => {}
        }
    }

    /// Profiles these kernels in the first call of a task's original, where the machine allows it. Blocks for seconds.
    ///
    /// # Errors
    /// Returns the reason why nothing was counted.
    pub fn profile(&self, task: &Task, kernels: &[String], is_unwanted: &dyn Fn() -> bool) -> Result<Profiles, String> {
        match &self.0 {
            JudgeBackend::Local(benches) => match benches.first() {
                Some((bench, _)) => bench.profile(task, kernels, is_unwanted),
                None => Err("there is no device".to_owned()),
            },
            JudgeBackend::Remote(_) | JudgeBackend::Predicted(_) => {
                Err("this machine does not have the device".to_owned())
            }
        }
    }

    /// Cancels all judgements, which then end undecided. After a call with `false` new candidates are judged again.
    pub fn abandon(&self, unwanted: bool) {
        match &self.0 {
            JudgeBackend::Local(benches) => benches.iter().for_each(|(bench, _)| bench.abandon(unwanted)),
            JudgeBackend::Remote(remote) => remote.abandon(unwanted),
            JudgeBackend::Predicted(predictor) => predictor.bench().abandon(unwanted),
        }
    }

    /// Makes the local judging processes remove a folder when they end, even if this process ends first.
    pub fn owns(&self, folder: &Path) {
        let bench = match &self.0 {
            JudgeBackend::Local(benches) => benches.first().map(|(bench, _)| bench),
            JudgeBackend::Predicted(predictor) => Some(predictor.bench()),
            JudgeBackend::Remote(_) => None,
        };
        // Other code notices a bench that has already ended.
        let _ = bench.map(|bench| bench.forker.owns(folder));
    }

    /// Cancels all judgements for good, so that dropping this does not wait until all processes have ended.
    pub fn leave(&self) {
        match &self.0 {
            JudgeBackend::Local(benches) => benches.iter().for_each(|(bench, _)| bench.leave()),
            JudgeBackend::Remote(remote) => remote.abandon(true),
            JudgeBackend::Predicted(predictor) => predictor.bench().leave(),
        }
    }
}
