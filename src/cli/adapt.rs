//! `warpsmith adapt`: makes kernels up, looks where they fail, and learns rules of that.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::adapt::{Oracle, Parsed, Signature, gather, learn};

/// Arguments of `adapt`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    #[arg(long, value_name = "PYTHON")]
    python: PathBuf,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let oracle = Oracle::start(args.python.clone(), jobs)?;
    let gathered = gather(&oracle, args.tasks, args.changes, args.seed);
    writeln!(
        out,
        "{} tasks, {} unfit, {} passing, {} failing, {} unknown; {} asked",
        gathered.tasks.len(),
        gathered.unfit,
        gathered.passing.len(),
        gathered.failures.len(),
        gathered.unknown,
        oracle.asked()
    )?;
    let target = crate::api::Target::of(oracle.release().parse()?);
    let sound: Vec<Parsed> = gathered.passing.iter().map(|program| Parsed::new(&program.text)).collect();
    if let Some(query) = std::env::var_os("TRY") {
        let pattern = crate::rules::learned::Pattern::compile(&query.to_string_lossy())?;
        for file in &sound {
            for span in pattern.matches(&file.context(target)) {
                writeln!(out, "HIT {} in\n{}", &file.source.text()[span.start..span.end], file.source.text())?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let lessons = learn(&oracle, &gathered.failures, &sound, target, args.seed);
    for learned in &lessons.learned {
        let example = &gathered.failures[learned.failures[0]];
        let span = example.failing.span.unwrap_or(crate::syntax::Span::new(0, 0));
        writeln!(out, "== {} ({} independent) {} | {}\n{}   e.g. {}\n        {}", learned.failures.len(), learned.independent, learned.signature.kind, learned.signature.template, learned.query, &example.program.text[span.start..span.end].lines().next().unwrap_or(""), example.failing.message)?;
    }
    writeln!(out, "{} rules; {} asked; {} counter examples", lessons.learned.len(), oracle.asked(), lessons.counter.len())?;
    let mut by: BTreeMap<Signature, usize> = BTreeMap::new();
    for failure in &gathered.failures {
        *by.entry(Signature::of(&failure.failing)).or_default() += 1;
    }
    for (signature, count) in by {
        writeln!(out, "{count:5} {} | {}", signature.kind, signature.template)?;
    }
    Ok(ExitCode::SUCCESS)
}
