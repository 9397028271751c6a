//! One search from request to offer.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::knobs::{Knob, Setting, describe, edits, knobs};
use super::prepare::{find_or_record, select_kernel, tail};
use super::search::Search;
use super::{Observer, Offer, OptimizeError, Outcome, Progress, Request, Speedup, fuzz};
use crate::evaluate::statistics::{Z_95, Z_999, median, ratio};
use crate::evaluate::{Devices, devices};
use crate::kernel::Module;
use crate::protocol::{Evidence, Job, Plan, Reason, Reply, Request as Ask, Value, Verdict, Workload};
use crate::python::{Worker, WorkerError, simulated};
use crate::rules::apply_edits;
use crate::syntax::Source;

/// Share of the budget after which nothing new is proposed; the rest confirms the best.
const SEARCH_SHARE: f64 = 0.7;
/// Share of the budget after which candidates that are not done are given up.
const ABANDON_SHARE: f64 = 0.8;
/// Seconds that one candidate may have the device, and as long to load and compile.
const CANDIDATE_LIMIT: f64 = 30.0;
/// Pairs of the first timing, and of the fuller one of contenders.
const ROUGH_PAIRS: usize = 10;
const FULL_PAIRS: usize = 40;
/// The confirming measurement: about this many seconds, within these numbers of pairs.
const CONFIRM_SECONDS: f64 = 3.0;
const CONFIRM_PAIRS: std::ops::RangeInclusive<usize> = 40..=300;
/// This many of the best are tried to be confirmed.
const CONFIRMED: usize = 3;
/// No offer below this speedup: the reader's time is worth more.
const LEAST_SPEEDUP: f64 = 1.02;
/// Above this the result is held back: launch options do not give it, so something else happened.
const CREDIBLE: f64 = 10.0;
/// By the wall clock a candidate may not be slower than this share of the original's speed.
const LEAST_WALL: f64 = 0.95;
/// A worker that ends unasked is started again this often.
const RESTARTS: usize = 2;

struct Run<'a> {
    request: &'a Request,
    observer: &'a dyn Observer,
    kernel: String,
    device: String,
    workload: Workload,
    knobs: Vec<Knob>,
    scratch: tempfile::TempDir,
    worker: Worker,
    started: Instant,
    next_id: u64,
    restarts: usize,
    evaluated: usize,
    refused: HashMap<Reason, (usize, String)>,
    best: Option<f64>,
}

pub(super) fn optimize(request: &Request, observer: &dyn Observer) -> Result<Outcome, OptimizeError> {
    let device = match devices() {
        Devices::Found(found) => found.first().map(|device| device.name.clone()).unwrap_or_default(),
        Devices::Missing(reason) => return Err(OptimizeError::Failed(format!("optimizing needs a GPU: {reason}"))),
    };
    let module = Module::build(&Source::parse(request.text.as_str()));
    let kernel = select_kernel(&module, request)?;
    let workload = find_or_record(request, observer, &kernel, &device)?;
    let definition =
        module.kernel(&kernel).ok_or_else(|| failed("the kernel is defined twice or under a condition"))?;
    let knobs = knobs(&module, definition, &workload.entry);
    if knobs.is_empty() {
        return Err(failed(
            "the launch leaves nothing to turn: its options and tile sizes are computed, or the kernel is autotuned",
        ));
    }
    observer.progress(&Progress { message: "starting Python".to_owned(), fraction: 0.0, best: None });
    let worker = start_worker(request, observer)?;
    let scratch = tempfile::tempdir().map_err(|error| failed(format!("cannot make a scratch folder: {error}")))?;
    let run = Run {
        request,
        observer,
        kernel,
        device,
        workload,
        knobs,
        scratch,
        worker,
        started: Instant::now(),
        next_id: 0,
        restarts: 0,
        evaluated: 0,
        refused: HashMap::new(),
        best: None,
    };
    run.go()
}

pub(super) fn failed(message: impl Into<String>) -> OptimizeError {
    OptimizeError::Failed(message.into())
}

fn start_worker(request: &Request, observer: &dyn Observer) -> Result<Worker, OptimizeError> {
    Worker::start(&request.python, &|| !observer.cancelled())
        .map_err(|error| if observer.cancelled() { OptimizeError::Cancelled } else { error.into() })
}

impl Run<'_> {
    fn go(mut self) -> Result<Outcome, OptimizeError> {
        let original = self.write("original", &self.request.text)?;
        let knobs = self.knobs.clone();
        let mut search = Search::new(&knobs, self.request.settings.optimize.seed);
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

    /// Keeps the worker busy until the search's share of the budget is spent or nothing is left to try.
    fn search(&mut self, original: &Path, search: &mut Search<'_>) -> Result<(), OptimizeError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        let parallel = match self.request.settings.optimize.parallel {
            0 => cores,
            set => set,
        };
        let mut flying: HashMap<u64, Setting> = HashMap::new();
        let mut last_heard = Instant::now();
        loop {
            while flying.len() < parallel && self.spent() < SEARCH_SHARE {
                let Some(setting) = search.propose() else { break };
                let plan = Plan {
                    seeds: vec![self.seed(0), self.seed(1)],
                    resize: Vec::new(),
                    rough: ROUGH_PAIRS,
                    full: FULL_PAIRS,
                    contender: self.best.unwrap_or(1.0) * 0.95,
                };
                let id = self.submit(original, &setting, plan)?;
                flying.insert(id, setting);
            }
            if flying.is_empty() {
                return Ok(());
            }
            if self.spent() > ABANDON_SHARE {
                // What still compiles would keep the cores and the device from the measurement that counts.
                self.worker = start_worker(self.request, self.observer)?;
                return Ok(());
            }
            match self.receive()? {
                Heard::Verdict(id, verdict) => {
                    last_heard = Instant::now();
                    if let Some(setting) = flying.remove(&id) {
                        self.judged(search, setting, verdict);
                    }
                }
                Heard::Restarted => flying.clear(),
                Heard::Nothing if last_heard.elapsed().as_secs_f64() > 4.0 * CANDIDATE_LIMIT => {
                    return Err(failed("the worker has stopped answering"));
                }
                Heard::Nothing => {}
            }
        }
    }

    fn seed(&self, at: u64) -> u64 {
        // Far from the seeds of the timed inputs; the confirming run takes others again.
        self.request.settings.optimize.seed.wrapping_mul(1000).wrapping_add(at + 1)
    }

    fn submit(&mut self, original: &Path, setting: &Setting, plan: Plan) -> Result<u64, OptimizeError> {
        let text = apply_edits(&self.request.text, &edits(&self.knobs, setting));
        let id = self.next_id;
        self.next_id += 1;
        let candidate = self.write(&format!("candidate_{id}"), &text)?;
        let job = self.job(original, candidate, plan);
        match self.worker.send(&Ask::Evaluate { id, job: Box::new(job.clone()) }) {
            Ok(()) => Ok(id),
            Err(error) => {
                self.restart(error)?;
                self.worker.send(&Ask::Evaluate { id, job: Box::new(job) })?;
                Ok(id)
            }
        }
    }

    fn job(&self, original: &Path, candidate: PathBuf, plan: Plan) -> Job {
        let file = fs::canonicalize(&self.request.file).unwrap_or_else(|_| self.request.file.clone());
        Job {
            original: original.to_owned(),
            candidate,
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            workload: self.workload.clone(),
            plan,
            lock: self.scratch.path().join("device.lock"),
            limit: CANDIDATE_LIMIT,
        }
    }

    fn receive(&mut self) -> Result<Heard, OptimizeError> {
        if self.observer.cancelled() {
            return Err(OptimizeError::Cancelled);
        }
        match self.worker.receive(Duration::from_millis(50)) {
            Ok(Some(Reply::Verdict { id, verdict })) => Ok(Heard::Verdict(id, verdict)),
            Ok(_) => Ok(Heard::Nothing),
            Err(error) => {
                self.restart(error)?;
                Ok(Heard::Restarted)
            }
        }
    }

    fn restart(&mut self, why: WorkerError) -> Result<(), OptimizeError> {
        self.restarts += 1;
        if self.restarts > RESTARTS {
            return Err(why.into());
        }
        self.worker = start_worker(self.request, self.observer)?;
        Ok(())
    }

    fn judged(&mut self, search: &mut Search<'_>, setting: Setting, verdict: Verdict) {
        self.evaluated += 1;
        match verdict {
            Verdict::Accepted(evidence) => {
                let speedup = median(evidence.pairs.iter().map(|(original, candidate)| original / candidate));
                if speedup > self.best.unwrap_or(1.0) {
                    self.best = Some(speedup);
                }
                search.verified(setting, speedup);
            }
            Verdict::Refused { reason, evidence } => self.refused.entry(reason).or_insert((0, evidence)).0 += 1,
        }
        self.tell(format!("{} candidates", self.evaluated));
    }

    /// Judges one candidate and waits for it.
    fn judge(&mut self, original: &Path, setting: &Setting, plan: Plan) -> Result<Verdict, OptimizeError> {
        let mut id = self.submit(original, setting, plan.clone())?;
        loop {
            match self.receive()? {
                Heard::Verdict(of, verdict) if of == id => return Ok(verdict),
                Heard::Restarted => id = self.submit(original, setting, plan.clone())?,
                _ => {}
            }
        }
    }

    /// Measures the best again, alone, on inputs and sizes that the search has not seen.
    fn confirm_best(&mut self, original: &Path, search: &Search<'_>) -> Result<Option<Offer>, OptimizeError> {
        let start: Setting = self.knobs.iter().map(|knob| knob.current).collect();
        for (setting, speedup) in search.ranked().into_iter().take(CONFIRMED) {
            if setting == start || speedup < LEAST_SPEEDUP {
                break;
            }
            self.tell(format!("confirming {}", describe(&self.knobs, &setting)));
            let plan = Plan {
                seeds: (100..103).map(|at| self.seed(at)).collect(),
                resize: Vec::new(),
                rough: ROUGH_PAIRS,
                full: *CONFIRM_PAIRS.end(),
                contender: f64::MAX,
            };
            let Verdict::Accepted(first) = self.judge(original, &setting, plan.clone())? else { continue };
            let plan = Plan { full: confirm_pairs(&first), contender: 0.0, ..plan };
            let Verdict::Accepted(evidence) = self.judge(original, &setting, plan)? else { continue };
            let Some(speedup) = self.believed(&evidence) else { continue };
            if self.holds_at_other_sizes(original, &setting)? {
                return Ok(Some(self.offer(&setting, speedup)));
            }
        }
        Ok(None)
    }

    /// The speedup, when it passes what an offer must pass.
    fn believed(&self, evidence: &Evidence) -> Option<Speedup> {
        let strict = ratio(&evidence.pairs, Z_999)?;
        let shown = ratio(&evidence.pairs, Z_95)?;
        let wall = evidence.wall.map_or(1.0, |(original, candidate)| original / candidate);
        if strict.low <= 1.0 || shown.median < LEAST_SPEEDUP || shown.median > CREDIBLE || wall < LEAST_WALL {
            return None;
        }
        Some(Speedup {
            ratio: shown.median,
            low: shown.low,
            high: shown.high,
            before_ms: median(evidence.pairs.iter().map(|pair| pair.0)),
            after_ms: median(evidence.pairs.iter().map(|pair| pair.1)),
            pairs: evidence.pairs.len(),
            simulated: simulated(),
            conditions: self.conditions(),
        })
    }

    fn conditions(&self) -> String {
        let environment = self.worker.environment();
        let mut inputs = Vec::new();
        for value in self.workload.values() {
            value.tensors(&mut |spec| inputs.push(format!("{}{:?}", spec.dtype, spec.shape).replace(' ', "")));
        }
        inputs.extend(self.workload.values().filter_map(|value| match value {
            Value::Int(value) => Some(value.to_string()),
            _ => None,
        }));
        format!(
            "{}, Triton {}, torch {}; {}({}); cold L2, interleaved",
            self.device,
            environment.triton,
            environment.torch,
            self.workload.entry,
            inputs.join(", ")
        )
    }

    /// A size at which the original does not even agree with itself says nothing and is passed over.
    fn holds_at_other_sizes(&mut self, original: &Path, setting: &Setting) -> Result<bool, OptimizeError> {
        let start: Setting = self.knobs.iter().map(|knob| knob.current).collect();
        let tile = start.iter().copied().max().unwrap_or(1);
        for resize in fuzz::resizes(&self.workload, tile) {
            let plan = Plan { seeds: vec![self.seed(200)], resize, rough: 0, full: 0, contender: 0.0 };
            if matches!(self.judge(original, setting, plan.clone())?, Verdict::Refused { .. })
                && matches!(self.judge(original, &start, plan)?, Verdict::Accepted(_))
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn offer(&self, setting: &Setting, speedup: Speedup) -> Offer {
        let edits = edits(&self.knobs, setting);
        let text = apply_edits(&self.request.text, &edits);
        Offer { edits, text, change: describe(&self.knobs, setting), speedup }
    }

    fn outcome(self, offer: Option<Offer>, search: &Search<'_>) -> Outcome {
        let summary = match &offer {
            Some(offer) => {
                let Speedup { before_ms, after_ms, .. } = offer.speedup;
                format!(
                    "`{}` is {} ({before_ms:.3} → {after_ms:.3} ms): {}. {} candidates.",
                    self.kernel,
                    offer.speedup.label(),
                    offer.change,
                    self.evaluated
                )
            }
            None => self.no_offer(search),
        };
        Outcome { kernel: self.kernel, evaluated: self.evaluated, offer, summary }
    }

    fn no_offer(&self, search: &Search<'_>) -> String {
        let verified = search.ranked().len() - 1;
        let mut text = format!(
            "Nothing certainly faster than `{}` as written: {} candidates, {verified} of them correct.",
            self.kernel, self.evaluated
        );
        if verified == 0
            && let Some((reason, (count, evidence))) = self.refused.iter().max_by_key(|(_, (count, _))| *count)
        {
            text.push_str(&format!(" Most common refusal ({count}, {reason:?}): {}", tail(evidence)));
        }
        text
    }
}

enum Heard {
    Verdict(u64, Verdict),
    Nothing,
    /// The worker was started anew: what was in flight is lost.
    Restarted,
}

/// As many pairs as the confirming measurement has time for, given what the first ones took.
fn confirm_pairs(first: &Evidence) -> usize {
    let seconds = first.stages.iter().find(|(stage, _)| stage == "time").map_or(0.0, |(_, seconds)| *seconds);
    let each = seconds / first.pairs.len().max(1) as f64;
    ((CONFIRM_SECONDS / each.max(1e-6)) as usize).clamp(*CONFIRM_PAIRS.start(), *CONFIRM_PAIRS.end())
}
