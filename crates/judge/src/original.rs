//! The original's process, which all candidates share. The comparer keeps the original's results before the process
//! receives its next request.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use protocol::runner::{
    ArgumentUse, CallOutput, EntryCall, ExceptionCause, ExitCause, Fence, MemoryProbe, PythonException, RunnerReply,
    RunnerRequest, Tuned, Weights,
};
use protocol::{SimulatedGpu, Workload, WorkloadSource};

use super::bench::Bench;
use super::child_processes::{LoadedFile, RunnerGone, RunnerProcess, how, last_line};
use super::locks::lock;
use super::project_folder::project;
use super::undecided::{Undecided, UndecidedCause};

/// How much earlier than candidates the original may begin to load. A device starts one process at a time, and all
/// candidates wait for the original's results.
const HEAD_START: Duration = Duration::from_millis(500);

/// The original with one workload, and its process.
pub(super) struct Original {
    pub(super) workload: Workload,
    /// How a model gets its weights; unused for other workloads.
    pub(super) weights: Weights,
    file: PathBuf,
    folder: PathBuf,
    runner: Mutex<Option<RunnerProcess>>,
    /// The properties of the file, once it is loaded.
    loaded: Mutex<Option<LoadedFile>>,
    /// How long the file takes to load.
    pub(super) loading: Mutex<Duration>,
    /// Whether the original has autotuners that measure in the recorded call.
    pub(super) tunes: Mutex<bool>,
    /// The configurations that its autotuners chose in the recorded call.
    pub(super) chosen: Mutex<Vec<Tuned>>,
    /// The number of the process that has allocated the memory for timed calls.
    pub(super) grown: Mutex<Option<u64>>,
}

impl Original {
    pub(super) fn new(file: &Path, folder: &Path, workload: Workload, weights: Weights) -> Self {
        Self {
            workload,
            weights,
            file: file.to_owned(),
            folder: folder.to_owned(),
            runner: Mutex::new(None),
            loaded: Mutex::default(),
            loading: Mutex::default(),
            tunes: Mutex::default(),
            chosen: Mutex::default(),
            grown: Mutex::default(),
        }
    }

    /// Runs a call, in a new process if the last one has ended; the comparer keeps the results under the returned
    /// number. The inner error says why the original refuses the call.
    pub(super) fn run(&self, bench: &Bench, call: &EntryCall) -> Result<Result<(CallOutput, u32), String>, Undecided> {
        self.run_within(bench, call, bench.limits.call)
    }

    /// Runs a call as [`Self::run`], with the time limit `limit`.
    pub(super) fn run_within(
        &self,
        bench: &Bench,
        call: &EntryCall,
        limit: Duration,
    ) -> Result<Result<(CallOutput, u32), String>, Undecided> {
        let mut running = self.process(bench)?;
        self.run_in(&mut running, bench, call, limit)
    }

    /// Runs two calls, one directly after the other in one process. Returns the slots of both results, if the original
    /// refuses neither.
    pub(super) fn run_twice(&self, bench: &Bench, calls: &[EntryCall; 2]) -> Result<Option<[u32; 2]>, Undecided> {
        let mut running = self.process(bench)?;
        let Ok((_, first)) = self.run_in(&mut running, bench, &calls[0], bench.limits.call)? else { return Ok(None) };
        let Ok((_, second)) = self.run_in(&mut running, bench, &calls[1], bench.limits.call)? else {
            bench.drop_slots(vec![first])?;
            return Ok(None);
        };
        Ok(Some([first, second]))
    }

    /// Runs a call as [`Self::run_within`], in the process `running`, or in a new one that is left there.
    pub(super) fn run_in(
        &self,
        running: &mut Option<RunnerProcess>,
        bench: &Bench,
        call: &EntryCall,
        limit: Duration,
    ) -> Result<Result<(CallOutput, u32), String>, Undecided> {
        let mut runner = match running.take() {
            Some(runner) => runner,
            None => self.start(bench)?,
        };
        let call = with_chosen(call, &lock(&self.chosen));
        match runner.ask(&RunnerRequest::Run(call), limit) {
            Ok(RunnerReply::Ran(ran)) => {
                add_chosen(&mut lock(&self.chosen), &ran.tuned);
                if let Some(what) = ran.results.unread() {
                    *running = Some(runner);
                    return Err(Undecided::original(format!("not all results of the original can be read: {what}")));
                }
                let slot = bench.compare(|comparer| comparer.keep(runner.number, &ran.results))?;
                *running = Some(runner);
                Ok(Ok((*ran, slot)))
            }
            Ok(RunnerReply::Raised(PythonException { text, cause: ExceptionCause::DeviceMemory, .. }))
                if !bench.is_alone() =>
            {
                let why = format!("the original lacks the device's memory: {}", last_line(&text));
                Err(Undecided::new(UndecidedCause::DeviceMemory, why))
            }
            Ok(RunnerReply::Raised(PythonException { text, is_early, cause, .. })) => {
                // After an error of the device the process cannot use it any more.
                if cause != ExceptionCause::Device {
                    *running = Some(runner);
                }
                let who = if is_early { "its arguments cannot be made" } else { "the original refuses it" };
                Ok(Err(format!("{who}: {}", last_line(&text))))
            }
            Ok(_) => Err(Undecided::process("the original's process answers another question")),
            Err(RunnerGone::Unwanted) => Err(Undecided::cancelled()),
            Err(RunnerGone::Lost(why)) => Err(Undecided::process(why)),
            Err(RunnerGone::Ended(ExitCause::Unstarted { why, cause }, _)) => {
                Err(Undecided::new(UndecidedCause::of_start(cause), why))
            }
            Err(gone) => Ok(Err(format!("the original refuses it: {}", how(&gone)))),
        }
    }

    /// The file, and the folder of the user's file.
    pub(super) fn place(&self) -> (&Path, &Path) {
        (&self.file, &self.folder)
    }

    /// Ends the process; the next call starts a new one.
    pub(super) fn end(&self) {
        *lock(&self.runner) = None;
    }

    /// Probes which parts of its arguments the original needs; `None` if that cannot be found out.
    pub(super) fn probe(&self, bench: &Bench, wanted: MemoryProbe) -> Result<Option<Vec<ArgumentUse>>, Undecided> {
        let mut running = self.process(bench)?;
        let Some(mut runner) = running.take() else { return Ok(None) };
        match runner.ask(&RunnerRequest::Probe(wanted), bench.limits.call) {
            Ok(RunnerReply::Probed(touched)) => {
                *running = Some(runner);
                Ok(touched)
            }
            // The process ends, since contents that it cannot handle may have broken it.
            Ok(_) | Err(RunnerGone::Ended(..) | RunnerGone::Late(_) | RunnerGone::Garbage) => Ok(None),
            Err(RunnerGone::Unwanted) => Err(Undecided::cancelled()),
            Err(RunnerGone::Lost(why)) => Err(Undecided::process(why)),
        }
    }

    /// The properties of the loaded file, which is loaded now if it was not before. When they are known, this does not
    /// wait for the process, which may be busy.
    pub(super) fn loaded(&self, bench: &Bench) -> Result<LoadedFile, Undecided> {
        if let Some(loaded) = lock(&self.loaded).clone() {
            return Ok(loaded);
        }
        drop(self.process(bench)?);
        Ok(lock(&self.loaded).clone().unwrap_or_default())
    }

    /// Starts loading the file if that was not done, and calls `then` meanwhile.
    pub(super) fn first<T>(&self, bench: &Bench, then: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            let (loaded, is_loaded) = channel();
            // A failure shows again when the file is needed.
            scope.spawn(move || loaded.send(self.loaded(bench).is_ok()));
            let _ = is_loaded.recv_timeout(HEAD_START);
            then()
        })
    }

    /// The locked process, which is started if there is none: the option is always `Some`.
    pub(super) fn process(&self, bench: &Bench) -> Result<MutexGuard<'_, Option<RunnerProcess>>, Undecided> {
        let mut running = lock(&self.runner);
        if running.is_none() {
            *running = Some(self.start(bench)?);
        }
        Ok(running)
    }

    pub(super) fn start(&self, bench: &Bench) -> Result<RunnerProcess, Undecided> {
        let started = self.start_with(bench, |fence| fence);
        started.map(|(runner, loaded, took)| {
            *lock(&self.loading) = took;
            *lock(&self.loaded) = Some(loaded);
            runner
        })
    }

    /// Starts a process that compiles and calls nothing.
    pub(super) fn start_compiler(&self, bench: &Bench) -> Result<RunnerProcess, Undecided> {
        let compiles = self.compiles(bench).map(|(device, _)| device);
        if compiles.is_none() {
            bench.wait_for_quiet();
        }
        self.start_with(bench, |fence| Fence { streams: false, compiles, ..fence }).map(|(runner, ..)| runner)
    }

    /// The parameters for a process that only compiles, without a connection to the device, and how long the file takes
    /// to load there; `None` where loading the file needs a connection, and until that is known.
    pub(super) fn compiles(&self, bench: &Bench) -> Option<(SimulatedGpu, Duration)> {
        let loaded = lock(&self.loaded).clone().filter(|loaded| !loaded.takes_memory)?;
        let device = super::devices::simulated_gpu(&bench.uuid)
            .filter(|_| self.workload.source != WorkloadSource::KernelBench)?;
        Some((device, loaded.took))
    }

    /// A new process, the properties of the file, and the time that loading it took.
    fn start_with(
        &self,
        bench: &Bench,
        change: impl FnOnce(Fence) -> Fence,
    ) -> Result<(RunnerProcess, LoadedFile, Duration), Undecided> {
        let readable = vec![project(&self.folder), self.file.clone()];
        let fence = change(bench.fence("original", true, readable)?);
        let mut runner = RunnerProcess::start(&bench.forker, fence, &bench.shared_processes)?;
        let since = Instant::now();
        match runner.load(&self.file, &self.folder, &self.workload, (false, self.weights), bench.limits.load) {
            Ok(Ok(loaded)) => Ok((runner, loaded, since.elapsed())),
            Ok(Err(raised)) => {
                let why = format!("the original cannot be loaded:\n{}", raised.text);
                Err(Undecided::new(UndecidedCause::of_original(raised.cause), why))
            }
            Err(gone) => {
                let cause = match &gone {
                    RunnerGone::Ended(ExitCause::Unstarted { cause, .. }, _) => UndecidedCause::of_start(*cause),
                    RunnerGone::Lost(_) => UndecidedCause::Process,
                    RunnerGone::Unwanted => UndecidedCause::Cancelled,
                    _ => UndecidedCause::Original,
                };
                Err(Undecided::new(cause, format!("the original cannot be loaded: {}", how(&gone))))
            }
        }
    }
}

/// The call as it is sent. Where its kernels may differ from the recorded ones, the autotuners receive the
/// configurations that they chose.
pub(super) fn with_chosen(call: &EntryCall, chosen: &[Tuned]) -> EntryCall {
    let mut call = call.clone();
    if !call.forced && !call.inputs.is_as_recorded() {
        call.chosen = chosen.to_vec();
    }
    call
}

/// Adds the choices of autotuners; the first choice of each is kept.
pub(super) fn add_chosen(chosen: &mut Vec<Tuned>, tuned: &[Tuned]) {
    for one in tuned {
        if chosen.iter().all(|other| other.kernel != one.kernel) {
            chosen.push(one.clone());
        }
    }
}
