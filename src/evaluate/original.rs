//! The process that runs the original. All candidates share it: what it gives is kept by the comparer before it is asked
//! anything else.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::baseline::Undecided;
use super::bench::{Bench, lock, project};
use super::process::{Gone, Runner};
use crate::protocol::Workload;
use crate::protocol::runner::{Call, Inputs, Probe, Raised, Ran, RunnerReply, RunnerRequest, Touched};

/// So many processes compile an original at the most.
const MOST_COMPILING: usize = 12;

/// The original with one workload.
pub(super) struct Original {
    pub(super) workload: Workload,
    file: PathBuf,
    folder: PathBuf,
    runner: Mutex<Option<Runner>>,
    /// What it replaces or sets when it is loaded.
    tampered: Mutex<Vec<String>>,
}

impl Original {
    pub(super) fn new(file: &Path, folder: &Path, workload: Workload) -> Self {
        Self {
            workload,
            file: file.to_owned(),
            folder: folder.to_owned(),
            runner: Mutex::new(None),
            tampered: Mutex::default(),
        }
    }

    /// Runs it, in a new process if the last one is gone, and has the results kept under a number. The inner error says
    /// why it refuses.
    pub(super) fn run(&self, bench: &Bench, call: &Call) -> Result<Result<(Ran, u32), String>, Undecided> {
        self.run_within(bench, call, bench.limits.call)
    }

    /// The same, for as long as `limit`.
    pub(super) fn run_within(
        &self,
        bench: &Bench,
        call: &Call,
        limit: Duration,
    ) -> Result<Result<(Ran, u32), String>, Undecided> {
        let mut running = self.process(bench)?;
        self.run_in(&mut running, bench, call, limit)
    }

    /// Runs it several times, one right after the other in one process; the number of the last results, if it takes all.
    pub(super) fn run_after(&self, bench: &Bench, calls: &[Call]) -> Result<Option<u32>, Undecided> {
        let mut running = self.process(bench)?;
        let mut last = None;
        for call in calls {
            if let Some(slot) = last.take() {
                bench.drop_slots(vec![slot])?;
            }
            match self.run_in(&mut running, bench, call, bench.limits.call)? {
                Ok((_, slot)) => last = Some(slot),
                Err(_) => return Ok(None),
            }
        }
        Ok(last)
    }

    fn run_in(
        &self,
        running: &mut Option<Runner>,
        bench: &Bench,
        call: &Call,
        limit: Duration,
    ) -> Result<Result<(Ran, u32), String>, Undecided> {
        let mut runner = match running.take() {
            Some(runner) => runner,
            None => self.start(bench)?,
        };
        match runner.ask(&RunnerRequest::Run(call.clone()), limit) {
            Ok(RunnerReply::Ran(ran)) => {
                let slot = bench.compare(|comparer| comparer.keep(&ran.results))?;
                *running = Some(runner);
                Ok(Ok((*ran, slot)))
            }
            Ok(RunnerReply::Raised(Raised { text, .. })) => {
                // An error of the device stays with the process.
                if !text.contains("CUDA error") {
                    *running = Some(runner);
                }
                Ok(Err(last_line(&text)))
            }
            Ok(_) => Err(Undecided("the original's process answers another question".to_owned())),
            Err(Gone::Unwanted) => Err(Undecided("stopped".to_owned())),
            Err(Gone::Lost(why)) => Err(Undecided(why)),
            Err(gone) => Ok(Err(how(&gone))),
        }
    }

    /// Compiles for inputs in processes of their own: what they compile is kept. That one fails says nothing.
    pub(super) fn compile(&self, bench: &Bench, inputs: &[Inputs]) -> Result<(), Undecided> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let processes = cores.min(MOST_COMPILING).min(inputs.len());
        if processes < 2 {
            return Ok(());
        }
        let next = &AtomicUsize::new(0);
        let compile = || -> Result<(), Undecided> {
            let mut runner = self.start(bench)?;
            while let Some(inputs) = inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if runner.ask(&RunnerRequest::Compile(vec![inputs.clone()]), bench.limits.compile).is_err() {
                    break;
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..processes).map(|_| scope.spawn(compile)).collect();
            started.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }

    /// The file, and the folder of the user's.
    pub(super) fn place(&self) -> (&Path, &Path) {
        (&self.file, &self.folder)
    }

    /// Ends its process; the next call has a new one.
    pub(super) fn end(&self) {
        *lock(&self.runner) = None;
    }

    /// What it needs of its arguments; `None` if that cannot be told.
    pub(super) fn probe(&self, bench: &Bench, wanted: Probe) -> Result<Option<Vec<Touched>>, Undecided> {
        let mut running = self.process(bench)?;
        let Some(mut runner) = running.take() else { return Ok(None) };
        match runner.ask(&RunnerRequest::Probe(wanted), bench.limits.call) {
            Ok(RunnerReply::Probed(touched)) => {
                *running = Some(runner);
                Ok(touched)
            }
            // Its process goes: contents that it does not take may have broken it.
            Ok(_) | Err(Gone::Ended(..) | Gone::Late(_) | Gone::Garbage) => Ok(None),
            Err(Gone::Unwanted) => Err(Undecided("stopped".to_owned())),
            Err(Gone::Lost(why)) => Err(Undecided(why)),
        }
    }

    /// What it replaces or sets when it is loaded.
    pub(super) fn tampered(&self, bench: &Bench) -> Result<Vec<String>, Undecided> {
        drop(self.process(bench)?);
        Ok(lock(&self.tampered).clone())
    }

    /// Its process, for one at a time; there is one inside.
    pub(super) fn process(&self, bench: &Bench) -> Result<MutexGuard<'_, Option<Runner>>, Undecided> {
        let mut running = lock(&self.runner);
        if running.is_none() {
            *running = Some(self.start(bench)?);
        }
        Ok(running)
    }

    fn start(&self, bench: &Bench) -> Result<Runner, Undecided> {
        let readable = vec![project(&self.folder), self.file.clone()];
        let mut runner = Runner::start(&bench.forker, bench.fence("original", true, readable)?, &bench.unwanted)?;
        match runner.load(&self.file, &self.folder, &self.workload, false, bench.limits.load) {
            Ok(Ok(tampered)) => {
                *lock(&self.tampered) = tampered;
                Ok(runner)
            }
            Ok(Err(raised)) => Err(Undecided(format!("the original cannot be loaded:\n{}", raised.text))),
            Err(gone) => Err(Undecided(format!("the original cannot be loaded: {}", how(&gone)))),
        }
    }
}

/// What a process that is gone says of itself.
pub(super) fn how(gone: &Gone) -> String {
    match gone {
        Gone::Ended(how, output) if output.is_empty() => format!("the process {how}"),
        Gone::Ended(how, output) => format!("the process {how}; it printed last:\n{output}"),
        Gone::Lost(why) => why.clone(),
        Gone::Late(limit) => format!("no answer after {} s", limit.as_secs()),
        Gone::Unwanted => "it was stopped".to_owned(),
        Gone::Garbage => "what came through its pipe is no answer".to_owned(),
    }
}

fn last_line(text: &str) -> String {
    text.trim_end().lines().last().unwrap_or_default().to_owned()
}
