//! `warpsmith adapt`: makes kernels up, looks where they fail, and learns rules of that.

use learn::SkillMemory as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;

use base::clock;
use learn::{
    CompilingPrograms, ExperimentResult, Oracle, Parsed, ProofContext, ProofResult, experiment, gather, learn, merged,
    programs, published, spelled, sweep,
};
use model::api::TritonTarget;
use rules::learned::{LearnedRule, Patterns, RuleOrigin, write};
use runtime::python::state_folder;
use store::Store;

/// So many programs of each kind show what compiles of all that Triton offers.
const SWEPT: usize = 40;

/// Arguments of `adapt`.
#[derive(Debug, clap::Args)]
pub(super) struct AdaptArgs {
    /// How many tasks to make up
    #[arg(long, default_value_t = 200, value_name = "N")]
    tasks: usize,
    /// What to begin with: equal seeds give equal rules
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many changes of each kernel to try
    #[arg(long, default_value_t = 60, value_name = "N")]
    changes: usize,
    /// The interpreter whose Triton is asked
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
    /// Further interpreters, with other releases of Triton
    #[arg(long, value_name = "PYTHON")]
    also: Vec<PathBuf>,
    /// Folders with kernels that are known to compile
    #[arg(long, value_name = "DIR")]
    sound: Vec<PathBuf>,
    /// How many processes to ask side by side; 0 means one for each processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// The day that the rules are dated with, such as 2026-11-25; today when left out
    #[arg(long, value_name = "DAY")]
    day: Option<String>,
    /// Learn nothing: change kernels of this seed, and count how many compile of those that the memory flags and of the others
    #[arg(long)]
    experiment: bool,
    /// Where to write `skill-memory.toml` and the folder `learned` with the patterns
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
    let target = TritonTarget::of(oracle.release().parse()?);
    let mut sound: Vec<Parsed> = gathered.passing.iter().map(|program| Parsed::new(&program.text)).collect();
    // What says with what it can be lowered is asked; the rest is taken to compile.
    let (programs, published) = programs(published(&args.sound));
    let mut swept = sweep(target.table, SWEPT, args.seed);
    swept.extend(spelled());
    for asked in [&programs, &swept] {
        sound.extend(oracle.accepted(asked));
    }
    said("swept");
    let known = CompilingPrograms { known: &sound, unasked: &[] };
    let lessons = learn(&oracle, &gathered.failures, known, target, args.seed, &|| true);
    said("learned");
    sound.extend(lessons.counter.iter().map(|program| Parsed::new(&program.text)));
    let found = lessons.learned.len();
    let learned = merged(&oracle, lessons.learned, &gathered.failures, target);
    said("merged");
    let today = args.day.clone().unwrap_or_else(|| clock::day(clock::now().as_secs()));
    let court = ProofContext {
        oracle: &oracle,
        others: &others,
        sound: CompilingPrograms { known: &sound, unasked: &[] },
        programs: &programs,
        published: &published,
        today,
        origin: RuleOrigin::Synthesised(args.seed),
    };
    let proofs = court.prove(&learned, &gathered.failures, 1);
    said("proven");
    let mut rules: Vec<LearnedRule> = Vec::new();
    for (proof, one) in proofs.into_iter().zip(&learned) {
        match proof {
            ProofResult::Rule(rule) => rules.push(*rule),
            ProofResult::Refuted(why) => writeln!(out, "refuted: {}{why}\n", one.query)?,
        }
    }
    let asked: usize = std::iter::once(&oracle).chain(&others).map(Oracle::asked).sum();
    let covered = rules.iter().filter(|rule| !rule.covered_by.is_empty()).count();
    writeln!(
        out,
        "{found} patterns, {} without those that say the same, {} rules proven ({covered} of them say what built-in rules say); {} files are known to compile; {asked} programs lowered",
        learned.len(),
        rules.len(),
        sound.len() + published.len(),
    )?;
    match &args.out {
        Some(folder) => save(folder, &rules)?,
        None => write!(out, "{}", write(&rules, Patterns::Inside))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What the memory is worth as a filter: the share of changed kernels that compile, with it and without.
fn try_memory(args: &AdaptArgs, oracle: &Oracle, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let memory = Store::memory_in(&state_folder())?;
    let learned_with = RuleOrigin::Synthesised(args.seed);
    if memory.rules().any(|rule| rule.origin == learned_with) {
        anyhow::bail!("the memory was learned with seed {}: choose another one with --seed", args.seed);
    }
    let target = TritonTarget::of(oracle.release().parse()?);
    let ExperimentResult { unfiltered, filtered, lost } =
        experiment(oracle, &memory, args.tasks, args.changes, args.seed, target);
    for (what, share) in [("all changed kernels", unfiltered), ("those that no learned rule flags", filtered)] {
        writeln!(out, "{what}: {} of {} compile ({:.1} %)", share.passing, share.all, share.percent())?;
    }
    writeln!(out, "flagged although they compile: {lost}")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a memory file, with the patterns beside it.
fn save(folder: &std::path::Path, rules: &[LearnedRule]) -> anyhow::Result<()> {
    let patterns = folder.join("learned");
    std::fs::create_dir_all(&patterns).with_context(|| format!("cannot make {}", patterns.display()))?;
    let file = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    file(folder.join("skill-memory.toml"), &write(rules, Patterns::Beside))?;
    rules.iter().try_for_each(|rule| file(patterns.join(format!("{}.scm", rule.name)), &rule.pattern))
}
