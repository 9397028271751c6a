//! `warpsmith optimize FILE`: searches for a faster kernel, and shows or applies it.

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

use runtime::python::environment::PythonEnvironment;
use search::{Observer, Offer, OptimizeScope, Progress, SearchAction, SearchOutcome, SearchRequest, Speedup};

use super::exit_status::FOUND;
use super::interrupt::stopping;
use super::send_consent::agreed;

/// Arguments of `optimize`.
#[derive(Debug, clap::Args)]
pub(super) struct OptimizeArgs {
    /// The Python file with the kernel
    #[arg(required_unless_present_any = ["resume", "measure"])]
    file: Option<PathBuf>,
    /// The kernel [default: all that one call of the file launches]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resume", "function"])]
    kernel: Option<String>,
    /// The function whose kernels are optimized, such as `Model.forward`
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    function: Option<String>,
    /// Resume a run that was stopped or crashed; `last` is the latest one
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// Compare the speed of the file with its version at the start of a run; `last` is the latest one
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "kernel", "function", "apply"])]
    measure: Option<String>,
    /// Rank candidates by a performance model of a GPU that this machine does not have, such as `h200`; nothing is run
    /// (default: the setting `evaluator.predict`)
    #[arg(long, value_name = "GPU", conflicts_with_all = ["measure", "apply"])]
    predict: Option<String>,
    /// How long to search, such as `60s` or `5m` (default: the setting `optimize.budget`)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    budget: Option<f64>,
    /// Show the change as a diff (the default)
    #[arg(long, group = "form")]
    diff: bool,
    /// Write the faster version to the file
    #[arg(long, group = "form")]
    apply: bool,
    /// Consent to sending text to the language model of the settings, without being asked
    #[arg(long)]
    send: bool,
    /// Print the result as JSON
    #[arg(long, group = "form")]
    json: bool,
}

pub(super) fn run(args: &OptimizeArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let request = request(args)?;
    let outcome = search::optimize(&request, &Terminal::new(args.send)?)?;
    report(args, &request, &outcome, out)?;
    let is_found = outcome.offer.is_some() || args.measure.is_some();
    Ok(if is_found { ExitCode::SUCCESS } else { ExitCode::from(FOUND) })
}

/// The request for a search: for the named file, or for that of the run that is resumed.
fn request(args: &OptimizeArgs) -> anyhow::Result<SearchRequest> {
    let named = args.file.as_deref().map(config::absolute).transpose()?;
    let folder = match &named {
        Some(file) => file.parent().unwrap_or(Path::new("/")).to_owned(),
        None => std::env::current_dir()?,
    };
    let loaded = crate::settings::load(&folder)?;
    let workspace = loaded.project(&folder);
    let asked = args.kernel.clone().map(OptimizeScope::Kernel).or(args.function.clone().map(OptimizeScope::Function));
    let (mut file, mut subject, mut budget) = (named.unwrap_or_default(), asked.unwrap_or_default(), args.budget);
    if let Some(run) = args.resume.as_ref().or(args.measure.as_ref()) {
        let (of, asked, given) = search::resumable(&workspace, run)?;
        (subject, budget) = (asked, budget.or(Some(given)));
        if args.file.is_none() {
            file = of;
        }
    }
    let text = fs::read_to_string(&file).with_context(|| {
        let shown = args.file.as_ref().unwrap_or(&file);
        format!("{} cannot be read", shown.display())
    })?;
    let Some(environment) = PythonEnvironment::of_project(&loaded, &folder) else {
        bail!("no Python found; activate the project's environment or set `python` in warpsmith.toml");
    };
    let mut settings = loaded.settings;
    settings.optimize.budget = budget.unwrap_or(settings.optimize.budget);
    settings.evaluator.predict = args.predict.clone().unwrap_or(settings.evaluator.predict);
    if args.apply && !settings.evaluator.predict.is_empty() {
        bail!("what a model predicts is not written to a file: leave out --apply and look at the change");
    }
    let python = environment.python;
    let go_on = args.resume.clone().map(SearchAction::GoOn);
    let work = go_on.or(args.measure.clone().map(SearchAction::Measure)).unwrap_or_default();
    Ok(SearchRequest { file, text, subject, workspace, python, settings, work })
}

fn report(
    args: &OptimizeArgs,
    request: &SearchRequest,
    outcome: &SearchOutcome,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let diff = outcome.offer.as_ref().map(|offer| unified(args, request, offer));
    if args.json {
        let mut value = serde_json::to_value(outcome)?;
        value["diff"] = json!(diff);
        value["text"] = json!(outcome.offer.as_ref().map(|offer| &offer.text));
        return Ok(writeln!(out, "{value:#}")?);
    }
    if let (Some(offer), true) = (&outcome.offer, args.apply) {
        let now = fs::read_to_string(&request.file).unwrap_or_default();
        if now != request.text {
            bail!("{} has changed meanwhile; nothing was written. {}", name(args, request), outcome.summary);
        }
        fs::write(&request.file, &offer.text).with_context(|| format!("{} cannot be written", name(args, request)))?;
    } else if let Some(diff) = diff {
        write!(out, "{diff}")?;
    }
    writeln!(out, "{}", outcome.summary)?;
    if let Some(offer) = &outcome.offer {
        let Speedup { conditions, pairs, predicted, .. } = &offer.speedup;
        if *predicted {
            writeln!(out, "Predicted for {conditions}: measure it on a GPU before you use it.")?;
        } else {
            writeln!(out, "Measured on {conditions}, {pairs} pairs.")?;
        }
    }
    Ok(())
}

fn unified(args: &OptimizeArgs, request: &SearchRequest, offer: &Offer) -> String {
    let name = name(args, request);
    TextDiff::from_lines(&request.text, &offer.text).unified_diff().header(&name, &name).to_string()
}

/// The file name as it was given.
fn name(args: &OptimizeArgs, request: &SearchRequest) -> String {
    args.file.as_ref().unwrap_or(&request.file).display().to_string()
}

/// `90`, `90s`, `1.5m`
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(number) => (number, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let value: f64 = number.trim().parse().map_err(|_| "write it like `60s` or `5m`".to_owned())?;
    if value.is_finite() && value > 0.0 { Ok(value * unit) } else { Err("must be more than nothing".to_owned()) }
}

/// Shows progress on standard error and stops at Ctrl-C.
pub(super) struct Terminal {
    bar: ProgressBar,
    stopped: Arc<AtomicBool>,
    /// Whether the user has agreed already to send text to a model.
    sends: bool,
}

impl Terminal {
    pub(super) fn new(sends: bool) -> anyhow::Result<Self> {
        let bar = ProgressBar::new(100).with_style(ProgressStyle::with_template("{bar:20} {elapsed} {msg}")?);
        Ok(Self { bar, stopped: stopping(), sends })
    }
}

impl Observer for Terminal {
    fn progress(&self, progress: &Progress) {
        self.bar.set_position((progress.fraction * 100.0) as u64);
        self.bar.set_message(progress.to_string());
    }

    fn cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The user who types the command consents to running the code.
    fn confirm(&self, _: &str) -> bool {
        true
    }

    fn may_send(&self, question: &str) -> bool {
        self.bar.suspend(|| agreed(question, self.sends))
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
