//! `warpsmith worker`: judges candidates for a Warpsmith on another machine, over standard input and output.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::evaluate::{Evaluator, Limits, serve_remote};
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
    let environment = Environment::of_project(&loaded, &folder);
    let start = || {
        let missing = || ForkerError::Unfit("no Python was found there; name one by --python".to_owned());
        let python = environment.ok_or_else(missing)?.python;
        Evaluator::start(&python, &[], &Limits::default(), &|| true)
    };
    serve_remote(start, std::io::stdin().lock(), std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}
