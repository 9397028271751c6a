//! The memory check with NVIDIA's `compute-sanitizer`, for candidates that are about to be offered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::is_simulated;
use protocol::runner::{ExitCause, IsolatedCall};

use super::baseline::Baseline;
use super::bench::Bench;
use super::case::{Case, Task};
use super::child_processes::last_line;
use super::locks::{lock, lock_first};
use super::memory_checker::{Tool, ToolReport};
use super::nvidia_tools::{ToolCommand, installed, text};
use super::stop_reason::Stop;
use super::tool_process::ToolProcess;
use super::undecided::Undecided;
use super::verdict::Reason;

/// For tests: a program that replaces the checker on a simulated device.
const FAKE_ENV: &str = "WARPSMITH_FAKE_SANITIZER";
/// The exit status of the checker when it has found errors.
const FOUND: i32 = 77;
/// The most errors that the checker prints.
const PRINTED: &str = "100";

/// The path of `compute-sanitizer`, if it is installed.
pub fn sanitizer(python: Option<&Path>) -> Option<PathBuf> {
    if is_simulated() {
        return std::env::var_os(FAKE_ENV).map(PathBuf::from);
    }
    installed("compute-sanitizer", python)
}

impl Bench {
    /// Starts the checker ahead for each of its tools, since importing torch under it takes several seconds.
    pub(super) fn start_checkers(&self) {
        let Some(checker) = sanitizer(Some(&self.python)) else { return };
        for tool in Tool::ALL {
            let mut started = lock(&self.checkers[tool as usize]);
            if started.is_none() {
                // A failure shows again when the checker is needed.
                *started = self.start_checker(&checker, tool).ok();
            }
        }
    }

    fn start_checker(&self, checker: &Path, tool: Tool) -> Result<ToolProcess, Undecided> {
        let mut command = vec![text(checker), "--tool".to_owned(), tool.name().to_owned()];
        // With a limit of its own the checker gives up on a program that does not use the device within a minute, and
        // then checks nothing. The judge has a limit of its own.
        let (code, wait) = (FOUND.to_string(), "0".to_owned());
        for (name, value) in
            [("--error-exitcode", code), ("--print-limit", PRINTED.to_owned()), ("--launch-timeout", wait)]
        {
            command.extend([name.to_owned(), value]);
        }
        if tool == Tool::Memory {
            // Libraries query features that a device may not have, which would be reported as errors.
            command.extend(["--report-api-errors".to_owned(), "no".to_owned()]);
        }
        // Each tensor gets an allocation of its own, so that accesses next to it are found.
        let variables = vec![("PYTORCH_NO_CUDA_MEMORY_CACHING".to_owned(), "1".to_owned())];
        self.start_under("checked", ToolCommand { command, variables })
    }

    /// Runs one call under the checker, with shared use of the device. A process that was started ahead and does not
    /// answer may have waited too long, so a new one is tried.
    fn checked(&self, checks: &Checks<'_>, tool: Tool, job: &IsolatedCall) -> Result<ToolReport, Undecided> {
        let earlier = lock(&self.checkers[tool as usize]).take();
        let earlier = earlier.and_then(|mut one| (!one.has_ended()).then_some(one));
        let found = match earlier.map(|started| checks.by(started, tool, job)).transpose()? {
            None | Some(Some(Err(_))) => checks.by(self.start_checker(&checks.checker, tool)?, tool, job)?,
            Some(found) => found,
        };
        Ok(found.unwrap_or_else(|| Err(format!("it took more than {} s", checks.limit.as_secs()))))
    }
}

impl Baseline {
    /// The checker's findings in the original, computed now if they are not known yet. As for [`Self::known`], the
    /// caller must not hold the device.
    fn checked(&self, checks: &Checks<'_>, tool: Tool) -> Result<ToolReport, Undecided> {
        let mut known = lock_first(&self.checked[tool as usize]);
        if let Some(found) = &*known {
            return Ok(found.clone());
        }
        let job = self.isolated_call(checks.bench, "checked")?;
        let found = checks.bench.checked(checks, tool, &job)?;
        Ok(known.insert(found).clone())
    }
}

/// The result of a joined thread.
fn ended<T>(joined: std::thread::Result<Result<T, Undecided>>) -> Result<T, Undecided> {
    joined.unwrap_or_else(|_| Err(Undecided::process("checking broke off: this is a fault of warpsmith's")))
}

/// A candidate with the parameters of its runs under the checker.
pub(super) struct Checks<'a> {
    bench: &'a Bench,
    baseline: Arc<Baseline>,
    checker: PathBuf,
    job: IsolatedCall,
    /// The time limit of each run.
    limit: Duration,
    /// Set when the results are no longer needed.
    is_over: AtomicBool,
}

/// The findings of each tool in the candidate and, where there were any, in the original.
pub(super) type Results = Vec<(Tool, Result<(ToolReport, Option<ToolReport>), Undecided>)>;

impl Checks<'_> {
    /// Runs both tools in parallel, since most of their time is spent on the host.
    pub(super) fn run(&self) -> Results {
        std::thread::scope(|scope| {
            let both = Tool::ALL.map(|tool| (tool, scope.spawn(move || self.one(tool))));
            both.map(|(tool, run)| (tool, ended(run.join()))).into()
        })
    }

    /// The findings of a started checker in a job's call; `None` if it exceeds the time limit.
    fn by(&self, started: ToolProcess, tool: Tool, job: &IsolatedCall) -> Result<Option<ToolReport>, Undecided> {
        let Some((ended, report)) = started.call(job, self.limit, &|| self.is_unwanted())? else { return Ok(None) };
        let found = report.and_then(|report| tool.read(&report));
        Ok(Some(match (ended.cause, found) {
            (ExitCause::Status(0 | FOUND), Some(found)) => Ok(found),
            (how, _) => Err(format!("it {how}: {}", last_line(&ended.output))),
        }))
    }

    fn one(&self, tool: Tool) -> Result<(ToolReport, Option<ToolReport>), Undecided> {
        let found = self.bench.checked(self, tool, &self.job)?;
        let is_found = found.as_ref().is_ok_and(|found| !found.is_empty());
        let original = is_found.then(|| self.baseline.checked(self, tool)).transpose()?;
        Ok((found, original))
    }

    /// Ends the runs that are still going on.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_unwanted(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.bench.shared_processes.unwanted.load(Ordering::Relaxed)
    }
}

impl<'a> Case<'a> {
    /// The runs of the candidate under the checker; `None` where the checker is not installed.
    pub(super) fn checks(&self, task: &Task, limit: Duration) -> Option<Checks<'a>> {
        let checker = sanitizer(Some(&self.bench.python))?;
        let job = IsolatedCall {
            fence: self.place.fence.clone(),
            file: task.candidate.clone(),
            folder: task.folder.clone(),
            workload: self.workload(task),
            inputs: self.baseline.trials[0].inputs.clone(),
            is_candidate: true,
            unfenced: false,
            device: self.bench.lock_file(),
            // Whichever configurations its autotuners choose there are checked, too.
            chosen: Vec::new(),
        };
        let (bench, baseline, is_over) = (self.bench, Arc::clone(&self.baseline), AtomicBool::new(false));
        Some(Checks { bench, baseline, checker, job: job.unasked(), limit, is_over })
    }

    /// Checks for memory errors that the results do not show. Where the candidate has errors, the original is run as
    /// well.
    pub(super) fn sanitized(&mut self, results: Option<Results>) -> Result<(), Stop> {
        let Some(results) = results else {
            self.note("it was not run under compute-sanitizer, which is not on this machine");
            return Ok(());
        };
        for (tool, found) in results {
            match found? {
                (Ok(found), Some(Ok(original))) => self.hold_against(tool, &original.into_keys().collect(), found)?,
                (Ok(_), Some(Err(why))) => {
                    self.note(format!("compute-sanitizer ({}) cannot say of the original: {why}", tool.name()));
                }
                (Ok(_), None) => self.passed(&tool.said(), "it finds nothing"),
                (Err(why), _) => self.note(format!("compute-sanitizer ({}) cannot say: {why}", tool.name())),
            }
        }
        Ok(())
    }

    fn hold_against(
        &mut self,
        tool: Tool,
        original: &BTreeSet<String>,
        found: BTreeMap<String, String>,
    ) -> Result<(), Stop> {
        match (tool, found.into_iter().find(|(kind, _)| !original.contains(kind))) {
            (_, None) => self.passed(&tool.said(), "nothing that the original does not show as well"),
            (Tool::Memory, Some((_, report))) => {
                let what = format!("compute-sanitizer: {report}; the original has no such error");
                return Err(Stop::Refused(Reason::Overrun, what, None));
            }
            (Tool::Races, Some((_, report))) => self.note(format!(
                "compute-sanitizer reports hazards that the original does not show, as it does of some of Triton's own reductions, \
                 where they do no harm: {report}"
            )),
        }
        Ok(())
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at softmax_kernel+0x1a0 in candidate.py:17
=========     by thread (23,0,0) in block (5,0,0)
=========     Address 0x7f0000000000 is out of bounds
=========
========= Invalid __global__ write of size 16 bytes
=========     at softmax_kernel+0x2a0 in candidate.py:17
========= ERROR SUMMARY: 2 errors
";
    const RACES: &str = "\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at softmax_kernel+0x5ad20 in standard.py:237
=========     and Read access at softmax_kernel+0x5ad60 in standard.py:237 [6136 hazards]
=========
========= Warning: Race reported between Read access at a
=========     and Write access at b [4 hazards]
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
";

    #[test]
    fn sanitizer_reports_are_parsed_and_incomplete_ones_rejected() {
        let found = Tool::Memory.read(MEMORY).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Invalid __global__ write"]);
        assert!(found["Invalid __global__ write"].contains("candidate.py:17 by thread (23,0,0)"), "{found:?}");
        assert_eq!(Tool::Races.read(RACES).unwrap().len(), 1);
        assert_eq!(
            Tool::Memory.read("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"),
            Some(BTreeMap::new())
        );
        for (tool, report) in
            [(Tool::Memory, RACES), (Tool::Races, MEMORY), (Tool::Memory, ""), (Tool::Memory, "ERROR SUMMARY:")]
        {
            assert_eq!(tool.read(report), None);
        }
    }
}
