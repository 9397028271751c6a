//! Jobs: a search on a thread of its own, its progress in the editor, and what becomes of its offer.
//!
//! The commands: [`OPTIMIZE`] takes `{uri, kernel}` and answers at once with `{job}`; [`CANCEL`] takes `{job}`. The job's
//! name is also the token of its progress, so `window/workDoneProgress/cancel` does the same.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::client::Call;
use super::code_action::Readiness;
use super::event::Event;
use super::owner::Owner;
use super::progress::Watcher;
use super::record::{RECORD, Recording};
use super::report::REPORT;
use super::survey::RESOURCES;
use super::unit::Unit;
use super::{offer, to_lsp};
use crate::evaluate::Devices;
use crate::explore::{Offer, OptimizeError, Outcome, Request};
use crate::kernel::Kernel;
use crate::rules::apply_edits;

/// The command that optimizes a kernel.
pub(super) const OPTIMIZE: &str = "warpsmith.optimize";
/// The command that stops a job.
pub(super) const CANCEL: &str = "warpsmith.cancel";

/// How long searches may take to stop when the server ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// LSP's code of a request that is right but cannot be done.
const REQUEST_FAILED: ErrorCode = ErrorCode::ServerError(-32803);

#[derive(Deserialize)]
struct OptimizeArguments {
    uri: lsp::Uri,
    kernel: Option<String>,
}

#[derive(Deserialize)]
struct CancelArguments {
    job: String,
}

/// A search, from its start until its offer was taken or not.
struct Job {
    /// The text that is searched on.
    unit: Rc<Unit>,
    kernel: Kernel,
    cancelled: Arc<AtomicBool>,
    stage: Stage,
}

enum Stage {
    Searching,
    /// The user is asked.
    Asking(Box<Offer>),
    /// The editor applies an edit that should lead to this text.
    Applying {
        text: String,
        was_asked: bool,
    },
}

/// All jobs.
pub(super) struct Jobs {
    jobs: HashMap<String, Job>,
    recordings: HashMap<String, Recording>,
    /// The run of the last search of a kernel that has ended.
    runs: HashMap<(lsp::Uri, String), String>,
    count: usize,
    /// Each search and each recording holds a sender until it has ended.
    running: mpsc::Sender<()>,
    all_ended: mpsc::Receiver<()>,
}

impl Default for Jobs {
    fn default() -> Self {
        let (running, all_ended) = mpsc::channel();
        let (jobs, recordings, runs) = Default::default();
        Self { jobs, recordings, runs, count: 0, running, all_ended }
    }
}

impl Jobs {
    fn next_id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("warpsmith/{kind}/{}", self.count)
    }

    /// Takes in a recording that begins; its thread holds the sender until it has ended.
    pub(super) fn begin_recording(&mut self, recording: Recording) -> (String, mpsc::Sender<()>) {
        let id = self.next_id("record");
        self.recordings.insert(id.clone(), recording);
        (id, self.running.clone())
    }

    /// A recording has ended.
    pub(super) fn end_recording(&mut self, id: &str) -> Option<Recording> {
        self.recordings.remove(id)
    }

    /// The recording that a file is run for.
    pub(super) fn recording(&self, uri: &lsp::Uri) -> Option<&String> {
        self.recordings.iter().find(|(_, recording)| recording.uri == *uri).map(|(id, _)| id)
    }

    fn flags(&self) -> impl Iterator<Item = (&String, &Arc<AtomicBool>)> {
        let searches = self.jobs.iter().map(|(id, job)| (id, &job.cancelled));
        searches.chain(self.recordings.iter().map(|(id, recording)| (id, &recording.cancelled)))
    }

    fn set_stage(&mut self, id: &str, stage: Stage) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.stage = stage;
        }
    }

    /// The run of the last search of a kernel that has ended.
    pub(super) fn last_run(&self, uri: &lsp::Uri, kernel: &str) -> Option<&String> {
        self.runs.get(&(uri.clone(), kernel.to_owned()))
    }

    /// The search that is running on a kernel.
    fn searching(&self, uri: &lsp::Uri, kernel: &str) -> Option<&String> {
        let wanted =
            |job: &Job| matches!(job.stage, Stage::Searching) && job.unit.uri == *uri && job.kernel.name == kernel;
        self.jobs.iter().find(|(_, job)| wanted(job)).map(|(id, _)| id)
    }

    /// Asks a job to stop. Returns whether there is such a job.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let found = self.flags().find(|(known, _)| *known == id);
        found.inspect(|(_, cancelled)| cancelled.store(true, Ordering::SeqCst)).is_some()
    }

    /// Asks all jobs to stop.
    pub(super) fn cancel_all(&self) {
        self.flags().for_each(|(_, cancelled)| cancelled.store(true, Ordering::SeqCst));
    }

    /// Stops all jobs and waits a while for it.
    pub(super) fn stop(self) {
        self.cancel_all();
        drop(self.running);
        if self.all_ended.recv_timeout(STOP_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("a search or a recording did not stop in time");
        }
    }
}

impl Owner {
    /// Runs a command.
    pub(super) fn command(&mut self, params: lsp::ExecuteCommandParams) -> Result<Option<Value>> {
        let argument = params.arguments.unwrap_or_default().into_iter().next().unwrap_or_default();
        match params.command.as_str() {
            OPTIMIZE => {
                let id = self.start(read(argument)?)?;
                Ok(Some(json!({ "job": id })))
            }
            CANCEL => {
                let CancelArguments { job } = read(argument)?;
                Ok(Some(json!({ "cancelled": self.jobs.cancel(&job) })))
            }
            RECORD => {
                let id = self.start_recording(read(argument)?)?;
                Ok(Some(json!({ "job": id })))
            }
            RESOURCES => self.resources_command(argument),
            REPORT => self.report_command(argument),
            other => Err(Error::invalid_params(format!("there is no command `{other}`"))),
        }
    }

    /// Whether a kernel can be optimized now.
    pub(super) fn readiness(&mut self, unit: &Unit, kernel: &str) -> Readiness {
        if let Some(id) = self.jobs.searching(&unit.uri, kernel) {
            return Readiness::Running(id.clone());
        }
        let reason = if !self.trusted {
            "this workspace is not trusted, and optimizing runs its code".to_owned()
        } else if unit.is_notebook {
            "kernels in notebooks cannot be optimized; move it to a Python file".to_owned()
        } else if unit.path.is_none() {
            "save the file first".to_owned()
        } else {
            let resolved = self.resolved(unit);
            let is_elsewhere = !resolved.settings.evaluator.command.is_empty();
            match (&self.devices, resolved.environment.is_some()) {
                (None, _) if !is_elsewhere => "still looking for CUDA devices".to_owned(),
                (Some(Devices::Missing(reason)), _) if !is_elsewhere => reason.clone(),
                (_, false) => "no Python interpreter was found; name one in the setting `python`".to_owned(),
                (_, true) => return Readiness::Ready,
            }
        };
        Readiness::Not(reason)
    }

    fn start(&mut self, arguments: OptimizeArguments) -> Result<String> {
        let unit = self.documents.unit(&arguments.uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let kernel = match &arguments.kernel {
            Some(name) => unit.module.kernel(name).ok_or_else(|| refused(format!("there is no kernel `{name}`")))?,
            None => match unit.module.kernels.as_slice() {
                [kernel] => kernel,
                kernels => return Err(refused(format!("the file has {} kernels: name one", kernels.len()))),
            },
        };
        match self.readiness(&unit, &kernel.name) {
            Readiness::Ready => {}
            Readiness::Running(_) => return Err(refused(format!("`{}` is being optimized already", kernel.name))),
            Readiness::Not(reason) => return Err(refused(reason)),
        }
        let kernel = kernel.clone();
        let (Some(request), id) = (self.request(&unit, &kernel), self.jobs.next_id("optimize")) else {
            return Err(refused("the file has no place or no interpreter".to_owned()));
        };
        let cancelled = Arc::new(AtomicBool::new(false));
        let (watcher, states) = Watcher::new(Arc::clone(&cancelled), self.client.clone());
        if self.capabilities.progress {
            let title = format!("Optimizing {}", kernel.name);
            self.client.send(Call::Progress { job: id.clone(), title, states });
        }
        self.search(&id, request, watcher).map_err(|error| refused(format!("could not start a thread: {error}")))?;
        self.jobs.jobs.insert(id.clone(), Job { unit, kernel, cancelled, stage: Stage::Searching });
        Ok(id)
    }

    fn request(&mut self, unit: &Unit, kernel: &Kernel) -> Option<Request> {
        let resolved = self.resolved(unit);
        Some(Request {
            resume: None,
            file: unit.path.clone()?,
            text: unit.source.text().to_string(),
            kernel: Some(kernel.name.clone()),
            workspace: self.root_of(unit),
            python: resolved.environment.as_ref()?.python.clone(),
            settings: resolved.settings.clone(),
        })
    }

    fn search(&self, id: &str, request: Request, watcher: Watcher) -> std::io::Result<()> {
        let (optimize, events) = (Arc::clone(&self.tools.optimize), self.events.clone());
        let (id, running) = (id.to_owned(), self.jobs.running.clone());
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(|| optimize(&request, &watcher)));
            let result = result.unwrap_or_else(|panic| {
                Err(OptimizeError::Failed(format!("the search crashed, which is a bug: {}", panic_text(&*panic))))
            });
            watcher.end(match &result {
                Ok(outcome) => &outcome.summary,
                Err(OptimizeError::Cancelled) => "stopped",
                Err(OptimizeError::Declined(_)) => "nothing was run",
                Err(OptimizeError::Failed(_)) => "failed",
            });
            let _ = events.send(Event::JobEnded(id, result));
            drop(running);
        };
        std::thread::Builder::new().name("optimize".to_owned()).spawn(run).map(drop)
    }

    /// A search ended: tells the user, or offers what it found.
    pub(super) fn job_ended(&mut self, id: &str, result: std::result::Result<Outcome, OptimizeError>) {
        // It may have recorded launches.
        if self.documents.look_around() {
            self.check_all_again();
        }
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let kernel = job.kernel.name.clone();
        if let Ok(Outcome { run, .. }) = &result
            && !run.is_empty()
        {
            self.jobs.runs.insert((job.unit.uri.clone(), kernel.clone()), run.clone());
        }
        match result {
            Ok(Outcome { offer: Some(offer), .. }) => return self.offer(id, offer),
            Ok(outcome) => self.client.show(lsp::MessageType::Info, outcome.summary),
            Err(OptimizeError::Cancelled) => {}
            Err(OptimizeError::Declined(text)) => {
                self.client.show(lsp::MessageType::Info, format!("`{kernel}` was not optimized: {text}"));
            }
            Err(OptimizeError::Failed(text)) => {
                self.client.show(lsp::MessageType::Error, format!("Optimizing `{kernel}` failed: {text}"));
            }
        }
        self.jobs.jobs.remove(id);
    }

    /// Offers a faster text: as an edit to confirm where the client can, else after a question.
    fn offer(&mut self, id: &str, offer: Offer) {
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let kernel = job.kernel.name.clone();
        let label = offer.speedup.label();
        if !self.capabilities.applies_edits {
            let text =
                format!("`{kernel}` can be {label}, but this editor does not let servers edit: {}", offer.change);
            self.client.show(lsp::MessageType::Info, text);
            self.jobs.jobs.remove(id);
        } else if self.capabilities.annotated_edits {
            self.apply(id, &offer, true);
        } else {
            let text = format!("`{kernel}`: {label}. {}", offer::description(&offer));
            self.client.send(Call::AskOffer { job: id.to_owned(), text });
            self.jobs.set_stage(id, Stage::Asking(Box::new(offer)));
        }
    }

    /// The user answered the question.
    pub(super) fn offer_answered(&mut self, id: &str, yes: bool) {
        match self.jobs.jobs.get_mut(id).map(|job| std::mem::replace(&mut job.stage, Stage::Searching)) {
            Some(Stage::Asking(offer)) if yes => self.apply(id, &offer, false),
            _ => drop(self.jobs.jobs.remove(id)),
        }
    }

    /// Has the client edit the present text, unless it changed where it matters.
    fn apply(&mut self, id: &str, offer: &Offer, confirm: bool) {
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let (uri, kernel) = (job.unit.uri.clone(), job.kernel.name.clone());
        let label = offer.speedup.label();
        let Some(now) = self.documents.unit(&uri) else {
            let text = format!("`{kernel}` can be {label}, but its file was closed. ({})", offer.change);
            self.client.show(lsp::MessageType::Warning, text);
            self.jobs.jobs.remove(id);
            return;
        };
        let edit = (|| {
            let edits = offer::rebase(job.unit.source.text(), &offer.edits, job.kernel.span, now.source.text())?;
            let (part, lsp_edits) = to_lsp::edits(&now, &edits, self.encoding)?;
            let edit = if confirm {
                to_lsp::annotated_edit(&part.uri, part.version, lsp_edits, &label, offer::description(offer))
            } else {
                to_lsp::workspace_edit(&self.capabilities, &part.uri, part.version, lsp_edits)
            };
            Some((edit, apply_edits(now.source.text(), &edits)))
        })();
        let Some((edit, text)) = edit else {
            let text = format!(
                "`{kernel}` can be {label}, but the result is for an older text: the kernel or a line to be edited has \
                 changed meanwhile. Optimize it again. ({})",
                offer.change
            );
            self.client.show(lsp::MessageType::Warning, text);
            self.jobs.jobs.remove(id);
            return;
        };
        self.client.send(Call::ApplyOffer { job: id.to_owned(), label: format!("{kernel}: {label}"), edit });
        self.jobs.set_stage(id, Stage::Applying { text, was_asked: !confirm });
    }

    /// The client said whether it made the edit. Some say yes when the user said no: the truth is the text.
    pub(super) fn offer_applied(&mut self, id: &str, result: std::result::Result<(), Option<String>>) {
        let Some(job) = self.jobs.jobs.remove(id) else { return };
        let Stage::Applying { text, was_asked } = job.stage else { return };
        let now = self.documents.unit(&job.unit.uri);
        let is_there = now.is_some_and(|now| **now.source.text() == text);
        tracing::info!(id, ?result, is_there, "the offer was answered");
        // Without a reason it is the user who declined the edit, and needs not be told.
        if let Err(reason) = result
            && (was_asked || reason.is_some())
        {
            let reason = reason.unwrap_or_else(|| "the editor did not say why".to_owned());
            let text = format!("The faster `{}` was not applied: {reason}", job.kernel.name);
            self.client.show(lsp::MessageType::Warning, text);
        }
    }
}

/// Why a request that is right cannot be done.
pub(super) fn refused(message: String) -> Error {
    Error { message: message.into(), ..Error::new(REQUEST_FAILED) }
}

/// The argument of a command.
pub(super) fn read<T: DeserializeOwned>(argument: Value) -> Result<T> {
    serde_json::from_value(argument).map_err(|error| Error::invalid_params(error.to_string()))
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
