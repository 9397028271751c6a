//! The action that has a language model write a kernel for a function or a torch module.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;
use tree_sitter::Node;

use search::OptimizeScope;

use super::action_request::{ActionRequest, Readiness, action};
use super::commands::optimize::OPTIMIZE;
use super::jobs::CANCEL;
use super::owner::Owner;
use super::writable::{is_writable, writable};

impl Owner {
    /// The action that has a kernel written, where a model is set that may do so.
    pub(crate) fn write_action(&mut self, place: &ActionRequest<'_>) -> Option<lsp::CodeAction> {
        let name = place.writable().filter(|name| is_writable(place.unit, name))?;
        if !self.resolved(place.unit).settings.model.is_asked() {
            return None;
        }
        let title = format!("Write a Triton kernel for `{name}`");
        match self.readiness(place.unit, &OptimizeScope::Function(name.clone())) {
            Readiness::Ready => Some(action(title, OPTIMIZE, json!({ "uri": place.unit.uri, "function": name }))),
            Readiness::Running(job) => {
                Some(action(format!("Stop writing a kernel for `{name}`"), CANCEL, json!({ "job": job })))
            }
            Readiness::Not(reason) => place.disabled(title, reason),
        }
    }
}

impl ActionRequest<'_> {
    /// The top-level function or class whose first line contains the place, if a kernel could be written for it.
    pub(crate) fn writable(&self) -> Option<String> {
        let span = self.unit.span(self.uri, self.range, self.encoding)?;
        let lines = self.unit.source.lines();
        let line = lines.line_of(span.start);
        let on_line = |node: Node<'_>| lines.line_of(node.start_byte()) == line;
        writable(&self.unit.source).into_iter().find(|(_, node)| on_line(*node)).map(|(name, _)| name)
    }
}
