//! The notifications `notebookDocument/did…`: a notebook was opened, edited, saved or closed.

use tower_lsp::gen_lsp_types as lsp;

use crate::server::owner::Owner;

/// Handles `didOpen`.
pub(crate) fn opened(owner: &mut Owner, params: lsp::DidOpenNotebookDocumentParams) {
    let uri = params.notebook_document.uri.clone();
    owner.documents.open_notebook(params);
    owner.edited(uri);
}

/// Handles `didChange`.
pub(crate) fn changed(owner: &mut Owner, params: lsp::DidChangeNotebookDocumentParams) {
    let uri = params.notebook_document.uri.clone();
    if let Some(gone) = owner.documents.change_notebook(params, owner.encoding) {
        owner.clear(gone);
        owner.edited(uri);
    }
}

/// Handles `didSave`.
pub(crate) fn saved(owner: &mut Owner, params: lsp::DidSaveNotebookDocumentParams) {
    owner.saved(&params.notebook_document.uri);
}

/// Handles `didClose`.
pub(crate) fn closed(owner: &mut Owner, params: lsp::DidCloseNotebookDocumentParams) {
    let uri = params.notebook_document.uri;
    owner.unpublished.remove(&uri);
    let cells = owner.documents.close_notebook(&uri);
    owner.clear(cells);
}
