//! A text that is screened.

use tree_sitter::Node;

use model::syntax::{Source, field, node_span};

use super::names::ImportedNames;
use super::scopes::Scopes;

/// A text with what is known about its names.
pub(super) struct Screened<'s> {
    pub(super) source: &'s Source,
    pub(super) names: ImportedNames,
    pub(super) scopes: Scopes,
}

impl Screened<'_> {
    pub(super) fn text(&self, node: Node<'_>) -> &str {
        self.source.slice(node_span(node))
    }

    /// The text of a field of a node.
    pub(super) fn named(&self, node: Node<'_>, name: &str) -> Option<&str> {
        field(node, name).map(|child| self.text(child))
    }

    /// The qualified names that an expression may have, such as `torch.cuda.Event`, if it begins with something
    /// imported. A name may refer to several things.
    pub(super) fn paths(&self, node: Node<'_>) -> Vec<String> {
        self.names.paths(node, self.source)
    }
}
