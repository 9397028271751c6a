//! The request `textDocument/signatureHelp`: the signature of the call around the cursor.

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::cursor_context::CursorContext;
use ide::signature;
use model::syntax::Encoding;

use crate::server::client_features::ClientFeatures;
use crate::server::owner::Owner;

/// The characters that trigger a request.
pub(crate) const TRIGGERS: [&str; 2] = ["(", ","];
/// The characters that trigger a new request while a signature is shown.
pub(crate) const RETRIGGERS: [&str; 2] = [")", "="];

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::SignatureHelpParams) -> Result<Option<lsp::SignatureHelp>> {
    Ok(help(owner, &params.text_document_position_params))
}

fn help(owner: &mut Owner, at: &lsp::TextDocumentPositionParams) -> Option<lsp::SignatureHelp> {
    let (unit, offset) = owner.place(at)?;
    let target = owner.resolved(&unit).target;
    let start = unit.span_of(&at.text_document.uri)?.start;
    signature_at(&CursorContext::new(&unit.source, &unit.module, target, start, offset), &owner.capabilities)
}

/// The signature at `place`.
fn signature_at(place: &CursorContext<'_>, client: &ClientFeatures) -> Option<lsp::SignatureHelp> {
    let signature = signature::at(place)?;
    let label = &signature.label;
    let length = |end: usize| u32::try_from(Encoding::Utf16.len(&label[..end])).unwrap_or(u32::MAX);
    let params = signature.params.iter().map(|param| lsp::ParameterInformation {
        label: if client.label_offsets {
            lsp::ParameterInformationLabel::Tuple((length(param.span.start), length(param.span.end)))
        } else {
            lsp::ParameterInformationLabel::String(label[param.span.start..param.span.end].to_owned())
        },
        documentation: param.about.clone().map(lsp::Documentation::String),
    });
    let params: Vec<_> = params.collect();
    let active = match signature.active.and_then(|active| u32::try_from(active).ok()) {
        Some(active) => lsp::ActiveParameter::Int(active),
        None if client.no_active_parameter => lsp::ActiveParameter::Null,
        // No parameter has this number, so clients mark none.
        None => lsp::ActiveParameter::Int(u32::try_from(params.len()).unwrap_or(u32::MAX)),
    };
    let information = lsp::SignatureInformation {
        documentation: Some(lsp::Documentation::String(signature.about)),
        parameters: Some(params),
        active_parameter: None,
        label: signature.label,
    };
    Some(lsp::SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: Some(active),
    })
}
