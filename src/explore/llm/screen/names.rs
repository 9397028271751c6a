//! What names stand for: imports, and names that are given to what was imported.

use std::collections::BTreeMap;

use tree_sitter::Node;

use crate::syntax::{Source, each_node, field, node_span};

/// Names through so many assignments are followed, and dotted names of so many parts.
const FOLLOWED: usize = 16;

/// The names of a file that stand for something imported, wherever in the file.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// `tl` → `triton.language`
    paths: BTreeMap<String, String>,
    /// The dotted names of modules that were imported whole.
    modules: Vec<String>,
}

impl Names {
    pub(super) fn of(source: &Source) -> Self {
        let mut names = Self::default();
        let mut given = Vec::new();
        for root in source.roots() {
            each_node(root, &mut |node| match node.kind() {
                "import_statement" | "import_from_statement" => names.import(node, source),
                "assignment" | "named_expression" => given.extend(given_name(node)),
                _ => {}
            });
        }
        for _ in 0..FOLLOWED {
            let known = names.paths.len();
            for (name, value) in &given {
                let name = source.slice(node_span(*name));
                if !names.paths.contains_key(name)
                    && let Some(path) = names.path(*value, source)
                {
                    names.paths.insert(name.to_owned(), path);
                }
            }
            if names.paths.len() == known {
                break;
            }
        }
        names
    }

    fn import(&mut self, node: Node<'_>, source: &Source) {
        let text = |node: Node<'_>| source.slice(node_span(node)).to_owned();
        let from = field(node, "module_name").map(text);
        let mut cursor = node.walk();
        for child in node.children_by_field_name("name", &mut cursor) {
            let (path, alias) = match child.kind() {
                "aliased_import" => {
                    (field(child, "name").map(text).unwrap_or_default(), field(child, "alias").map(text))
                }
                _ => (text(child), None),
            };
            match (&from, alias) {
                (Some(module), alias) => {
                    let name = alias.unwrap_or_else(|| path.clone());
                    self.paths.insert(name, format!("{module}.{path}"));
                }
                (None, Some(alias)) => {
                    self.modules.push(path.clone());
                    self.paths.insert(alias, path);
                }
                (None, None) => {
                    let first = path.split('.').next().unwrap_or_default().to_owned();
                    self.modules.push(first.clone());
                    self.paths.insert(first.clone(), first);
                }
            }
        }
    }

    /// The dotted name of something imported that an expression is.
    pub(super) fn path(&self, node: Node<'_>, source: &Source) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = node;
        loop {
            match at.kind() {
                "identifier" => break,
                "attribute" if parts.len() < FOLLOWED => {
                    parts.push(source.slice(node_span(field(at, "attribute")?)));
                    at = field(at, "object")?;
                }
                "parenthesized_expression" => at = at.named_child(0)?,
                _ => return None,
            }
        }
        let mut path = self.paths.get(source.slice(node_span(at)))?.clone();
        for part in parts.iter().rev() {
            path = format!("{path}.{part}");
        }
        Some(path)
    }

    /// Whether a name was imported, or stands for something that was.
    pub(super) fn is_imported(&self, name: &str) -> bool {
        self.paths.contains_key(name)
    }

    /// Whether a dotted name is that of a module.
    pub(super) fn is_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module == name)
    }
}

/// The name and the value of `name = value` and `(name := value)`.
fn given_name(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let (name, value) = match node.kind() {
        "assignment" => (field(node, "left")?, field(node, "right")?),
        _ => (field(node, "name")?, field(node, "value")?),
    };
    let is_path = matches!(value.kind(), "identifier" | "attribute" | "parenthesized_expression");
    (name.kind() == "identifier" && is_path).then_some((name, value))
}
