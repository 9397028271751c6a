//! Optimization jobs: a search on a thread of its own, its progress in the editor, and its offer.
//!
//! The command [`OPTIMIZE`] takes `{uri, kernel}` or `{uri, function}`, optionally with the fields of [`OptimizeParams`], and
//! answers at once with `{job}`. The job's name is also the token of its progress, which the user can cancel.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use judge::Devices;
use rules::apply_edits;
use runtime::python::cache_folder;
use search::{Offer, OptimizeError, OptimizeScope, SearchAction, SearchOutcome, SearchRequest, resumable};

use crate::server::action_request::Readiness;
use crate::server::jobs::{Job, JobStage};
use crate::server::owner::{Owner, panic_text};
use crate::server::progress::{self, ProgressReporter};
use crate::server::reply::refused;
use crate::server::search_feed::{self, ProgressSender};
use crate::server::unit::Unit;
use crate::server::{offer, to_lsp, writable};

/// The labels of the buttons that answer an offer.
const APPLY: &str = "Apply";
const DISCARD: &str = "Discard";
/// The command that optimizes a kernel.
pub(crate) const OPTIMIZE: &str = "warpsmith.optimize";
/// The argument of [`OPTIMIZE`].
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OptimizeParams {
    uri: lsp::Uri,
    kernel: Option<String>,
    /// The qualified name of a function; all kernels that it launches are optimized.
    function: Option<String>,
    /// Whether to ask the user how long the search may take.
    #[serde(default)]
    ask: bool,
    /// The name of a run to continue.
    run: Option<String>,
    /// Whether to only measure the file against its text before that run.
    #[serde(default)]
    measure: bool,
    /// The budget in seconds.
    budget: Option<f64>,
    /// Whether kernels may be restructured.
    rewrites: Option<bool>,
}

/// The choices for the user: the label, the budget in seconds, and whether kernels may be restructured.
const CHOICES: [(&str, f64, bool); 4] = [
    ("30 s", 30.0, true),
    ("2 minutes", 120.0, true),
    ("10 minutes", 600.0, true),
    ("1 minute, numbers only", 60.0, false),
];

impl Owner {
    /// Whether this can be optimized now.
    pub(crate) fn readiness(&mut self, unit: &Unit, subject: &OptimizeScope) -> Readiness {
        if let Some(id) = self.jobs.searching(&unit.uri, subject) {
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
            let is_elsewhere = !resolved.settings.evaluator.is_here();
            match (&self.devices, resolved.environment.is_some()) {
                (None, _) if !is_elsewhere => "still looking for CUDA devices".to_owned(),
                (Some(Devices::Missing(reason)), _) if !is_elsewhere => reason.clone(),
                (_, false) => "no Python interpreter was found; name one in the setting `python`".to_owned(),
                (_, true) => return Readiness::Ready,
            }
        };
        Readiness::Not(reason)
    }

    /// Starts a search and returns the job's name, or asks the user for its settings and returns `None`.
    pub(crate) fn start_search(&mut self, asked: OptimizeParams) -> Result<Option<String>> {
        let unit = self.documents.unit(&asked.uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let subject = asked.subject(&unit)?;
        let name = subject.name().unwrap_or_default().to_owned();
        match self.readiness(&unit, &subject) {
            Readiness::Ready => {}
            Readiness::Running(_) => return Err(refused(format!("`{name}` is being optimized already"))),
            Readiness::Not(reason) => return Err(refused(reason)),
        }
        let (Some(request), id) = (self.request(&unit, &subject, &asked), self.jobs.next_id("optimize")) else {
            return Err(refused("the file has no place or no interpreter".to_owned()));
        };
        if asked.ask {
            let text = format!("How long may the search for a faster `{name}` take?");
            let events = self.events.clone();
            self.client.ask(text, &CHOICES.map(|(title, ..)| title), move |choice| {
                let Some(choice) = choice else { return };
                events.run(move |owner| owner.settings_chosen(&asked, &choice));
            });
            return Ok(None);
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let (mut watcher, states) = ProgressReporter::new(Arc::clone(&cancelled), self.client.clone());
        watcher.takes_model = self.capabilities.takes_model;
        if self.capabilities.takes_search && !asked.measure {
            let (teller, feed) = ProgressSender::new(&unit.uri, &subject, request.settings.optimize.budget);
            watcher.teller = Some(teller);
            search_feed::send_news(&self.client, id.clone(), feed);
        }
        if self.capabilities.progress {
            let what = if asked.measure { "Measuring" } else { "Optimizing" };
            let title = format!("{what} {name}");
            progress::show(&self.client, id.clone(), title, states);
        }
        self.search(&id, request, watcher).map_err(|error| refused(format!("could not start a thread: {error}")))?;
        self.jobs.jobs.insert(id.clone(), Job { unit, subject, cancelled, stage: JobStage::Searching });
        self.refresh_lenses();
        Ok(Some(id))
    }

    /// Starts the search with the duration that the user chose.
    fn settings_chosen(&mut self, asked: &OptimizeParams, choice: &str) {
        let Some(&(_, budget, rewrites)) = CHOICES.iter().find(|(title, ..)| *title == choice) else { return };
        let asked = OptimizeParams { ask: false, budget: Some(budget), rewrites: Some(rewrites), ..asked.clone() };
        if let Err(error) = self.start_search(asked) {
            self.client.show(lsp::MessageType::Error, error.message.to_string());
        }
    }

    fn request(&mut self, unit: &Unit, subject: &OptimizeScope, asked: &OptimizeParams) -> Option<SearchRequest> {
        let workspace = self.root_of(unit);
        let resolved = self.resolved(unit);
        let mut settings = resolved.settings.clone();
        let of_run = asked.run.as_ref().and_then(|run| resumable(&workspace, run).ok()).map(|(.., budget)| budget);
        let optimize = &mut settings.optimize;
        optimize.budget = asked.budget.or(of_run).unwrap_or(optimize.budget);
        optimize.rewrites = asked.rewrites.unwrap_or(optimize.rewrites);
        Some(SearchRequest {
            work: match (&asked.run, asked.measure) {
                (Some(run), true) => SearchAction::Measure(run.clone()),
                (Some(run), false) => SearchAction::GoOn(run.clone()),
                (None, _) => SearchAction::Search,
            },
            file: unit.path.clone()?,
            text: unit.source.text().to_string(),
            subject: subject.clone(),
            workspace,
            python: resolved.environment.as_ref()?.python.clone(),
            settings,
        })
    }

    fn search(&self, id: &str, request: SearchRequest, watcher: ProgressReporter) -> std::io::Result<()> {
        let (optimize, events) = (Arc::clone(&self.tools.optimize), self.events.clone());
        let (id, running) = (id.to_owned(), self.jobs.running.clone());
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(|| optimize(&request, &watcher)));
            let result = result.unwrap_or_else(|panic| {
                Err(OptimizeError::Failed(format!("the search crashed, which is a bug: {}", panic_text(&*panic))))
            });
            if let Some(teller) = &watcher.teller {
                teller.end(&result);
            }
            watcher.end(match &result {
                Ok(outcome) => &outcome.summary,
                Err(OptimizeError::Cancelled) => "stopped",
                Err(OptimizeError::Declined(_)) => "nothing was run",
                Err(OptimizeError::Failed(_)) => "failed",
            });
            events.run(move |owner| owner.job_ended(&id, result));
            drop(running);
        };
        std::thread::Builder::new().name("optimize".to_owned()).spawn(run).map(drop)
    }

    /// Handles the end of a search: tells the user, or offers the result.
    fn job_ended(&mut self, id: &str, result: std::result::Result<SearchOutcome, OptimizeError>) {
        // The search may have recorded launches.
        if self.documents.refresh_imports() {
            self.check_all_again();
        }
        self.jobs.look_for_runs();
        self.refresh_lenses();
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let kernel = job.name().to_owned();
        match result {
            Ok(SearchOutcome { offer: Some(offer), .. }) => return self.offer(id, offer),
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

    /// Offers a faster text: as an edit that the client asks the user to confirm where it can, else after a
    /// question. A prediction is always offered with a question.
    fn offer(&mut self, id: &str, offer: Offer) {
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let kernel = job.name().to_owned();
        let label = offer.speedup.label();
        if !self.capabilities.applies_edits {
            let text =
                format!("`{kernel}` can be {label}, but this editor does not let servers edit: {}", offer.change);
            self.client.show(lsp::MessageType::Info, text);
            self.jobs.jobs.remove(id);
        } else if self.capabilities.annotated_edits && !offer.speedup.predicted {
            self.apply(id, &offer, true);
        } else {
            let text = format!("`{kernel}`: {label}. {}", offer::description(&offer));
            let (events, job) = (self.events.clone(), id.to_owned());
            self.client.ask(text, &[APPLY, DISCARD], move |choice| {
                let yes = choice.as_deref() == Some(APPLY);
                events.run(move |owner| owner.offer_answered(&job, yes));
            });
            self.jobs.set_stage(id, JobStage::Asking(Box::new(offer)));
        }
    }

    /// Handles the user's answer to the question.
    fn offer_answered(&mut self, id: &str, yes: bool) {
        match self.jobs.jobs.get_mut(id).map(|job| std::mem::replace(&mut job.stage, JobStage::Searching)) {
            Some(JobStage::Asking(offer)) if yes => self.apply(id, &offer, false),
            _ => drop(self.jobs.jobs.remove(id)),
        }
    }

    /// Asks the client to edit the present text, unless it has changed where it matters.
    fn apply(&mut self, id: &str, offer: &Offer, confirm: bool) {
        let Some(job) = self.jobs.jobs.get(id) else { return };
        let (uri, kernel) = (job.unit.uri.clone(), job.name().to_owned());
        let label = offer.speedup.label();
        let Some(now) = self.documents.unit(&uri) else {
            let text = format!("`{kernel}` can be {label}, but its file was closed. ({})", offer.change);
            self.client.show(lsp::MessageType::Warning, text);
            self.jobs.jobs.remove(id);
            return;
        };
        let edit = (|| {
            let edits = offer::rebase(job.unit.source.text(), &offer.edits, &job.spans(), now.source.text())?;
            let (part, lsp_edits) = to_lsp::edits(&now, &edits, self.encoding)?;
            let edit = if confirm {
                to_lsp::annotated_edit(&part.uri, part.version, lsp_edits, &label, offer::description(offer), id)
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
            let diff = offer::diff(job.unit.source.text(), &offer.text, job.unit.path.as_deref());
            self.client.show(lsp::MessageType::Warning, text);
            self.show_diff(&kernel, diff);
            self.jobs.jobs.remove(id);
            return;
        };
        let (events, job, label) = (self.events.clone(), id.to_owned(), format!("{kernel}: {label}"));
        self.client.concurrently(|client| async move {
            let params = lsp::ApplyWorkspaceEditParams { label: Some(label), edit, metadata: None };
            let result = match client.send_request::<lsp::ApplyWorkspaceEditRequest>(params).await {
                Ok(answer) if answer.applied => Ok(()),
                Ok(answer) => Err(answer.failure_reason),
                Err(error) => Err(Some(error.to_string())),
            };
            events.run(move |owner| owner.offer_applied(&job, result));
        });
        self.jobs.set_stage(id, JobStage::Applying { text, was_asked: !confirm });
    }

    /// Opens the diff of a change that cannot be applied, so that the user can apply it by hand.
    fn show_diff(&self, kernel: &str, diff: String) {
        let (client, can_open) = (self.client.clone(), self.capabilities.shows_documents);
        let path = cache_folder().join("offers").join(format!("{}.diff", kernel.replace(['/', '.', '<', '>'], "-")));
        if !can_open {
            return;
        }
        let write = move || {
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            match (folder.and_then(|()| std::fs::write(&path, diff)), lsp::Uri::from_file_path(&path)) {
                (Ok(()), Ok(uri)) => client.show_document(uri),
                (Err(error), _) => tracing::warn!(%error, "the diff cannot be shown"),
                _ => {}
            }
        };
        // The owner does not write files; if no thread can be started, the report still contains the change.
        let _ = std::thread::Builder::new().name("diff".to_owned()).spawn(write);
    }

    /// Handles the client's answer to the edit. Some clients report success when the user declined, so the text
    /// decides.
    fn offer_applied(&mut self, id: &str, result: std::result::Result<(), Option<String>>) {
        let Some(job) = self.jobs.jobs.remove(id) else { return };
        let name = job.name().to_owned();
        let JobStage::Applying { text, was_asked } = job.stage else { return };
        let now = self.documents.unit(&job.unit.uri);
        let is_there = now.is_some_and(|now| **now.source.text() == text);
        tracing::info!(id, ?result, is_there, "the offer was answered");
        // Without a reason it was the user who declined the edit, so no message is needed.
        if let Err(reason) = result
            && (was_asked || reason.is_some())
        {
            let reason = reason.unwrap_or_else(|| "the editor did not say why".to_owned());
            let text = format!("The faster `{name}` was not applied: {reason}");
            self.client.show(lsp::MessageType::Warning, text);
        }
    }
}

impl OptimizeParams {
    /// The part of the file that the argument names.
    fn subject(&self, unit: &Unit) -> Result<OptimizeScope> {
        let module = &unit.module;
        let missing = |what: &str, name: &str| refused(format!("there is no {what} `{name}`"));
        match (&self.kernel, &self.function) {
            (Some(name), _) => {
                let found = module.kernel(name).map(|kernel| OptimizeScope::Kernel(kernel.name.clone()));
                found.ok_or_else(|| missing("kernel", name))
            }
            (None, Some(name)) => {
                let is_there =
                    module.hosts.iter().any(|host| host.qualname == *name) || writable::is_writable(unit, name);
                is_there.then(|| OptimizeScope::Function(name.clone())).ok_or_else(|| missing("function", name))
            }
            (None, None) => match module.kernels.as_slice() {
                [kernel] => Ok(OptimizeScope::Kernel(kernel.name.clone())),
                kernels => Err(refused(format!("the file has {} kernels: name one", kernels.len()))),
            },
        }
    }
}
