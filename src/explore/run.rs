//! One search from request to offer.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::candidate::{Candidate, edits_between};
use super::prepare::{call, select_kernel};
use super::propose::{Field, Proposal, Search};
use super::refusals::Refusals;
use super::tree::{Fate, Id};
use super::{Observer, Offer, OptimizeError, Outcome, Progress, Request, Speedup};
use crate::evaluate::statistics::median;
use crate::evaluate::{
    Claim, Effort, Evaluator, LEAST_SPEEDUP, Measured, Outcome as Judged, Reason, Task, Verdict, can_judge,
    is_stand_in, title,
};
use crate::kernel::Module;
use crate::protocol::{Source, Workload};
use crate::syntax;
use crate::workload::{last_lines, numbers_of_comment};

/// Share of the budget after which nothing new is proposed; the rest confirms the best.
const SEARCH_SHARE: f64 = 0.7;
/// Share of the budget after which candidates that are not done are given up.
const ABANDON_SHARE: f64 = 0.8;
/// Pairs of the first timing, and of the fuller one of contenders.
const ROUGH_PAIRS: usize = 10;
const FULL_PAIRS: usize = 40;
/// Pairs of the confirming measurement.
const CONFIRM_PAIRS: usize = 188;
/// This many of the best are tried to be confirmed.
const CONFIRMED: usize = 3;
/// How often a wait looks whether it goes on.
const GLANCE: Duration = Duration::from_millis(50);

/// What to do where a launch was recorded: its numbers are in no text.
const DESCRIBE: &str = "launch it from a function and record that, or remove the recording (`warpsmith workloads rm`) and describe \
the launch in a comment: `# warpsmith: workload entry=kernel[cdiv(n,BLOCK)] x=f16[4096] n=4096 BLOCK=1024`";

struct Run<'a> {
    request: &'a Request,
    observer: &'a dyn Observer,
    kernel: String,
    workload: Workload,
    scratch: tempfile::TempDir,
    bench: Arc<Evaluator>,
    started: Instant,
    next_id: u64,
    evaluated: usize,
    refusals: Refusals,
    /// Candidates that were not judged, since an earlier search saw them refused.
    remembered: usize,
    refused: HashMap<Reason, (usize, String)>,
    /// Whether what was not done in time was given up.
    is_late: bool,
    /// Why a candidate could not be judged.
    undecided: Option<String>,
    best: Option<f64>,
}

pub(super) fn optimize(request: &Request, observer: &dyn Observer) -> Result<Outcome, OptimizeError> {
    let evaluator = &request.settings.evaluator;
    can_judge(&evaluator.command).map_err(|reason| failed(format!("optimizing needs a GPU: {reason}")))?;
    let module = Module::build(&syntax::Source::parse(request.text.as_str()));
    let kernel = select_kernel(&module, request)?;
    let waiting = || !observer.cancelled();
    let within = (&evaluator.elsewhere(), &evaluator.limits.limits());
    let started = Evaluator::start_beside(&request.python, within, &waiting, || {
        let workload = call(request, observer, &kernel)?;
        can_turn(request, &module, &kernel, &workload)?;
        observer.progress(&Progress { message: "starting Python".to_owned(), fraction: 0.0, best: None });
        Ok(workload)
    });
    let stopped = |error| if observer.cancelled() { OptimizeError::Cancelled } else { error };
    let (bench, workload) = started.map_err(stopped)?;
    let scratch = tempfile::tempdir().map_err(|error| failed(format!("cannot make a scratch folder: {error}")))?;
    let refusals = Refusals::of(request, &workload);
    let run = Run {
        request,
        observer,
        kernel,
        workload,
        scratch,
        bench: Arc::new(bench),
        started: Instant::now(),
        next_id: 0,
        evaluated: 0,
        refusals,
        remembered: 0,
        refused: HashMap::new(),
        is_late: false,
        undecided: None,
        best: None,
    };
    run.go()
}

/// Whether there is something to be done with the kernel; why not.
fn can_turn(request: &Request, module: &Module, kernel: &str, workload: &Workload) -> Result<(), OptimizeError> {
    if module.kernel(kernel).is_none() {
        return Err(failed("the kernel is defined twice or under a condition"));
    }
    if workload.source == Source::Launch && numbers_of_comment(&request.text, workload).is_none() {
        let what = format!("`{kernel}` was recorded as a launch by itself, of which nothing can be turned; {DESCRIBE}");
        return Err(failed(what));
    }
    if search(request, kernel, workload).is_none() {
        return Err(failed(
            "the launch leaves nothing to turn: its options and tile sizes are computed, or the kernel is autotuned",
        ));
    }
    Ok(())
}

/// A search that has not begun; `None` where nothing can be turned.
fn search<'a>(request: &'a Request, kernel: &'a str, workload: &'a Workload) -> Option<Search<'a>> {
    let settings = &request.settings.optimize;
    Search::new(Field { original: &request.text, kernel, workload, settings: &settings.search }, settings.seed)
}

/// How far a candidate came that is refused for this.
fn fate(reason: Reason) -> Fate {
    match reason {
        Reason::Load | Reason::Compile => Fate::Uncompiled,
        _ => Fate::Wrong,
    }
}

pub(super) fn failed(message: impl Into<String>) -> OptimizeError {
    OptimizeError::Failed(message.into())
}

impl Run<'_> {
    fn go(mut self) -> Result<Outcome, OptimizeError> {
        let original = self.write("original", &self.request.text)?;
        let (kernel, workload) = (self.kernel.clone(), self.workload.clone());
        let nothing = || failed("nothing can be turned any more");
        let mut search = search(self.request, &kernel, &workload).ok_or_else(nothing)?;
        self.search(&original, &mut search)?;
        let offer = self.confirm_best(&original, &search)?;
        Ok(self.outcome(offer, &search))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, OptimizeError> {
        let path = self.scratch.path().join(format!("{name}.py"));
        fs::write(&path, text).map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    }

    fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.request.settings.optimize.budget.max(1.0)
    }

    fn tell(&self, message: String) {
        self.observer.progress(&Progress { message, fraction: self.spent().min(1.0), best: self.best });
    }

    /// Keeps the device busy until the search's share of the budget is spent or nothing is left to try.
    fn search(&mut self, original: &Path, search: &mut Search<'_>) -> Result<(), OptimizeError> {
        let parallel = match self.request.settings.optimize.parallel {
            0 => self.bench.at_once(),
            set => set,
        };
        let bench = Arc::clone(&self.bench);
        let (sender, verdicts) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut flying = 0;
            loop {
                while flying < parallel && self.spent() < SEARCH_SHARE && !self.observer.cancelled() {
                    let Some(Proposal { id, text }) = search.propose() else { break };
                    if let Some(fate) = self.was_refused(&text) {
                        search.finish(id, fate);
                        continue;
                    }
                    let contender = self.best.unwrap_or(1.0) * 0.95;
                    let (rough, full) = (ROUGH_PAIRS, FULL_PAIRS);
                    let effort = Effort { thorough: false, sanitizer: false, beyond: false, rough, full, contender };
                    let task = self.task(original, &text, effort)?;
                    let (bench, sender) = (&bench, sender.clone());
                    scope.spawn(move || sender.send(Box::new((id, bench.judge(&task)))));
                    flying += 1;
                }
                if flying == 0 {
                    break;
                }
                if let Ok(judged) = verdicts.recv_timeout(GLANCE) {
                    let (id, verdict) = *judged;
                    flying -= 1;
                    self.judged(search, id, verdict);
                }
                // What still compiles would keep the cores and the device from the measurement that counts.
                if self.spent() > ABANDON_SHARE || self.observer.cancelled() {
                    self.is_late = true;
                    bench.abandon(true);
                }
            }
            Ok::<(), OptimizeError>(())
        })?;
        self.bench.abandon(false);
        if self.observer.cancelled() { Err(OptimizeError::Cancelled) } else { Ok(()) }
    }

    /// What came of a candidate that an earlier search has seen refused, for a reason that still holds.
    fn was_refused(&mut self, text: &str) -> Option<Fate> {
        let (reason, evidence) = self.refusals.find(&self.bench, text)?;
        self.refused.entry(reason).or_insert((0, evidence)).0 += 1;
        self.remembered += 1;
        Some(fate(reason))
    }

    fn task(&mut self, original: &Path, text: &str, effort: Effort) -> Result<Task, OptimizeError> {
        self.next_id += 1;
        let candidate = self.write(&format!("candidate_{}", self.next_id), text)?;
        let file = fs::canonicalize(&self.request.file).unwrap_or_else(|_| self.request.file.clone());
        Ok(Task {
            original: original.to_owned(),
            candidate,
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            workloads: vec![self.workload.clone()],
            effort,
        })
    }

    fn judged(&mut self, search: &mut Search<'_>, id: Id, verdict: Verdict) {
        self.refusals.keep(self.request, &self.bench, &search.candidate(id).text, &verdict);
        match verdict.outcome {
            Judged::Accepted => {
                let pairs = verdict.measured.iter().flat_map(|measured| &measured.pairs);
                let speedup = median(pairs.map(|(original, candidate)| original / candidate));
                if speedup > self.best.unwrap_or(1.0) {
                    self.best = Some(speedup);
                }
                search.finish(id, Fate::Right(speedup));
            }
            Judged::Refused { reason, evidence, .. } => {
                self.refused.entry(reason).or_insert((0, evidence)).0 += 1;
                search.finish(id, fate(reason));
            }
            Judged::Undecided { why } => {
                search.forget(id);
                // What was given up is nobody's fault.
                if self.undecided.is_none() && !self.is_late {
                    self.undecided = Some(why);
                }
                return;
            }
        }
        self.evaluated += 1;
        self.tell(format!("{} candidates", self.evaluated));
    }

    /// Judges one candidate and waits for it.
    fn judge(&mut self, original: &Path, text: &str, effort: Effort) -> Result<Verdict, OptimizeError> {
        let task = self.task(original, text, effort)?;
        let bench = Arc::clone(&self.bench);
        std::thread::scope(|scope| {
            let judging = scope.spawn(|| bench.judge(&task));
            while !judging.is_finished() {
                if self.observer.cancelled() {
                    bench.abandon(true);
                }
                std::thread::park_timeout(Duration::from_millis(20));
            }
            let verdict = judging.join().map_err(|_| failed("the judge crashed, which is a bug"))?;
            if self.observer.cancelled() { Err(OptimizeError::Cancelled) } else { Ok(verdict) }
        })
    }

    /// Measures the best again, alone, on inputs and sizes that the search has not seen.
    fn confirm_best(&mut self, original: &Path, search: &Search<'_>) -> Result<Option<Offer>, OptimizeError> {
        if let (Some(why), 0) = (&self.undecided, self.evaluated) {
            return Err(failed(why.clone()));
        }
        if self.is_late && self.evaluated + self.remembered == 0 {
            return Err(failed("the time was up before a candidate was judged; raise `optimize.budget`"));
        }
        for (id, speedup) in search.tree.ranked().into_iter().take(CONFIRMED) {
            if id == Search::FIRST || speedup < LEAST_SPEEDUP {
                break;
            }
            let candidate = search.candidate(id);
            self.tell(format!("confirming {}", candidate.describe()));
            let (rough, full) = (ROUGH_PAIRS, CONFIRM_PAIRS);
            let effort = Effort { thorough: true, sanitizer: true, beyond: false, rough, full, contender: 0.0 };
            let verdict = self.judge(original, &candidate.text, effort)?;
            self.refusals.keep(self.request, &self.bench, &candidate.text, &verdict);
            match verdict.outcome {
                Judged::Accepted => {}
                Judged::Refused { reason, evidence, .. } => {
                    self.refused.entry(reason).or_insert((0, evidence)).0 += 1;
                    continue;
                }
                Judged::Undecided { .. } => continue,
            }
            let Some(measured) = verdict.measured.first() else { continue };
            if let Some(speedup) = self.believed(measured) {
                return Ok(Some(self.offer(candidate, speedup)));
            }
        }
        Ok(None)
    }

    /// The speedup, when it passes what an offer must pass.
    fn believed(&self, measured: &Measured) -> Option<Speedup> {
        let Claim { ratio, times: (before_ms, after_ms), objection } = Claim::of(measured)?;
        objection.is_none().then(|| Speedup {
            ratio: ratio.median,
            low: ratio.low,
            high: ratio.high,
            before_ms,
            after_ms,
            pairs: measured.pairs.len(),
            simulated: is_stand_in(&self.bench.environment().device),
            conditions: self.conditions(),
        })
    }

    fn conditions(&self) -> String {
        let environment = self.bench.environment();
        let torch = Some(&environment.torch).filter(|torch| !torch.is_empty());
        format!(
            "{}, Triton {}, {}; {}; cold L2, interleaved",
            environment.device,
            environment.triton,
            torch.map_or_else(|| "no torch".to_owned(), |torch| format!("torch {torch}")),
            title(&self.workload)
        )
    }

    fn offer(&self, candidate: &Candidate, speedup: Speedup) -> Offer {
        let text = candidate.text.clone();
        Offer { edits: edits_between(&self.request.text, &text), text, change: candidate.describe(), speedup }
    }

    fn outcome(self, offer: Option<Offer>, search: &Search<'_>) -> Outcome {
        let summary = match &offer {
            Some(offer) => {
                let Speedup { before_ms, after_ms, .. } = offer.speedup;
                let by_comment = if self.workload.source == Source::Launch {
                    " The comment is changed; launches elsewhere are not."
                } else {
                    ""
                };
                format!(
                    "`{}` is {} ({before_ms:.3} → {after_ms:.3} ms): {}. {} candidates{}.{by_comment}",
                    self.kernel,
                    offer.speedup.label(),
                    offer.change,
                    self.evaluated,
                    self.before()
                )
            }
            None => self.no_offer(search),
        };
        Outcome { kernel: self.kernel, evaluated: self.evaluated, remembered: self.remembered, offer, summary }
    }

    /// What is said of candidates that were not judged again.
    fn before(&self) -> String {
        match self.remembered {
            0 => String::new(),
            1 => "; 1 more was refused before".to_owned(),
            more => format!("; {more} more were refused before"),
        }
    }

    fn no_offer(&self, search: &Search<'_>) -> String {
        let verified = search.tree.ranked().len() - 1;
        let mut text = format!(
            "Nothing certainly faster than `{}` as written: {} candidates, {verified} of them correct{}.",
            self.kernel,
            self.evaluated,
            self.before()
        );
        if verified == 0
            && let Some((reason, (count, evidence))) = self.refused.iter().max_by_key(|(_, (count, _))| *count)
        {
            text.push_str(&format!(" Most common refusal ({count}, {reason:?}): {}", last_lines(evidence)));
        }
        text
    }
}
