//! Under which names a file knows Triton.

use std::collections::HashMap;

use tree_sitter::Node;

use super::ast::Expr;
use super::lower::Lower;

/// The full name of something of Triton's that a file refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// For example `triton.language.arange`.
    pub path: String,
    /// Whether the file imports it from Triton itself. Through another module (`from mine import tl`) it may be a
    /// dialect with names of its own, about which nothing is certain.
    pub direct: bool,
}

/// The names that a file binds to Triton's modules and their members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imports {
    bindings: HashMap<String, Resolved>,
}

impl Imports {
    pub(super) fn collect(&mut self, nodes: &[Node<'_>], lower: Lower<'_>) {
        for &node in nodes {
            if node.kind() == "import_statement" {
                self.add_plain(node, lower);
            } else {
                self.add_from(node, lower);
            }
        }
    }

    /// `import triton`, `import triton.language`, `import triton.language as tl`
    fn add_plain(&mut self, node: Node<'_>, lower: Lower<'_>) {
        let mut cursor = node.walk();
        for item in node.children_by_field_name("name", &mut cursor) {
            let (path, alias) = split_alias(item, lower);
            if !is_triton(&path) {
                continue;
            }
            match alias {
                Some(alias) => self.bind(alias, path, true),
                None => self.bind("triton".to_owned(), "triton".to_owned(), true),
            }
        }
    }

    /// `from triton import language as tl`, `from triton.language import math`, `from other import tl, triton`
    fn add_from(&mut self, node: Node<'_>, lower: Lower<'_>) {
        let module = node.child_by_field_name("module_name").map_or("", |module| lower.str(module));
        let mut cursor = node.walk();
        for item in node.children_by_field_name("name", &mut cursor) {
            let (name, alias) = split_alias(item, lower);
            let bound = alias.unwrap_or_else(|| name.clone());
            if is_triton(module) {
                self.bind(bound, format!("{module}.{name}"), true);
            } else if name == "tl" {
                self.bind(bound, "triton.language".to_owned(), false);
            } else if name == "triton" {
                self.bind(bound, "triton".to_owned(), false);
            }
        }
    }

    fn bind(&mut self, name: String, path: String, direct: bool) {
        self.bindings.insert(name, Resolved { path, direct });
    }

    /// Whether `name = value` at module level has to do with any of these names.
    pub(super) fn concern(&self, name: &str, value: &Expr) -> bool {
        self.bindings.contains_key(name) || self.resolve(value).is_some()
    }

    /// `name = value` at module level: a further alias, or a name that is no longer Triton's.
    pub(super) fn assign(&mut self, name: &str, value: &Expr) {
        if matches!(value.kind, super::ast::ExprKind::None) {
            return; // the usual `except ImportError: tl = None`
        }
        match self.resolve(value) {
            Some(resolved) => self.bind(name.to_owned(), resolved.path, resolved.direct),
            None => {
                if let Some(binding) = self.bindings.get_mut(name) {
                    binding.direct = false;
                }
            }
        }
    }

    /// The full name of `expr`, when it is a dotted name that starts at something of Triton's.
    #[must_use]
    pub fn resolve(&self, expr: &Expr) -> Option<Resolved> {
        let parts = expr.dotted()?;
        let (first, rest) = parts.split_first()?;
        let base = self.bindings.get(*first)?;
        let path = std::iter::once(base.path.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(".");
        Some(Resolved { path, direct: base.direct })
    }

    /// The names bound to `path`, for example `tl` for `triton.language`; sorted.
    #[must_use]
    pub fn aliases_of(&self, path: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.bindings.iter().filter(|(_, to)| to.path == path).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Whether the file refers to Triton at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }
}

fn is_triton(path: &str) -> bool {
    path == "triton" || path.starts_with("triton.")
}

fn split_alias(node: Node<'_>, lower: Lower<'_>) -> (String, Option<String>) {
    let text = |node: Node<'_>| lower.str(node).to_owned();
    if node.kind() == "aliased_import" {
        let name = node.child_by_field_name("name").map(text).unwrap_or_default();
        (name, node.child_by_field_name("alias").map(text))
    } else {
        (text(node), None)
    }
}
