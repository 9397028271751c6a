//! The main loop of a search: it proposes candidates, has them judged in parallel, and stops in time to confirm the
//! best.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use judge::{Effort, Evaluator, Profiles, Reason, SetOnDrop, Task, UndecidedCause, Verdict, can_judge};
use model::api;
use model::kernel::Module;
use model::syntax;
use protocol::WorkloadSource;
use workload::numbers_of_comment;

use super::idle_wait::IdleWait;
use super::journal::{Journal, JournalEntry};
use super::observer::{Observer, Progress};
use super::operators::{CandidateReply, ModelScheduler, Operators};
use super::outcome::{OptimizeError, SearchOutcome, failed};
use super::prepare::{SearchTarget, select_kernels, target};
use super::propose::{PendingCandidate, SearchState};
use super::refusal_cache::RefusalCache;
use super::report::{Report, ReportChange};
use super::request::SearchRequest;
use super::resume::{EarlierPart, ResumedCandidate};
use super::search_lessons::SearchLessons;
use super::search_queue::wait_in_queue;
use super::search_space::SearchSpace;
use super::stragglers::StragglerDetector;
use super::tree::{CandidateId, CandidateResult};

/// Share of the budget after which candidates that are still being judged are abandoned.
const ABANDON_SHARE: f64 = 0.8;
/// Timing pairs of a rough timing, and of the fuller timing of contenders.
pub(super) const ROUGH_PAIRS: usize = 10;
const FULL_PAIRS: usize = 16;
/// Number of candidates under way from which on steps are made from candidates that are still being judged. One GPU
/// has no room for more.
const MANY: usize = 16;
/// Number of calls that are measured during the search, the most frequent ones; all calls are measured when the
/// best is confirmed.
const SEARCHED: usize = 4;
/// Period at which a wait checks whether the search goes on.
const GLANCE: Duration = Duration::from_millis(50);

/// Advice for a launch that was recorded by itself: its numbers are in no text.
const DESCRIBE: &str = "launch it from a function and record that, or remove the recording (`warpsmith workloads rm`) and describe \
the launch in a comment: `# warpsmith: workload entry=kernel[cdiv(n,BLOCK)] x=f16[4096] n=4096 BLOCK=1024`";

pub(super) struct SearchRun<'a> {
    pub(super) request: &'a SearchRequest,
    pub(super) observer: &'a dyn Observer,
    pub(super) target: Arc<SearchTarget>,
    pub(super) scratch: tempfile::TempDir,
    pub(super) bench: Arc<Evaluator>,
    pub(super) started: Instant,
    /// The first moment at which the device could be used.
    pub(super) began: Instant,
    pub(super) next_id: u64,
    pub(super) evaluated: usize,
    pub(super) refusals: RefusalCache,
    /// Number of candidates that were not judged because an earlier search saw them refused.
    pub(super) remembered: usize,
    /// Number of candidates that were not run because another one had the same machine code.
    pub(super) twins: usize,
    pub(super) refused: HashMap<Reason, (usize, String)>,
    /// Whether the remaining candidates were abandoned.
    pub(super) is_late: bool,
    /// Candidates that were abandoned.
    pub(super) left_over: Vec<CandidateId>,
    /// The reason for which a candidate could not be judged.
    pub(super) undecided: Option<String>,
    pub(super) best: Option<f64>,
    /// The share of the least possible time, once something correct takes hardly longer than the memory's bandwidth
    /// allows.
    pub(super) at_floor: Option<f64>,
    /// Candidates that could be confirmed as correct but are no offer: their changes, and the reason.
    pub(super) objections: Vec<(String, String)>,
    pub(super) journal: Journal,
    /// The report of the journal so far.
    pub(super) report: Report,
    /// Candidates to be judged again: those under way when the continued run was stopped, and those whose judge
    /// died.
    pub(super) queued: VecDeque<PendingCandidate>,
    /// Candidates that were judged twice.
    pub(super) retried: HashSet<CandidateId>,
    pub(super) restarts: usize,
    /// The end of the recovery of restarted processes, during which time does not count; `None` once they have
    /// given a verdict.
    pub(super) recovers: Option<Instant>,
    pub(super) pause: IdleWait,
    /// Candidates under way, each with a flag that is set when it has lost its point.
    pub(super) in_flight: HashMap<CandidateId, Arc<AtomicBool>>,
    /// Number of candidates judged since the best became faster.
    pub(super) since_improvement: usize,
    /// The language models that are asked beside the skills.
    pub(super) models: Option<ModelScheduler>,
    /// The reason why no model is asked although one is set.
    pub(super) unasked: Option<String>,
    /// Number of candidates by models that were not run because of what they do.
    pub(super) screened: usize,
    /// The least time that the memory's bandwidth allows, as a share of the original's time.
    pub(super) floor_of_original: Option<f64>,
}

/// A message to the loop of the search.
enum News {
    Judged(CandidateId, Verdict),
    Answered(CandidateReply),
}

pub(super) fn optimize(request: &SearchRequest, observer: &dyn Observer) -> Result<SearchOutcome, OptimizeError> {
    let evaluator = &request.settings.evaluator;
    can_judge(&judge::RemoteJudges::from(evaluator))
        .map_err(|reason| failed(format!("optimizing needs a GPU: {reason}")))?;
    let module = Module::build(&syntax::Source::parse(request.text.as_str()));
    let kernels = select_kernels(&module, request)?;
    let _ticket = wait_in_queue(request, observer)?;
    let waiting = || !observer.cancelled();
    let within = (&judge::RemoteJudges::from(evaluator), &judge::CandidateLimits::from(&evaluator.limits));
    let started = Evaluator::start_beside(&request.python, within, &waiting, || {
        let target = target(request, observer, kernels)?;
        can_turn(request, &module, &target)?;
        observer.progress(&Progress::before("starting Python"));
        Ok(target)
    });
    let stopped = |error| if observer.cancelled() { OptimizeError::Cancelled } else { error };
    let (bench, target) = started.map_err(stopped)?;
    let scratch = tempfile::tempdir().map_err(|error| failed(format!("cannot make a scratch folder: {error}")))?;
    bench.owns(scratch.path());
    let refusals = RefusalCache::of(request, &target.workloads);
    let (journal, report, earlier) = EarlierPart::journal(request, &target, &bench.environment())?;
    let run = SearchRun {
        request,
        observer,
        target: Arc::new(target),
        scratch,
        bench: Arc::new(bench),
        started: Instant::now(),
        began: Instant::now(),
        next_id: 0,
        evaluated: 0,
        refusals,
        remembered: 0,
        twins: 0,
        refused: HashMap::new(),
        is_late: false,
        left_over: Vec::new(),
        undecided: None,
        best: None,
        at_floor: None,
        objections: Vec::new(),
        journal,
        report,
        queued: VecDeque::new(),
        retried: HashSet::new(),
        restarts: 0,
        recovers: None,
        pause: IdleWait::new(request.settings.optimize.pause && evaluator.is_here()),
        in_flight: HashMap::new(),
        since_improvement: 0,
        models: None,
        unasked: None,
        screened: 0,
        floor_of_original: None,
    };
    run.go(earlier)
}

/// Checks that something can be changed about the kernels.
///
/// # Errors
/// Returns an error with the reason when nothing can be changed.
fn can_turn(request: &SearchRequest, module: &Module, target: &SearchTarget) -> Result<(), OptimizeError> {
    let (name, workload) = (&target.name, &target.workloads[0]);
    if target.is_new() {
        return Ok(());
    }
    if target.kernels.iter().all(|kernel| module.kernel(kernel).is_none()) {
        return Err(failed("the kernel is defined twice or under a condition"));
    }
    if workload.source == WorkloadSource::Launch && numbers_of_comment(&request.text, workload).is_none() {
        let what = format!("`{name}` was recorded as a launch by itself, of which nothing can be turned; {DESCRIBE}");
        return Err(failed(what));
    }
    // The release of Triton is not known yet.
    if search(request, target, "").is_none() {
        return Err(failed(
            "the launch leaves nothing to turn: its options and tile sizes are computed, or the kernel is autotuned",
        ));
    }
    Ok(())
}

/// Creates a search; `None` where nothing can be changed.
fn search<'a>(request: &'a SearchRequest, target: &'a SearchTarget, triton: &str) -> Option<SearchState<'a>> {
    let settings = &request.settings.optimize;
    let (kernels, calls) = (target.kernels.as_slice(), &target.workloads[..target.workloads.len().min(SEARCHED)]);
    let (search, rewrites, shared) = (&settings.search, settings.rewrites, &target.shared);
    let (original, asks_models) = (request.text.as_str(), request.settings.model.is_asked() && rewrites);
    let target = triton.parse().map_or_else(|_| api::TritonTarget::newest(), api::TritonTarget::of);
    SearchState::new(
        SearchSpace { original, kernels, calls, settings: search, rewrites, target, shared },
        settings.seed,
        asks_models,
    )
}

/// Runs `judge` and returns a verdict even if it panics, because the search waits for it.
fn judged_or_not(judge: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| {
        Verdict::undecided(UndecidedCause::Other, "judging broke off: this is a fault of warpsmith's")
    })
}

/// The result that a reason of refusal amounts to.
pub(super) fn result_of(reason: Reason) -> CandidateResult {
    match reason {
        Reason::Load | Reason::Compile | Reason::Screen => CandidateResult::Uncompiled,
        _ => CandidateResult::Wrong,
    }
}

impl SearchRun<'_> {
    fn go(mut self, earlier: Option<EarlierPart>) -> Result<SearchOutcome, OptimizeError> {
        let original = self.write("original", &self.request.text)?;
        let (request, target) = (self.request, Arc::clone(&self.target));
        let triton = self.bench.environment().triton.clone();
        let mut search = search(request, &target, &triton).ok_or_else(|| failed("there is nothing to change"))?;
        // Predictions teach nothing.
        if request.settings.evaluator.predict.is_empty() {
            search.memory = SearchLessons::of(request, &target.kernels, &self.bench.environment().device);
        }
        if let Some(earlier) = earlier {
            self.restore(earlier, &mut search)?;
        }
        self.observer.noted(&self.report, ReportChange::All);
        self.find_models();
        let searched = self.search(&original, &mut search);
        self.record_costs();
        searched?;
        let offer = self.confirm_best(&original, &search)?;
        let outcome = self.outcome(offer, &search);
        self.end(&outcome);
        let suspects = self.refusals.suspects(&target.workloads);
        // Triton's front end needs no device, so other searches may use it.
        drop(self);
        learn::learn_from(&request.python, &suspects, "search", &request.settings.memory);
        Ok(outcome)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, OptimizeError> {
        let path = self.scratch.path().join(format!("{name}.py"));
        fs::write(&path, text).map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }

    pub(super) fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.request.settings.optimize.budget.max(1.0)
    }

    pub(super) fn report_message(&self, message: String) {
        let budget = self.request.settings.optimize.budget;
        self.observer.progress(&Progress {
            message,
            fraction: self.spent().min(1.0),
            best: self.best,
            seconds: Some((self.seconds(), budget)),
            candidates: self.evaluated,
        });
    }

    /// Keeps the device busy until the search's share of the budget is spent or nothing is left to try.
    fn search(&mut self, original: &Path, search: &mut SearchState<'_>) -> Result<(), OptimizeError> {
        let parallel = match self.request.settings.optimize.parallel {
            0 => self.bench.at_once(),
            set => set,
        };
        let (sender, news) = channel();
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ends = (SetOnDrop(is_over), self.models.as_ref().map(|asking| asking.stops_at_end()));
            self.report_message("exploring".to_owned());
            // `ahead` is the generation of processes that the reference results were prefetched by, since they may
            // be restarted.
            let (mut ahead, mut pace) = (None, StragglerDetector::default());
            let counted = self.count(scope, original, is_over)?;
            loop {
                if let Ok(profiles) = counted.try_recv() {
                    search.counted(&profiles);
                }
                if self.observer.cancelled() {
                    self.is_late = true;
                    self.bench.leave();
                }
                let waits = !self.is_late && (self.waits(self.in_flight.is_empty()) || self.rests());
                if ahead != Some(self.restarts) && !waits && !self.is_late && self.is_offer_likely() {
                    ahead = Some(self.restarts);
                    let task = self.task(original, &self.request.text, Effort::default(), usize::MAX)?;
                    let bench = Arc::clone(&self.bench);
                    scope.spawn(move || bench.prefetch(&task, &|| !is_over.load(Ordering::Relaxed)));
                }
                let asked = self.models.as_ref().map_or(0, |asking| asking.in_flight);
                if self.is_late || self.in_flight.is_empty() && !self.goes_on(0) {
                    self.stop_asking();
                } else if !waits
                    // A model may be faster than the judge, and each reply costs.
                    && self.queued.len() < 2 * parallel
                    && self.goes_on(self.in_flight.len() + asked + self.queued.len())
                    && let Some((operators, question)) = self.question(search)
                {
                    let sender = sender.clone();
                    scope.spawn(move || sender.send(Box::new(News::Answered(operators.ask(&question)))));
                    continue;
                }
                let places = pace.places(parallel);
                while self.in_flight.len() < places && !waits && self.goes_on(self.in_flight.len()) {
                    let Some(PendingCandidate { id, text }) = self.next(search) else { break };
                    if let Some((fate, refused)) = self.earlier_refusal(&text) {
                        if let Some((Reason::Compile, evidence)) = &refused {
                            self.queue_repair(search, id, evidence);
                        }
                        self.record_judged(
                            id,
                            fate,
                            refused,
                            ResumedCandidate { remembered: true, ..ResumedCandidate::default() },
                        );
                        self.finish(search, id, fate);
                        continue;
                    }
                    let effort = Effort {
                        thorough: false,
                        sanitizer: None,
                        first_pairs: ROUGH_PAIRS,
                        full: FULL_PAIRS,
                        contender: self.best.unwrap_or(1.0) * 0.95,
                        reuse_timings: true,
                        // For a function without kernels, it matters at once whether the written kernels do the
                        // work.
                        brief: !self.target.is_new(),
                        kernel: self.target.is_new(),
                        series: self.series(),
                        ..Effort::default()
                    };
                    let task = self.task(original, &text, effort, SEARCHED)?;
                    self.in_flight.insert(id, Arc::clone(&task.unwanted));
                    let (bench, sender) = (Arc::clone(&self.bench), sender.clone());
                    scope.spawn(move || sender.send(Box::new(News::Judged(id, judged_or_not(|| bench.judge(&task))))));
                    pace.start(id);
                }
                if self.in_flight.len() + asked == 0 && !(self.goes_on(0) && (waits || !self.is_late && self.may_ask()))
                {
                    break;
                }
                match news.recv_timeout(GLANCE).map(|news| *news) {
                    Ok(News::Judged(id, verdict)) => {
                        pace.finish(id, self.is_recalled(id));
                        self.judged(search, id, verdict);
                    }
                    Ok(News::Answered(answer)) => self.take_reply(search, answer),
                    Err(_) => {}
                }
                let ends_now = self.spent() > ABANDON_SHARE || self.ends_at_floor(0);
                if ends_now || !self.goes_on(self.in_flight.len()) && pace.has_only_stragglers() {
                    // Candidates that still compile would take cores and the device from the confirming
                    // measurement.
                    self.is_late = true;
                    self.bench.abandon(true);
                }
            }
            Ok::<(), OptimizeError>(())
        })?;
        if self.observer.cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        self.bench.abandon(false);
        Ok(())
    }

    /// Reads the hardware counters of the original, while candidates are judged already.
    fn count<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        original: &Path,
        is_over: &'scope AtomicBool,
    ) -> Result<Receiver<Profiles>, OptimizeError> {
        let task = self.task(original, &self.request.text, Effort::default(), 1)?;
        let (bench, kernels, (sender, counted)) = (Arc::clone(&self.bench), self.target.kernels.clone(), channel());
        scope.spawn(move || match bench.profile(&task, &kernels, &|| is_over.load(Ordering::Relaxed)) {
            Ok(profiles) => drop(sender.send(profiles)),
            Err(why) => tracing::info!(why, "the original was not profiled"),
        });
        Ok(counted)
    }

    /// How many candidates may share a process: one if models are asked, so that each candidate of a model, and
    /// each one made from it, has a process of its own.
    fn series(&self) -> usize {
        if self.models.is_some() { 1 } else { self.request.settings.optimize.search.series }
    }

    /// The next candidate to judge.
    fn next(&mut self, search: &mut SearchState<'_>) -> Option<PendingCandidate> {
        if let Some(again) = self.queued.pop_front() {
            return Some(again);
        }
        if self.models.as_ref().is_some_and(|asking| !asking.is_skill_next()) {
            return None;
        }
        let choice = if self.chooses() { search.propose_choice() } else { None };
        // When the skills have no proposal, a choice may still be made from the known candidates.
        let proposal = choice.or_else(|| search.propose()).or_else(|| search.propose_choice());
        // With fewer candidates under way their verdicts come soon. If models are asked, they can propose instead.
        let guesses = self.in_flight.len() >= MANY && self.models.is_none();
        let proposal = proposal.or_else(|| if guesses { search.propose_ahead() } else { None });
        if let Some(asking) = &mut self.models {
            asking.note_skill_result(proposal.as_ref().map(|proposal| proposal.text.as_str()));
        }
        let proposal = proposal?;
        self.record(&JournalEntry::Made(search.made_record(proposal.id)));
        Some(proposal)
    }

    /// Opens the language models of the settings, if there are any; a search goes on without them.
    fn find_models(&mut self) {
        let needed = self.target.needed();
        let of = (self.target.workloads[0].entry.as_str(), needed.as_slice());
        match Operators::open(self.request, of, &self.journal.run, self.observer) {
            Ok(operators) => {
                self.models = operators.map(|operators| ModelScheduler::new(operators, &self.request.text))
            }
            Err(why) => self.unasked = Some(why),
        }
    }

    /// The task to judge a candidate on the first `calls` calls.
    pub(super) fn task(
        &mut self,
        original: &Path,
        text: &str,
        effort: Effort,
        calls: usize,
    ) -> Result<Task, OptimizeError> {
        self.next_id += 1;
        let candidate = self.write(&format!("candidate_{}", self.next_id), text)?;
        let file = fs::canonicalize(&self.request.file).unwrap_or_else(|_| self.request.file.clone());
        Ok(Task {
            original: original.to_owned(),
            candidate,
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            workloads: self.target.workloads.iter().take(calls).cloned().collect(),
            effort,
            known: Vec::new(),
            unwanted: Arc::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::Outcome;

    /// The search counts results to know which candidates are under way; it once waited forever for a thread that had
    /// panicked.
    #[test]
    fn a_panicking_judge_gives_an_undecided_verdict() {
        let broken = judged_or_not(|| std::panic::resume_unwind(Box::new("on purpose")));
        assert!(matches!(broken.outcome, Outcome::Undecided { why, .. } if why.contains("broke off")));
        assert!(
            judged_or_not(|| Verdict { outcome: Outcome::Accepted, ..Verdict::undecided(UndecidedCause::Other, "") })
                .is_accepted()
        );
    }
}
