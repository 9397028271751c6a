//! Everything that can happen, in the order in which it did.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc;

use ::search::{OptimizeError, Outcome};
use compiler::Heard;
use judge::Devices;
use rules::learned::Memory;
use workload::{Recorded, RecordingError};

use super::feature::Question;
use super::optimize::Asked;
use super::search;
use super::status::Status;

/// Where events are sent to the owner.
pub(super) type Events = mpsc::UnboundedSender<Event>;

/// Where the owner sends the answer of a request. It is closed when the client has cancelled the request.
pub(super) type Reply<T> = oneshot::Sender<jsonrpc::Result<T>>;

/// Something that the owner must see.
pub(super) enum Event {
    /// The first request.
    Initialize(Box<lsp::InitializeParams>, Reply<lsp::InitializeResult>),
    /// The client has the answer.
    Initialized,
    /// The last request.
    Shutdown(Reply<()>),
    /// The client is gone.
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

    /// The workspace's folders are others.
    Folders(lsp::WorkspaceFoldersChangeEvent),
    /// The editor's settings are others; clients that are not asked send them along.
    ConfigurationChanged(Value),
    /// Files were written, made or removed.
    WatchedFiles {
        /// Whether there are others than Python's among them.
        settings: bool,
    },

    /// The diagnostics of a document are asked for.
    Diagnostic(lsp::DocumentDiagnosticParams, Reply<lsp::DocumentDiagnosticReport>),
    /// The actions for a range are asked for.
    CodeAction(lsp::CodeActionParams, Reply<Option<Vec<lsp::CodeActionResponse>>>),
    /// Something about a place or a document is asked for.
    Question(Question),
    /// A command is to be run.
    Command(lsp::ExecuteCommandParams, Reply<Option<Value>>),
    /// It is asked how the server is.
    Status(Reply<Status>),
    /// It is asked what is known of a run.
    AboutRun(search::Question, Reply<Value>),
    /// The user stopped something whose progress is shown.
    CancelProgress(lsp::ProgressToken),

    /// The editor's settings: for each folder, and for files outside every folder.
    Configuration(Vec<(Option<lsp::Uri>, Value)>),
    /// Nothing has been edited for a while.
    Quiet,
    /// The compiler tier has another kernel to look at.
    CompileNext,
    /// Something was heard of a process of the compiler, by its number.
    Compiler(u64, Heard),
    /// The compiler's process may be started again.
    ReviveCompiler,
    /// The skill memory was read again.
    Memory(Box<Memory>),
    /// What there is to measure on.
    Devices(Devices),
    /// A recording ended.
    RecordingEnded(String, Result<Recorded, RecordingError>),
    /// A search ended.
    JobEnded(String, Result<Outcome, OptimizeError>),
    /// The user was asked how a search is to be made, and chose this.
    SettingsChosen(Box<Asked>, String),
    /// The user was asked whether to apply a job's offer, and said yes or no.
    OfferAnswered(String, bool),
    /// The client has tried to apply a job's offer; the text, if any, says why it did not.
    OfferApplied(String, Result<(), Option<String>>),
}
