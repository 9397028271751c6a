//! The parameters of the function or kernel that a spec comment names.

use tree_sitter::Node;

use model::syntax::{Source, field, node_span};

/// A parameter of a function or kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaunchParam {
    pub(super) name: String,
    /// Whether it is annotated as `tl.constexpr`.
    pub(super) is_constant: bool,
}

/// The parameters of `entry` (`softmax`, `Op.forward`, `Softmax.apply`); `None` if the file does not define it.
pub(super) fn parameters(text: &str, entry: &str) -> Option<Vec<LaunchParam>> {
    let source = Source::parse(text);
    let mut path: Vec<&str> = entry.split('.').collect();
    if path.len() > 1 && path.last() == Some(&"apply") {
        path.pop();
        path.push("forward");
    }
    let definition = source.roots().find_map(|root| definition(root, &path, &source))?;
    let parameters = field(definition, "parameters")?;
    let mut cursor = parameters.walk();
    let found = parameters.named_children(&mut cursor).filter_map(|node| param(node, &source)).collect();
    Some(found)
}

/// The function with a dotted path, whose first name may be defined anywhere in `node` outside of functions and
/// classes.
fn definition<'t>(node: Node<'t>, path: &[&str], source: &Source) -> Option<Node<'t>> {
    let (name, rest) = path.split_first()?;
    let mut cursor = node.walk();
    let children: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
    children.into_iter().find_map(|child| match child.kind() {
        "function_definition" | "class_definition" => {
            let is_it = field(child, "name").is_some_and(|it| source.slice(node_span(it)) == *name);
            match (is_it, child.kind()) {
                (true, "function_definition") => rest.is_empty().then_some(child),
                (true, _) => definition(field(child, "body")?, rest, source),
                _ => None,
            }
        }
        _ => definition(child, path, source),
    })
}

fn param(node: Node<'_>, source: &Source) -> Option<LaunchParam> {
    let name = match node.kind() {
        "identifier" => node,
        "default_parameter" | "typed_default_parameter" => field(node, "name")?,
        "typed_parameter" => node.named_child(0)?,
        _ => return None,
    };
    let annotation = field(node, "type").map(|annotation| source.slice(node_span(annotation)));
    let is_constant = annotation.is_some_and(|annotation| annotation.contains("constexpr"));
    Some(LaunchParam { name: source.slice(node_span(name)).to_owned(), is_constant })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
import triton

if True:
    @triton.jit
    def k(x, n, BLOCK: tl.constexpr, OTHER: 'tl.constexpr' = 4, *, flag=None, **more): ...

def plain(count: int, x=1):
    def inner(y): ...

class Op(Function):
    @staticmethod
    def forward(ctx, count): ...
    def run(self, gradients): ...
";

    #[test]
    fn parameters_of_functions_methods_and_autograd_functions_are_found() {
        let of = |entry: &str| -> Option<Vec<String>> {
            let shown = |param: LaunchParam| format!("{}{}", param.name, if param.is_constant { "!" } else { "" });
            Some(parameters(TEXT, entry)?.into_iter().map(shown).collect())
        };
        for (entry, expected) in [
            ("k", Some(&["x", "n", "BLOCK!", "OTHER!", "flag"][..])),
            ("plain", Some(&["count", "x"])),
            ("Op.apply", Some(&["ctx", "count"])),
            ("Op.run", Some(&["self", "gradients"])),
            ("inner", None),
            ("Op", None),
            ("run", None),
            ("gone", None),
        ] {
            let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            assert_eq!(of(entry), expected, "{entry}");
        }
    }
}
