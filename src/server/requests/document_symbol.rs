//! The request `textDocument/documentSymbol`: the outline of a document, as a tree or, for clients that do not support trees, as a list.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::outline::{OutlineItem, OutlineKind, outline};
use model::syntax::{Encoding, Span};

use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(
    owner: &mut Owner,
    params: lsp::DocumentSymbolParams,
) -> Result<Option<lsp::DocumentSymbolResponse>> {
    let uri = &params.text_document.uri;
    let unit = owner.documents.unit(uri);
    Ok(unit.map(|unit| of_document(&unit, uri, owner.capabilities.symbol_trees, owner.encoding)))
}

/// The outline of the document `uri` of a unit.
fn of_document(unit: &Unit, uri: &lsp::Uri, as_tree: bool, encoding: Encoding) -> lsp::DocumentSymbolResponse {
    let entries = outline(&unit.source, &unit.module);
    let entries = entries.iter().filter(|entry| unit.part_at(entry.span.start).is_some_and(|part| part.uri == *uri));
    let range = |span: Span| unit.locate(span, encoding).map(|(_, range)| range);
    if as_tree {
        let symbols = entries.filter_map(|entry| symbol(entry, &range)).collect();
        return lsp::DocumentSymbolResponse::DocumentSymbolList(symbols);
    }
    let mut list = Vec::new();
    for entry in entries {
        flatten(entry, None, uri, &range, &mut list);
    }
    lsp::DocumentSymbolResponse::SymbolInformationList(list)
}

fn symbol(entry: &OutlineItem, range: &dyn Fn(Span) -> Option<lsp::Range>) -> Option<lsp::DocumentSymbol> {
    let children: Vec<_> = entry.children.iter().filter_map(|child| symbol(child, range)).collect();
    #[expect(deprecated, reason = "the field must be named")]
    Some(lsp::DocumentSymbol {
        name: entry.name.clone(),
        detail: Some(entry.detail.clone()),
        kind: kind(entry.kind),
        tags: None,
        deprecated: None,
        range: range(entry.span)?,
        selection_range: range(entry.name_span)?,
        children: (!children.is_empty()).then_some(children),
    })
}

fn flatten(
    entry: &OutlineItem,
    container: Option<&str>,
    uri: &lsp::Uri,
    range: &dyn Fn(Span) -> Option<lsp::Range>,
    list: &mut Vec<lsp::SymbolInformation>,
) {
    if let Some(range) = range(entry.span) {
        #[expect(deprecated, reason = "the field must be named")]
        list.push(lsp::SymbolInformation {
            deprecated: None,
            location: lsp::Location { uri: uri.clone(), range },
            base_symbol_information: lsp::BaseSymbolInformation {
                name: entry.name.clone(),
                kind: kind(entry.kind),
                tags: None,
                container_name: container.map(str::to_owned),
            },
        });
    }
    for child in &entry.children {
        flatten(child, Some(&entry.name), uri, range, list);
    }
}

fn kind(kind: OutlineKind) -> lsp::SymbolKind {
    match kind {
        OutlineKind::Kernel | OutlineKind::Host => lsp::SymbolKind::Function,
        OutlineKind::Constexpr => lsp::SymbolKind::Constant,
        OutlineKind::Config => lsp::SymbolKind::Object,
        OutlineKind::Launch => lsp::SymbolKind::Event,
    }
}
