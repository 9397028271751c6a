//! `warpsmith memory learn`: kernels of a folder are shown to Triton, and what it refuses is learned from.

use learn::SkillMemory as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::clock;
use learn::synthesize::tasks;
use learn::{
    CompileVerdict, CompilingPrograms, KernelProgram, Oracle, Parsed, ProofContext, UncheckedProgram, learn, merged,
    spelled, sweep,
};
use model::api::TritonTarget;
use rules::learned::{LearnedRule, RuleOrigin};
use store::{Accepted, RefusedKernel, Store};

use ::learn::stored_evidence;

/// So many kernels are made up that learned rules must let pass.
const TASKS: usize = 200;
/// So often each function is called with values by chance: what compiles of that, too.
const SWEPT: usize = 3;

/// Arguments of `memory learn`.
#[derive(Debug, clap::Args)]
pub(super) struct LearnArgs {
    /// Files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The interpreter whose Triton is asked
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    python: PathBuf,
    /// What chance begins with when counter-examples are looked for
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// No further kind of failure is begun after so much time of learning: it has its turn the next time
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    seconds: u64,
}

pub(super) fn run(store: &mut Store, args: &LearnArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let files = learn::published(&args.paths);
    let said: Vec<CompileVerdict> = oracle
        .parallel(&files, |asker, file| asker.kernels(file, &short(&file.name), &|_| true))
        .into_iter()
        .flatten()
        .collect();
    let refused: Vec<&RefusedKernel> = said
        .iter()
        .filter_map(|one| if let CompileVerdict::Refused(failure) = one { Some(&**failure) } else { None })
        .collect();
    let taken: Vec<&Accepted> = said
        .iter()
        .filter_map(|one| if let CompileVerdict::Taken(kernel) = one { Some(kernel) } else { None })
        .collect();
    writeln!(out, "{} files: {} kernels are refused, {} compile", files.len(), refused.len(), taken.len())?;
    store.keep_failures(refused.iter().copied())?;
    store.keep_accepted(taken.iter().copied())?;
    let target = TritonTarget::of(oracle.release().parse()?);
    let (started, begun) = (Instant::now(), AtomicUsize::new(0));
    let passed = |what| {
        let (seconds, asked) = (started.elapsed().as_secs_f64(), oracle.asked());
        tracing::debug!(seconds, asked, "learning: {what}");
    };
    let (failures, mut sound) =
        (stored_evidence::failures(store, oracle.release())?, stored_evidence::sound(store, oracle.release())?);
    let count = failures.len();
    passed("read");
    let looked_at = store.learned_counts(oracle.release())?;
    let found = stored_evidence::unexplained(&oracle, &store.memory()?, failures, target, &looked_at);
    let stored_evidence::UnexplainedFailures { failures, mut signatures, mut left, known } = found;
    passed("divided");
    let unasked = made_up(&oracle, &failures, target, args.seed);
    passed("counter-examples made");
    let (learning, limit) = (Instant::now(), Duration::from_secs(args.seconds));
    let going = || begun.fetch_add(1, Ordering::Relaxed) < jobs || learning.elapsed() < limit;
    let all_sound = CompilingPrograms { known: &sound, unasked: &unasked };
    let lessons = learn(&oracle, &failures, all_sound, target, args.seed, &going);
    passed("learned");
    signatures.retain(|(name, _)| !lessons.left.iter().any(|one| stored_evidence::named(one) == *name));
    left += lessons.left.len();
    sound.extend(lessons.counter.iter().map(|program| Parsed::new(&program.text)));
    let mut found = merged(&oracle, lessons.learned, &failures, target);
    passed("merged");
    found.retain(learn::LearnedPattern::stands_alone);
    let from = args.paths.first().map_or_else(|| "editor".to_owned(), |path| path.display().to_string());
    let court = ProofContext {
        oracle: &oracle,
        others: &[],
        sound: CompilingPrograms { known: &sound, unasked: &unasked },
        programs: &[],
        published: &[],
        today: clock::day(clock::now().as_secs()),
        origin: RuleOrigin::Learned(from),
    };
    let rules: Vec<LearnedRule> = court.rules(&found, &failures, 1);
    passed("proven");
    let rules = stored_evidence::undisproved(store, oracle.release(), target, rules)?;
    passed("held against what compiles");
    let codes = store.add_rules(&rules)?;
    store.set_learned_counts(oracle.release(), &signatures)?;
    for (rule, code) in rules.iter().zip(&codes) {
        writeln!(out, "{code}  {}", rule.plain_sentence())?;
    }
    if codes.is_empty() {
        writeln!(
            out,
            "Nothing new was learned from {count} kernels that Triton refused. Of {known} it is known why; a rule takes three \
             others that are alike."
        )?;
    }
    if left > 0 {
        writeln!(out, "Kernels that fail in {left} other ways have their turn when it is run again.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Further programs, many of which compile: the relatives of the failures, kernels that are made up, and all that Triton offers. Without
/// them what a store with few kernels does not know would pass for wrong.
fn made_up(
    oracle: &Oracle,
    failures: &[learn::CompileFailure],
    target: TritonTarget,
    seed: u64,
) -> Vec<UncheckedProgram> {
    let relatives = failures.iter().filter_map(|failure| failure.passing.clone());
    let made = tasks(TASKS, seed).into_iter().map(|task| task.program);
    let mut programs: Vec<KernelProgram> = relatives.chain(made).collect();
    programs.extend(sweep(target.table, SWEPT, seed));
    programs.extend(spelled());
    programs.sort();
    programs.dedup();
    oracle.parallel(&programs, |_, program| UncheckedProgram::new(program.clone()))
}

fn short(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}
