//! Conversions from LSP types to the server's own.

use std::path::PathBuf;

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::{Document, Encoding, Position};

/// The position with the same line and column.
pub(crate) fn position(position: lsp::Position) -> Position {
    Position { line: position.line, column: position.character }
}

/// The file that `uri` names; `None` when it is no file address.
pub(crate) fn path(uri: &lsp::Uri) -> Option<PathBuf> {
    if uri.scheme() == "file" { uri.to_file_path().ok() } else { None }
}

/// Applies the client's changes in order. Changes that do not fit are clamped or left out, and logged.
pub(crate) fn apply_changes(
    document: &mut Document,
    changes: Vec<lsp::TextDocumentContentChangeEvent>,
    encoding: Encoding,
    uri: &lsp::Uri,
) {
    for change in changes {
        match change {
            lsp::TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => {
                document.set_text(&change.text);
            }
            lsp::TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                let (start, end) = (position(change.range.start), position(change.range.end));
                match document.edit(start, end, &change.text, encoding) {
                    Ok(false) => {}
                    Ok(true) => tracing::warn!(%uri, ?start, ?end, "an edit reaches past the end of the text or line"),
                    Err(error) => tracing::error!(%uri, %error, "an edit is left out"),
                }
            }
        }
    }
}
