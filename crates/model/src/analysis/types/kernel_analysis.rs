//! The results of an abstract run of a kernel.

use super::access::{Division, MemoryAccess, NamedMask, Product};
use super::coverage::Coverage;
use super::index::{Lane, Loop, Poly};
use super::value::{AbstractValue, Problem};
use crate::syntax::Span;

/// The results of a run over a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelAnalysis {
    /// The errors that Triton's front end would report, in its order.
    pub problems: Vec<Problem>,
    /// Each evaluated expression with its value, in the order of evaluation; collected on request only. An expression
    /// that is evaluated several times (in loops, helpers) occurs several times.
    pub types: Vec<(Span, AbstractValue<'static>)>,
    /// Loads, stores and atomic operations in the order of evaluation, each span once for each set of arguments.
    pub accesses: Vec<MemoryAccess>,
    /// Uses of `tl.dot`.
    pub products: Vec<Product>,
    /// Names to which a mask is assigned.
    pub masks: Vec<NamedMask>,
    /// Uses of `//` and `%` on run-time integers.
    pub divisions: Vec<Division>,
    /// Reads of a loop variable after its run-time loop, each with the span of the loop's head.
    pub stale: Vec<(Span, Span)>,
    /// Each `tl.arange`, indexed by the number in [`Atom::Lane`](super::index::Atom::Lane).
    pub lanes: Vec<Lane>,
    /// Numbers that are loaded, by the number in [`Atom::Other`](super::index::Atom::Other), each with the offset it is loaded from.
    pub loaded: Vec<(u32, Poly)>,
    /// Each run-time loop, indexed by the number in [`Atom::Loop`](super::index::Atom::Loop).
    pub loops: Vec<Loop>,
    /// The code that was compiled.
    pub coverage: Coverage,
}
