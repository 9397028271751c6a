//! The owner: the one thread that holds all state. See the documentation of the parent module.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tower_lsp::gen_lsp_types as lsp;

use judge::Devices;
use model::syntax::{Encoding, Span};
use rules::RuleContext;
use rules::learned::LearnedRules;

use super::client::ClientSender;
use super::client_features::ClientFeatures;
use super::compiler_queue::CompilerQueue;
use super::documents::Documents;
use super::from_lsp;
use super::interpreters::Interpreters;
use super::jobs::Jobs;
use super::memory_state::MemoryState;
use super::quiet_learning::QuietLearning;
use super::reply::{ReplySender, answer};
use super::server_status::ServerStatus;
use super::settings::{DocumentLocation, FolderSettings, SettingsStore};
use super::tools::Tools;
use super::unit::Unit;

type Task = Box<dyn FnOnce(&mut Owner) + Send>;

enum Event {
    /// A message of the client, or the result of work on another thread.
    Task(Task),
    /// The connection to the client has ended.
    Exit,
}

/// The sending end of the owner's event queue.
#[derive(Clone)]
pub(crate) struct EventSender(mpsc::UnboundedSender<Event>);

/// The receiving end of the owner's event queue.
pub(crate) struct EventReceiver(mpsc::UnboundedReceiver<Event>);

/// Creates the owner's event queue.
pub(crate) fn events() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (EventSender(sender), EventReceiver(receiver))
}

impl EventSender {
    /// Has the owner run `task` after everything that was sent earlier. Returns whether there still is an owner; without one
    /// the server is about to end, so the task can be dropped.
    pub(crate) fn run(&self, task: impl FnOnce(&mut Owner) + Send + 'static) -> bool {
        self.0.send(Event::Task(Box::new(task))).is_ok()
    }

    /// Ends the owner.
    pub(crate) fn exit(&self) {
        let _ = self.0.send(Event::Exit);
    }
}

/// A request for the diagnostics of a document, which waits until the queue is empty.
struct Pull {
    params: lsp::DocumentDiagnosticParams,
    reply: ReplySender<lsp::DocumentDiagnosticReport>,
}

/// All state of the server.
pub(crate) struct Owner {
    pub(crate) tools: Tools,
    pub(crate) events: EventSender,
    pub(crate) client: ClientSender,
    pub(crate) capabilities: ClientFeatures,
    pub(crate) encoding: Encoding,
    pub(crate) trusted: bool,
    pub(crate) documents: Documents,
    pub(crate) devices: Option<Devices>,
    pub(crate) jobs: Jobs,
    pub(crate) compiler: CompilerQueue,
    pub(crate) memory: MemoryState,
    pub(crate) quiet_learning: QuietLearning,
    pub(crate) interpreters: Interpreters,
    pub(crate) settings: SettingsStore,
    pub(crate) folders: Vec<lsp::Uri>,
    /// Whether the editor's settings are still to come; until then nothing is checked.
    pub(crate) waits_for_settings: bool,
    /// Whether the skill memory was not read yet; until then nothing is checked, so that no disproved rule is used.
    pub(crate) waits_for_memory: bool,
    /// Whether the client accepts the server's status, and the status that it was sent last.
    pub(crate) tells_status: bool,
    pub(crate) status_told: Option<ServerStatus>,
    /// Files and notebooks whose diagnostics are to be published.
    pub(crate) unpublished: BTreeSet<lsp::Uri>,
    pulls: VecDeque<Pull>,
    has_told_of_crash: bool,
}

impl Owner {
    /// Creates an owner without documents.
    pub(crate) fn new(tools: Tools, events: EventSender, client: ClientSender) -> Self {
        Self {
            tools,
            events,
            client,
            capabilities: ClientFeatures::default(),
            encoding: Encoding::Utf16,
            trusted: true,
            documents: Documents::default(),
            devices: None,
            jobs: Jobs::default(),
            compiler: CompilerQueue::default(),
            memory: MemoryState::default(),
            quiet_learning: QuietLearning::default(),
            interpreters: Interpreters::default(),
            settings: SettingsStore::default(),
            folders: Vec::new(),
            waits_for_settings: false,
            waits_for_memory: false,
            tells_status: false,
            status_told: None,
            unpublished: BTreeSet::new(),
            pulls: VecDeque::new(),
            has_told_of_crash: false,
        }
    }

    /// Handles events until the client is gone, and checks texts when no event is waiting.
    pub(crate) fn run(mut self, EventReceiver(mut inbox): EventReceiver) {
        while let Some(event) = inbox.blocking_recv() {
            let mut next = Some(event);
            while let Some(event) = next {
                let Event::Task(task) = event else { return self.jobs.stop() };
                self.guarded(|owner| {
                    task(owner);
                    owner.tell_problems();
                    owner.tell_status();
                });
                next = inbox.try_recv().ok();
            }
            while self.settle_one() && inbox.is_empty() {}
        }
    }

    /// Runs `run` and catches a panic, which must not end the server.
    fn guarded<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| run(self))) {
            Ok(value) => Some(value),
            Err(panic) => {
                self.crashed(panic_text(&*panic));
                None
            }
        }
    }

    fn crashed(&mut self, text: &str) {
        tracing::error!(text, "a part of the server crashed");
        if !std::mem::replace(&mut self.has_told_of_crash, true) {
            let text = format!("Warpsmith hit an internal error ({text}) and continues; see its log.");
            self.client.show(lsp::MessageType::Error, text);
        }
    }

    /// Shows the user the settings that cannot be used.
    fn tell_problems(&mut self) {
        for problem in self.settings.take_problems() {
            self.client.show(lsp::MessageType::Warning, format!("Warpsmith: {problem}"));
        }
    }

    /// Notes that a document was opened or edited: it is checked and compiled again.
    pub(crate) fn edited(&mut self, uri: lsp::Uri) {
        self.compile_later(&uri);
        if !self.capabilities.pulls_diagnostics {
            self.unpublished.insert(uri);
        }
    }

    /// Drops all findings, because something has changed that they depend on.
    pub(crate) fn check_all_again(&mut self) {
        self.documents.forget_findings();
        if !self.capabilities.pulls_diagnostics {
            self.unpublished.extend(self.documents.all());
        } else if self.capabilities.refreshes_diagnostics {
            self.client.refresh_diagnostics();
        }
        if self.capabilities.refreshes_hints {
            self.client.refresh_hints();
        }
    }

    /// Asks the client to pull code lenses again.
    pub(crate) fn refresh_lenses(&self) {
        if self.capabilities.refreshes_lenses {
            self.client.refresh_lenses();
        }
    }

    /// Clears the published diagnostics of documents that were closed.
    pub(crate) fn clear(&self, uris: Vec<lsp::Uri>) {
        if !self.capabilities.pulls_diagnostics {
            for uri in uris {
                self.client.publish(lsp::PublishDiagnosticsParams { uri, version: None, diagnostics: Vec::new() });
            }
        }
    }

    /// Queues a request for diagnostics until no event is waiting, since a later edit would make the answer stale.
    pub(crate) fn pull_later(
        &mut self,
        params: lsp::DocumentDiagnosticParams,
        reply: ReplySender<lsp::DocumentDiagnosticReport>,
    ) {
        self.pulls.push_back(Pull { params, reply });
    }

    /// Does one piece of the work that waits for an empty queue. Returns whether there may be more.
    fn settle_one(&mut self) -> bool {
        if self.waits_for_settings || self.waits_for_memory {
            return false;
        }
        if let Some(Pull { params, reply }) = self.pulls.pop_front() {
            self.guarded(|owner| answer(reply, || Ok(owner.report(&params))));
        } else if let Some(uri) = self.unpublished.pop_first() {
            self.guarded(|owner| owner.publish(&uri));
        } else {
            return false;
        }
        self.tell_problems();
        true
    }

    /// The present unit of a document, checked by the rules.
    pub(crate) fn checked(&mut self, uri: &lsp::Uri) -> Option<Rc<Unit>> {
        let unit = self.documents.unit(uri)?;
        if unit.diagnostics.get().is_none() {
            let resolved = self.resolved(&unit);
            self.compiler.delay = Some(Duration::from_millis(resolved.settings.compiler.delay));
            let is_excluded = unit.path.as_deref().is_some_and(|path| resolved.excludes(path));
            let check = Arc::clone(&self.tools.check);
            let findings = self.guarded(|owner| {
                let memory = if resolved.settings.memory.enabled { &owner.memory.rules } else { LearnedRules::empty() };
                let context = RuleContext::new(&unit.source, &unit.module, resolved.target);
                let context = context.at(unit.path.as_deref());
                if is_excluded { Vec::new() } else { check(&context, &resolved.selection, memory) }
            });
            let _ = unit.diagnostics.set(findings.unwrap_or_default());
        }
        Some(unit)
    }

    /// The settings of a unit.
    pub(crate) fn resolved(&mut self, unit: &Unit) -> Rc<FolderSettings> {
        let workspace = self.workspace_of(&unit.uri).cloned();
        let root = self.root_of(unit);
        let folder = unit.path.as_deref().and_then(Path::parent).unwrap_or(&root);
        let place = DocumentLocation { folder, root: &root, workspace: workspace.as_ref() };
        self.settings.at(&place, &self.tools)
    }

    /// The workspace root of a unit: its workspace folder, else the folder that contains it.
    pub(crate) fn root_of(&self, unit: &Unit) -> PathBuf {
        self.root_at(&unit.uri, unit.path.as_deref())
    }

    /// The workspace root of a document that may not be open.
    pub(crate) fn root_at(&self, uri: &lsp::Uri, path: Option<&Path>) -> PathBuf {
        let workspace = self.workspace_of(uri).or(self.folders.first().filter(|_| path.is_none()));
        workspace
            .and_then(from_lsp::path)
            .or_else(|| Some(path?.parent()?.to_path_buf()))
            .unwrap_or_else(|| PathBuf::from("."))
    }

    /// The innermost workspace folder that contains a document.
    fn workspace_of(&self, uri: &lsp::Uri) -> Option<&lsp::Uri> {
        let holds = |folder: &&lsp::Uri| {
            let rest = uri.as_str().strip_prefix(folder.as_str().trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.folders.iter().filter(holds).max_by_key(|folder| folder.as_str().len())
    }

    /// The unit of a document and the byte offset of a position in it.
    pub(crate) fn place(&mut self, at: &lsp::TextDocumentPositionParams) -> Option<(Rc<Unit>, usize)> {
        let uri = &at.text_document.uri;
        let unit = self.documents.unit(uri)?;
        let range = lsp::Range { start: at.position, end: at.position };
        let offset = unit.span(uri, range, self.encoding)?.start;
        Some((unit, offset))
    }

    /// The span of a range of a document, or of the whole document.
    pub(crate) fn part_of_document(&self, unit: &Unit, uri: &lsp::Uri, range: Option<lsp::Range>) -> Option<Span> {
        match range {
            Some(range) => unit.span(uri, range, self.encoding),
            None => unit.span_of(uri),
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
