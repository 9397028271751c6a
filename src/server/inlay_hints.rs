//! Inlay hints in the client's terms: inferred facts that the text does not spell out.

use tower_lsp::gen_lsp_types as lsp;

use config::InlayHintSettings;
use ide::hints::{Hint, HintKind, hints};
use model::api::TritonTarget;
use model::syntax::{Encoding, Span};

use super::unit::Unit;

/// The hints in `within`, a part of one document, that the settings ask for.
pub(super) fn within(
    unit: &Unit,
    within: Span,
    settings: &InlayHintSettings,
    target: TritonTarget,
    encoding: Encoding,
) -> Option<Vec<lsp::InlayHint>> {
    let wanted = |kind: HintKind| match kind {
        HintKind::Value => settings.values,
        HintKind::Type => settings.types,
    };
    let found = hints(&unit.module, unit.source.text(), target, within, &wanted);
    Some(found.into_iter().filter_map(|hint| to_lsp(unit, hint, encoding)).collect())
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
