//! An over-approximate reachability analysis: whether a function of a file may launch a kernel of the same file.

use std::collections::HashSet;

use tree_sitter::Node;

use model::kernel::is_main_guard;
use model::syntax::{Source, each_node, field};

/// Whether the function `entry` (`softmax`, `Op.forward`) may launch `kernel`: its text names the kernel, or names
/// definitions of the file's top level that lead to it.
pub fn reaches(text: &str, entry: &str, kernel: &str) -> bool {
    let source = Source::parse(text);
    let statements: Vec<Statement> = source.roots().flat_map(|root| statements(root, text)).collect();
    let start = entry.split('.').next().unwrap_or(entry);
    let mut reached = HashSet::from([start]);
    let mut names = vec![start];
    while let Some(name) = names.pop() {
        for statement in statements.iter().filter(|statement| statement.binds.contains(name)) {
            names.extend(statement.names.iter().filter(|name| reached.insert(name)));
        }
    }
    reached.contains(kernel)
}

/// A statement of the file's top level.
struct Statement<'t> {
    binds: HashSet<&'t str>,
    /// All identifiers in the statement.
    names: HashSet<&'t str>,
}

fn statements<'t>(root: Node<'_>, text: &'t str) -> Vec<Statement<'t>> {
    let mut cursor = root.walk();
    let statement = |node: Node<'_>| {
        if is_main_guard(node, text) {
            return None;
        }
        let definition = if node.kind() == "decorated_definition" { field(node, "definition")? } else { node };
        let names = identifiers(node, text);
        let binds = match definition.kind() {
            "function_definition" | "class_definition" => identifiers(field(definition, "name")?, text),
            // Names that are only read count as bound as well: this may find too much, but never too little.
            _ => names.clone(),
        };
        Some(Statement { binds, names })
    };
    root.named_children(&mut cursor).filter_map(statement).collect()
}

/// All identifiers in a node, including the names of attributes.
pub fn identifiers<'t>(node: Node<'_>, text: &'t str) -> HashSet<&'t str> {
    let mut found = HashSet::new();
    each_node(node, &mut |node| {
        if node.kind() == "identifier" {
            found.extend(text.get(node.byte_range()));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
import triton

@triton.jit
def k(x): pass

@triton.jit
def other(x): pass

def launch(x):
    k[(1,)](x)

TABLE = {'k': launch}

def by_table(x):
    TABLE['k'](x)

class Op(Function):
    @staticmethod
    def forward(ctx, x):
        return by_table(x)

def apply(x):
    return Op.apply(x)

def plain(x):
    other[(1,)](x)
";

    #[test]
    fn kernels_are_found_through_what_a_function_names() {
        for entry in ["launch", "by_table", "Op.apply", "Op.forward", "apply", "k"] {
            assert!(reaches(TEXT, entry, "k"), "{entry}");
        }
        for (entry, kernel) in [("plain", "k"), ("launch", "other"), ("apply", "other"), ("gone", "k")] {
            assert!(!reaches(TEXT, entry, kernel), "{entry}");
        }
        assert!(!reaches(&format!("{TEXT}if __name__ == '__main__':\n    launch(plain)\n"), "plain", "k"));
    }
}
