//! The dispatch of the protocol: each message of the client goes to its handler, which runs on the owner's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::LanguageServer;
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::notifications::{cancel_progress, initialized, notebook, text_document, workspace};
use super::owner::{EventSender, Owner};
use super::reply::{ReplySender, answer};
use super::requests::{
    code_action, code_lens, completion, definition, diagnostic, document_highlight, document_symbol, execute_command,
    hover, initialize, inlay_hint, references, run_report, semantic_tokens, shutdown, signature_help, status,
};
use super::server_status::ServerStatus;

/// The methods that the protocol library calls, in the order of arrival up to their first await: each sends its event
/// before it awaits anything, which keeps edits in order.
pub(crate) struct Backend {
    events: EventSender,
    shut_down: Arc<AtomicBool>,
}

impl Backend {
    /// Creates a backend that sends to `events` and notes a `shutdown` in `shut_down`.
    pub(crate) fn new(events: EventSender, shut_down: Arc<AtomicBool>) -> Self {
        Self { events, shut_down }
    }

    /// Has the owner handle a notification.
    fn tell<P: Send + 'static>(&self, handle: fn(&mut Owner, P), params: P) {
        self.events.run(move |owner| handle(owner, params));
    }

    /// Has the owner answer a request at once.
    async fn ask<P, T>(&self, handle: fn(&mut Owner, P) -> Result<T>, params: P) -> Result<T>
    where
        P: Send + 'static,
        T: Send + 'static,
    {
        self.received(move |owner, reply| answer(reply, || handle(owner, params))).await
    }

    /// Has the owner answer a request when the answer is known.
    async fn ask_later<P, T>(&self, handle: fn(&mut Owner, P, ReplySender<T>), params: P) -> Result<T>
    where
        P: Send + 'static,
        T: Send + 'static,
    {
        self.received(move |owner, reply| handle(owner, params, reply)).await
    }

    async fn received<T>(&self, task: impl FnOnce(&mut Owner, ReplySender<T>) + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        let (reply, answered) = oneshot::channel();
        self.events.run(move |owner| task(owner, reply));
        answered.await.unwrap_or_else(|_| Err(Error::internal_error()))
    }

    /// The notification `window/workDoneProgress/cancel`.
    pub(crate) async fn cancel_progress(&self, params: lsp::WorkDoneProgressCancelParams) {
        self.tell(cancel_progress::handle, params);
    }

    /// The request `warpsmith/status`.
    pub(crate) async fn status(&self, params: Value) -> Result<ServerStatus> {
        self.ask(status::handle, params).await
    }

    /// The request `warpsmith/search`.
    pub(crate) async fn run_report(&self, params: run_report::RunQuery) -> Result<Value> {
        self.ask_later(run_report::handle, params).await
    }

    /// The notification `$/setTrace`. It is ignored, because `WARPSMITH_LOG` sets what is logged.
    pub(crate) async fn set_trace(&self, params: Value) {
        tracing::debug!(%params, "setTrace is ignored");
    }

    /// The request that [`framing`](super::framing) puts in the place of a message that cannot be read.
    pub(crate) async fn malformed(&self, reason: Value) -> Result<()> {
        Err(Error { data: Some(reason), ..Error::new(ErrorCode::ParseError) })
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: lsp::InitializeParams) -> Result<lsp::InitializeResult> {
        self.ask(initialize::handle, params).await
    }

    async fn initialized(&self, params: lsp::InitializedParams) {
        self.tell(initialized::handle, params);
    }

    async fn shutdown(&self) -> Result<()> {
        self.shut_down.store(true, Ordering::SeqCst);
        self.ask(shutdown::handle, ()).await
    }

    async fn did_open(&self, params: lsp::DidOpenTextDocumentParams) {
        self.tell(text_document::opened, params);
    }

    async fn did_change(&self, params: lsp::DidChangeTextDocumentParams) {
        self.tell(text_document::changed, params);
    }

    async fn did_save(&self, params: lsp::DidSaveTextDocumentParams) {
        self.tell(text_document::saved, params);
    }

    async fn did_close(&self, params: lsp::DidCloseTextDocumentParams) {
        self.tell(text_document::closed, params);
    }

    async fn notebook_did_open(&self, params: lsp::DidOpenNotebookDocumentParams) {
        self.tell(notebook::opened, params);
    }

    async fn notebook_did_change(&self, params: lsp::DidChangeNotebookDocumentParams) {
        self.tell(notebook::changed, params);
    }

    async fn notebook_did_save(&self, params: lsp::DidSaveNotebookDocumentParams) {
        self.tell(notebook::saved, params);
    }

    async fn notebook_did_close(&self, params: lsp::DidCloseNotebookDocumentParams) {
        self.tell(notebook::closed, params);
    }

    async fn did_change_workspace_folders(&self, params: lsp::DidChangeWorkspaceFoldersParams) {
        self.tell(workspace::folders_changed, params);
    }

    async fn did_change_configuration(&self, params: lsp::DidChangeConfigurationParams) {
        self.tell(workspace::configuration_changed, params);
    }

    async fn did_change_watched_files(&self, params: lsp::DidChangeWatchedFilesParams) {
        self.tell(workspace::files_changed, params);
    }

    async fn diagnostic(&self, params: lsp::DocumentDiagnosticParams) -> Result<lsp::DocumentDiagnosticReport> {
        self.ask_later(diagnostic::handle, params).await
    }

    async fn code_action(&self, params: lsp::CodeActionParams) -> Result<Option<Vec<lsp::CodeActionResponse>>> {
        self.ask(code_action::handle, params).await
    }

    async fn hover(&self, params: lsp::HoverParams) -> Result<Option<lsp::Hover>> {
        self.ask(hover::handle, params).await
    }

    async fn completion(&self, params: lsp::CompletionParams) -> Result<Option<lsp::CompletionResponse>> {
        self.ask(completion::handle, params).await
    }

    async fn signature_help(&self, params: lsp::SignatureHelpParams) -> Result<Option<lsp::SignatureHelp>> {
        self.ask(signature_help::handle, params).await
    }

    async fn goto_definition(&self, params: lsp::DefinitionParams) -> Result<Option<lsp::DefinitionResponse>> {
        self.ask(definition::handle, params).await
    }

    async fn references(&self, params: lsp::ReferenceParams) -> Result<Option<Vec<lsp::Location>>> {
        self.ask(references::handle, params).await
    }

    async fn document_highlight(
        &self,
        params: lsp::DocumentHighlightParams,
    ) -> Result<Option<Vec<lsp::DocumentHighlight>>> {
        self.ask(document_highlight::handle, params).await
    }

    async fn document_symbol(&self, params: lsp::DocumentSymbolParams) -> Result<Option<lsp::DocumentSymbolResponse>> {
        self.ask(document_symbol::handle, params).await
    }

    async fn semantic_tokens_full(&self, params: lsp::SemanticTokensParams) -> Result<Option<lsp::SemanticTokens>> {
        self.ask(semantic_tokens::handle, params).await
    }

    async fn semantic_tokens_range(
        &self,
        params: lsp::SemanticTokensRangeParams,
    ) -> Result<Option<lsp::SemanticTokens>> {
        self.ask(semantic_tokens::handle_range, params).await
    }

    async fn inlay_hint(&self, params: lsp::InlayHintParams) -> Result<Option<Vec<lsp::InlayHint>>> {
        self.ask(inlay_hint::handle, params).await
    }

    async fn code_lens(&self, params: lsp::CodeLensParams) -> Result<Option<Vec<lsp::CodeLens>>> {
        self.ask(code_lens::handle, params).await
    }

    async fn execute_command(&self, params: lsp::ExecuteCommandParams) -> Result<Option<Value>> {
        self.ask_later(execute_command::handle, params).await
    }
}
