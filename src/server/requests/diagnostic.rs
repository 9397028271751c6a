//! The request `textDocument/diagnostic`, and the notification that takes its place for clients that do not pull.

use tower_lsp::gen_lsp_types as lsp;

use crate::server::diagnostics;
use crate::server::owner::Owner;
use crate::server::reply::ReplySender;
use crate::server::unit::Unit;

/// Answers the request once no other message is waiting.
pub(crate) fn handle(
    owner: &mut Owner,
    params: lsp::DocumentDiagnosticParams,
    reply: ReplySender<lsp::DocumentDiagnosticReport>,
) {
    owner.pull_later(params, reply);
}

impl Owner {
    /// Publishes the diagnostics of a file or notebook.
    pub(crate) fn publish(&mut self, uri: &lsp::Uri) {
        let Some(unit) = self.checked(uri) else { return };
        for part in &unit.parts {
            let diagnostics = self.diagnostics(&unit, &part.uri);
            let (uri, version) = (part.uri.clone(), Some(part.version));
            self.client.publish(lsp::PublishDiagnosticsParams { uri, version, diagnostics });
        }
    }

    /// The answer to a request for diagnostics.
    pub(crate) fn report(&mut self, params: &lsp::DocumentDiagnosticParams) -> lsp::DocumentDiagnosticReport {
        let uri = &params.text_document.uri;
        let Some(unit) = self.checked(uri) else { return diagnostics::empty_report() };
        let Some(part) = unit.part(uri) else { return diagnostics::empty_report() };
        diagnostics::report(part.version, self.diagnostics(&unit, uri), params.previous_result_id.as_deref())
    }

    /// The diagnostics of a document in the client's terms.
    fn diagnostics(&self, unit: &Unit, uri: &lsp::Uri) -> Vec<lsp::Diagnostic> {
        let mut items = diagnostics::of_document(unit, uri, &self.capabilities, self.encoding);
        if !self.capabilities.diagnostic_data {
            items.iter_mut().for_each(|item| item.data = None);
        }
        items
    }
}
