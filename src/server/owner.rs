//! The owner: the one thread that holds all state. See the documentation of the parent module.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tower_lsp::gen_lsp_types as lsp;

use judge::Devices;
use model::syntax::Encoding;
use rules::RuleContext;
use rules::learned::LearnedRules;

use super::capabilities::{self, ClientFeatures};
use super::client::{ClientCommand, ClientSender};
use super::compile::Compile;
use super::documents::Documents;
use super::event::{EventSender, ReplySender, ServerEvent};
use super::inspect::INSPECT;
use super::interpreter::Interpreters;
use super::jobs::Jobs;
use super::optimize::panic_text;
use super::settings::{self, FolderSettings, SettingsStore};
use super::skill_memory::Skills;
use super::status::ServerStatus;
use super::tools::Tools;
use super::unit::Unit;
use super::{diagnostics, from_lsp, parent_process};

/// Patterns of the files whose changes the client reports.
const WATCHED: [&str; 8] = [
    "**/warpsmith.toml",
    "**/{pyproject,poetry}.toml",
    "**/pyvenv.cfg",
    "**/{uv,poetry,pdm}.lock",
    "**/{.pdm-python,.python-version}",
    "**/*triton*.dist-info/METADATA",
    "**/*.py",
    "**/.warpsmith/recorded",
];

/// A request for the diagnostics of a document, which waits until the queue is empty.
struct Pull {
    params: lsp::DocumentDiagnosticParams,
    reply: ReplySender<lsp::DocumentDiagnosticReport>,
}

/// All state of the server.
pub(super) struct Owner {
    pub(super) tools: Tools,
    pub(super) events: EventSender,
    pub(super) client: ClientSender,
    pub(super) capabilities: ClientFeatures,
    pub(super) encoding: Encoding,
    pub(super) trusted: bool,
    pub(super) documents: Documents,
    pub(super) devices: Option<Devices>,
    pub(super) jobs: Jobs,
    pub(super) compile: Compile,
    pub(super) skills: Skills,
    pub(super) interpreters: Interpreters,
    pub(super) settings: SettingsStore,
    pub(super) folders: Vec<lsp::Uri>,
    /// Whether the editor's settings are still to come; until then nothing is checked.
    pub(super) waits_for_settings: bool,
    /// Whether the client accepts the server's status, and the status that it was sent last.
    pub(super) tells_status: bool,
    pub(super) status_told: Option<ServerStatus>,
    /// Files and notebooks whose diagnostics are to be published.
    pub(super) unpublished: BTreeSet<lsp::Uri>,
    pulls: VecDeque<Pull>,
    has_told_of_crash: bool,
}

impl Owner {
    /// Creates an owner without documents.
    pub(super) fn new(tools: Tools, events: EventSender, client: ClientSender) -> Self {
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
            compile: Compile::default(),
            skills: Skills::default(),
            interpreters: Interpreters::default(),
            settings: SettingsStore::default(),
            folders: Vec::new(),
            waits_for_settings: false,
            tells_status: false,
            status_told: None,
            unpublished: BTreeSet::new(),
            pulls: VecDeque::new(),
            has_told_of_crash: false,
        }
    }

    /// Handles events until the client is gone, and checks texts when no event is waiting.
    pub(super) fn run(mut self, mut inbox: UnboundedReceiver<ServerEvent>) {
        while let Some(event) = inbox.blocking_recv() {
            let mut next = Some(event);
            while let Some(event) = next {
                if matches!(event, ServerEvent::Exit) {
                    return self.jobs.stop();
                }
                self.guarded(|owner| owner.handle(event));
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
            let text = format!("Warpsmith met a bug ({text}) and goes on; its log has more.");
            self.client.show(lsp::MessageType::Error, text);
        }
    }

    fn handle(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Initialize(params, reply) => answer(reply, || Ok(self.initialize(*params))),
            ServerEvent::Initialized => self.initialized(),
            ServerEvent::Shutdown(reply) => {
                self.jobs.cancel_all();
                answer(reply, || Ok(()));
            }
            ServerEvent::Exit => {} // taken by `run`

            ServerEvent::Open(params) => {
                let uri = params.text_document.uri.clone();
                self.documents.open(params.text_document);
                self.edited(uri);
            }
            ServerEvent::Change(params) => {
                let uri = params.text_document.text_document_identifier.uri.clone();
                if self.documents.change(params, self.encoding) {
                    self.edited(uri);
                }
            }
            ServerEvent::Save(uri) => {
                // A client that watches files has reported it already when one of them was saved.
                let has_news = self.documents.refresh_imports();
                self.read_memory_later();
                let has_set = !self.capabilities.registers_watched_files && self.settings.reload();
                if has_set || has_news {
                    self.check_all_again();
                }
                if has_set {
                    self.compile_all_later();
                }
                self.look_for_interpreters();
                self.import_later(&uri);
                self.survey_later(&uri);
            }
            ServerEvent::Close(uri) => {
                self.forget_kernels_of(&uri);
                if self.documents.close(&uri) {
                    self.unpublished.remove(&uri);
                    self.clear(vec![uri]);
                }
            }
            ServerEvent::NotebookOpen(params) => {
                let uri = params.notebook_document.uri.clone();
                self.documents.open_notebook(params);
                self.edited(uri);
            }
            ServerEvent::NotebookChange(params) => {
                let uri = params.notebook_document.uri.clone();
                if let Some(gone) = self.documents.change_notebook(params, self.encoding) {
                    self.clear(gone);
                    self.edited(uri);
                }
            }
            ServerEvent::NotebookClose(params) => {
                let uri = params.notebook_document.uri;
                self.unpublished.remove(&uri);
                let cells = self.documents.close_notebook(&uri);
                self.clear(cells);
            }

            ServerEvent::Folders(change) => {
                self.folders.retain(|folder| !change.removed.iter().any(|removed| removed.uri == *folder));
                self.folders.extend(change.added.into_iter().map(|added| added.uri));
                self.configuration_changed(Value::Null);
            }
            ServerEvent::ConfigurationChanged(value) => self.configuration_changed(value),
            ServerEvent::WatchedFiles { settings } => {
                let has_news = self.documents.refresh_imports();
                if settings {
                    self.settings.forget();
                    self.forget_other_devices();
                }
                if settings || has_news {
                    self.check_all_again();
                }
                if settings {
                    self.compile_all_later();
                }
            }

            ServerEvent::Diagnostic(params, reply) => self.pulls.push_back(Pull { params, reply }),
            ServerEvent::CodeAction(params, reply) => answer(reply, || Ok(Some(self.code_actions(&params)))),
            ServerEvent::Question(question) => self.answer_question(question),
            ServerEvent::Status(reply) => answer(reply, || Ok(self.status())),
            ServerEvent::AboutRun(question, reply) => self.answer_about_run(question, reply),
            ServerEvent::Command(params, reply) if params.command == INSPECT => self.inspect(params, reply),
            ServerEvent::Command(params, reply) => answer(reply, || self.command(params)),
            ServerEvent::CancelProgress(token) => {
                if let lsp::ProgressToken::String(job) = token {
                    self.jobs.cancel(&job);
                }
            }

            ServerEvent::Configuration(answers) => {
                self.settings.set_client(answers);
                let were_awaited = std::mem::replace(&mut self.waits_for_settings, false);
                if !were_awaited {
                    self.forget_other_devices();
                    self.check_all_again();
                    self.compile_all_later();
                }
            }
            ServerEvent::Quiet => self.on_idle(),
            ServerEvent::CompileNext => self.compile_next(),
            ServerEvent::Compiler(number, heard) => self.handle_compiler_output(number, heard),
            ServerEvent::ReviveCompiler => self.revive_compiler(),
            ServerEvent::Memory(memory) => {
                if self.take_memory(*memory) {
                    self.check_all_again();
                }
            }
            ServerEvent::Devices(devices) => {
                let is_there = devices.capability().is_some();
                self.devices = Some(devices);
                if is_there {
                    self.refresh_lenses();
                }
            }
            ServerEvent::RecordingEnded(id, result) => self.recording_ended(&id, result),
            ServerEvent::JobEnded(id, result) => self.job_ended(&id, result),
            ServerEvent::SettingsChosen(asked, choice) => self.settings_chosen(&asked, &choice),
            ServerEvent::OfferAnswered(id, yes) => self.offer_answered(&id, yes),
            ServerEvent::OfferApplied(id, result) => self.offer_applied(&id, result),
        }
        self.tell_problems();
        self.tell_status();
    }

    fn initialize(&mut self, params: lsp::InitializeParams) -> lsp::InitializeResult {
        self.capabilities = ClientFeatures::new(&params.capabilities);
        self.encoding = capabilities::negotiate_encoding(&params.capabilities);
        let options = settings::options(params.initialization_options);
        self.trusted = options.trusted;
        // The memory is read before the first file is checked, so that no disproved rule is used.
        let memory = (self.tools.memory)();
        self.take_memory(memory);
        self.capabilities.takes_status |= options.status;
        self.capabilities.takes_search |= options.search;
        self.capabilities.takes_model |= options.language_model;
        self.settings.set_initial(options.settings, options.interpreter);
        self.folders = match params.workspace_folders_initialize_params.workspace_folders {
            Some(lsp::WorkspaceFolders::WorkspaceFolderList(folders)) => {
                folders.into_iter().map(|folder| folder.uri).collect()
            }
            #[expect(deprecated, reason = "older clients have only this")]
            Some(lsp::WorkspaceFolders::Null) | None => params.root_uri.into_iter().collect(),
        };
        // From now on: a client sends documents only after its settings can be asked for.
        self.waits_for_settings = self.capabilities.configuration;
        if let Some(id) = params.process_id {
            parent_process::watch_parent(id);
        }
        tracing::info!(client = ?params.client_info, encoding = ?self.encoding, "a client is there");
        capabilities::answer(&self.capabilities, self.encoding)
    }

    fn initialized(&mut self) {
        self.ask_for_settings();
        self.tells_status = self.capabilities.takes_status;
        let registration = |method: &str, options: Value| lsp::Registration {
            id: method.to_owned(),
            method: method.to_owned(),
            register_options: Some(options),
        };
        let mut registrations = Vec::new();
        if self.capabilities.registers_configuration {
            let options = json!({ "section": settings::SECTION });
            registrations.push(registration("workspace/didChangeConfiguration", options));
        }
        if self.capabilities.registers_watched_files {
            let watchers: Vec<Value> = WATCHED.iter().map(|glob| json!({ "globPattern": glob })).collect();
            registrations.push(registration("workspace/didChangeWatchedFiles", json!({ "watchers": watchers })));
        }
        if !registrations.is_empty() {
            self.client.send(ClientCommand::Register(registrations));
        }
        let (find, events) = (Arc::clone(&self.tools.devices), self.events.clone());
        let find = move || drop(events.send(ServerEvent::Devices(find())));
        if let Err(error) = std::thread::Builder::new().name("devices".to_owned()).spawn(find) {
            self.devices = Some(Devices::Missing(format!("could not look for CUDA devices: {error}")));
        }
    }

    fn ask_for_settings(&mut self) {
        if self.capabilities.configuration {
            let scopes = self.folders.iter().cloned().map(Some).chain([None]).collect();
            self.client.send(ClientCommand::Configuration(scopes));
        }
    }

    fn configuration_changed(&mut self, value: Value) {
        if self.capabilities.configuration {
            return self.ask_for_settings();
        }
        if !value.is_null() {
            self.settings.set_client(vec![(None, settings::section(value))]);
        }
        self.settings.forget();
        self.forget_other_devices();
        self.check_all_again();
        self.compile_all_later();
    }

    /// Shows the user the settings that cannot be used.
    fn tell_problems(&mut self) {
        for problem in self.settings.take_problems() {
            self.client.show(lsp::MessageType::Warning, format!("Warpsmith: {problem}"));
        }
    }

    fn edited(&mut self, uri: lsp::Uri) {
        self.compile_later(&uri);
        if !self.capabilities.pulls_diagnostics {
            self.unpublished.insert(uri);
        }
    }

    pub(super) fn check_all_again(&mut self) {
        self.documents.forget_findings();
        if !self.capabilities.pulls_diagnostics {
            self.unpublished.extend(self.documents.all());
        } else if self.capabilities.refreshes_diagnostics {
            self.client.send(ClientCommand::RefreshDiagnostics);
        }
        if self.capabilities.refreshes_hints {
            self.client.send(ClientCommand::RefreshHints);
        }
    }

    /// Clears the published diagnostics of documents that were closed.
    fn clear(&self, uris: Vec<lsp::Uri>) {
        if !self.capabilities.pulls_diagnostics {
            for uri in uris {
                self.client.publish(lsp::PublishDiagnosticsParams { uri, version: None, diagnostics: Vec::new() });
            }
        }
    }

    /// Does one piece of the work that waits for an empty queue. Returns whether there may be more.
    fn settle_one(&mut self) -> bool {
        if self.waits_for_settings {
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

    fn publish(&mut self, uri: &lsp::Uri) {
        let Some(unit) = self.checked(uri) else { return };
        for part in &unit.parts {
            let diagnostics = self.diagnostics(&unit, &part.uri);
            let (uri, version) = (part.uri.clone(), Some(part.version));
            self.client.publish(lsp::PublishDiagnosticsParams { uri, version, diagnostics });
        }
    }

    fn report(&mut self, params: &lsp::DocumentDiagnosticParams) -> lsp::DocumentDiagnosticReport {
        let uri = &params.text_document.uri;
        let Some(unit) = self.checked(uri) else { return diagnostics::empty_report() };
        let Some(part) = unit.part(uri) else { return diagnostics::empty_report() };
        diagnostics::report(part.version, self.diagnostics(&unit, uri), params.previous_result_id.as_deref())
    }

    /// The diagnostics of a document in the client's terms.
    fn diagnostics(&self, unit: &Unit, uri: &lsp::Uri) -> Vec<lsp::Diagnostic> {
        let mut items = diagnostics::of_document(unit, uri, &self.capabilities, self.encoding);
        if !self.capabilities.diagnostic_data {
            items.iter_mut().for_each(|item| item.data = None);
        }
        items
    }

    /// The present unit of a document, checked by the rules.
    pub(super) fn checked(&mut self, uri: &lsp::Uri) -> Option<Rc<Unit>> {
        let unit = self.documents.unit(uri)?;
        if unit.diagnostics.get().is_none() {
            let resolved = self.resolved(&unit);
            self.compile.delay = Some(Duration::from_millis(resolved.settings.compiler.delay));
            let is_excluded = unit.path.as_deref().is_some_and(|path| resolved.excludes(path));
            let check = Arc::clone(&self.tools.check);
            let findings = self.guarded(|owner| {
                let memory =
                    if resolved.settings.memory.enabled { &owner.skills.memory } else { LearnedRules::empty() };
                let context = RuleContext::new(&unit.source, &unit.module, resolved.target);
                let context = context.at(unit.path.as_deref()).with_memory(memory);
                if is_excluded { Vec::new() } else { check(&context, &resolved.selection) }
            });
            let _ = unit.diagnostics.set(findings.unwrap_or_default());
        }
        Some(unit)
    }

    /// The settings of a unit.
    pub(super) fn resolved(&mut self, unit: &Unit) -> Rc<FolderSettings> {
        let workspace = self.workspace_of(&unit.uri).cloned();
        let root = self.root_of(unit);
        let folder = unit.path.as_deref().and_then(Path::parent).unwrap_or(&root);
        let place = settings::DocumentLocation { folder, root: &root, workspace: workspace.as_ref() };
        self.settings.at(&place, &self.tools)
    }

    /// The workspace root of a unit: its workspace folder, else the folder that contains it.
    pub(super) fn root_of(&self, unit: &Unit) -> PathBuf {
        self.root_at(&unit.uri, unit.path.as_deref())
    }

    /// The workspace root of a document that may not be open.
    pub(super) fn root_at(&self, uri: &lsp::Uri, path: Option<&Path>) -> PathBuf {
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
}

/// Answers a request, unless the client has cancelled it.
pub(super) fn answer<T>(reply: ReplySender<T>, result: impl FnOnce() -> tower_lsp::jsonrpc::Result<T>) {
    if reply.is_closed() {
        tracing::debug!("a request was cancelled before it was answered");
        return;
    }
    // The client may cancel it at the last moment.
    let _ = reply.send(result());
}
