//! Compiling the kernels of original and candidate ahead of their calls, in several processes where that saves time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use protocol::runner::{ExceptionCause, Fence, Inputs, RunnerReply, RunnerRequest, Tuned};
use protocol::{Workload, is_simulated};

use super::baseline::{Baseline, MOST};
use super::bench::Bench;
use super::case::{Case, Task};
use super::child_processes::RunnerProcess;
use super::locks::lock;
use super::original::Original;
use super::precision::WIDE;
use super::stop_reason::{Stop, unexpected_reply};
use super::undecided::Undecided;

/// The most processes that compile an original while a search runs, whose candidates need the cores as well.
pub(super) const MOST_MEANWHILE: usize = 4;
/// The most further processes that compile one candidate, since other candidates compile at the same time.
const MOST_BESIDE: usize = 4;
/// A candidate that compiles faster than this for one call is compiled by its own process alone, where further
/// processes are slow to start.
const SLOW: Duration = Duration::from_secs(2);
/// The time limit of a call whose kernels are compiled; [`Case::limit`] may allow more.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many times the original's time a call may take.
const TIMES_SLOWER: u32 = 20;

/// The number of processes that save time when each takes `loading` to start, and each of `inputs` inputs takes `each`
/// to compile.
fn worth(inputs: usize, each: Duration, loading: Duration, most: usize) -> usize {
    const LEAST: f64 = 0.05;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let all = each.as_secs_f64() * inputs as f64;
    ((all / loading.as_secs_f64().max(LEAST)) as usize).min(most).min(cores).min(inputs)
}

/// Called now and then; returns whether to go on.
type Wanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// Compiles the inputs in `processes` further processes. What they compile is kept for the processes that share their
/// folder of kernels. A compilation that fails there is ignored.
fn beside(
    start: &(dyn Fn() -> Result<RunnerProcess, Undecided> + Sync),
    (inputs, chosen): (&[Inputs], &[Tuned]),
    processes: usize,
    (limit, wanted): (Duration, Wanted),
) -> Result<(), Undecided> {
    let next = &AtomicUsize::new(0);
    let compile = || -> Result<(), Undecided> {
        let mut runner = start()?;
        while let Some(inputs) = inputs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| wanted()) {
            let request = RunnerRequest::Compile { inputs: inputs.clone(), chosen: chosen.to_vec(), drafts: false };
            if runner.ask(&request, limit).is_err() {
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

impl Baseline {
    /// Compiles the original for a trial and those like it, in several processes at once where that saves time;
    /// otherwise each compilation would delay a call that candidates wait for. The recorded call comes first, since all
    /// candidates begin with it. Uses at most `most` processes, for as long as `wanted` returns true.
    pub(super) fn prepare(&self, bench: &Bench, at: usize, (most, wanted): (usize, Wanted)) -> Result<(), Undecided> {
        if is_simulated() || !self.trials[at].specializes {
            return Ok(());
        }
        let mut prepared = lock(&self.prepared);
        let parts = [&self.trials[..1], &self.trials[1..]];
        let missing = parts.iter().take(1 + at.min(1)).skip(*prepared);
        for part in missing {
            let widened = |inputs: &Inputs, to: Option<&str>| Inputs { widen: to.map(str::to_owned), ..inputs.clone() };
            let specialized = |types: &[Option<&str>]| -> Vec<Inputs> {
                let trials = part.iter().filter(|trial| trial.specializes);
                trials.flat_map(|trial| types.iter().map(|to| widened(&trial.inputs, *to))).collect()
            };
            let lifted = self.lifted().map(|lifted| (lifted, WIDE[0]));
            let own: &[_] = if lifted.is_some() { &[None] } else { &[None, Some(WIDE[0]), Some(WIDE[1])] };
            let inputs = specialized(own);
            self.original.compile(bench, &inputs, (most, wanted))?;
            if let Some((lifted, wide)) = lifted {
                lifted.compile(bench, &specialized(&[Some(wide)]), (most, wanted))?;
            }
            if !wanted() {
                break;
            }
            *prepared += 1;
        }
        Ok(())
    }
}

impl Original {
    /// Compiles for these inputs. The original's own process compiles the first, which shows how long one input takes.
    fn compile(&self, bench: &Bench, inputs: &[Inputs], (most, wanted): (usize, Wanted)) -> Result<(), Undecided> {
        let Some((first, rest)) = inputs.split_first() else { return Ok(()) };
        let limit = bench.limits.compile;
        let chosen = lock(&self.chosen).clone();
        let request = RunnerRequest::Compile { inputs: first.clone(), chosen: chosen.clone(), drafts: false };
        let (each, waits) = {
            let mut running = self.process(bench)?;
            let Some(mut runner) = running.take() else { return Ok(()) };
            let since = Instant::now();
            let reply = runner.ask(&request, limit);
            if reply.is_ok() {
                *running = Some(runner);
            }
            // The other inputs behave like this one: their autotuners have to choose first.
            (since.elapsed(), matches!(reply, Ok(RunnerReply::Compiled { tunes: true, .. })))
        };
        *lock(&self.tunes) |= waits;
        let loading = self.compiles(bench).map_or_else(|| *lock(&self.loading), |(_, took)| took);
        let processes = if waits { 0 } else { worth(rest.len(), each, loading, most) };
        let start = || self.start_compiler(bench);
        if processes < 2 { Ok(()) } else { beside(&start, (rest, &chosen), processes, (limit, wanted)) }
    }
}

impl Case<'_> {
    /// The time limit of a call. It is short where everything has been compiled, since other candidates wait for the
    /// device.
    pub(super) fn limit(&self) -> Duration {
        self.patience.max(self.took.saturating_mul(TIMES_SLOWER)).min(self.bench.limits.call)
    }

    /// Compiles for all calls while others use the device. Returns whether all calls but the recorded one have to wait
    /// until autotuners have chosen there: see [`Self::compile_rest`].
    pub(super) fn compile(&mut self, task: &Task) -> Result<bool, Stop> {
        let beside = self.effort.thorough.then(|| self.beside(task));
        let early = beside.as_ref().filter(|beside| beside.is_cheap && !self.may_tune(task));
        let (first, took) = std::thread::scope(|scope| {
            let others = early.map(|beside| scope.spawn(|| beside.compile(None)));
            let since = Instant::now();
            let first = self.compile_for(0);
            let took = since.elapsed();
            // A failure of the other processes shows again in the candidate's own process.
            let _ = others.map(|others| others.join());
            (first, took)
        });
        let (failed, tunes, code) = first?;
        self.code = code.map(|code| self.baseline.machine_code.name(&code));
        if tunes {
            return Ok(true);
        }
        // The recorded call will report this, and compiling kernels that do not fit the device takes long.
        let is_excess = failed == Some(ExceptionCause::Resources);
        if let (Some(beside), false) = (&beside, is_excess) {
            // The cores are idle when nothing else is judged.
            let slow = if self.effort.is_last() { SLOW / 4 } else { SLOW };
            if early.is_none() && took > slow {
                beside.compile(Some(took))?;
            }
            self.compile_others(failed.is_none())?;
        } else if failed.is_none() {
            self.patience = self.patience.min(PATIENCE);
        }
        Ok(false)
    }

    /// Compiles for all calls but the recorded one, with the configurations that autotuners have chosen there.
    pub(super) fn compile_rest(&mut self, task: &Task) -> Result<(), Stop> {
        if let Some(first) = (1..self.baseline.trials.len()).find(|&at| self.baseline.trials[at].specializes) {
            let since = Instant::now();
            self.compile_for(first)?;
            if since.elapsed() > SLOW / 4 {
                self.beside(task).compile(Some(since.elapsed()))?;
            }
        }
        self.compile_others(true)
    }

    /// Whether autotuners may have to choose before compiling for other calls is worthwhile: they compile many
    /// configurations for each call.
    fn may_tune(&self, task: &Task) -> bool {
        let names_one = |text: String| text.contains("autotune");
        *lock(&self.baseline.original.tunes) || std::fs::read_to_string(&task.candidate).map_or(true, names_one)
    }

    fn compile_others(&mut self, mut is_all: bool) -> Result<(), Stop> {
        for at in 1..self.baseline.trials.len() {
            if self.baseline.trials[at].specializes {
                let (failed, tunes, _) = self.compile_for(at)?;
                is_all &= failed.is_none() && !tunes;
            }
        }
        if is_all {
            self.patience = self.patience.min(PATIENCE);
        }
        Ok(())
    }

    /// Compiles for a trial. Returns why that failed, if it did, whether an autotuner has to choose, and a key of the
    /// machine code.
    fn compile_for(&mut self, at: usize) -> Result<(Option<ExceptionCause>, bool, Option<String>), Stop> {
        // A trial that the original refuses is not compiled. At `at == 0` this does not wait for the original, without
        // whose recorded call the judgement would not go on anyway.
        if at > 0 && !self.baseline.takes(self.bench, at)? {
            return Ok((None, false, None));
        }
        let (inputs, chosen) = (self.baseline.trials[at].inputs.clone(), self.chosen.clone());
        let request = RunnerRequest::Compile { inputs, chosen, drafts: false };
        match self.place.runner.ask(&request, self.bench.limits.compile)? {
            RunnerReply::Compiled { failed, tunes, code, .. } => {
                Ok((failed.map(|exception| exception.cause), tunes, code))
            }
            other => Err(unexpected_reply(other)),
        }
    }

    fn beside<'a>(&self, task: &'a Task) -> Beside<'a>
    where
        Self: 'a,
    {
        let original = &self.baseline.original;
        let (compiles, loading) = match original.compiles(self.bench).filter(|_| !self.place.takes_memory) {
            Some((device, took)) => (Some(device), took),
            None => (None, *lock(&original.loading)),
        };
        let is_cheap = compiles.is_some() && self.effort.is_last() && loading < SLOW / 4;
        Beside {
            bench: self.bench,
            baseline: Arc::clone(&self.baseline),
            task,
            workload: self.workload(task),
            fence: Fence { compiles, ..self.place.fence.clone() },
            chosen: self.chosen.clone(),
            loading,
            is_cheap,
        }
    }
}

/// Further processes that compile into a candidate's folder of kernels.
struct Beside<'a> {
    bench: &'a Bench,
    baseline: Arc<Baseline>,
    task: &'a Task,
    workload: Workload,
    fence: Fence,
    chosen: Vec<Tuned>,
    /// How long its file takes to load.
    loading: Duration,
    /// Whether the processes start at once, without a connection to the device, while the cores are idle.
    is_cheap: bool,
}

impl Beside<'_> {
    /// Compiles for all trials but the first. `each` is the time that one takes, if it is known.
    fn compile(&self, each: Option<Duration>) -> Result<(), Stop> {
        let mut rest = Vec::new();
        for (at, trial) in self.baseline.trials.iter().enumerate().skip(1).filter(|(_, trial)| trial.specializes) {
            if self.baseline.takes(self.bench, at)? {
                rest.push(trial.inputs.clone());
            }
        }
        let most = if self.is_cheap { MOST } else { MOST_BESIDE };
        let processes = worth(rest.len(), each.unwrap_or(Duration::MAX), self.loading, most);
        if processes > 1 {
            let start = || self.start();
            let _ = beside(&start, (&rest, &self.chosen), processes, (self.bench.limits.compile, &|| true));
        }
        Ok(())
    }

    fn start(&self) -> Result<RunnerProcess, Undecided> {
        let (bench, task) = (self.bench, self.task);
        let mut runner = RunnerProcess::start(&bench.forker, self.fence.clone(), &bench.shared_processes)?;
        if self.fence.compiles.is_none() {
            bench.wait_for_quiet();
        }
        let whose = (true, self.baseline.original.weights);
        let loaded = runner.load(&task.candidate, &task.folder, &self.workload, whose, bench.limits.load);
        // A file that cannot be loaded a second time is noticed later, if it matters.
        if matches!(loaded, Ok(Ok(_))) { Ok(runner) } else { Err(Undecided::process("it is not loaded twice")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_compile_processes_are_used_if_loading_takes_longer() {
        let worth =
            |inputs, each, loading| worth(inputs, Duration::from_secs_f64(each), Duration::from_secs_f64(loading), 2);
        assert_eq!(worth(20, 0.3, 6.1), 0);
        assert_eq!(worth(1, 9.0, 0.1), 1);
        assert_eq!(worth(20, 9.0, 6.0), 2.min(std::thread::available_parallelism().unwrap().get()));
        assert_eq!(worth(0, 9.0, 0.0), 0);
    }
}
