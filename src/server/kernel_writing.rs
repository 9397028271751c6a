//! Functions and torch modules that launch no kernel, for which a language model may write one.

use serde_json::json;
use tower_lsp::gen_lsp_types as lsp;
use tree_sitter::Node;

use model::syntax::{Source, each_node, field};
use search::OptimizeScope;

use super::code_action::{ActionRequest, Readiness, action};
use super::optimize::{CANCEL, OPTIMIZE};
use super::owner::Owner;
use super::unit::Unit;

impl Owner {
    /// The action that has a kernel written, where a model is set that may do so.
    pub(super) fn write_action(&mut self, place: &ActionRequest<'_>) -> Option<lsp::CodeAction> {
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
    pub(super) fn writable(&self) -> Option<String> {
        let span = self.unit.span(self.uri, self.range, self.encoding)?;
        let lines = self.unit.source.lines();
        let line = lines.line_of(span.start);
        let on_line = |node: Node<'_>| lines.line_of(node.start_byte()) == line;
        writable(&self.unit.source).into_iter().find(|(_, node)| on_line(*node)).map(|(name, _)| name)
    }
}

/// Whether a kernel could be written for a function or class of this name.
pub(super) fn is_writable(unit: &Unit, name: &str) -> bool {
    writable(&unit.source).iter().any(|(known, _)| known == name)
        && !unit.module.hosts.iter().any(|host| host.qualname.split('.').next() == Some(name))
}

/// The plain functions, and the modules with a `forward`, whose texts use torch, with their names.
fn writable(source: &Source) -> Vec<(String, Node<'_>)> {
    let text = source.text();
    let mut found = Vec::new();
    for root in source.roots() {
        let mut cursor = root.walk();
        for node in root.named_children(&mut cursor) {
            let is_fit = match node.kind() {
                "function_definition" => uses_torch(node, text),
                "class_definition" => defines_forward(node, text) && uses_torch(node, text),
                _ => false,
            };
            if let Some(name) = field(node, "name").filter(|_| is_fit) {
                found.push((text[name.byte_range()].to_owned(), node));
            }
        }
    }
    found
}

fn uses_torch(node: Node<'_>, text: &str) -> bool {
    let mut uses = false;
    each_node(node, &mut |node| {
        uses |= node.kind() == "identifier" && matches!(&text[node.byte_range()], "torch" | "F" | "nn");
    });
    uses
}

fn defines_forward(class: Node<'_>, text: &str) -> bool {
    let Some(body) = field(class, "body") else { return false };
    let mut cursor = body.walk();
    let mut methods = body.named_children(&mut cursor).filter(|node| node.kind() == "function_definition");
    methods.any(|method| field(method, "name").is_some_and(|name| &text[name.byte_range()] == "forward"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_modules_of_torch_may_be_written_as_kernels() {
        let source = Source::parse(
            "import torch\nimport torch.nn as nn\nimport triton\n\ndef gelu(x):\n    return torch.nn.functional.gelu(x)\n\n\
             def plain(x):\n    return x + 1\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n\n\
             class Data(torch.utils.data.Dataset):\n    def __len__(self):\n        return 1\n\n\
             @triton.jit\ndef kernel(x):\n    torch\n",
        );
        let names: Vec<String> = writable(&source).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["gelu", "Net"]);
    }
}
