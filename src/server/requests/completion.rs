//! The request `textDocument/completion`.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::complete::{self, CompletionKind, Item};
use ide::cursor_context::CursorContext;
use model::syntax::{Encoding, Span};

use crate::server::client_features::ClientFeatures;
use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// The characters that trigger a completion request.
pub(crate) const TRIGGERS: [&str; 1] = ["."];

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::CompletionParams) -> Result<Option<lsp::CompletionResponse>> {
    Ok(completion(owner, &params.text_document_position_params))
}

fn completion(owner: &mut Owner, at: &lsp::TextDocumentPositionParams) -> Option<lsp::CompletionResponse> {
    let (unit, offset) = owner.place(at)?;
    let target = owner.resolved(&unit).target;
    let start = unit.span_of(&at.text_document.uri)?.start;
    let place = CursorContext::new(&unit.source, &unit.module, target, start, offset);
    completions_at(&unit, &place, &owner.capabilities, owner.encoding)
}

/// The completions at `place`. The list is complete and needs no resolving.
fn completions_at(
    unit: &Unit,
    place: &CursorContext<'_>,
    client: &ClientFeatures,
    encoding: Encoding,
) -> Option<lsp::CompletionResponse> {
    let offer = complete::at(place)?;
    let typed = Span::new(offer.word.start, place.cursor.offset);
    let (_, insert) = unit.locate_within(typed, encoding)?;
    // In a notebook a word ends with its cell.
    let replace = unit.locate_within(offer.word, encoding).map_or(insert, |(_, range)| range);
    let items = offer.items.into_iter().map(|item| to_lsp(item, client, insert, replace)).collect();
    let list = lsp::CompletionList { is_incomplete: false, items, ..lsp::CompletionList::default() };
    Some(lsp::CompletionResponse::CompletionList(list))
}

fn to_lsp(item: Item, client: &ClientFeatures, insert: lsp::Range, replace: lsp::Range) -> lsp::CompletionItem {
    let new_text = item.insert.clone().unwrap_or_else(|| item.name.clone());
    let edit = if client.insert_or_replace {
        lsp::CompletionItemTextEdit::InsertReplaceEdit(lsp::InsertReplaceEdit { new_text, insert, replace })
    } else {
        lsp::CompletionItemTextEdit::TextEdit(lsp::TextEdit { range: insert, new_text })
    };
    let commit = match item.kind {
        CompletionKind::Function | CompletionKind::Class => Some("("),
        CompletionKind::Module => Some("."),
        _ => None,
    };
    let details = client.completion_label_details && item.signature.is_some();
    lsp::CompletionItem {
        sort_text: Some(format!("{}{}", item.rank, item.name)),
        detail: Some(format!("{}{}", item.name, item.signature.as_deref().unwrap_or_default())),
        label_details: details
            .then(|| lsp::CompletionItemLabelDetails { detail: item.signature.clone(), description: None }),
        label: item.insert.unwrap_or(item.name),
        kind: Some(kind(item.kind)),
        documentation: Some(lsp::Documentation::String(item.about)),
        insert_text_format: Some(lsp::InsertTextFormat::PlainText),
        text_edit: Some(edit),
        commit_characters: commit.filter(|_| client.commit_characters).map(|commit| vec![commit.to_owned()]),
        ..lsp::CompletionItem::default()
    }
}

fn kind(kind: CompletionKind) -> lsp::CompletionItemKind {
    match kind {
        CompletionKind::Function => lsp::CompletionItemKind::Function,
        CompletionKind::Class => lsp::CompletionItemKind::Class,
        CompletionKind::Dtype => lsp::CompletionItemKind::Struct,
        CompletionKind::Module => lsp::CompletionItemKind::Module,
        CompletionKind::Value => lsp::CompletionItemKind::Value,
        // Keyword arguments are shown as fields, because LSP has no kind for them.
        CompletionKind::Keyword => lsp::CompletionItemKind::Field,
        CompletionKind::Constexpr => lsp::CompletionItemKind::Constant,
        CompletionKind::Variable => lsp::CompletionItemKind::Variable,
    }
}
