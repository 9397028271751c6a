//! `warpsmith worker`: judges candidates for a Warpsmith on another machine, over standard input and output.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context;

use judge::{Evaluator, RemoteJudges, refuse_remote, serve_remote};
use runtime::python::ForkerError;
use runtime::python::environment::PythonEnvironment;

use super::interrupt::{InterruptibleReader, stopping};

/// Arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(super) struct WorkerArgs {
    /// A Python with Triton [default: that of the current folder's project]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(super) fn run(args: &WorkerArgs) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let mut loaded = crate::settings::load(&folder)?;
    if let Some(python) = &args.python {
        loaded.settings.python = Some(config::absolute(python)?);
    }
    let python = PythonEnvironment::of_project(&loaded, &folder).map(|environment| environment.python);
    let limits = judge::CandidateLimits::from(&loaded.settings.evaluator.limits);
    let stopped = stopping();
    let going = || !stopped.load(Ordering::Relaxed);
    let missing = || ForkerError::Unfit("no Python was found there; name one by --python".to_owned());
    let started = python
        .ok_or_else(missing)
        .and_then(|python| Evaluator::start(&python, &RemoteJudges::default(), &limits, &going));
    match started {
        Ok(evaluator) => {
            // A judge that has started this process shares its process group, so Ctrl-C ends both.
            let input = InterruptibleReader {
                inner: std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?),
                stopped,
            };
            serve_remote(&evaluator, input, std::io::stdout())?;
        }
        Err(error) => {
            // The parent may be gone, so the reason is also written to standard error.
            let _ = refuse_remote(&error.to_string(), std::io::stdout());
            return Err(error.into());
        }
    }
    Ok(ExitCode::SUCCESS)
}
