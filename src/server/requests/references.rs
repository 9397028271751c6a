//! The request `textDocument/references`: the uses of a name within the file or notebook.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::names;
use model::syntax::Encoding;

use crate::server::owner::Owner;
use crate::server::to_lsp;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::ReferenceParams) -> Result<Option<Vec<lsp::Location>>> {
    let place = owner.place(&params.text_document_position_params);
    let with_bindings = params.context.include_declaration;
    Ok(place.and_then(|(unit, offset)| references(&unit, offset, with_bindings, owner.encoding)))
}

/// The uses of the name at byte `offset`; its bindings too when `with_bindings`.
fn references(unit: &Unit, offset: usize, with_bindings: bool, encoding: Encoding) -> Option<Vec<lsp::Location>> {
    let places = names::occurrences_at(&unit.source, &unit.module, offset)?
        .into_iter()
        .filter(|place| with_bindings || !place.is_binding);
    Some(places.filter_map(|place| to_lsp::location(unit, place.span, encoding)).collect())
}
