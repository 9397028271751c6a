//! The names that a file binds to Triton's modules and their members.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tree_sitter::Node;

use super::ast::Expr;
use super::ast_builder::AstBuilder;
use crate::syntax::field;

/// The full name of a member of Triton that a file refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    /// The dotted path, for example `triton.language.arange`.
    pub path: String,
    /// Whether the file imports it from Triton itself. A name imported through another module (`from mine import tl`)
    /// may belong to a dialect with its own names, so nothing about it is certain.
    pub direct: bool,
}

/// The names that a file binds to Triton's modules and their members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imports {
    bindings: HashMap<String, QualifiedName>,
    /// Names that an import binds to something that is not Triton's.
    others: HashSet<String>,
}

/// Whether a path of Triton leads to another language than `triton.language`: Gluon and other experiments.
fn is_dialect(path: &str) -> bool {
    path.starts_with("triton.experimental")
}

impl Imports {
    pub(super) fn collect(nodes: &[Node<'_>], lower: AstBuilder<'_>) -> Self {
        let mut imports = Self::default();
        for &node in nodes {
            if node.kind() == "import_statement" {
                imports.add_plain(node, lower);
            } else {
                imports.add_from(node, lower);
            }
        }
        imports
    }

    /// Adds `import triton`, `import triton.language` and `import triton.language as tl`.
    fn add_plain(&mut self, node: Node<'_>, lower: AstBuilder<'_>) {
        let mut cursor = node.walk();
        for item in node.children_by_field_name("name", &mut cursor) {
            let (path, alias) = split_alias(item, lower);
            if !is_triton(&path) {
                let first = || path.split('.').next().unwrap_or_default().to_owned();
                self.others.insert(alias.unwrap_or_else(first));
                continue;
            }
            match alias {
                Some(alias) => self.bind(alias, path, true),
                None => self.bind("triton".to_owned(), "triton".to_owned(), true),
            }
        }
    }

    /// Adds `from triton import language as tl`, `from triton.language import math` and `from other import tl, triton`.
    fn add_from(&mut self, node: Node<'_>, lower: AstBuilder<'_>) {
        let module = field(node, "module_name").map_or("", |module| lower.str(module));
        let mut cursor = node.walk();
        for item in node.children_by_field_name("name", &mut cursor) {
            let (name, alias) = split_alias(item, lower);
            let bound = alias.unwrap_or_else(|| name.clone());
            if !is_triton(module) {
                self.others.insert(bound.clone());
            }
            if is_triton(module) {
                self.bind(bound, format!("{module}.{name}"), true);
            } else if name == "tl" {
                self.bind(bound, "triton.language".to_owned(), false);
            } else if name == "triton" {
                self.bind(bound, "triton".to_owned(), false);
            }
        }
    }

    /// Adds the imports of a later part of the file, which override earlier ones.
    pub(super) fn merge(&mut self, later: &Self) {
        self.bindings.extend(later.bindings.iter().map(|(name, to)| (name.clone(), to.clone())));
        self.others.extend(later.others.iter().cloned());
    }

    /// Whether there are no imports at all.
    pub(super) fn says_nothing(&self) -> bool {
        self.bindings.is_empty() && self.others.is_empty()
    }

    fn bind(&mut self, name: String, path: String, direct: bool) {
        self.bindings.insert(name, QualifiedName { path, direct });
    }

    /// Whether `name = value` at the top level affects any of these names.
    pub(super) fn concern(&self, name: &str, value: &Expr) -> bool {
        self.bindings.contains_key(name) || self.resolve(value).is_some()
    }

    /// Applies `name = value` at the top level, which adds an alias or makes a name no longer mean Triton.
    pub(super) fn assign(&mut self, name: &str, value: &Expr) {
        if matches!(value.kind, super::ast::ExprKind::None) {
            return; // the usual `except ImportError: tl = None`
        }
        match self.resolve(value) {
            // `except ImportError: gluon = triton`: what the name means depends on what is installed.
            Some(resolved) if self.bindings.get(name).is_some_and(|known| is_dialect(&known.path)) => {
                self.bindings.remove(name);
                self.others.insert(name.to_owned());
                drop(resolved);
            }
            Some(resolved) => self.bind(name.to_owned(), resolved.path, resolved.direct),
            None => {
                if let Some(binding) = self.bindings.get_mut(name) {
                    binding.direct = false;
                }
            }
        }
    }

    /// The full name of `expr`, when it is a dotted name whose first name is bound to Triton.
    #[must_use]
    pub fn resolve(&self, expr: &Expr) -> Option<QualifiedName> {
        let base = self.bindings.get(expr.first_name()?)?;
        let parts = expr.dotted()?;
        let (_, rest) = parts.split_first()?;
        let path = std::iter::once(base.path.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(".");
        Some(QualifiedName { path, direct: base.direct })
    }

    /// The names that are bound to `path`, for example `tl` for `triton.language`; sorted.
    #[must_use]
    pub fn aliases_of(&self, path: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.bindings.iter().filter(|(_, to)| to.path == path).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Whether an import anywhere in the file binds `name` to something that is not Triton's.
    #[must_use]
    pub fn binds_another(&self, name: &str) -> bool {
        self.others.contains(name)
    }

    /// The names that the file binds to Triton's modules and their members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.bindings.keys().map(String::as_str)
    }

    /// Whether the file binds no name to Triton.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }
}

impl Hash for Imports {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bindings: Vec<_> = self.bindings.iter().collect();
        bindings.sort_unstable_by_key(|(name, _)| *name);
        let mut others: Vec<_> = self.others.iter().collect();
        others.sort_unstable();
        (bindings, others).hash(state);
    }
}

/// Whether a dotted path names Triton or something in it.
pub(super) fn is_triton(path: &str) -> bool {
    path == "triton" || path.starts_with("triton.")
}

fn split_alias(node: Node<'_>, lower: AstBuilder<'_>) -> (String, Option<String>) {
    let text = |node: Node<'_>| lower.str(node).to_owned();
    if node.kind() == "aliased_import" {
        let name = field(node, "name").map(text).unwrap_or_default();
        (name, field(node, "alias").map(text))
    } else {
        (text(node), None)
    }
}
