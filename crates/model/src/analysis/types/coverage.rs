//! The code that Triton compiles for the types and values in a signature.

use std::sync::Arc;

use rustc_hash::FxHashSet as HashSet;

use super::kernel_analysis::KernelAnalysis;
use crate::analysis::launches::certainly_launched;
use crate::kernel::ast::{StmtKind, walk_statements};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// The code that one run compiled and the code that it pruned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Whether a comment gives the signature of the kernel. Without one it is not known which code is pruned.
    pub signed: bool,
    /// Blocks and operands that were compiled although a condition could have pruned them.
    pub entered: HashSet<Span>,
    /// Blocks and operands that were pruned.
    pub pruned: HashSet<Span>,
    /// The functions of the file that were compiled.
    pub functions: HashSet<Span>,
}

/// Spans of code that no kernel with a signature compiles. Errors there have no effect.
#[must_use]
pub fn dead_code(module: &Module, facts: &[Arc<KernelAnalysis>]) -> Vec<Span> {
    let signed: Vec<&Coverage> = facts.iter().map(|facts| &facts.coverage).filter(|coverage| coverage.signed).collect();
    if signed.is_empty() {
        return Vec::new();
    }
    let pruned = signed.iter().flat_map(|coverage| &coverage.pruned).copied();
    let mut dead: Vec<Span> =
        pruned.filter(|span| signed.iter().all(|coverage| !coverage.entered.contains(span))).collect();
    for (kernel, facts) in module.kernels.iter().zip(facts) {
        let is_used =
            facts.coverage.signed || signed.iter().any(|coverage| coverage.functions.contains(&kernel.def_span));
        // The host cannot launch a function that returns a value.
        if !is_used && returns_value(kernel) && !certainly_launched(module, kernel) {
            dead.push(kernel.def_span);
        }
    }
    dead
}

fn returns_value(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Return(Some(_))));
    found
}
