//! Predicates about the position of a node.

use super::predicate::{Predicate, PredicateInput, Words};
use crate::learned::kernel_view::KernelView;

pub(super) static TABLE: &[Predicate] = &[Predicate::new("inside", (1, 1), Words::Some, inside)];

/// `(#inside? @x "for_statement" "while_statement")`: a node of one of these kinds encloses it, inside the kernel. The
/// kinds are those of the grammar.
fn inside(subject: &KernelView<'_>, argument: &PredicateInput<'_, '_>) -> Option<bool> {
    let mut at = argument.nodes[0].parent();
    while let Some(node) = at.filter(|node| node.start_byte() > subject.kernel.def_span.start) {
        if argument.words.iter().any(|kind| kind == node.kind()) {
            return Some(true);
        }
        at = node.parent();
    }
    Some(false)
}
