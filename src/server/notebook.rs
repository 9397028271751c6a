//! A notebook, whose Python cells are joined to one text.

use std::collections::HashMap;
use std::rc::Rc;

use tower_lsp::gen_lsp_types as lsp;

use model::syntax::{Document, Encoding, Source};

use super::unit::{Unit, UnitDocument};
use super::{from_lsp, ipython_magics};
use crate::workspace::Workspace;

/// An open notebook.
pub(crate) struct Notebook {
    cells: Vec<Cell>,
    unit: Option<Rc<Unit>>,
    /// The unit of the former text, for reuse of what has not changed.
    before: Option<Rc<Unit>>,
}

struct Cell {
    uri: lsp::Uri,
    /// The version and text of a Python cell; `None` for other cells, whose text the client need not send.
    text: Option<(i32, Document)>,
}

impl Notebook {
    /// Creates a notebook from the client's message.
    pub(crate) fn new(notebook: &lsp::NotebookDocument, texts: Vec<lsp::TextDocumentItem>) -> Self {
        let mut texts = by_uri(texts);
        let cells = notebook.cells.iter().map(|cell| Cell::new(cell, &mut texts)).collect();
        Self { cells, unit: None, before: None }
    }

    /// Applies the client's changes. Returns the addresses of the removed Python cells.
    pub(crate) fn change(&mut self, change: lsp::NotebookDocumentChangeEvent, encoding: Encoding) -> Vec<lsp::Uri> {
        self.forget_findings();
        let Some(cells) = change.cells else { return Vec::new() };
        let mut gone = Vec::new();
        if let Some(structure) = cells.structure {
            gone = self.splice(structure);
        }
        for changed in cells.data.unwrap_or_default() {
            // A cell that is no longer code keeps no text; one that becomes code is sent as a new cell.
            if changed.kind != lsp::NotebookCellKind::Code
                && let Some(cell) = self.cells.iter_mut().find(|cell| cell.uri == changed.document)
                && cell.text.take().is_some()
            {
                gone.push(changed.document);
            }
        }
        for changed in cells.text_content.unwrap_or_default() {
            let uri = changed.document.text_document_identifier.uri;
            let cell = self.cells.iter_mut().find(|cell| cell.uri == uri);
            let Some((version, document)) = cell.and_then(|cell| cell.text.as_mut()) else {
                tracing::warn!(%uri, "a cell that is not open was edited");
                continue;
            };
            from_lsp::apply_changes(document, changed.changes, encoding, &uri);
            *version = changed.document.version;
        }
        gone
    }

    /// Removes and adds cells; a cell that was moved keeps its text.
    fn splice(&mut self, structure: lsp::NotebookDocumentCellChangeStructure) -> Vec<lsp::Uri> {
        let mut texts = by_uri(structure.did_open.unwrap_or_default());
        let array = structure.array;
        let start = (array.start as usize).min(self.cells.len());
        let end = start.saturating_add(array.delete_count as usize).min(self.cells.len());
        let mut removed: HashMap<_, _> = self.cells.drain(start..end).map(|cell| (cell.uri.clone(), cell)).collect();
        let added = array.cells.unwrap_or_default().into_iter().map(|cell| {
            let moved = removed.remove(&cell.document).filter(|_| !texts.contains_key(&cell.document));
            moved.unwrap_or_else(|| Cell::new(&cell, &mut texts))
        });
        let added: Vec<Cell> = added.collect();
        self.cells.splice(start..start, added);
        removed.into_values().filter(|cell| cell.text.is_some()).map(|cell| cell.uri).collect()
    }

    /// Whether one of the cells has this address.
    pub(crate) fn has(&self, uri: &lsp::Uri) -> bool {
        self.cells.iter().any(|cell| cell.uri == *uri)
    }

    /// The addresses of the Python cells.
    pub(crate) fn cells(&self) -> Vec<lsp::Uri> {
        self.cells.iter().filter(|cell| cell.text.is_some()).map(|cell| cell.uri.clone()).collect()
    }

    /// The unit of all Python cells together.
    pub(crate) fn unit(&mut self, notebook: &lsp::Uri, workspace: &Workspace) -> Rc<Unit> {
        let build = || {
            let (mut joined, mut parts) = (String::new(), Vec::new());
            for cell in &self.cells {
                let Some((version, document)) = &cell.text else { continue };
                let text = document.text();
                parts.push(UnitDocument::at(joined.len(), cell.uri.clone(), *version, &text));
                joined.push_str(&ipython_magics::blank(&text));
                joined.push('\n');
            }
            let before = self.before.take();
            let same = before.as_ref().filter(|before| **before.source.text() == *joined);
            let source = same.map_or_else(|| Source::parse(joined.as_str()), |before| before.source.clone());
            Rc::new(Unit::new(notebook.clone(), source, parts, true, before, workspace))
        };
        Rc::clone(self.unit.get_or_insert_with(build))
    }

    /// The unit, if it was built already.
    pub(crate) fn known(&self) -> Option<&Rc<Unit>> {
        self.unit.as_ref()
    }

    /// Drops the findings.
    pub(crate) fn forget_findings(&mut self) {
        self.before = self.unit.take().or(self.before.take());
    }
}

impl Cell {
    fn new(cell: &lsp::NotebookCell, texts: &mut HashMap<lsp::Uri, lsp::TextDocumentItem>) -> Self {
        let text = texts
            .remove(&cell.document)
            .filter(|item| cell.kind == lsp::NotebookCellKind::Code && item.language_id == lsp::LanguageKind::Python);
        Self { uri: cell.document.clone(), text: text.map(|item| (item.version, Document::new(&item.text))) }
    }
}

fn by_uri(items: Vec<lsp::TextDocumentItem>) -> HashMap<lsp::Uri, lsp::TextDocumentItem> {
    items.into_iter().map(|item| (item.uri.clone(), item)).collect()
}
