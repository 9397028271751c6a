//! The requests `textDocument/semanticTokens/full` and `/range`: the tokens of the names in kernels.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::tokens::{Token, TokenKind, tokens};
use model::api::TritonTarget;
use model::syntax::{Encoding, Span};

use crate::server::owner::Owner;
use crate::server::unit::Unit;

/// The token types, in the order of their numbers. They are standard ones, so that every theme has colours for
/// them.
const TYPES: [&str; 3] = ["parameter", "variable", "function"];
/// The modifiers, in the order of their bits: two standard ones and three of the server's own.
const MODIFIERS: [&str; 5] = ["declaration", "readonly", "constexpr", "pointer", "tile"];

/// The legend that gives the numbers of tokens their meaning.
pub(crate) fn legend() -> lsp::SemanticTokensLegend {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    lsp::SemanticTokensLegend { token_types: owned(&TYPES), token_modifiers: owned(&MODIFIERS) }
}

/// Answers the request for a document.
pub(crate) fn handle(owner: &mut Owner, params: lsp::SemanticTokensParams) -> Result<Option<lsp::SemanticTokens>> {
    Ok(tokens_of(owner, &params.text_document.uri, None))
}

/// Answers the request for a range.
pub(crate) fn handle_range(
    owner: &mut Owner,
    params: lsp::SemanticTokensRangeParams,
) -> Result<Option<lsp::SemanticTokens>> {
    Ok(tokens_of(owner, &params.text_document.uri, Some(params.range)))
}

fn tokens_of(owner: &mut Owner, uri: &lsp::Uri, range: Option<lsp::Range>) -> Option<lsp::SemanticTokens> {
    let unit = owner.documents.unit(uri)?;
    let (target, within) = (owner.resolved(&unit).target, owner.part_of_document(&unit, uri, range)?);
    tokens_within(&unit, target, within, owner.encoding)
}

/// The tokens in `within`, a part of one document. A file without kernels has none, because it is left to other
/// servers.
fn tokens_within(unit: &Unit, target: TritonTarget, within: Span, encoding: Encoding) -> Option<lsp::SemanticTokens> {
    if unit.module.kernels.is_empty() && unit.module.launches.is_empty() {
        return None;
    }
    let mut last = lsp::Position { line: 0, character: 0 };
    let mut data = Vec::new();
    for token in tokens(&unit.source, &unit.module, target, within) {
        let Some((_, range)) = unit.locate_within(token.span, encoding) else { continue };
        let (start, end) = (range.start, range.end);
        let same_line = start.line == last.line;
        data.push(lsp::SemanticToken {
            delta_line: start.line - last.line,
            delta_start: if same_line { start.character - last.character } else { start.character },
            length: end.character - start.character,
            token_type: number(token.kind),
            token_modifiers_bitset: modifiers(&token),
        });
        last = start;
    }
    Some(lsp::SemanticTokens { result_id: None, data })
}

fn number(kind: TokenKind) -> u32 {
    match kind {
        TokenKind::Parameter => 0,
        TokenKind::Variable => 1,
        TokenKind::Function => 2,
    }
}

fn modifiers(token: &Token) -> u32 {
    let class = token.class;
    let bits = [token.is_binding, class.constexpr, class.constexpr, class.pointer, class.tile];
    bits.iter().rev().fold(0, |sum, bit| sum * 2 + u32::from(*bit))
}
