//! Definition, references and highlights of names in kernels, within the file or notebook.

use tower_lsp::gen_lsp_types as lsp;

use ide::names::{self, Occurrence};
use model::kernel::ImportedFile;
use model::syntax::{Encoding, LineIndex, Span};

use super::to_lsp;
use super::unit::Unit;

/// The definition of the name at byte `offset`.
pub(super) fn definition(unit: &Unit, offset: usize, encoding: Encoding) -> Option<lsp::DefinitionResponse> {
    let spans = names::definitions(&unit.source, &unit.module, offset);
    let mut locations: Vec<lsp::Location> =
        spans.into_iter().filter_map(|span| location(unit, span, encoding)).collect();
    if locations.is_empty()
        && let Some((file, name)) = names::imported(&unit.source, &unit.module, offset)
    {
        let spans = file.bindings_of(name);
        locations = spans.into_iter().filter_map(|span| elsewhere(file, span, encoding)).collect();
    }
    (!locations.is_empty()).then_some(lsp::DefinitionResponse::Definition(lsp::Definition::LocationList(locations)))
}

/// The uses of the name at byte `offset`; its bindings too when `with_bindings`.
pub(super) fn references(
    unit: &Unit,
    offset: usize,
    with_bindings: bool,
    encoding: Encoding,
) -> Option<Vec<lsp::Location>> {
    let places = occurrences(unit, offset)?.into_iter().filter(|place| with_bindings || !place.is_binding);
    Some(places.filter_map(|place| location(unit, place.span, encoding)).collect())
}

/// The uses of the name at byte `offset` in one document.
pub(super) fn highlights(
    unit: &Unit,
    uri: &lsp::Uri,
    offset: usize,
    encoding: Encoding,
) -> Option<Vec<lsp::DocumentHighlight>> {
    let in_document = |place: Occurrence| {
        let (part, range) = unit.locate(place.span, encoding)?;
        let kind = if place.is_binding { lsp::DocumentHighlightKind::Write } else { lsp::DocumentHighlightKind::Read };
        (part.uri == *uri).then_some(lsp::DocumentHighlight { range, kind: Some(kind) })
    };
    Some(occurrences(unit, offset)?.into_iter().filter_map(in_document).collect())
}

fn occurrences(unit: &Unit, offset: usize) -> Option<Vec<Occurrence>> {
    let (symbol, _) = names::at(&unit.source, &unit.module, offset)?;
    Some(names::occurrences(&unit.source, &unit.module, symbol))
}

/// The location of a span in a file that may not be open.
fn elsewhere(file: &ImportedFile, span: Span, encoding: Encoding) -> Option<lsp::Location> {
    let lines = LineIndex::new(&file.text);
    let position = |offset| to_lsp::position(lines.position(&file.text, offset, encoding));
    let range = lsp::Range { start: position(span.start), end: position(span.end) };
    Some(lsp::Location { uri: lsp::Uri::from_file_path(&file.path).ok()?, range })
}

fn location(unit: &Unit, span: Span, encoding: Encoding) -> Option<lsp::Location> {
    let (part, range) = unit.locate(span, encoding)?;
    Some(lsp::Location { uri: part.uri.clone(), range })
}
