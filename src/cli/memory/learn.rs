//! `warpsmith memory learn`: asks Triton about the kernels of a folder, and learns from those that it refuses.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use learn::{LearnedFromStore, LearningStage, Oracle, StoreLearning, file_verdicts, learn_from_store};
use store::Store;

/// Arguments of `memory learn`.
#[derive(Debug, clap::Args)]
pub(super) struct LearnArgs {
    /// Files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The interpreter whose Triton is used
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
    /// The random seed of the search for counter-examples
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The time after which no further kind of failure is started; the rest is left for the next run
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    seconds: u64,
}

pub(super) fn run(store: &mut Store, args: &LearnArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let verdicts = file_verdicts(&oracle, &args.paths);
    let (files, refused, taken) = (verdicts.files, verdicts.refused.len(), verdicts.taken.len());
    writeln!(out, "{files} files: {refused} kernels are refused, {taken} compile")?;
    verdicts.keep(store)?;
    let settings = StoreLearning {
        seed: args.seed,
        time: Duration::from_secs(args.seconds),
        origin: args.paths.first().map_or_else(|| "editor".to_owned(), |path| path.display().to_string()),
    };
    let started = Instant::now();
    let report = |stage: LearningStage| {
        let (seconds, asked, what) = (started.elapsed().as_secs_f64(), oracle.asked(), stage.name());
        tracing::debug!(seconds, asked, "learning: {what}");
    };
    let LearnedFromStore { rules, failures, explained, left } = learn_from_store(store, &oracle, &settings, &report)?;
    for rule in &rules {
        writeln!(out, "{}  {}", rule.code, rule.plain_sentence())?;
    }
    if rules.is_empty() {
        writeln!(
            out,
            "Nothing new was learned from {failures} kernels that Triton refused. Of {explained} it is known why; a rule takes \
             three others that are alike."
        )?;
    }
    if left > 0 {
        writeln!(out, "Kernels that fail in {left} other ways have their turn when it is run again.")?;
    }
    Ok(ExitCode::SUCCESS)
}
