//! LSP → ours.

use std::path::PathBuf;

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::{Document, Encoding, Position};

/// A position.
pub(super) fn position(position: lsp::Position) -> Position {
    Position { line: position.line, column: position.character }
}

/// The file that `uri` names, if it names one.
pub(super) fn path(uri: &lsp::Uri) -> Option<PathBuf> {
    if uri.scheme() == "file" { uri.to_file_path().ok() } else { None }
}

/// Makes the client's changes, one after the other. What does not fit is clamped or left out, and logged.
pub(super) fn apply_changes(
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
