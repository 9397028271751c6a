//! `warpsmith bench kernelbench FOLDER`: searches for a faster version of each task in a folder, and computes the
//! figures that such benchmarks use.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;

use judge::statistics::median;
use runtime::python::environment::PythonEnvironment;
use search::{OptimizeScope, Report, SearchAction, SearchRequest, TriedCandidate};

use super::optimize::{Terminal, seconds};

/// The highest speedup of a task in the capped figures: a higher one is seldom real.
const CAP: f64 = 10.0;
/// The thresholds of `fast_p`.
const THRESHOLDS: [f64; 4] = [0.0, 1.0, 1.5, 2.0];

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, clap::Subcommand)]
enum Suite {
    /// Tasks in KernelBench's form: files with `Model`, `get_inputs` and `get_init_inputs`
    Kernelbench(KernelBench),
}

#[derive(Debug, clap::Args)]
struct KernelBench {
    /// The folder of tasks, or the one that holds `level1`, `level2`, …
    folder: PathBuf,
    /// Use the folder `levelN` in it
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// Which tasks, by the numbers that their names begin with: `1-20,34` (default: all)
    #[arg(long, value_name = "NUMBERS")]
    problems: Option<String>,
    /// How long to search for each
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    budget: Option<f64>,
    /// Consent to sending text to the language model of the settings
    #[arg(long)]
    send: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result of a task.
#[derive(Clone, Debug, Default, Serialize)]
struct Task {
    name: String,
    /// Whether a candidate with Triton kernels was correct.
    correct: bool,
    /// The speedup over the original: the measured one of the offer, or else that of the fastest correct candidate by a
    /// few timings.
    speedup: Option<f64>,
    /// The 95 % interval; only for an offer.
    interval: Option<[f64; 2]>,
    run: Option<String>,
    /// The reason why no search was run.
    failed: Option<String>,
}

/// Figures over all tasks. A task without a correct candidate counts as 1× in means (the original is kept), and as
/// failed in `fast_p`.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Figures {
    mean: f64,
    median: f64,
    geometric_mean: f64,
}

#[derive(Debug, Serialize)]
struct Summary {
    tasks: usize,
    correct: usize,
    /// The share of tasks that are correct and more than `p` times as fast, by the name of the figure; `fast_0` is the
    /// share of all correct ones.
    fast: BTreeMap<String, f64>,
    uncapped: Figures,
    capped: Figures,
    cap: f64,
}

pub(super) fn run(args: &BenchArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let Suite::Kernelbench(args) = &args.suite;
    let folder = args.level.map_or_else(|| args.folder.clone(), |level| args.folder.join(format!("level{level}")));
    let files = tasks(&folder, args.problems.as_deref())?;
    if files.is_empty() {
        bail!("no such task in {}", folder.display());
    }
    let terminal = Terminal::new(args.send)?;
    let mut tasks = Vec::new();
    for file in &files {
        let task = one(file, args, &terminal)?;
        if search::Observer::cancelled(&terminal) {
            break;
        }
        if !args.json {
            writeln!(out, "{}", line(&task))?;
            out.flush()?;
        }
        tasks.push(task);
    }
    let summary = summary(&tasks);
    if args.json {
        let all = serde_json::json!({ "tasks": tasks, "summary": summary });
        writeln!(out, "{all:#}")?;
    } else {
        say(&summary, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The tasks of a folder, ordered by number.
fn tasks(folder: &Path, wanted: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    let wanted = wanted.map(numbers).transpose()?;
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let number: Option<u32> =
            name.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
        let is_wanted = wanted.as_ref().is_none_or(|wanted| number.is_some_and(|number| wanted.contains(&number)));
        if path.extension().is_some_and(|extension| extension == "py") && is_wanted {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// `1-3,7`
fn numbers(text: &str) -> anyhow::Result<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number =
            |text: &str| text.trim().parse::<u32>().with_context(|| format!("`{part}` is not a number or range"));
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first > 10_000 {
            bail!("`{part}` is not a range of tasks");
        }
        all.extend(first..=last);
    }
    Ok(all)
}

fn one(file: &Path, args: &KernelBench, terminal: &Terminal) -> anyhow::Result<Task> {
    let file = config::absolute(file)?;
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let loaded = crate::settings::load(&folder)?;
    let workspace = loaded.project(&folder);
    let Some(environment) = PythonEnvironment::of_project(&loaded, &folder) else {
        bail!("no Python found; activate the project's environment or set `python` in warpsmith.toml");
    };
    let mut settings = loaded.settings;
    settings.optimize.budget = args.budget.unwrap_or(settings.optimize.budget);
    let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (subject, work) = (OptimizeScope::default(), SearchAction::default());
    let request = SearchRequest { file, text, subject, workspace, python: environment.python, settings, work };
    let outcome = match search::optimize(&request, terminal) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(Task { name, failed: Some(error.to_string()), ..Task::default() }),
    };
    let report = match Report::of(&request.workspace, &outcome.run) {
        Ok(report) => report,
        Err(error) => return Ok(Task { name, failed: Some(error.to_string()), ..Task::default() }),
    };
    // A candidate that the confirmation refused is not correct.
    let is_refused = |tried: &&TriedCandidate| {
        report.confirmations.iter().any(|confirmed| confirmed.refused.is_some() && confirmed.change == tried.change)
    };
    let right = report.candidates.iter().filter(|tried| !is_refused(tried)).filter_map(|tried| tried.speedup);
    let fastest = right.fold(None, |best: Option<f64>, one| Some(best.map_or(one, |best| best.max(one))));
    let offered = outcome.offer.as_ref().map(|offer| &offer.speedup);
    Ok(Task {
        name,
        correct: fastest.is_some(),
        // Without a confirmation there is no speedup.
        speedup: offered.map(|speedup| speedup.ratio).or(fastest.map(|fastest| fastest.min(1.0))),
        interval: offered.map(|speedup| [speedup.low, speedup.high]),
        run: Some(outcome.run),
        failed: None,
    })
}

fn line(task: &Task) -> String {
    let Task { name, correct, speedup, interval, failed, .. } = task;
    let what = match (speedup, interval, failed) {
        (_, _, Some(why)) => format!("nothing was tried: {}", why.lines().next().unwrap_or_default()),
        (Some(speedup), Some([low, high]), _) => format!("{speedup:.2}× (95 % {low:.2}–{high:.2})"),
        (Some(speedup), None, _) => format!("{speedup:.2}×, not certainly faster"),
        (None, ..) => "no candidate was right".to_owned(),
    };
    format!("{} {name}: {what}", if *correct { "✓" } else { "✗" })
}

fn summary(tasks: &[Task]) -> Summary {
    let speedups = |cap: f64| -> Vec<f64> { tasks.iter().map(|task| task.speedup.unwrap_or(1.0).min(cap)).collect() };
    let share = |threshold: f64| {
        let is_above = |speedup: f64| threshold <= 0.0 || speedup > threshold;
        let is_fast = |task: &&Task| task.correct && task.speedup.is_some_and(is_above);
        tasks.iter().filter(is_fast).count() as f64 / tasks.len().max(1) as f64
    };
    Summary {
        tasks: tasks.len(),
        correct: tasks.iter().filter(|task| task.correct).count(),
        fast: THRESHOLDS.iter().map(|threshold| (format!("fast_{threshold}"), share(*threshold))).collect(),
        uncapped: figures(&speedups(f64::INFINITY)),
        capped: figures(&speedups(CAP)),
        cap: CAP,
    }
}

fn figures(speedups: &[f64]) -> Figures {
    let count = speedups.len().max(1) as f64;
    let median = median(speedups.iter().copied());
    let geometric_mean = (speedups.iter().map(|speedup| speedup.ln()).sum::<f64>() / count).exp();
    Figures { mean: speedups.iter().sum::<f64>() / count, median, geometric_mean }
}

fn say(summary: &Summary, out: &mut impl Write) -> anyhow::Result<()> {
    let Summary { tasks, correct, fast, uncapped, capped, cap } = summary;
    writeln!(out, "\n{correct} of {tasks} tasks have a right candidate with kernels of Triton's.")?;
    let fast: Vec<String> = fast.iter().map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect();
    writeln!(out, "{}", fast.join(", "))?;
    for (name, figures) in [("as measured".to_owned(), uncapped), (format!("at most {cap}×"), capped)] {
        let Figures { mean, median, geometric_mean } = figures;
        writeln!(out, "{name}: mean {mean:.2}×, median {median:.2}×, geometric mean {geometric_mean:.2}×")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(speedup: Option<f64>) -> Task {
        Task { correct: speedup.is_some(), speedup, ..Task::default() }
    }

    #[test]
    fn numbers_of_tasks_are_single_or_ranges() {
        assert_eq!(numbers("1-3, 7").unwrap(), [1, 2, 3, 7]);
        for wrong in ["a", "3-1", "1-", "1-99999999"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn failed_tasks_count_as_1x_in_means_and_as_failures_in_shares() {
        let summary = summary(&[task(Some(4.0)), task(Some(25.0)), task(Some(0.5)), task(None)]);
        assert_eq!((summary.tasks, summary.correct), (4, 3));
        assert_eq!(summary.fast["fast_0"], 0.75);
        assert_eq!((summary.fast["fast_1"], summary.fast["fast_2"]), (0.5, 0.5));
        assert_eq!((summary.uncapped.mean, summary.uncapped.median), (7.625, 2.5));
        assert!((summary.uncapped.geometric_mean - 50.0_f64.powf(0.25)).abs() < 1e-12);
        assert_eq!(summary.capped.mean, 3.875);
    }

    #[test]
    fn tasks_are_taken_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["10_Ten.py", "2_Two.py", "1_One.py", "notes.md", "helper.py"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |wanted| -> Vec<String> {
            let found = tasks(folder.path(), wanted).unwrap();
            found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(Some("1-9,10")), ["1_One.py", "2_Two.py", "10_Ten.py"]);
        assert_eq!(names(None).len(), 4);
    }
}
