//! Functions and torch modules that launch no kernel, for which a language model may write one.

use tree_sitter::Node;

use model::syntax::{Source, each_node, field};

use super::unit::Unit;

/// Whether a kernel could be written for a function or class of this name.
pub(crate) fn is_writable(unit: &Unit, name: &str) -> bool {
    writable(&unit.source).iter().any(|(known, _)| known == name)
        && !unit.module.hosts.iter().any(|host| host.qualname.split('.').next() == Some(name))
}

/// The plain functions, and the modules with a `forward`, whose texts use torch, with their names.
pub(crate) fn writable(source: &Source) -> Vec<(String, Node<'_>)> {
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
