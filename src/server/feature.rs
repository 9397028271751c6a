//! Requests about a place or a document that are answered at once, from the present unit.

use std::rc::Rc;

use tower_lsp::gen_lsp_types as lsp;

use ide::cursor_context::CursorContext;
use model::syntax::Span;

use super::event::ReplySender;
use super::owner::{Owner, answer};
use super::unit::Unit;
use super::{code_lens, completion, definition, hover, inlay_hints, semantic_tokens, signature_help, symbols};

/// A request and the sender for its answer.
pub(super) enum FeatureRequest {
    /// A hover.
    Hover(lsp::HoverParams, ReplySender<Option<lsp::Hover>>),
    /// Completions.
    Completion(lsp::CompletionParams, ReplySender<Option<lsp::CompletionResponse>>),
    /// The signature of the call around the cursor.
    Signature(lsp::SignatureHelpParams, ReplySender<Option<lsp::SignatureHelp>>),
    /// The definition of a name.
    Definition(lsp::DefinitionParams, ReplySender<Option<lsp::DefinitionResponse>>),
    /// The uses of a name.
    References(lsp::ReferenceParams, ReplySender<Option<Vec<lsp::Location>>>),
    /// The uses of a name within the document.
    Highlight(lsp::DocumentHighlightParams, ReplySender<Option<Vec<lsp::DocumentHighlight>>>),
    /// The outline of a document.
    Symbols(lsp::DocumentSymbolParams, ReplySender<Option<lsp::DocumentSymbolResponse>>),
    /// The semantic tokens of a document.
    Tokens(lsp::SemanticTokensParams, ReplySender<Option<lsp::SemanticTokens>>),
    /// The semantic tokens of a range.
    TokensOfRange(lsp::SemanticTokensRangeParams, ReplySender<Option<lsp::SemanticTokens>>),
    /// Inlay hints.
    Hints(lsp::InlayHintParams, ReplySender<Option<Vec<lsp::InlayHint>>>),
    /// Code lenses.
    Lenses(lsp::CodeLensParams, ReplySender<Option<Vec<lsp::CodeLens>>>),
}

impl Owner {
    /// Answers a question.
    pub(super) fn answer_question(&mut self, question: FeatureRequest) {
        match question {
            FeatureRequest::Hover(params, reply) => answer(reply, || Ok(self.hover(&params))),
            FeatureRequest::Completion(params, reply) => answer(reply, || Ok(self.completion(&params))),
            FeatureRequest::Signature(params, reply) => answer(reply, || Ok(self.signature(&params))),
            FeatureRequest::Definition(params, reply) => answer(reply, || Ok(self.definition(&params))),
            FeatureRequest::References(params, reply) => answer(reply, || Ok(self.references(&params))),
            FeatureRequest::Highlight(params, reply) => answer(reply, || Ok(self.highlight(&params))),
            FeatureRequest::Symbols(params, reply) => answer(reply, || Ok(self.symbols(&params.text_document.uri))),
            FeatureRequest::Tokens(params, reply) => answer(reply, || Ok(self.tokens(&params.text_document.uri, None))),
            FeatureRequest::TokensOfRange(params, reply) => {
                answer(reply, || Ok(self.tokens(&params.text_document.uri, Some(params.range))));
            }
            FeatureRequest::Hints(params, reply) => answer(reply, || Ok(self.hints(&params))),
            FeatureRequest::Lenses(params, reply) => answer(reply, || Ok(self.lenses(&params.text_document.uri))),
        }
    }

    /// The unit of a document and the byte offset of a position in it.
    fn place(&mut self, at: &lsp::TextDocumentPositionParams) -> Option<(Rc<Unit>, usize)> {
        let uri = &at.text_document.uri;
        let unit = self.documents.unit(uri)?;
        let range = lsp::Range { start: at.position, end: at.position };
        let offset = unit.span(uri, range, self.encoding)?.start;
        Some((unit, offset))
    }

    fn hover(&mut self, params: &lsp::HoverParams) -> Option<lsp::Hover> {
        let at = &params.text_document_position_params;
        self.checked(&at.text_document.uri)?;
        let (unit, offset) = self.place(at)?;
        let (text, span) = hover::at(&unit, offset, self.resolved(&unit).target, &self.skills.memory)?;
        let (_, range) = unit.locate(span, self.encoding)?;
        Some(lsp::Hover { contents: hover::contents(text, self.capabilities.markdown), range: Some(range) })
    }

    fn completion(&mut self, params: &lsp::CompletionParams) -> Option<lsp::CompletionResponse> {
        let at = &params.text_document_position_params;
        let (unit, offset) = self.place(at)?;
        let target = self.resolved(&unit).target;
        let start = unit.span_of(&at.text_document.uri)?.start;
        let place = CursorContext::new(&unit.source, &unit.module, target, start, offset);
        completion::at(&unit, &place, &self.capabilities, self.encoding)
    }

    fn signature(&mut self, params: &lsp::SignatureHelpParams) -> Option<lsp::SignatureHelp> {
        let at = &params.text_document_position_params;
        let (unit, offset) = self.place(at)?;
        let target = self.resolved(&unit).target;
        let start = unit.span_of(&at.text_document.uri)?.start;
        let place = CursorContext::new(&unit.source, &unit.module, target, start, offset);
        signature_help::at(&place, &self.capabilities)
    }

    fn definition(&mut self, params: &lsp::DefinitionParams) -> Option<lsp::DefinitionResponse> {
        let (unit, offset) = self.place(&params.text_document_position_params)?;
        definition::definition(&unit, offset, self.encoding)
    }

    fn references(&mut self, params: &lsp::ReferenceParams) -> Option<Vec<lsp::Location>> {
        let (unit, offset) = self.place(&params.text_document_position_params)?;
        definition::references(&unit, offset, params.context.include_declaration, self.encoding)
    }

    fn highlight(&mut self, params: &lsp::DocumentHighlightParams) -> Option<Vec<lsp::DocumentHighlight>> {
        let at = &params.text_document_position_params;
        let (unit, offset) = self.place(at)?;
        definition::highlights(&unit, &at.text_document.uri, offset, self.encoding)
    }

    fn symbols(&mut self, uri: &lsp::Uri) -> Option<lsp::DocumentSymbolResponse> {
        let unit = self.documents.unit(uri)?;
        Some(symbols::of_document(&unit, uri, self.capabilities.symbol_trees, self.encoding))
    }

    fn tokens(&mut self, uri: &lsp::Uri, range: Option<lsp::Range>) -> Option<lsp::SemanticTokens> {
        let unit = self.documents.unit(uri)?;
        let (target, within) = (self.resolved(&unit).target, self.part_of_document(&unit, uri, range)?);
        semantic_tokens::of_document(&unit, target, within, self.encoding)
    }

    fn hints(&mut self, params: &lsp::InlayHintParams) -> Option<Vec<lsp::InlayHint>> {
        let uri = &params.text_document.uri;
        let unit = self.documents.unit(uri)?;
        let resolved = self.resolved(&unit);
        let within = self.part_of_document(&unit, uri, Some(params.range))?;
        inlay_hints::within(&unit, within, &resolved.settings.inlay_hints, resolved.target, self.encoding)
    }

    fn lenses(&mut self, uri: &lsp::Uri) -> Option<Vec<lsp::CodeLens>> {
        let unit = self.documents.unit(uri)?;
        if !self.resolved(&unit).settings.code_lens.enabled {
            return None;
        }
        // Resources may make a long line, which would hide the lenses behind it, so they come last.
        let mut lenses = self.search_lenses(&unit, uri);
        if let Some(device) = self.surveyed_for(&unit) {
            lenses.extend(code_lens::of_document(&unit, uri, &device, self.encoding));
        }
        Some(lenses)
    }

    /// The span of a range of a document, or of the whole document.
    fn part_of_document(&self, unit: &Unit, uri: &lsp::Uri, range: Option<lsp::Range>) -> Option<Span> {
        match range {
            Some(range) => unit.span(uri, range, self.encoding),
            None => unit.span_of(uri),
        }
    }
}
