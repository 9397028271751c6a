//! Answers to requests: their channel, and the errors that they may have.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

/// LSP's code for a valid request that cannot be carried out (`RequestFailed`).
const REQUEST_FAILED: ErrorCode = ErrorCode::ServerError(-32803);

/// The sending end for the answer of a request. It is closed when the client has cancelled the request.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T>>;

/// Answers a request, unless the client has cancelled it.
pub(crate) fn answer<T>(reply: ReplySender<T>, result: impl FnOnce() -> Result<T>) {
    if reply.is_closed() {
        tracing::debug!("a request was cancelled before it was answered");
        return;
    }
    // The client may cancel it at the last moment.
    let _ = reply.send(result());
}

/// The error of a valid request that cannot be carried out.
pub(crate) fn refused(message: impl Into<String>) -> Error {
    Error { message: message.into().into(), ..Error::new(REQUEST_FAILED) }
}

/// Parses the argument of a command.
///
/// # Errors
/// Returns an error when it is not what the command takes.
pub(crate) fn read<T: DeserializeOwned>(argument: Value) -> Result<T> {
    serde_json::from_value(argument).map_err(|error| Error::invalid_params(error.to_string()))
}
