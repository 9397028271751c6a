//! The notifications `textDocument/did…`: a file was opened, edited, saved or closed.

use tower_lsp::gen_lsp_types as lsp;

use crate::server::owner::Owner;

/// Handles `didOpen`.
pub(crate) fn opened(owner: &mut Owner, params: lsp::DidOpenTextDocumentParams) {
    let uri = params.text_document.uri.clone();
    owner.documents.open(params.text_document);
    owner.edited(uri);
}

/// Handles `didChange`.
pub(crate) fn changed(owner: &mut Owner, params: lsp::DidChangeTextDocumentParams) {
    let uri = params.text_document.text_document_identifier.uri.clone();
    if owner.documents.change(params, owner.encoding) {
        owner.edited(uri);
    }
}

/// Handles `didSave`.
pub(crate) fn saved(owner: &mut Owner, params: lsp::DidSaveTextDocumentParams) {
    owner.saved(&params.text_document.uri);
}

/// Handles `didClose`.
pub(crate) fn closed(owner: &mut Owner, params: lsp::DidCloseTextDocumentParams) {
    let uri = params.text_document.uri;
    owner.forget_kernels_of(&uri);
    if owner.documents.close(&uri) {
        owner.unpublished.remove(&uri);
        owner.clear(vec![uri]);
    }
}

impl Owner {
    /// Notes that a file or a notebook was saved.
    pub(crate) fn saved(&mut self, uri: &lsp::Uri) {
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
        self.import_later(uri);
        self.survey_later(uri);
    }
}
