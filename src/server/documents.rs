//! The texts that are open in the editor.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::{Document, Encoding};
use workload::RecordedCommand;

use super::from_lsp;
use super::notebook::Notebook;
use super::unit::{Unit, UnitDocument};
use crate::workspace::Workspace;

/// All open files and notebooks.
#[derive(Default)]
pub(crate) struct Documents {
    files: HashMap<lsp::Uri, File>,
    notebooks: HashMap<lsp::Uri, Notebook>,
    workspace: Workspace,
}

struct File {
    version: i32,
    document: Document,
    unit: Option<Rc<Unit>>,
    /// The unit of the former text, for reuse of what has not changed.
    before: Option<Rc<Unit>>,
}

impl File {
    /// Drops the findings and keeps the model, so that unchanged parts are not read again.
    fn forget_findings(&mut self) {
        self.before = self.unit.take().or(self.before.take());
    }
}

impl Documents {
    /// Opens a file. Opening it again replaces its text.
    pub(crate) fn open(&mut self, item: lsp::TextDocumentItem) {
        let file = File { version: item.version, document: Document::new(&item.text), unit: None, before: None };
        if self.files.insert(item.uri.clone(), file).is_some() {
            tracing::warn!(uri = %item.uri, "a document that is already open was opened");
        }
    }

    /// Edits a file. Returns whether it is open.
    pub(crate) fn change(&mut self, params: lsp::DidChangeTextDocumentParams, encoding: Encoding) -> bool {
        let (version, uri) = (params.text_document.version, params.text_document.text_document_identifier.uri);
        let Some(file) = self.files.get_mut(&uri) else {
            tracing::warn!(%uri, "a document that is not open was edited");
            return false;
        };
        if version <= file.version {
            tracing::warn!(%uri, version, had = file.version, "an edit does not lead to a newer version");
        }
        from_lsp::apply_changes(&mut file.document, params.content_changes, encoding, &uri);
        file.version = version;
        file.forget_findings();
        true
    }

    /// Closes a file. Returns whether it was open.
    pub(crate) fn close(&mut self, uri: &lsp::Uri) -> bool {
        let was_open = self.files.remove(uri).is_some();
        if !was_open {
            tracing::warn!(%uri, "a document that is not open was closed");
        }
        was_open
    }

    /// Opens a notebook.
    pub(crate) fn open_notebook(&mut self, params: lsp::DidOpenNotebookDocumentParams) {
        let notebook = Notebook::new(&params.notebook_document, params.cell_text_documents);
        self.notebooks.insert(params.notebook_document.uri, notebook);
    }

    /// Edits a notebook. Returns the addresses of the removed cells; `None` when it is not open.
    pub(crate) fn change_notebook(
        &mut self,
        params: lsp::DidChangeNotebookDocumentParams,
        encoding: Encoding,
    ) -> Option<Vec<lsp::Uri>> {
        let uri = params.notebook_document.uri;
        let Some(notebook) = self.notebooks.get_mut(&uri) else {
            tracing::warn!(%uri, "a notebook that is not open was edited");
            return None;
        };
        Some(notebook.change(params.change, encoding))
    }

    /// Closes a notebook. Returns the addresses of its cells.
    pub(crate) fn close_notebook(&mut self, uri: &lsp::Uri) -> Vec<lsp::Uri> {
        self.notebooks.remove(uri).map_or_else(Vec::new, |notebook| notebook.cells())
    }

    /// The file or notebook that the document with this address (a file or a cell) belongs to.
    pub(crate) fn owner_of(&self, uri: &lsp::Uri) -> Option<lsp::Uri> {
        if self.files.contains_key(uri) || self.notebooks.contains_key(uri) {
            return Some(uri.clone());
        }
        self.notebooks.iter().find(|(_, notebook)| notebook.has(uri)).map(|(uri, _)| uri.clone())
    }

    /// The unit of the present text of a file, a notebook, or the notebook of a cell.
    pub(crate) fn unit(&mut self, uri: &lsp::Uri) -> Option<Rc<Unit>> {
        let owner = self.owner_of(uri)?;
        if let Some(notebook) = self.notebooks.get_mut(&owner) {
            return Some(notebook.unit(&owner, &self.workspace));
        }
        let file = self.files.get_mut(&owner)?;
        let unit = file.unit.get_or_insert_with(|| {
            let source = file.document.source();
            let part = UnitDocument::whole(owner.clone(), file.version, &source);
            Rc::new(Unit::new(owner, source, vec![part], false, file.before.take(), &self.workspace))
        });
        Some(Rc::clone(unit))
    }

    /// Drops the findings of all texts, because the settings have changed.
    pub(crate) fn forget_findings(&mut self) {
        self.files.values_mut().for_each(File::forget_findings);
        self.notebooks.values_mut().for_each(Notebook::forget_findings);
    }

    /// Drops the findings of one text.
    pub(crate) fn forget_findings_of(&mut self, uri: &lsp::Uri) {
        if let Some(file) = self.files.get_mut(uri) {
            file.forget_findings();
        }
        if let Some(notebook) = self.notebooks.get_mut(uri) {
            notebook.forget_findings();
        }
    }

    /// Checks whether imported files or recordings of open files have changed. Returns whether findings were
    /// dropped because of that.
    pub(crate) fn refresh_imports(&mut self) -> bool {
        self.workspace.refresh();
        let mut units = self.files.values().filter_map(|file| file.unit.as_ref());
        let is_outdated = units.any(|unit| unit.is_outdated(&self.workspace))
            || self.notebooks.values().filter_map(Notebook::known).any(|unit| unit.is_outdated(&self.workspace));
        if is_outdated {
            self.forget_findings();
        }
        is_outdated
    }

    /// The newest command that made calls of a file and can be run again.
    pub(crate) fn run_of(&self, path: &Path) -> Option<RecordedCommand> {
        self.workspace.run_of(path)
    }

    /// The addresses of all open files and notebooks.
    pub(crate) fn all(&self) -> Vec<lsp::Uri> {
        self.files.keys().chain(self.notebooks.keys()).cloned().collect()
    }
}
