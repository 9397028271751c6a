//! Processes that judge several candidates, one after the other.
//!
//! The driver creates one context at a time for the whole machine, so a process per candidate limits how many
//! candidates are judged (`docs/results/pool.md`). In a search, candidates that our own skills make of the user's file
//! may share a process: they are the user's code, and a candidate that is offered is judged once more in a process of
//! its own. A candidate that a shared process refuses is judged in another process as well, unless Triton refused it
//! before it ran.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::{Workload, WorkloadSource};

use super::baseline::Baseline;
use super::bench::{Bench, IdleProcess};
use super::candidate_process::CandidateProcess;
use super::case::{Case, Task};
use super::child_processes::RunnerProcess;
use super::effort::Effort;
use super::locks::lock;
use super::semaphore::AcquireResult;
use super::undecided::{Undecided, UndecidedCause};
use super::verdict::Outcome;

/// How long other starts wait for a file that loads. A file with many imports takes longer, but occupies the processors
/// rather than the driver.
const PATIENCE: Duration = Duration::from_secs(8);

/// Whether a file may launch on several streams. A file that hides this gets its launches one after the other, which
/// gains it nothing: the original always has all streams. Allocators for tensor descriptors receive a stream in any
/// case, so they do not count.
fn names_streams(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let allocates = |line: &str| {
        let is_function = line.trim_start().starts_with("def ") || line.contains("lambda");
        is_function && line.contains("size") && line.contains("align") && line.matches("stream").count() == 1
    };
    text.contains("graph") || text.lines().any(|line| line.contains("stream") && !allocates(line))
}

impl Effort {
    /// Whether a process may judge another candidate after `judged` others.
    fn goes_on(&self, judged: usize, workload: &Workload) -> bool {
        judged < self.series && !self.thorough && workload.source != WorkloadSource::KernelBench
    }
}

impl Bench {
    /// A process for a candidate: a free one that has judged others of the same original, where that is allowed, or a
    /// new one.
    pub(super) fn place(
        &self,
        task: &Task,
        baseline: &Arc<Baseline>,
        readable: Vec<PathBuf>,
    ) -> Result<CandidateProcess, Undecided> {
        let streams = [&task.original, &task.candidate]
            .into_iter()
            .any(|file| std::fs::read_to_string(file).map_or(true, |text| names_streams(&text)));
        // Without torch the worker counts memory per process instead of per file.
        let shares = task.effort.goes_on(1, &baseline.original.workload) && !self.environment().torch.is_empty();
        let fits = |(of, place): &IdleProcess| Arc::ptr_eq(of, baseline) && (place.fence.streams || !streams);
        let spare = || {
            let mut spares = lock(&self.idle_processes);
            let at = spares.iter().position(fits)?;
            Some(spares.swap_remove(at).1)
        };
        let waited = if shares { self.turn_to_start(baseline, spare) } else { AcquireResult::InVain };
        let starting = match waited {
            AcquireResult::Place(starting) => Some(starting),
            AcquireResult::Instead(spare) => return Ok(spare),
            AcquireResult::InVain => None,
        };
        let mut fence = self.fence("candidate", false, readable)?;
        fence.streams = streams;
        fence.device_memory = self.device_memory(baseline.device_memory());
        // This limit also holds for many candidates at once on a small device.
        fence.results = baseline.results().min(fence.device_memory / 64);
        let start = || RunnerProcess::start(&self.forker, fence.clone(), &self.shared_processes);
        let runner = baseline.original.first(self, start)?;
        Ok(CandidateProcess { runner, fence, judged: 0, takes_memory: false, starting })
    }

    /// Waits until a process may start or a free one is available. The first processes start while the original loads.
    fn turn_to_start(
        &self,
        baseline: &Baseline,
        mut spare: impl FnMut() -> Option<CandidateProcess>,
    ) -> AcquireResult<CandidateProcess> {
        match self.starting.take_or(Duration::ZERO, &mut spare) {
            AcquireResult::InVain => {
                // Otherwise the patience of all would end at once when the original is loaded. A failure shows again
                // when the original is needed.
                let _ = baseline.original.loaded(self);
                self.starting.take_or(PATIENCE, spare)
            }
            at_once => at_once,
        }
    }

    /// Keeps the process for another candidate, where that is allowed, or ends it.
    pub(super) fn release_process(
        &self,
        effort: &Effort,
        baseline: Arc<Baseline>,
        mut place: CandidateProcess,
        outcome: &Outcome,
    ) {
        place.judged += 1;
        let may_go_on = (matches!(outcome, Outcome::Accepted) || outcome.has_not_run()) && !self.is_abandoned();
        if may_go_on && effort.goes_on(place.judged, &baseline.original.workload) {
            lock(&self.idle_processes).push((baseline, place));
            self.starting.wake();
        } else {
            place.end();
        }
    }

    /// Ends the free processes, which hold device memory. This happens after the candidate to be offered has loaded:
    /// the driver creates and ends one context at a time for all devices, so that loading would wait for all of these
    /// ends.
    pub(super) fn end_idle_processes(&self) {
        let ended = std::mem::take(&mut *lock(&self.idle_processes));
        if !ended.is_empty() {
            tracing::debug!(count = ended.len(), "processes that wait for another candidate are ended");
        }
        ended.into_iter().for_each(|(_, place)| place.end());
    }

    fn is_abandoned(&self) -> bool {
        self.shared_processes.unwanted.load(Ordering::Relaxed)
    }

    /// Whether the outcome from a process that had judged others needs to be confirmed in a new process.
    pub(super) fn needs_fresh_process(&self, judged: usize, outcome: &Outcome) -> bool {
        judged > 0 && outcome.is_doubtful() && !self.is_abandoned()
    }
}

impl Outcome {
    /// Whether candidates that the process judged before may have caused the outcome.
    fn is_doubtful(&self) -> bool {
        match self {
            Self::Refused { .. } => !self.has_not_run(),
            // A cancelled judgement is not repeated: that would keep the device from the measurement that counts.
            Self::Undecided { cause, .. } => *cause != UndecidedCause::Cancelled,
            Self::Accepted | Self::Predicted => false,
        }
    }
}

impl Case<'_> {
    /// The file that the process loads: the candidate's, or a copy where the process may read its first file only.
    pub(super) fn file(&self, task: &Task) -> std::io::Result<PathBuf> {
        if self.place.judged == 0 {
            return Ok(task.candidate.clone());
        }
        let copy = self.place.fence.scratch.join(format!("candidate_{}.py", self.place.judged));
        std::fs::copy(&task.candidate, &copy)?;
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn only_files_that_name_streams_get_a_process_for_several_streams() {
        for several in
            ["s = torch.cuda.Stream()", "with torch.cuda.stream(s):", "g = torch.cuda.CUDAGraph()", "def f(x, stream):"]
        {
            assert!(names_streams(several), "{several}");
        }
        let allocator = "def alloc(size: int, alignment: int, stream: Optional[int]):\n    return torch.empty(size)\n";
        let ours = "def allocate_scratch(size: int, alignment: int, stream):\n    return torch.empty(size)\n";
        for one in [allocator, ours, "triton.set_allocator(lambda size, align, stream: torch.empty(size))", ""] {
            assert!(!names_streams(one), "{one}");
        }
        assert!(names_streams(&format!("{allocator}side = torch.cuda.Stream()")));
    }

    #[test]
    fn results_that_a_shared_process_may_cause_are_doubtful() {
        let undecided = |cause| Outcome::Undecided { cause, why: "anything".to_owned() };
        let refused = |reason| Outcome::Refused { reason, evidence: "anything".to_owned(), line: None };
        for doubtful in [refused(Reason::Output), refused(Reason::Run), undecided(UndecidedCause::Process)] {
            assert!(doubtful.is_doubtful(), "{doubtful:?}");
        }
        let excess = refused(Reason::Resources);
        for sure in [Outcome::Accepted, refused(Reason::Compile), excess, undecided(UndecidedCause::Cancelled)] {
            assert!(!sure.is_doubtful(), "{sure:?}");
        }
    }
}
