//! `warpsmith optimize FILE`: search for a faster kernel and show or apply it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use similar::TextDiff;

use super::FOUND;
use super::stopping::stopping;
use crate::explore::{self, Observer, Offer, Outcome, Progress, Request};
use crate::python::environment::Environment;
use crate::settings;

/// Arguments of `optimize`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The Python file with the kernel
    file: PathBuf,
    /// The kernel; needed when the file launches several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// How long to search, such as `60s` or `5m` (default: the setting `optimize.budget`)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    budget: Option<f64>,
    /// Show the change as a diff (the default)
    #[arg(long, group = "form")]
    diff: bool,
    /// Write the faster version to the file
    #[arg(long, group = "form")]
    apply: bool,
    /// Print the result as JSON
    #[arg(long, group = "form")]
    json: bool,
}

pub(super) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let text = fs::read_to_string(&args.file).with_context(|| format!("{} cannot be read", args.file.display()))?;
    let file = settings::absolute(&args.file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let loaded = settings::load(folder)?;
    let Some(environment) = Environment::of_project(&loaded, folder) else {
        bail!("no Python found; activate the project's environment or set `python` in warpsmith.toml");
    };
    let workspace = loaded.project(folder);
    let mut settings = loaded.settings;
    if let Some(budget) = args.budget {
        settings.optimize.budget = budget;
    }
    let request = Request { file, text, kernel: args.kernel.clone(), workspace, python: environment.python, settings };
    let outcome = explore::optimize(&request, &Terminal::new()?)?;
    report(args, &request, &outcome, out)?;
    Ok(if outcome.offer.is_some() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

fn report(args: &Args, request: &Request, outcome: &Outcome, out: &mut impl Write) -> anyhow::Result<()> {
    let diff = outcome.offer.as_ref().map(|offer| unified(args, request, offer));
    if args.json {
        let mut value = serde_json::to_value(outcome)?;
        value["diff"] = json!(diff);
        return Ok(writeln!(out, "{value:#}")?);
    }
    if let (Some(offer), true) = (&outcome.offer, args.apply) {
        let now = fs::read_to_string(&request.file).unwrap_or_default();
        if now != request.text {
            bail!("{} has changed meanwhile; nothing was written. {}", args.file.display(), outcome.summary);
        }
        fs::write(&request.file, &offer.text).with_context(|| format!("{} cannot be written", args.file.display()))?;
    } else if let Some(diff) = diff {
        write!(out, "{diff}")?;
    }
    writeln!(out, "{}", outcome.summary)?;
    if let Some(offer) = &outcome.offer {
        writeln!(out, "Measured on {}, {} pairs.", offer.speedup.conditions, offer.speedup.pairs)?;
    }
    Ok(())
}

fn unified(args: &Args, request: &Request, offer: &Offer) -> String {
    let name = args.file.display().to_string();
    TextDiff::from_lines(&request.text, &offer.text).unified_diff().header(&name, &name).to_string()
}

/// `90`, `90s`, `1.5m`
fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(number) => (number, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let value: f64 = number.trim().parse().map_err(|_| "write it like `60s` or `5m`".to_owned())?;
    if value.is_finite() && value > 0.0 { Ok(value * unit) } else { Err("must be more than nothing".to_owned()) }
}

/// Shows progress on standard error and stops at Ctrl-C.
struct Terminal {
    bar: ProgressBar,
    stopped: Arc<AtomicBool>,
}

impl Terminal {
    fn new() -> anyhow::Result<Self> {
        let bar = ProgressBar::new(100).with_style(ProgressStyle::with_template("{bar:20} {elapsed} {msg}")?);
        Ok(Self { bar, stopped: stopping() })
    }
}

impl Observer for Terminal {
    fn progress(&self, progress: &Progress) {
        self.bar.set_position((progress.fraction * 100.0) as u64);
        let best = progress.best.map_or_else(String::new, |best| format!(", best {best:.2}×"));
        self.bar.set_message(format!("{}{best}", progress.message));
    }

    fn cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whoever types the command wants their code to run.
    fn confirm(&self, _: &str) -> bool {
        true
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn budgets_are_read_in_seconds_and_minutes() {
        assert_eq!(seconds("60s"), Ok(60.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("7"), Ok(7.0));
        assert!(seconds("soon").is_err() && seconds("-1s").is_err() && seconds("inf").is_err());
    }
}
