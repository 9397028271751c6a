//! The events of the server, which the owner handles in the order of arrival.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc;

use ::search::{OptimizeError, SearchOutcome};
use compiler::ProcessOutput;
use judge::Devices;
use rules::learned::LearnedRules;
use workload::{RecordingError, RecordingResult};

use super::feature::FeatureRequest;
use super::optimize::OptimizeParams;
use super::search;
use super::status::ServerStatus;

/// The sending end of the owner's event queue.
pub(super) type EventSender = mpsc::UnboundedSender<ServerEvent>;

/// The sending end for the answer of a request. It is closed when the client has cancelled the request.
pub(super) type ReplySender<T> = oneshot::Sender<jsonrpc::Result<T>>;

/// An event: a message of the client, or the result of work on another thread.
pub(super) enum ServerEvent {
    /// The request `initialize`, the first one.
    Initialize(Box<lsp::InitializeParams>, ReplySender<lsp::InitializeResult>),
    /// The notification `initialized`: the client has the answer.
    Initialized,
    /// The request `shutdown`, the last one.
    Shutdown(ReplySender<()>),
    /// The connection to the client has ended.
    Exit,

    /// A file was opened.
    Open(lsp::DidOpenTextDocumentParams),
    /// A file was edited.
    Change(lsp::DidChangeTextDocumentParams),
    /// A file or a notebook was saved.
    Save(lsp::Uri),
    /// A file was closed.
    Close(lsp::Uri),
    /// A notebook was opened.
    NotebookOpen(lsp::DidOpenNotebookDocumentParams),
    /// A notebook was edited.
    NotebookChange(lsp::DidChangeNotebookDocumentParams),
    /// A notebook was closed.
    NotebookClose(lsp::DidCloseNotebookDocumentParams),

    /// The folders of the workspace have changed.
    Folders(lsp::WorkspaceFoldersChangeEvent),
    /// The editor's settings have changed; clients that cannot be asked send the new ones along.
    ConfigurationChanged(Value),
    /// Files were written, created or removed.
    WatchedFiles {
        /// Whether other files than Python's are among them.
        settings: bool,
    },

    /// The client pulls the diagnostics of a document.
    Diagnostic(lsp::DocumentDiagnosticParams, ReplySender<lsp::DocumentDiagnosticReport>),
    /// The client asks for the code actions of a range.
    CodeAction(lsp::CodeActionParams, ReplySender<Option<Vec<lsp::CodeActionResponse>>>),
    /// The client asks about a place or a document.
    Question(FeatureRequest),
    /// The client asks to run a command.
    Command(lsp::ExecuteCommandParams, ReplySender<Option<Value>>),
    /// The client asks for the server's status.
    Status(ReplySender<ServerStatus>),
    /// The client asks about a run.
    AboutRun(search::RunQuery, ReplySender<Value>),
    /// The user cancelled a job whose progress is shown.
    CancelProgress(lsp::ProgressToken),

    /// The editor's settings, for each folder and for files outside of all folders.
    Configuration(Vec<(Option<lsp::Uri>, Value)>),
    /// Nothing has been edited for a while.
    Quiet,
    /// The compiler tier may ask about the next kernel.
    CompileNext,
    /// An answer or the end of a compiler process, with the number of the process.
    Compiler(u64, ProcessOutput),
    /// The compiler's process may be started again.
    ReviveCompiler,
    /// The skill memory was read again.
    Memory(Box<LearnedRules>),
    /// The devices of this machine were looked for.
    Devices(Devices),
    /// A recording ended.
    RecordingEnded(String, Result<RecordingResult, RecordingError>),
    /// A search ended.
    JobEnded(String, Result<SearchOutcome, OptimizeError>),
    /// The user chose the settings of a search.
    SettingsChosen(Box<OptimizeParams>, String),
    /// The user accepted or declined a job's offer.
    OfferAnswered(String, bool),
    /// The client has tried to apply a job's offer; the text, if any, is the reason why it did not.
    OfferApplied(String, Result<(), Option<String>>),
}
