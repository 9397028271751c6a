//! The handlers of the protocol library: each converts a message into an event and decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::LanguageServer;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::event::{EventSender, ReplySender, ServerEvent};
use super::feature::FeatureRequest;
use super::search;
use super::status::ServerStatus;

/// Suffixes of files that determine settings or interpreters.
const SETTINGS: [&str; 6] = [".toml", ".cfg", ".lock", "/.pdm-python", "/.python-version", ".dist-info/METADATA"];

/// The handlers of the protocol library. They run in the order of arrival up to their first await, so each sends
/// its event before it awaits anything.
pub(super) struct Backend {
    events: EventSender,
    shut_down: Arc<AtomicBool>,
}

impl Backend {
    /// Creates handlers that send to `events` and note a `shutdown` in `shut_down`.
    pub(super) fn new(events: EventSender, shut_down: Arc<AtomicBool>) -> Self {
        Self { events, shut_down }
    }

    fn tell(&self, event: ServerEvent) {
        // Without an owner the server is about to end, so the event can be dropped.
        let _ = self.events.send(event);
    }

    async fn ask<T>(&self, event: impl FnOnce(ReplySender<T>) -> ServerEvent) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(event(reply));
        answer.await.unwrap_or_else(|_| Err(Error::internal_error()))
    }

    /// The notification `window/workDoneProgress/cancel`.
    pub(super) async fn cancel_progress(&self, params: lsp::WorkDoneProgressCancelParams) {
        self.tell(ServerEvent::CancelProgress(params.token));
    }

    /// The request `warpsmith/status`.
    pub(super) async fn status(&self, _: Value) -> Result<ServerStatus> {
        self.ask(ServerEvent::Status).await
    }

    /// The request `warpsmith/search`.
    pub(super) async fn search(&self, question: search::RunQuery) -> Result<Value> {
        self.ask(|reply| ServerEvent::AboutRun(question, reply)).await
    }

    /// The notification `$/setTrace`. It is ignored, because `WARPSMITH_LOG` sets what is logged.
    pub(super) async fn set_trace(&self, params: Value) {
        tracing::debug!(%params, "setTrace is ignored");
    }

    /// The request that [`framing`](super::framing) puts in the place of a message that cannot be read.
    pub(super) async fn malformed(&self, reason: Value) -> Result<()> {
        Err(Error { data: Some(reason), ..Error::new(ErrorCode::ParseError) })
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: lsp::InitializeParams) -> Result<lsp::InitializeResult> {
        self.ask(|reply| ServerEvent::Initialize(Box::new(params), reply)).await
    }

    async fn initialized(&self, _: lsp::InitializedParams) {
        self.tell(ServerEvent::Initialized);
    }

    async fn shutdown(&self) -> Result<()> {
        self.shut_down.store(true, Ordering::SeqCst);
        self.ask(ServerEvent::Shutdown).await
    }

    async fn did_open(&self, params: lsp::DidOpenTextDocumentParams) {
        self.tell(ServerEvent::Open(params));
    }

    async fn did_change(&self, params: lsp::DidChangeTextDocumentParams) {
        self.tell(ServerEvent::Change(params));
    }

    async fn did_save(&self, params: lsp::DidSaveTextDocumentParams) {
        self.tell(ServerEvent::Save(params.text_document.uri));
    }

    async fn did_close(&self, params: lsp::DidCloseTextDocumentParams) {
        self.tell(ServerEvent::Close(params.text_document.uri));
    }

    async fn notebook_did_open(&self, params: lsp::DidOpenNotebookDocumentParams) {
        self.tell(ServerEvent::NotebookOpen(params));
    }

    async fn notebook_did_change(&self, params: lsp::DidChangeNotebookDocumentParams) {
        self.tell(ServerEvent::NotebookChange(params));
    }

    async fn notebook_did_save(&self, params: lsp::DidSaveNotebookDocumentParams) {
        self.tell(ServerEvent::Save(params.notebook_document.uri));
    }

    async fn notebook_did_close(&self, params: lsp::DidCloseNotebookDocumentParams) {
        self.tell(ServerEvent::NotebookClose(params));
    }

    async fn did_change_workspace_folders(&self, params: lsp::DidChangeWorkspaceFoldersParams) {
        self.tell(ServerEvent::Folders(params.event));
    }

    async fn did_change_configuration(&self, params: lsp::DidChangeConfigurationParams) {
        self.tell(ServerEvent::ConfigurationChanged(params.settings));
    }

    async fn did_change_watched_files(&self, params: lsp::DidChangeWatchedFilesParams) {
        let mut uris = params.changes.iter().map(|change| change.uri.as_str());
        let is_of_settings = |uri: &str| SETTINGS.iter().any(|end| uri.ends_with(end));
        // A client that does not say what has changed may mean any file.
        let settings = params.changes.is_empty() || uris.any(is_of_settings);
        self.tell(ServerEvent::WatchedFiles { settings });
    }

    async fn diagnostic(&self, params: lsp::DocumentDiagnosticParams) -> Result<lsp::DocumentDiagnosticReport> {
        self.ask(|reply| ServerEvent::Diagnostic(params, reply)).await
    }

    async fn code_action(&self, params: lsp::CodeActionParams) -> Result<Option<Vec<lsp::CodeActionResponse>>> {
        self.ask(|reply| ServerEvent::CodeAction(params, reply)).await
    }

    async fn hover(&self, params: lsp::HoverParams) -> Result<Option<lsp::Hover>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Hover(params, reply))).await
    }

    async fn completion(&self, params: lsp::CompletionParams) -> Result<Option<lsp::CompletionResponse>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Completion(params, reply))).await
    }

    async fn signature_help(&self, params: lsp::SignatureHelpParams) -> Result<Option<lsp::SignatureHelp>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Signature(params, reply))).await
    }

    async fn goto_definition(&self, params: lsp::DefinitionParams) -> Result<Option<lsp::DefinitionResponse>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Definition(params, reply))).await
    }

    async fn references(&self, params: lsp::ReferenceParams) -> Result<Option<Vec<lsp::Location>>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::References(params, reply))).await
    }

    async fn document_highlight(
        &self,
        params: lsp::DocumentHighlightParams,
    ) -> Result<Option<Vec<lsp::DocumentHighlight>>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Highlight(params, reply))).await
    }

    async fn document_symbol(&self, params: lsp::DocumentSymbolParams) -> Result<Option<lsp::DocumentSymbolResponse>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Symbols(params, reply))).await
    }

    async fn semantic_tokens_full(&self, params: lsp::SemanticTokensParams) -> Result<Option<lsp::SemanticTokens>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Tokens(params, reply))).await
    }

    async fn semantic_tokens_range(
        &self,
        params: lsp::SemanticTokensRangeParams,
    ) -> Result<Option<lsp::SemanticTokens>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::TokensOfRange(params, reply))).await
    }

    async fn inlay_hint(&self, params: lsp::InlayHintParams) -> Result<Option<Vec<lsp::InlayHint>>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Hints(params, reply))).await
    }

    async fn code_lens(&self, params: lsp::CodeLensParams) -> Result<Option<Vec<lsp::CodeLens>>> {
        self.ask(|reply| ServerEvent::Question(FeatureRequest::Lenses(params, reply))).await
    }

    async fn execute_command(&self, params: lsp::ExecuteCommandParams) -> Result<Option<Value>> {
        self.ask(|reply| ServerEvent::Command(params, reply)).await
    }
}
