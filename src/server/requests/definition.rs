//! The request `textDocument/definition`: where a name is bound, in the file, the notebook or an imported file.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::names;
use model::kernel::ImportedFile;
use model::syntax::{Encoding, LineIndex, Span};

use crate::server::owner::Owner;
use crate::server::to_lsp;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::DefinitionParams) -> Result<Option<lsp::DefinitionResponse>> {
    let place = owner.place(&params.text_document_position_params);
    Ok(place.and_then(|(unit, offset)| definition(&unit, offset, owner.encoding)))
}

/// The definition of the name at byte `offset`.
fn definition(unit: &Unit, offset: usize, encoding: Encoding) -> Option<lsp::DefinitionResponse> {
    let spans = names::definitions(&unit.source, &unit.module, offset);
    let mut locations: Vec<lsp::Location> =
        spans.into_iter().filter_map(|span| to_lsp::location(unit, span, encoding)).collect();
    if locations.is_empty()
        && let Some((file, name)) = names::imported(&unit.source, &unit.module, offset)
    {
        let spans = file.bindings_of(name);
        locations = spans.into_iter().filter_map(|span| elsewhere(file, span, encoding)).collect();
    }
    (!locations.is_empty()).then_some(lsp::DefinitionResponse::Definition(lsp::Definition::LocationList(locations)))
}

/// The location of a span in a file that may not be open.
fn elsewhere(file: &ImportedFile, span: Span, encoding: Encoding) -> Option<lsp::Location> {
    let lines = LineIndex::new(&file.text);
    let position = |offset| to_lsp::position(lines.position(&file.text, offset, encoding));
    let range = lsp::Range { start: position(span.start), end: position(span.end) };
    Some(lsp::Location { uri: lsp::Uri::from_file_path(&file.path).ok()?, range })
}
