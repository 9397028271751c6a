//! The stages of a judgement. Replies of a candidate's process are never trusted: results are compared in another
//! process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::runner::{
    CallOutput, ComparerRequest, Difference, EntryCall, ExceptionCause, ExportedResults, PythonException, RunnerReply,
    RunnerRequest,
};
use protocol::{Workload, WorkloadSource};
use workload::place_of_comment;

use super::autotune_alternatives::is_offer;
use super::baseline::Ready;
use super::bench::{Bench, DeviceGuard, Shared};
use super::candidate_notes::notes;
use super::case::{Case, Spent, Task};
use super::child_processes::ComparerProcess;
use super::claim::{CREDIBLE, Claim};
use super::effort::Effort;
use super::grade::ModelWeights;
use super::measure::is_contender;
use super::original::{add_chosen, with_chosen};
use super::prefetch::{with_first_check, with_prefetch};
use super::project_folder::project;
use super::sanitizer::{self, Checks};
use super::stop_reason::{Stop, refuse, unexpected_reply};
use super::trials::{Trial, means_nan, title};
use super::undecided::{Retry, Undecided, UndecidedCause};
use super::verdict::{Check, Measured, Outcome, Reason, Verdict};

/// How a candidate is judged; a retry changes one of the two.
#[derive(Clone, Copy)]
struct Attempt {
    /// Compile the kernels ahead, with tensors without contents.
    compiles_ahead: bool,
    /// Give the candidate's model the original's weights, and move them before each call.
    moves_weights: bool,
    /// Judge a second time, in a fresh process and with other inputs for timed calls.
    is_second: bool,
}

/// Timed calls of a second judgement have inputs from this one on.
const SECOND: u64 = 1 << 24;

/// The note and the error for a model whose weights have other names or shapes than the original's.
const OWN_WEIGHTS: &str = "the model's weights differ from the original's in name or shape";

impl Bench {
    /// Judges a candidate. Blocks, and may be called from several threads at once.
    #[must_use]
    pub fn judge(&self, task: &Task) -> Verdict {
        let mut all = Verdict::undecided(UndecidedCause::Other, "there is no call to judge it with");
        all.notes = self
            .unfenced()
            .iter()
            .map(|what| format!("the sandbox on this machine cannot fully restrict a candidate: {what}"))
            .collect();
        let [original, candidate] = [&task.original, &task.candidate].map(|file| std::fs::read_to_string(file).ok());
        if let (Some(original), Some(candidate)) = (&original, &candidate) {
            all.notes.extend(notes(original, candidate));
        }
        for workload in &task.workloads {
            let one = self.judge_one(task, workload);
            let is_accepted = one.is_accepted();
            all.outcome = one.outcome;
            if let Outcome::Undecided { cause: UndecidedCause::Call, why } = &mut all.outcome
                && let Some(place) = original.as_ref().and_then(|text| place_of_comment(workload, text))
            {
                *why += &format!("\nthe call is the one of {place}");
            }
            all.weights = all.weights.or(one.weights);
            all.grade = match (all.grade.take(), one.grade) {
                (Some(all), Some(one)) => Some(all.and(one)),
                (all, one) => all.or(one),
            };
            all.checks.extend(one.checks);
            all.measured.extend(one.measured);
            all.stages.extend(one.stages);
            for note in one.notes {
                if !all.notes.contains(&note) {
                    all.notes.push(note);
                }
            }
            if !is_accepted {
                break;
            }
        }
        all
    }

    fn judge_one(&self, task: &Task, workload: &Workload) -> Verdict {
        self.judge_anew_alone(|| self.judge_until_decided(task, workload))
    }

    /// Judges, and once more where the cause of an undecided verdict asks for that.
    fn judge_until_decided(&self, task: &Task, workload: &Workload) -> Verdict {
        let mut attempt = Attempt {
            compiles_ahead: true,
            moves_weights: task.effort.weights == ModelWeights::Copied,
            is_second: false,
        };
        let (mut is_again, mut notes) = (false, Vec::new());
        loop {
            let mut verdict = self.judge_with(task, workload, attempt);
            let retry = match &verdict.outcome {
                Outcome::Undecided { cause, .. } => cause.retry(),
                Outcome::Accepted | Outcome::Predicted | Outcome::Refused { .. } => Retry::Never,
            };
            match retry {
                Retry::Again if !is_again => is_again = true,
                Retry::WithOwnWeights if attempt.moves_weights => {
                    attempt.moves_weights = false;
                    notes.push(format!("{OWN_WEIGHTS}: both keep what their constructors make of one seed"));
                }
                Retry::WithoutCompilingAhead if attempt.compiles_ahead => attempt.compiles_ahead = false,
                // `judge_anew_alone` judges alone.
                _ => {
                    if task.effort.thorough && is_very_fast(&verdict) {
                        verdict = self.judge_twice(verdict, task, workload, attempt);
                    }
                    verdict.outcome = verdict.outcome.without_fake_tensors();
                    verdict.notes.extend(notes);
                    return verdict;
                }
            }
        }
    }

    /// Judges a candidate a second time that looks faster than is believed after one judgement. Returns a verdict that
    /// refuses it, if one does, or else that of the lower speedup.
    fn judge_twice(&self, first: Verdict, task: &Task, workload: &Workload, attempt: Attempt) -> Verdict {
        let effort = Effort { series: 1, sanitizer: None, large_tensors: false, ..task.effort };
        let task = Task { effort, ..task.clone() };
        let (second, _) = self.judge_in(&task, workload, Attempt { is_second: true, ..attempt });
        let ratio = |verdict: &Verdict| Claim::of_all(&verdict.measured).map_or(0.0, |claim| claim.ratio.median);
        let ratios = [ratio(&first), ratio(&second)];
        if !second.is_accepted() {
            return second;
        }
        let mut lower = if ratios[1] < ratios[0] { second } else { first };
        lower.measured.iter_mut().for_each(|measured| measured.is_repeated = true);
        let evidence = format!(
            "in a fresh process and on other inputs it is {:.2}× faster, {:.2}× before; the lower counts",
            ratios[1], ratios[0]
        );
        lower.checks.push(Check { name: "a second judgement".to_owned(), passed: true, evidence });
        lower
    }

    fn judge_with(&self, task: &Task, workload: &Workload, attempt: Attempt) -> Verdict {
        let (verdict, judged) = self.judge_in(task, workload, attempt);
        if !self.needs_fresh_process(judged, &verdict.outcome) {
            return verdict;
        }
        let effort = Effort { series: 1, ..task.effort };
        self.judge_in(&Task { effort, ..task.clone() }, workload, attempt).0
    }

    /// The verdict, and how many candidates the process had judged before.
    fn judge_in(&self, task: &Task, workload: &Workload, attempt: Attempt) -> (Verdict, usize) {
        let Attempt { compiles_ahead, moves_weights, is_second } = attempt;
        let readable = vec![project(&task.folder), task.candidate.clone()];
        let started = self.baseline((&task.original, &task.folder), workload, moves_weights).and_then(|baseline| {
            baseline.machine_code.learn(&task.known);
            let place = self.place(task, &baseline, readable)?;
            Ok((baseline, place))
        });
        let (baseline, place) = match started {
            Ok(started) => started,
            Err(undecided) => return (undecided.into(), 0),
        };
        let (code, chosen, usual, checks, notes, grade, stages, spent, measured) = Default::default();
        let (dice, effort) = (self.secret(), task.effort);
        let (patience, took) = (self.limits.call, Duration::ZERO);
        let (timed, is_host_bound, tunes) = (if is_second { SECOND } else { 0 }, false, false);
        let mut case = Case {
            patience,
            took,
            dice,
            timed,
            is_host_bound,
            bench: self,
            baseline,
            place,
            effort,
            tunes,
            code,
            chosen,
            usual,
            checks,
            notes,
            grade,
            stages,
            spent,
            measured,
        };
        let outcome = match case.judge(task, compiles_ahead) {
            Ok(()) => Outcome::Accepted,
            Err(Stop::Undecided(Undecided { cause, why })) => Outcome::Undecided { cause, why },
            Err(Stop::Refused(reason, evidence, line)) => {
                case.checks.push(Check { name: reason.name(), passed: false, evidence: evidence.clone() });
                Outcome::Refused { reason, evidence, line }
            }
        };
        let Case { baseline, place, checks, notes, grade, mut stages, spent, measured, .. } = case;
        let Spent { waiting, running, comparing } = spent.into_inner();
        for (stage, spent) in [("of it waiting", waiting), ("of it running", running), ("of it comparing", comparing)] {
            stages.push((stage.to_owned(), spent));
        }
        let judged = place.judged;
        self.release_process(&task.effort, baseline, place, &outcome);
        let is_model = workload.source == WorkloadSource::KernelBench;
        let weights = if moves_weights { ModelWeights::Copied } else { ModelWeights::Seed };
        let weights = is_model.then_some(weights);
        (Verdict { outcome, checks, measured, notes, grade, weights, stages, judged_on: None }, judged)
    }
}

/// Whether a candidate is faster than is believed after one judgement.
fn is_very_fast(verdict: &Verdict) -> bool {
    verdict.is_accepted() && Claim::of_all(&verdict.measured).is_some_and(|claim| claim.ratio.median > CREDIBLE)
}

impl<'a> Case<'a> {
    /// Acquires the device for shared use.
    pub(super) fn shared(&self) -> Shared<'a> {
        let since = Instant::now();
        let shared = self.bench.shared();
        self.spent.borrow_mut().waiting += since.elapsed().as_secs_f64();
        shared
    }

    /// Acquires the device: exclusively where the candidate's autotuners still have to choose, otherwise shared.
    pub(super) fn use_device(&self) -> Result<DeviceGuard<'a>, Undecided> {
        let since = Instant::now();
        let turn = self.bench.use_device(self.tunes);
        self.spent.borrow_mut().waiting += since.elapsed().as_secs_f64();
        turn
    }
}

impl Case<'_> {
    fn judge(&mut self, task: &Task, compiles_ahead: bool) -> Result<(), Stop> {
        let checks = self.effort.sanitizer.and_then(|limit| self.checks(task, limit));
        let (baseline, bench, checks) = (Arc::clone(&self.baseline), self.bench, checks.as_ref());
        std::thread::scope(|scope| {
            // This candidate is most likely an offer, and its checks run on the host for most of their time.
            let early = checks.filter(|_| self.effort.is_last());
            let early = early.map(|checks| scope.spawn(move || checks.run()));
            let sanitized = || early.map_or_else(|| checks.map(Checks::run), |run| run.join().ok());
            let ahead = if self.effort.thorough { with_prefetch } else { with_first_check };
            let outcome = ahead(&baseline, bench, || self.stage_by_stage(task, compiles_ahead, sanitized));
            checks.inspect(|checks| checks.end());
            outcome
        })
    }

    fn stage_by_stage(
        &mut self,
        task: &Task,
        compiles_ahead: bool,
        sanitized: impl FnOnce() -> Option<sanitizer::Results>,
    ) -> Result<(), Stop> {
        task.still()?;
        let since = Instant::now();
        self.load(task)?;
        self.lap("load", since);
        if self.effort.thorough {
            self.bench.end_idle_processes();
        }
        task.still()?;
        let since = Instant::now();
        self.tunes = compiles_ahead && self.compile(task)?;
        self.lap("compile", since);
        if let Some(twin) = self.twin() {
            self.measured.push(twin);
            return Ok(());
        }
        task.still()?;
        let since = Instant::now();
        let is_brief = self.effort.is_brief();
        self.first_calls(is_brief)?;
        if self.effort.thorough {
            if self.tunes {
                self.compile_rest(task)?;
            }
            self.other_calls()?;
        }
        self.lap("check", since);
        task.still()?;
        if self.effort.first_pairs > 0 {
            let since = Instant::now();
            let mut measured = self.time(None)?;
            let asks_more = is_brief && is_contender(&measured.pairs, self.effort.contender);
            if self.has_rivals(&measured) {
                measured = self.rivals(measured)?;
            }
            let is_offer = is_offer(&measured);
            self.measured.push(measured);
            self.lap("time", since);
            if asks_more {
                let since = Instant::now();
                self.honesty()?;
                self.lap("check", since);
            }
            self.keep_as_twin();
            // Without torch the contents are made on the host, which has less memory for them.
            let has_torch = !self.bench.environment().torch.is_empty();
            if (is_offer || self.effort.large_tensors) && self.effort.thorough && has_torch {
                let since = Instant::now();
                self.beyond()?;
                self.lap("beyond", since);
            }
            if is_offer && self.effort.sanitizer.is_some() {
                let since = Instant::now();
                self.sanitized(sanitized())?;
                self.lap("sanitizer", since);
            }
            if is_offer && self.effort.thorough && has_torch {
                let since = Instant::now();
                self.count();
                self.lap("count", since);
                let since = Instant::now();
                self.kernels()?;
                self.lap("kernels", since);
            }
        }
        Ok(())
    }

    /// The measurement of a candidate with the same machine code. A search may rely on that, an offer may not.
    fn twin(&self) -> Option<Measured> {
        let code = self
            .code
            .as_ref()
            .filter(|_| self.effort.reuse_timings && !self.effort.thorough && self.effort.first_pairs > 0)?;
        self.baseline.machine_code.find(code)
    }

    fn keep_as_twin(&mut self) {
        if let (Some(code), true, Some(measured)) =
            (&self.code, self.effort.reuse_timings && !self.effort.thorough, self.measured.last_mut())
        {
            measured.code = Some(code.clone());
            self.baseline.machine_code.keep(code.clone(), measured);
        }
    }

    fn lap(&mut self, stage: &str, since: Instant) {
        let seconds = since.elapsed().as_secs_f64();
        tracing::debug!(stage, seconds, "a stage ended");
        self.stages.push((stage.to_owned(), seconds));
    }

    pub(super) fn passed(&mut self, name: &str, evidence: impl Into<String>) {
        self.checks.push(Check { name: name.to_owned(), passed: true, evidence: evidence.into() });
    }

    fn load(&mut self, task: &Task) -> Result<(), Stop> {
        let workload = self.workload(task);
        if workload != self.baseline.original.workload {
            self.notes.push(format!("it is launched as its workload comment describes: {}", title(&workload)));
        }
        let (bench, original) = (self.bench, &self.baseline.original);
        // An original that cannot be loaded is no fault of the candidate.
        let known = original.loaded(bench)?;
        // While loading, a candidate that our own skills derive from the original does the same as the original.
        if self.place.judged == 0 || known.takes_memory {
            bench.wait_for_quiet();
        }
        let whose = (true, original.weights);
        let not_copied =
            |error| Undecided::new(UndecidedCause::Other, format!("the candidate cannot be copied: {error}"));
        let file = self.file(task).map_err(not_copied)?;
        let loaded = self.place.runner.load(&file, &task.folder, &workload, whose, bench.limits.load);
        self.place.starting = None;
        self.place.takes_memory = matches!(&loaded, Ok(Ok(found)) if found.takes_memory);
        match loaded? {
            Ok(found) if found.has_own_weights && original.weights.are_moved => {
                Err(Undecided::new(UndecidedCause::OwnWeights, OWN_WEIGHTS).into())
            }
            Ok(found) => self.tampering(&found.tampered, &known.tampered),
            Err(raised) if raised.cause == ExceptionCause::DeviceMemory => Err(raised.into()),
            Err(PythonException { text, line, .. }) => Err(Stop::Refused(Reason::Load, text, line)),
        }
    }

    /// Runs one call; the comparer keeps its results under the returned number.
    pub(super) fn run(&mut self, call: &EntryCall) -> Result<(CallOutput, u32), Stop> {
        let (limit, since) = (self.limit(), Instant::now());
        let reply = self.place.runner.ask(&RunnerRequest::Run(with_chosen(call, &self.chosen)), limit);
        self.spent.borrow_mut().running += since.elapsed().as_secs_f64();
        match reply? {
            RunnerReply::Ran(ran) => {
                add_chosen(&mut self.chosen, &ran.tuned);
                let slot = self.keep(self.place.runner.number, &ran.results)?;
                Ok((*ran, slot))
            }
            other => Err(unexpected_reply(other)),
        }
    }

    pub(super) fn keep(&self, owner: u64, results: &ExportedResults) -> Result<u32, Stop> {
        self.comparer(|comparer| comparer.keep(owner, results))
    }

    pub(super) fn keep_all(&self, owner: u64, results: &[ExportedResults]) -> Result<Vec<u32>, Stop> {
        self.comparer(|comparer| comparer.keep_all(owner, results.to_vec()))
    }

    fn comparer<T>(&self, ask: impl FnOnce(&mut ComparerProcess) -> Result<T, Undecided>) -> Result<T, Stop> {
        let since = Instant::now();
        let answer = self.bench.compare(ask);
        self.spent.borrow_mut().comparing += since.elapsed().as_secs_f64();
        Ok(answer?)
    }

    pub(super) fn differences(&self, ask: &ComparerRequest) -> Result<Vec<Difference>, Stop> {
        self.comparer(|comparer| Ok(comparer.differences(ask)?))
    }

    /// Compares the results of a trial with the original's, and forgets the candidate's results.
    pub(super) fn compare(
        &self,
        known: &Ready,
        (candidate, results): (u32, &ExportedResults),
        trial: &Trial,
        name: &str,
    ) -> Result<(), Stop> {
        let found = self.differences(&known.compared(candidate, means_nan(&trial.inputs), Default::default()))?;
        refuse(&found, results, trial.reason, name).map_err(|stop| self.of_launch(stop))
    }

    /// Compares results on inputs for which only the original's results are known.
    pub(super) fn compare_by_level(
        &self,
        (original, candidate): (u32, u32),
        results: &ExportedResults,
        level: &Ready,
        (reason, name): (Reason, &str),
    ) -> Result<(), Stop> {
        let found = self.differences(&level.by_level(original, candidate))?;
        refuse(&found, results, reason, name).map_err(|stop| self.of_launch(stop))
    }

    pub(super) fn tampering(&self, found: &[String], original: &[String]) -> Result<(), Stop> {
        match found.iter().find(|what| !original.contains(what)) {
            Some(what) => Err(Stop::Refused(Reason::Tampering, what.clone(), None)),
            None => Ok(()),
        }
    }

    /// The call as text for reports.
    pub(super) fn title(&self) -> String {
        title(&self.baseline.original.workload)
    }
}
