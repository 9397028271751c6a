//! `warpsmith worker`: judges candidates for a Warpsmith on another machine, over standard input and output.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::evaluate::{Evaluator, refuse_remote, serve_remote};
use crate::python::ForkerError;
use crate::python::environment::Environment;
use crate::settings;

/// Arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A Python with Triton [default: that of the current folder's project]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let mut loaded = settings::load(&folder)?;
    if let Some(python) = &args.python {
        loaded.settings.python = Some(settings::absolute(python)?);
    }
    let python = Environment::of_project(&loaded, &folder).map(|environment| environment.python);
    let limits = loaded.settings.evaluator.limits.limits();
    let missing = || ForkerError::Unfit("no Python was found there; name one by --python".to_owned());
    let started = python.ok_or_else(missing).and_then(|python| Evaluator::start(&python, &[], &limits, &|| true));
    match started {
        Ok(evaluator) => serve_remote(&evaluator, std::io::stdin().lock(), std::io::stdout())?,
        Err(error) => {
            // Whoever has started this may be gone; the reason is told here as well.
            let _ = refuse_remote(&error.to_string(), std::io::stdout());
            return Err(error.into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
