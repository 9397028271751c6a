//! `warpsmith verify ORIGINAL CANDIDATE`: judges a file against another one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use judge::{
    Check, Claim, Effort, Evaluator, Grade, GradeReached, JudgedOn, Measured, ModelWeights, Outcome, Task,
    TimingSummary, UndecidedCause, Verdict, devices,
};
use protocol::Workload;
use runtime::python::environment::PythonEnvironment;
use workload::{CallQuery, CallRecorder, CallSubject, NoCallReason};

use super::exit_status::{FAILED, FOUND, is_closed_pipe};
use super::interrupt::stopping;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// The reference file, which is correct by definition
    original: PathBuf,
    /// The file to judge, or with --batch a folder of such files
    candidate: PathBuf,
    /// The function to call, such as `softmax` or `Op.forward` [default: that of the workloads, if it is one]
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Judge every Python file of a folder, several at once
    #[arg(long)]
    batch: bool,
    /// The number of measurements, each with its own verdict
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    repeat: usize,
    /// Only check the recorded call, without other values, sizes or layouts
    #[arg(long)]
    quick: bool,
    /// How far the candidate must be right: `strict` on all values, `finite` on all but NaN, infinities and denormals, or
    /// `recorded` on values like those of the recorded calls
    #[arg(long, value_name = "GRADE", default_value = "strict", value_parser = named::<Grade>)]
    grade: Grade,
    /// Where the weights of a model come from: `copied` from the original, so that the candidate can replace a trained
    /// model, or `seed`, from which both constructors make their own, as in KernelBench
    #[arg(long, value_name = "SOURCE", default_value = "copied", value_parser = named::<ModelWeights>)]
    weights: ModelWeights,
    /// The number of candidates judged at once [default: the processor cores of the machine that judges, at most 16 for
    /// each GPU]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<usize>,
    /// Run nothing and use a performance model of a GPU that this machine does not have, such as `h200`
    #[arg(long, value_name = "GPU")]
    predict: Option<String>,
    /// A Python with Triton (default: the project's)
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Print JSON: an object, or with --batch and --repeat one a line
    #[arg(long)]
    json: bool,
}

/// A verdict for people and programs.
#[derive(Serialize)]
struct Report<'a> {
    candidate: &'a Path,
    /// `accepted`, `predicted`, `refused` or `undecided`.
    verdict: &'static str,
    reason: Option<String>,
    evidence: Option<&'a str>,
    /// The line of the candidate, from 1.
    line: Option<usize>,
    checks: &'a [Check],
    speedup: Option<f64>,
    /// The 95 % interval.
    interval: Option<[f64; 2]>,
    /// Whether the candidate is certainly faster.
    offer: bool,
    /// The reason why the candidate is no offer.
    objection: Option<String>,
    /// The prediction of a model, where nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<Prediction>,
    /// How far the candidate is right, where all calls were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<&'a GradeReached>,
    /// Where the weights came from, for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<ModelWeights>,
    notes: &'a [String],
    measured: Vec<TimingSummary<'a>>,
    /// The GPU of a pool that judged the candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_on: Option<&'a JudgedOn>,
    stages: &'a [(String, f64)],
    seconds: f64,
}

/// The prediction for all calls together, in milliseconds.
#[derive(Serialize)]
struct Prediction {
    original: f64,
    candidate: f64,
}

impl Prediction {
    fn of(measured: &[Measured]) -> Self {
        let (original, candidate) = Measured::sum_of_times(measured);
        Self { original, candidate }
    }
}

/// An option's value by its name in JSON.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

/// How far a candidate is right, as a line of the report.
fn grade_line(GradeReached { grade, broken_by }: &GradeReached) -> String {
    let words = match grade {
        Some(Grade::Strict) => "on all values that were tried",
        Some(Grade::Finite) => "on all values but NaN, infinities and denormals",
        Some(Grade::Recorded) => "on values like the recorded ones",
        None => "not even on values like the recorded ones",
    };
    let name = grade.map_or_else(|| "none".to_owned(), |grade| grade.to_string());
    let broken = broken_by.as_ref().map_or_else(String::new, |by| format!("; more is broken by {by}"));
    format!("grade: {name}, right {words}{broken}")
}

/// How often to check whether the user wants the command to end.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) fn run(args: &VerifyArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let since = Instant::now();
    let judged = verify(args, out);
    if let (true, Err(error)) = (args.json, &judged)
        && !is_closed_pipe(error)
    {
        let verdict = Verdict::undecided(UndecidedCause::Other, format!("{error:#}"));
        write(true, args.batch || args.repeat > 1, &args.candidate, &verdict, since.elapsed().as_secs_f64(), out)?;
    }
    judged
}

fn verify(args: &VerifyArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let original = config::absolute(&args.original)?;
    let candidate = config::absolute(&args.candidate)?;
    let candidates = if args.batch { files(&candidate)? } else { vec![candidate] };
    for file in [&original].into_iter().chain(&candidates) {
        if file.is_dir() {
            let what = if *file == original { "name a file" } else { "its files are judged with --batch" };
            bail!("{} is a folder: {what}", file.display());
        }
        std::fs::File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
    }
    let stopped = &*stopping();
    let going = || !stopped.load(Ordering::Relaxed);
    let folder = original.parent().unwrap_or(Path::new("/")).to_owned();
    let mut loaded = crate::settings::load(&folder)?;
    if let Some(python) = &args.python {
        loaded.settings.python = Some(config::absolute(python)?);
    }
    // Only the option enables a prediction, never a setting: a model does not check whether a candidate is correct.
    loaded.settings.evaluator.predict = args.predict.clone().unwrap_or_default();
    let environment = PythonEnvironment::of_project(&loaded, &folder);
    let python = environment.context("no Python was found; name one by --python")?.python;
    let (evaluator, limits) = (&loaded.settings.evaluator, store::RetentionLimits::from(&loaded.settings.workloads));
    let within = (&judge::RemoteJudges::from(evaluator), &judge::CandidateLimits::from(&evaluator.limits));
    let (bench, workloads) = Evaluator::start_beside(&python, within, &going, || -> anyhow::Result<_> {
        Ok(workloads(args, &loaded.project(&folder), &original, (&python, &going), limits)?)
    })?;
    // These take long, so a batch leaves them out.
    let is_one = !args.batch && args.repeat <= 1;
    let usual = Effort::default();
    let effort = Effort {
        thorough: !args.quick,
        sanitizer: usual.sanitizer.filter(|_| is_one),
        large_tensors: is_one,
        grade: args.grade,
        finds_grade: true,
        weights: args.weights,
        ..usual
    };
    let task = |candidate: &Path| Task {
        original: original.clone(),
        candidate: candidate.to_owned(),
        folder: folder.clone(),
        workloads: workloads.clone(),
        effort,
        known: Vec::new(),
        unwanted: Arc::default(),
    };
    let tasks: Vec<Task> = candidates.iter().flat_map(|file| (0..args.repeat.max(1)).map(|_| task(file))).collect();
    let started = Instant::now();
    let codes = judge_all(args, &bench, &tasks, stopped, out)?;
    if args.batch {
        let seconds = started.elapsed().as_secs_f64();
        let rate = tasks.len() as f64 / seconds * 60.0;
        eprintln!("{} verdicts in {seconds:.1} s, {rate:.0} a minute", tasks.len());
    }
    Ok(ExitCode::from(codes.into_iter().max().unwrap_or(0)))
}

/// Judges all candidates, several at once, and writes each verdict when it arrives. Returns the exit status of each.
fn judge_all(
    args: &VerifyArgs,
    bench: &Evaluator,
    tasks: &[Task],
    stopped: &AtomicBool,
    out: &mut impl Write,
) -> anyhow::Result<Vec<u8>> {
    let jobs = args.jobs.unwrap_or(bench.at_once()).clamp(1, tasks.len().max(1));
    let (next, (sender, verdicts)) = (&AtomicUsize::new(0), channel());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                    && !stopped.load(Ordering::Relaxed)
                {
                    let since = Instant::now();
                    // After an error there is no receiver any more.
                    let _ = sender.send((task, bench.judge(task), since.elapsed().as_secs_f64()));
                }
            });
        }
        drop(sender);
        let several = args.batch || tasks.len() > 1;
        let mut codes = Vec::new();
        loop {
            let told = verdicts.recv_timeout(GLANCE);
            if stopped.load(Ordering::Relaxed) {
                bench.abandon(true);
                bail!("stopped");
            }
            match told {
                Ok((task, verdict, seconds)) => {
                    codes.push(write(args.json, several, &task.candidate, &verdict, seconds, out)?);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(codes),
            }
        }
    })
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if folder.is_file() {
        bail!("{} is not a folder: remove --batch", folder.display());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let is_python = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_python).collect();
    files.sort();
    if files.is_empty() {
        bail!("there is no Python file in {}", folder.display());
    }
    Ok(files)
}

/// The calls to judge by: recorded ones, those that the file describes, or calls that are recorded now by running the
/// file.
fn workloads(
    args: &VerifyArgs,
    workspace: &Path,
    original: &Path,
    (python, going): (&Path, &dyn Fn() -> bool),
    limits: store::RetentionLimits,
) -> Result<Vec<Workload>, NoCallReason> {
    let of = args.entry.as_deref().map_or(CallSubject::File, CallSubject::Entry);
    let running = CallRecorder {
        python,
        limits,
        device: &|| devices().name(),
        // The user who types the command consents to running the code.
        may_run: &|_| {
            eprintln!("no call of it is recorded: running `python {}` to record one", args.original.display());
            true
        },
        go_on: going,
    };
    CallQuery { workspace, file: original, text: None, of }.find_or_record(&running)
}

fn write(
    json: bool,
    several: bool,
    candidate: &Path,
    verdict: &Verdict,
    seconds: f64,
    out: &mut impl Write,
) -> anyhow::Result<u8> {
    let claim = Claim::of_all(&verdict.measured).filter(|_| verdict.is_accepted());
    let predicted = (verdict.outcome == Outcome::Predicted).then(|| Prediction::of(&verdict.measured));
    let (word, reason, evidence, line, code) = match &verdict.outcome {
        Outcome::Accepted => ("accepted", None, None, None, 0),
        // A prediction does not say whether the candidate is correct, so the status is not success.
        Outcome::Predicted => ("predicted", None, None, None, FAILED),
        Outcome::Refused { reason, evidence, line } => ("refused", Some(reason.name()), Some(evidence), *line, FOUND),
        Outcome::Undecided { why, .. } => ("undecided", None, Some(why), None, FAILED),
    };
    let objection = claim.as_ref().and_then(|claim| claim.objection.clone());
    if json {
        let report = Report {
            candidate,
            verdict: word,
            // For an undecided candidate it is the whole reason.
            reason: reason.or_else(|| evidence.cloned()),
            evidence: evidence.map(String::as_str),
            line,
            checks: &verdict.checks,
            speedup: claim.as_ref().map(|claim| claim.ratio.median),
            interval: claim.as_ref().map(|claim| [claim.ratio.low, claim.ratio.high]),
            offer: claim.is_some() && objection.is_none(),
            objection,
            predicted,
            grade: verdict.grade.as_ref(),
            weights: verdict.weights,
            notes: &verdict.notes,
            measured: verdict.measured.iter().map(TimingSummary::of).collect(),
            judged_on: verdict.judged_on.as_ref(),
            stages: &verdict.stages,
            seconds,
        };
        let text = if several { serde_json::to_string(&report)? } else { serde_json::to_string_pretty(&report)? };
        writeln!(out, "{text}")?;
        out.flush()?;
        return Ok(code);
    }
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    writeln!(out, "{}{line}: {word}{reason}", candidate.display())?;
    if let Some(evidence) = evidence {
        writeln!(out, "  {}", evidence.replace('\n', "\n  "))?;
    }
    if !several {
        for check in &verdict.checks {
            // The evidence of the failed check is above already.
            match check.passed {
                true => writeln!(out, "  ok {}: {}", check.name, check.evidence)?,
                false => writeln!(out, "  NO {}", check.name)?,
            }
        }
    }
    if let Some(reached) = &verdict.grade {
        writeln!(out, "  {}", grade_line(reached))?;
    }
    if let Some(weights) = verdict.weights {
        let whose = match weights {
            ModelWeights::Copied => "the original's weights, copied into the candidate",
            ModelWeights::Seed => "each model with the weights that its constructor makes of one seed",
        };
        writeln!(out, "  weights: {whose}")?;
    }
    for note in &verdict.notes {
        writeln!(out, "  note: {note}")?;
    }
    if let Some(judged_on) = &verdict.judged_on {
        writeln!(out, "  judged on {}, {}", judged_on.gpu, judged_on.place())?;
    }
    if let Some(Prediction { original, candidate }) = predicted {
        writeln!(out, "  predicted {:.2}×: {original:.4} → {candidate:.4} ms", original / candidate)?;
    }
    if let Some(claim) = &claim {
        let (before, after) = claim.times;
        let (ratio, low, high) = (claim.ratio.median, claim.ratio.low, claim.ratio.high);
        writeln!(out, "  {ratio:.2}× (95 % {low:.2}–{high:.2}), {before:.4} → {after:.4} ms with a cold L2")?;
        writeln!(out, "  {}", objection.map_or_else(|| "an offer".to_owned(), |why| format!("no offer: {why}")))?;
        for line in
            verdict.measured.iter().flat_map(|measured| TimingSummary::of(measured).lines()).filter(|_| !several)
        {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(code)
}
