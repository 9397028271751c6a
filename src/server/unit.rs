//! What is checked as one: a file, or the Python cells of a notebook; and where its places are in the editor's documents.

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

/// One version of a text and what is known about it.
pub(super) struct Unit {
    /// The file or the notebook.
    pub(super) uri: lsp::Uri,
    /// Its place in the file system, if it has one.
    pub(super) path: Option<PathBuf>,
    /// Whether it is a notebook.
    pub(super) is_notebook: bool,
    /// The whole text.
    pub(super) source: Source,
    /// Its kernels.
    pub(super) module: Module,
    /// The documents that it is made of, in order.
    pub(super) parts: Vec<Part>,
    /// What the rules found, once they ran.
    pub(super) diagnostics: OnceCell<Vec<Diagnostic>>,
}

/// A document of the editor within a unit.
pub(super) struct Part {
    /// The document.
    pub(super) uri: lsp::Uri,
    /// The version that the text is of.
    pub(super) version: i32,
    /// Where the document's text begins in the unit's.
    start: usize,
    /// The document's own text: as long as its share of the unit's, but with its magic lines.
    text: Arc<str>,
    lines: LineIndex,
}

impl Part {
    /// The document that is the whole unit.
    pub(super) fn whole(uri: lsp::Uri, version: i32, source: &Source) -> Self {
        Self { uri, version, start: 0, text: Arc::clone(source.text()), lines: source.lines().clone() }
    }

    /// A document whose text begins at byte `start` of the unit's.
    pub(super) fn at(start: usize, uri: lsp::Uri, version: i32, text: &str) -> Self {
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
    /// The unit of `source`, which is made of `parts`. What is unchanged since `before`, an older version, is taken over.
    pub(super) fn new(
        uri: lsp::Uri,
        source: Source,
        parts: Vec<Part>,
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

    /// Whether something around the file is not as it was when that was looked at.
    pub(super) fn is_outdated(&self, workspace: &Workspace) -> bool {
        self.path.as_deref().is_some_and(|path| !workspace.has_completed(&self.module, path))
    }

    /// What the rules found; nothing as long as they did not run.
    pub(super) fn findings(&self) -> &[Diagnostic] {
        self.diagnostics.get().map_or(&[], Vec::as_slice)
    }

    /// The document with this address.
    pub(super) fn part(&self, uri: &lsp::Uri) -> Option<&Part> {
        self.parts.iter().find(|part| part.uri == *uri)
    }

    /// The span of the document with this address.
    pub(super) fn span_of(&self, uri: &lsp::Uri) -> Option<Span> {
        self.part(uri).map(|part| Span::new(part.start, part.start + part.text.len()))
    }

    /// The document in which byte `offset` stands.
    pub(super) fn part_at(&self, offset: usize) -> Option<&Part> {
        self.parts.iter().rev().find(|part| part.start <= offset)
    }

    /// Where `span` stands; a span that leaves its document ends with it.
    pub(super) fn locate(&self, span: Span, encoding: Encoding) -> Option<(&Part, lsp::Range)> {
        let part = self.part_at(span.start)?;
        Some((part, part.range(span, encoding)))
    }

    /// Where `span` stands, when it is within one document: what an edit needs.
    pub(super) fn locate_within(&self, span: Span, encoding: Encoding) -> Option<(&Part, lsp::Range)> {
        let (part, range) = self.locate(span, encoding)?;
        (span.end <= part.start + part.text.len()).then_some((part, range))
    }

    /// The span that `range` of a document means.
    pub(super) fn span(&self, uri: &lsp::Uri, range: lsp::Range, encoding: Encoding) -> Option<Span> {
        let part = self.part(uri)?;
        let offset = |position| part.start + part.lines.offset(&part.text, from_lsp::position(position), encoding);
        Some(Span::new(offset(range.start), offset(range.end)))
    }
}
