//! Resolution of names: imports, and names assigned from what was imported.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use model::syntax::{Source, each_node, field, node_span};

/// The largest number of parts of a dotted name that is followed.
const FOLLOWED: usize = 16;
/// The largest number of things that a name may refer to, as where alternative imports are tried.
const MOST: usize = 8;

/// The names of a file that refer to something imported, anywhere in the file.
#[derive(Debug, Default)]
pub(super) struct ImportedNames {
    /// The qualified names of each name, such as `tl` → `triton.language`.
    paths: BTreeMap<String, Vec<String>>,
    /// The dotted names of modules that were imported as a whole.
    modules: BTreeSet<String>,
    /// Whether a name refers to more things than are followed.
    lost: bool,
}

impl ImportedNames {
    pub(super) fn of(source: &Source) -> Self {
        let mut names = Self::default();
        let mut given: BTreeMap<&str, Vec<(&str, Node<'_>)>> = BTreeMap::new();
        for root in source.roots() {
            each_node(root, &mut |node| match node.kind() {
                "import_statement" | "import_from_statement" => names.import(node, source),
                "assignment" | "named_expression" => {
                    if let Some((name, value, first)) = given_name(node) {
                        let text = |node: Node<'_>| source.slice(node_span(node));
                        given.entry(text(first)).or_default().push((text(name), value));
                    }
                }
                _ => {}
            });
        }
        let mut new: Vec<String> = names.paths.keys().cloned().collect();
        while let Some(known) = new.pop() {
            for (name, value) in given.get(known.as_str()).into_iter().flatten() {
                for path in names.paths(*value, source) {
                    if names.add(name, path) {
                        new.push((*name).to_owned());
                    }
                }
            }
        }
        names
    }

    /// Adds a meaning of a name; returns whether it is new.
    fn add(&mut self, name: &str, path: String) -> bool {
        let paths = self.paths.entry(name.to_owned()).or_default();
        if paths.contains(&path) {
            return false;
        }
        if paths.len() == MOST || path.matches('.').count() > 2 * FOLLOWED {
            self.lost = true;
            return false;
        }
        paths.push(path);
        true
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
                    self.add(&name, format!("{module}.{path}"));
                }
                (None, Some(alias)) => {
                    self.modules.insert(path.clone());
                    self.add(&alias, path);
                }
                (None, None) => {
                    let first = path.split('.').next().unwrap_or_default().to_owned();
                    self.modules.insert(first.clone());
                    self.add(&first.clone(), first);
                }
            }
        }
    }

    /// The qualified names that an expression may have.
    pub(super) fn paths(&self, node: Node<'_>, source: &Source) -> Vec<String> {
        let mut parts = Vec::new();
        let Some(first) = first_of(node, &mut |part| parts.push(source.slice(node_span(part)))) else {
            return Vec::new();
        };
        let rest: String = parts.iter().rev().map(|part| format!(".{part}")).collect();
        let known = self.paths.get(source.slice(node_span(first)));
        known.into_iter().flatten().map(|path| format!("{path}{rest}")).collect()
    }

    /// Whether a name was imported or assigned from something imported.
    pub(super) fn is_imported(&self, name: &str) -> bool {
        self.paths.contains_key(name)
    }

    /// Whether a dotted name is the name of a module.
    pub(super) fn is_module(&self, path: &str) -> bool {
        self.modules.contains(path)
    }

    /// Whether a name has too many meanings to be followed.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }
}

/// The name at the beginning of `a.b.c`; `part` is called with each part, from the last.
fn first_of<'t>(node: Node<'t>, part: &mut dyn FnMut(Node<'t>)) -> Option<Node<'t>> {
    let mut at = node;
    for _ in 0..2 * FOLLOWED {
        match at.kind() {
            "identifier" => return Some(at),
            "attribute" => {
                part(field(at, "attribute")?);
                at = field(at, "object")?;
            }
            "parenthesized_expression" => at = at.named_child(0)?,
            _ => return None,
        }
    }
    None
}

/// The name, the value, and the name at the beginning of the value, for `name = value` and `(name := value)`.
fn given_name(node: Node<'_>) -> Option<(Node<'_>, Node<'_>, Node<'_>)> {
    let (name, value) = match node.kind() {
        "assignment" => (field(node, "left")?, field(node, "right")?),
        _ => (field(node, "name")?, field(node, "value")?),
    };
    // `a = b = torch`
    let value =
        std::iter::successors(
            Some(value),
            |value| {
                if value.kind() == "assignment" { field(*value, "right") } else { None }
            },
        )
        .last()?;
    let first = first_of(value, &mut |_| ())?;
    (name.kind() == "identifier").then_some((name, value, first))
}
