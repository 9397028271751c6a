//! `warpsmith adapt`: makes up kernels, finds out where they fail, and learns rules from that.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use learn::{
    ExperimentResult, GatheredLearning, LearnedFromGathered, LearningStage, Oracle, SilentFailure, SkillMemory as _,
    experiment, gather, learn_from_gathered, save_rules,
};
use rules::learned::{LearnedRule, LearnedRules, Patterns, write};
use runtime::python::state_folder;
use store::Store;

/// Arguments of `adapt`.
#[derive(Debug, clap::Args)]
pub(super) struct AdaptArgs {
    /// The number of synthetic tasks
    #[arg(long, default_value_t = 200, value_name = "N")]
    tasks: usize,
    /// The random seed: equal seeds give equal rules
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The number of mutations to try for each kernel
    #[arg(long, default_value_t = 60, value_name = "N")]
    changes: usize,
    /// The interpreter whose Triton is used
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
    /// Further interpreters, with other releases of Triton
    #[arg(long, value_name = "PYTHON")]
    also: Vec<PathBuf>,
    /// Folders with kernels that are known to compile
    #[arg(long, value_name = "DIR")]
    sound: Vec<PathBuf>,
    /// The number of compiler processes in parallel; 0 means one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// The date of the rules, such as 2026-11-25 [default: today]
    #[arg(long, value_name = "DAY")]
    day: Option<String>,
    /// Add to the rules that ship with Warpsmith, instead of learning all rules anew
    #[arg(long)]
    add: bool,
    /// Learn nothing: mutate kernels of this seed, and report how many of the flagged and of the other ones compile, and
    /// what learned rules find that no built-in rule does
    #[arg(long)]
    experiment: bool,
    /// Where to write `skill-memory.toml` and the folder `learned` with the patterns, or `silent.md` with failures of the
    /// experiment that no built-in rule flags
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &AdaptArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let jobs = if args.jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { args.jobs };
    let start = Instant::now();
    let said = |what: &str| tracing::info!(seconds = start.elapsed().as_secs(), "{what}");
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let others =
        args.also.iter().map(|python| Oracle::start(python.clone(), jobs)).collect::<Result<Vec<Oracle>, _>>()?;
    if args.experiment {
        return try_memory(args, &oracle, out);
    }
    let gathered = gather(&oracle, args.tasks, args.changes, args.seed);
    said("gathered");
    writeln!(
        out,
        "{} tasks ({} unfit), {} programs compile, {} fail, {} without a verdict",
        gathered.tasks.len(),
        gathered.unfit,
        gathered.passing.len(),
        gathered.failures.len(),
        gathered.unknown
    )?;
    let known: Vec<LearnedRule> =
        if args.add { LearnedRules::shipped().rules().cloned().collect() } else { Vec::new() };
    let settings = GatheredLearning { seed: args.seed, sound: &args.sound, known: &known, day: args.day.clone() };
    let report = |stage: LearningStage| said(stage.name());
    let learned = learn_from_gathered(&oracle, &others, &gathered, &settings, &report)?;
    let LearnedFromGathered { rules, refuted, found, merged, sound } = learned;
    for one in &refuted {
        writeln!(out, "refuted: {}{}\n", one.query, one.why)?;
    }
    let asked: usize = std::iter::once(&oracle).chain(&others).map(Oracle::asked).sum();
    let covered = rules.iter().filter(|rule| !rule.covered_by.is_empty()).count();
    writeln!(
        out,
        "{found} patterns, {merged} without duplicates, {} rules proven ({covered} of them repeat built-in rules); {sound} files are known to compile; {asked} programs sent to Triton",
        rules.len(),
    )?;
    let all: Vec<LearnedRule> = known.into_iter().chain(rules).collect();
    match &args.out {
        Some(folder) => save_rules(folder, &all)?,
        None => write!(out, "{}", write(&all, Patterns::Inside))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the memory as a filter: the share of changed kernels that compile, with and without it.
fn try_memory(args: &AdaptArgs, oracle: &Oracle, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let memory = Store::memory_in(&state_folder())?;
    let ExperimentResult { unfiltered, filtered, lost, silent } =
        experiment(oracle, &memory, args.tasks, args.changes, args.seed)?;
    for (what, share) in [("all changed kernels", unfiltered), ("those that no learned rule flags", filtered)] {
        writeln!(out, "{what}: {} of {} compile ({:.1} %)", share.passing, share.all, share.percent())?;
    }
    writeln!(out, "flagged although they compile: {}", lost.len())?;
    for (code, text) in lost.iter().flatten() {
        writeln!(out, "  {code}: {text}")?;
    }
    let found = silent.iter().filter(|one| !one.found_by.is_empty()).count();
    let rules: BTreeSet<&String> = silent.iter().flat_map(|one| &one.found_by).collect();
    writeln!(
        out,
        "of {} that fail without a finding of a built-in rule, {} learned rules find {found}",
        silent.len(),
        rules.len()
    )?;
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("silent.md"), table(&silent))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of rows in the table of failures that no built-in rule flags.
const ROWS: usize = 200;

/// A table in Markdown of failures that no built-in rule flags, spread over all of them.
fn table(silent: &[SilentFailure]) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut rows = String::from("| line | Triton | learned rules |\n|---|---|---|\n");
    for one in silent.iter().step_by(silent.len().div_ceil(ROWS).max(1)) {
        let rules = if one.found_by.is_empty() { "-".to_owned() } else { one.found_by.join(", ") };
        let _ = writeln!(rows, "| `{}` | {} | {rules} |", cell(&one.line), cell(&one.message));
    }
    rows
}
