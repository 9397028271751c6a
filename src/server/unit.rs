//! A unit of checking: a file, or the Python cells of a notebook, with the mapping of its offsets to the editor's
//! documents.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use tower_lsp::gen_lsp_types as lsp;

use model::kernel::Module;
use model::syntax::{Encoding, LineIndex, Source, Span};
use rules::Diagnostic;

use super::{from_lsp, to_lsp};
use crate::workspace::Workspace;

/// One version of a text with its model and findings.
pub(crate) struct Unit {
    /// The address of the file or the notebook.
    pub(crate) uri: lsp::Uri,
    /// Its path, if it is in the file system.
    pub(crate) path: Option<PathBuf>,
    /// Whether it is a notebook.
    pub(crate) is_notebook: bool,
    /// The parsed text.
    pub(crate) source: Source,
    /// The model of its kernels.
    pub(crate) module: Module,
    /// The documents that it consists of, in order.
    pub(crate) parts: Vec<UnitDocument>,
    /// The findings of the rules, once they ran.
    pub(crate) diagnostics: OnceCell<Vec<Diagnostic>>,
}

/// A document of the editor within a unit.
pub(crate) struct UnitDocument {
    /// The document.
    pub(crate) uri: lsp::Uri,
    /// The version of the document.
    pub(crate) version: i32,
    /// The byte at which the document's text begins in the unit's.
    start: usize,
    /// The document's own text: as long as its share of the unit's, but with its magic lines.
    text: Arc<str>,
    lines: LineIndex,
}

impl UnitDocument {
    /// The only document of a unit.
    pub(crate) fn whole(uri: lsp::Uri, version: i32, source: &Source) -> Self {
        Self { uri, version, start: 0, text: Arc::clone(source.text()), lines: source.lines().clone() }
    }

    /// A document whose text begins at byte `start` of the unit's.
    pub(crate) fn at(start: usize, uri: lsp::Uri, version: i32, text: &str) -> Self {
        Self { uri, version, start, text: text.into(), lines: LineIndex::new(text) }
    }

    fn range(&self, span: Span, encoding: Encoding) -> lsp::Range {
        let position = |offset: usize| {
            to_lsp::position(self.lines.position(&self.text, offset.saturating_sub(self.start), encoding))
        };
        lsp::Range { start: position(span.start), end: position(span.end) }
    }
}

impl Unit {
    /// Creates the unit of `source`, which consists of `parts`. What is unchanged since `before`, an older version,
    /// is reused.
    pub(crate) fn new(
        uri: lsp::Uri,
        source: Source,
        parts: Vec<UnitDocument>,
        is_notebook: bool,
        before: Option<Rc<Self>>,
        workspace: &Workspace,
    ) -> Self {
        let mut module = match before.and_then(Rc::into_inner) {
            Some(before) => Module::rebuild(&source, before.module, &before.source),
            None => Module::build(&source),
        };
        let path = from_lsp::path(&uri);
        if let Some(path) = &path {
            workspace.complete(&mut module, path);
        }
        Self { path, uri, is_notebook, source, module, parts, diagnostics: OnceCell::new() }
    }

    /// Whether imports or recordings have changed since the model was completed with them.
    pub(crate) fn is_outdated(&self, workspace: &Workspace) -> bool {
        self.path.as_deref().is_some_and(|path| !workspace.has_completed(&self.module, path))
    }

    /// The findings of the rules; empty until they ran.
    pub(crate) fn findings(&self) -> &[Diagnostic] {
        self.diagnostics.get().map_or(&[], Vec::as_slice)
    }

    /// The document with this address.
    pub(crate) fn part(&self, uri: &lsp::Uri) -> Option<&UnitDocument> {
        self.parts.iter().find(|part| part.uri == *uri)
    }

    /// The span of the document with this address.
    pub(crate) fn span_of(&self, uri: &lsp::Uri) -> Option<Span> {
        self.part(uri).map(|part| Span::new(part.start, part.start + part.text.len()))
    }

    /// The document that contains byte `offset`.
    pub(crate) fn part_at(&self, offset: usize) -> Option<&UnitDocument> {
        self.parts.iter().rev().find(|part| part.start <= offset)
    }

    /// The document and range of `span`; a span that leaves its document is cut at the document's end.
    pub(crate) fn locate(&self, span: Span, encoding: Encoding) -> Option<(&UnitDocument, lsp::Range)> {
        let part = self.part_at(span.start)?;
        Some((part, part.range(span, encoding)))
    }

    /// The document and range of `span` if it is within one document, as an edit requires.
    pub(crate) fn locate_within(&self, span: Span, encoding: Encoding) -> Option<(&UnitDocument, lsp::Range)> {
        let (part, range) = self.locate(span, encoding)?;
        (span.end <= part.start + part.text.len()).then_some((part, range))
    }

    /// The span of a `range` of a document.
    pub(crate) fn span(&self, uri: &lsp::Uri, range: lsp::Range, encoding: Encoding) -> Option<Span> {
        let part = self.part(uri)?;
        let offset = |position| part.start + part.lines.offset(&part.text, from_lsp::position(position), encoding);
        Some(Span::new(offset(range.start), offset(range.end)))
    }
}
