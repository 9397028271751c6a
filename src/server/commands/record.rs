//! Recording of a workload from the editor: the user's program runs under the recorder, on a thread of its own.
//!
//! The command [`RECORD`] takes `{uri}` to run the file, or `{uri, again: true}` to run the command that recorded
//! its calls last. It answers at once with `{job}`, which is also the token of the progress; the command
//! `warpsmith.cancel` accepts it, too.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use judge::Devices;
use model::kernel::main_guard;
use model::syntax::Span;
use search::{Observer, Progress};
use workload::{RecordRequest, RecordedCommand, RecordingError, RecordingResult, describe, last_lines};

use crate::server::action_request::ActionRequest;
use crate::server::jobs::{CANCEL, RecordingProcess};
use crate::server::owner::{Owner, panic_text};
use crate::server::progress::{self, ProgressReporter};
use crate::server::reply::refused;
use crate::server::unit::Unit;

/// The command that records a workload.
pub(crate) const RECORD: &str = "warpsmith.record";

/// Number of calls that a message names.
const SHOWN: usize = 5;

#[derive(Deserialize)]
pub(crate) struct RecordParams {
    uri: lsp::Uri,
    #[serde(default)]
    again: bool,
}

/// The kind of the actions, which edit nothing.
pub(crate) fn kind() -> lsp::CodeActionKind {
    RECORD.to_owned().into()
}

impl Owner {
    /// The actions that record a workload of the file: at kernels, at functions that launch them, and where the
    /// file runs itself.
    pub(crate) fn record_actions(&mut self, place: &ActionRequest<'_>) -> Vec<lsp::CodeAction> {
        let unit = place.unit;
        let guard = main_guard(&unit.source);
        let Some(here) = unit.span(place.uri, place.range, place.encoding) else { return Vec::new() };
        let is_at = |span: Span| span.meets(here);
        let is_host = || unit.module.hosts.iter().any(|host| is_at(host.span));
        if place.kernel().is_none() && !guard.is_some_and(is_at) && !is_host() {
            return Vec::new();
        }
        let action = |title: String| lsp::CodeAction { title, kind: Some(kind()), ..lsp::CodeAction::default() };
        let with = |title: String, command: &str, argument: Value| {
            let (command, arguments) = (command.to_owned(), Some(vec![argument]));
            let command = lsp::Command { title: title.clone(), tooltip: None, command, arguments };
            lsp::CodeAction { command: Some(command), ..action(title) }
        };
        if let Some(id) = self.jobs.recording(&unit.uri) {
            return vec![with("Stop recording a workload".to_owned(), CANCEL, json!({ "job": id }))];
        }
        let run = unit.path.as_deref().and_then(|path| Some((path, self.other_run(path)?)));
        if guard.is_none() && run.is_none() {
            return Vec::new();
        }
        if let Err(reason) = self.may_record(unit) {
            let disabled = Some(lsp::CodeActionDisabled { reason });
            let disabled = lsp::CodeAction { disabled, ..action("Record a workload".to_owned()) };
            return Vec::from_iter(place.client.disabled_actions.then_some(disabled));
        }
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut actions = Vec::new();
        if let (Some(_), Some(path)) = (guard, &unit.path) {
            let title = format!("Record a workload: python {}", name(path));
            actions.push(with(title, RECORD, json!({ "uri": unit.uri })));
        }
        if let Some((_, run)) = &run {
            let title = format!("Record a workload: {}", shown(run));
            actions.push(with(title, RECORD, json!({ "uri": unit.uri, "again": true })));
        }
        actions
    }

    /// The command that recorded calls of a file last, unless it just runs the file.
    fn other_run(&self, path: &Path) -> Option<RecordedCommand> {
        let run = self.documents.run_of(path)?;
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_file = |word: &String| std::fs::canonicalize(run.folder.join(word)).is_ok_and(|file| file == path);
        let is_plain = matches!(run.words.as_slice(), [_, file] if is_file(file));
        (!is_plain).then_some(run)
    }

    /// Whether the user's program may be run at the user's request.
    fn may_record(&mut self, unit: &Unit) -> std::result::Result<(), String> {
        let reason = if !self.trusted {
            "this workspace is not trusted, and recording runs its code"
        } else if unit.is_notebook {
            "calls of notebooks cannot be recorded; move them to a Python file"
        } else if unit.path.is_none() {
            "save the file first"
        } else if self.resolved(unit).environment.is_none() {
            "no Python interpreter was found; name one in the setting `python`"
        } else {
            match &self.devices {
                None => "still looking for CUDA devices",
                Some(Devices::Missing(reason)) => reason.as_str(),
                Some(Devices::Found(_)) => return Ok(()),
            }
        };
        Err(reason.to_owned())
    }

    /// Runs the file, or the command that recorded its calls last.
    pub(crate) fn start_recording(&mut self, arguments: RecordParams) -> Result<String> {
        let unit = self.documents.unit(&arguments.uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        self.may_record(&unit).map_err(refused)?;
        if self.jobs.recording(&unit.uri).is_some() {
            return Err(refused("a workload of this file is being recorded already".to_owned()));
        }
        let (to_record, shown) = self.what_to_run(&unit, arguments.again).map_err(refused)?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let (watcher, states) = ProgressReporter::new(Arc::clone(&cancelled), self.client.clone());
        let title = format!("Recording {shown}");
        let recording = RecordingProcess { uri: unit.uri.clone(), shown, cancelled };
        let (id, running) = self.jobs.begin_recording(recording);
        if self.capabilities.progress {
            progress::show(&self.client, id.clone(), title, states);
        }
        let memory = self.resolved(&unit).settings.memory.clone();
        let (record, events, job) = (Arc::clone(&self.tools.record), self.events.clone(), id.clone());
        let work = move || {
            watcher.progress(&Progress::before("the program runs"));
            let result = catch_unwind(AssertUnwindSafe(|| record(&to_record, &|| !watcher.cancelled())));
            let result = result.unwrap_or_else(|panic| {
                let why = format!("it crashed, which is a bug: {}", panic_text(&*panic));
                Err(RecordingError::Io(std::io::Error::other(why)))
            });
            if let Ok(recorded) = &result {
                learn::learn_from(&to_record.python, &learn::crashed(&recorded.failed), "recording", &memory);
            }
            watcher.end(match &result {
                Ok(_) => "done",
                Err(RecordingError::Cancelled) => "stopped",
                Err(_) => "failed",
            });
            events.run(move |owner| owner.recording_ended(&job, result));
            drop(running);
        };
        if let Err(error) = std::thread::Builder::new().name("record".to_owned()).spawn(work) {
            self.jobs.end_recording(&id);
            return Err(refused(format!("could not start a thread: {error}")));
        }
        Ok(id)
    }

    /// The command to run, and its text for the user.
    fn what_to_run(&mut self, unit: &Unit, again: bool) -> std::result::Result<(RecordRequest, String), String> {
        let resolved = self.resolved(unit);
        let (Some(path), Some(environment)) = (unit.path.clone(), resolved.environment.as_ref()) else {
            return Err("the file has no place or no interpreter".to_owned());
        };
        let python = environment.python.clone();
        let (command, folder, shown) = if again {
            let run = self.documents.run_of(&path).ok_or("no earlier command has recorded calls of this file")?;
            (command(&run, &python), run.folder.clone(), shown(&run))
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
            (vec![python.clone().into_os_string(), path.into_os_string()], folder, format!("python {name}"))
        };
        let device = self.devices.as_ref().and_then(|devices| devices.name().ok()).unwrap_or_default();
        let (workspace, limits) = (self.root_of(unit), store::RetentionLimits::from(&resolved.settings.workloads));
        Ok((RecordRequest { workspace, folder, command, python, device, quiet: true, limits, entry: None }, shown))
    }

    /// Handles the end of a program: shows what was recorded.
    fn recording_ended(&mut self, id: &str, result: std::result::Result<RecordingResult, RecordingError>) {
        if self.documents.refresh_imports() {
            self.check_all_again();
        }
        let Some(RecordingProcess { shown, .. }) = self.jobs.end_recording(id) else { return };
        let (kind, text) = match result {
            Err(RecordingError::Cancelled) => return,
            Err(error) => (lsp::MessageType::Error, format!("`{shown}` could not be recorded: {error}")),
            Ok(recorded) => told(&recorded, &shown),
        };
        self.client.show(kind, text);
    }
}

/// The message about a recording, with its severity.
fn told(recorded: &RecordingResult, shown: &str) -> (lsp::MessageType, String) {
    let is_failed = recorded.status != Some(0);
    let failure = format!("`{shown}` failed: {}", last_lines(&recorded.output));
    let left_out: Vec<String> = recorded.left_out.iter().take(SHOWN).map(ToString::to_string).collect();
    if recorded.workloads.is_empty() && left_out.is_empty() {
        return if is_failed {
            (lsp::MessageType::Error, failure)
        } else {
            let text = format!("`{shown}` ran and called no function of this workspace that launches a kernel.");
            (lsp::MessageType::Warning, text)
        };
    }
    let mut calls: Vec<String> = recorded.workloads.iter().take(SHOWN).map(describe).collect();
    if recorded.workloads.len() > SHOWN {
        calls.push(format!("and {} more", recorded.workloads.len() - SHOWN));
    }
    let recorded = if calls.is_empty() { "nothing".to_owned() } else { calls.join("; ") };
    let left_out: String = left_out.iter().map(|one| format!(" But {one}.")).collect();
    let calls = format!("Recorded {recorded}.{left_out}");
    if is_failed {
        (lsp::MessageType::Warning, format!("{calls} Then {failure}"))
    } else if !left_out.is_empty() {
        (lsp::MessageType::Warning, calls)
    } else {
        (lsp::MessageType::Info, calls)
    }
}

/// The words of a command that is run again. A bare `python` is replaced by the project's interpreter, because the
/// server does not know which one the user's shell has.
fn command(run: &RecordedCommand, python: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = run.words.iter().map(OsString::from).collect();
    if let (Some(first), Some(word)) = (run.words.first(), words.first_mut()) {
        if first.contains('/') {
            *word = run.folder.join(first).into_os_string();
        } else if first.starts_with("python") {
            *word = python.as_os_str().to_owned();
        }
    }
    words
}

/// A command for the user, with only the file name of the program.
fn shown(run: &RecordedCommand) -> String {
    let program = run.words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let rest = run.words.iter().skip(1).map(String::as_str);
    std::iter::once(&*program.to_string_lossy()).chain(rest).collect::<Vec<_>>().join(" ")
}
