//! Evaluates predicates on single nodes, by which learning finds what failures have in common.

use tree_sitter::Node;

use super::compiled_branches;
use super::kernel_view::KernelView;
use super::predicates::{self, PredicateInput};
use crate::RuleContext;

/// A kernel on whose nodes predicates can be evaluated.
pub struct Probe<'a>(KernelView<'a>);

impl<'a> Probe<'a> {
    /// A probe for the kernel `context.module.kernels[index]`.
    #[must_use]
    pub fn new(context: &'a RuleContext<'a>, index: usize) -> Self {
        Self(KernelView::new(context, index))
    }

    /// The definition of the kernel, in which patterns are matched.
    #[must_use]
    pub fn root(&self) -> Option<Node<'a>> {
        self.0.root()
    }

    /// Whether a predicate, written without `#` and `?` (`constexpr`, `not-constexpr`), certainly holds for nodes.
    #[must_use]
    pub fn holds(&self, predicate: &str, nodes: &[Node<'_>], words: &[String]) -> bool {
        let Some((predicate, wanted)) = predicates::find(&format!("{predicate}?")) else { return false };
        if predicate.check(nodes.len(), words).is_err() {
            return false;
        }
        (predicate.holds)(&self.0, &PredicateInput { nodes, words }) == Some(wanted)
    }

    /// The full name of what an expression refers to, as `#api?` takes it: `tl.load`, `tl.tensor.to`, `builtins.sum`.
    #[must_use]
    pub fn path(&self, node: Node<'_>) -> Option<String> {
        let path = self.0.path(node)?;
        Some(path.strip_prefix("triton.language.").map_or_else(|| path.clone(), |rest| format!("tl.{rest}")))
    }

    /// Whether the node is a name that the kernel binds.
    #[must_use]
    pub fn is_local(&self, node: Node<'_>) -> bool {
        self.0.name(node).is_some_and(|name| self.0.kernel.locals.contains(name))
    }

    /// Whether Triton certainly compiles the node.
    #[must_use]
    pub fn is_compiled(&self, node: Node<'_>) -> bool {
        compiled_branches::is_compiled(&self.0, node)
    }
}

impl std::fmt::Debug for Probe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Probe").field(&self.0.kernel.name).finish()
    }
}
