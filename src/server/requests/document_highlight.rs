//! The request `textDocument/documentHighlight`: the uses of a name within one document.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::names::{self, Occurrence};
use model::syntax::Encoding;

use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(
    owner: &mut Owner,
    params: lsp::DocumentHighlightParams,
) -> Result<Option<Vec<lsp::DocumentHighlight>>> {
    let at = &params.text_document_position_params;
    let place = owner.place(at);
    Ok(place.and_then(|(unit, offset)| highlights(&unit, &at.text_document.uri, offset, owner.encoding)))
}

/// The uses of the name at byte `offset` in one document.
fn highlights(unit: &Unit, uri: &lsp::Uri, offset: usize, encoding: Encoding) -> Option<Vec<lsp::DocumentHighlight>> {
    let in_document = |place: Occurrence| {
        let (part, range) = unit.locate(place.span, encoding)?;
        let kind = if place.is_binding { lsp::DocumentHighlightKind::Write } else { lsp::DocumentHighlightKind::Read };
        (part.uri == *uri).then_some(lsp::DocumentHighlight { range, kind: Some(kind) })
    };
    Some(names::occurrences_at(&unit.source, &unit.module, offset)?.into_iter().filter_map(in_document).collect())
}
