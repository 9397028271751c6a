//! The request `textDocument/inlayHint`: inferred facts that the text does not spell out.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use config::InlayHintSettings;
use ide::hints::{Hint, HintKind, hints};
use model::api::TritonTarget;
use model::syntax::{Encoding, Span};

use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::InlayHintParams) -> Result<Option<Vec<lsp::InlayHint>>> {
    let uri = &params.text_document.uri;
    let Some(unit) = owner.documents.unit(uri) else { return Ok(None) };
    let resolved = owner.resolved(&unit);
    let Some(within) = owner.part_of_document(&unit, uri, Some(params.range)) else { return Ok(None) };
    Ok(Some(hints_within(&unit, within, &resolved.settings.inlay_hints, resolved.target, owner.encoding)))
}

/// The hints in `within`, a part of one document, that the settings ask for.
fn hints_within(
    unit: &Unit,
    within: Span,
    settings: &InlayHintSettings,
    target: TritonTarget,
    encoding: Encoding,
) -> Vec<lsp::InlayHint> {
    let wanted = |kind: HintKind| match kind {
        HintKind::Value => settings.values,
        HintKind::Type => settings.types,
    };
    let found = hints(&unit.module, unit.source.text(), target, within, &wanted);
    found.into_iter().filter_map(|hint| to_lsp(unit, hint, encoding)).collect()
}

fn to_lsp(unit: &Unit, hint: Hint, encoding: Encoding) -> Option<lsp::InlayHint> {
    let (_, range) = unit.locate(Span::new(hint.offset, hint.offset), encoding)?;
    Some(lsp::InlayHint {
        position: range.start,
        label: lsp::Label::String(hint.label),
        kind: match hint.kind {
            HintKind::Type => Some(lsp::InlayHintKind::Type),
            // It is neither a type nor a parameter name.
            HintKind::Value => None,
        },
        text_edits: None,
        tooltip: Some(lsp::Tooltip::String(hint.tooltip)),
        padding_left: None,
        padding_right: None,
        data: None,
    })
}
