//! Memory accesses, products and masks of a kernel, recorded while it is interpreted.

use std::sync::Arc;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::dtype::Dtype;
use super::index::{BlockPosition, Index, MaskGuard, Poly};
use super::value::{AbstractValue, RuntimeValue};
use crate::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// `tl.load`
    Load,
    /// `tl.store`
    Store,
    /// `tl.atomic_*`
    Atomic,
}

/// The mask of an access.
#[derive(Clone, Debug, PartialEq)]
pub enum Mask {
    /// The access has no mask.
    None,
    /// A mask about which nothing is known.
    Unknown,
    /// A tile; its [`RuntimeValue::about`] may be a [`MaskGuard`].
    Tile(RuntimeValue),
}

/// A load, a store or an atomic operation.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryAccess {
    /// The kind of access.
    pub kind: AccessKind,
    /// Name of the function in `triton.language`, such as `atomic_add`.
    pub function: String,
    /// Span of the whole call.
    pub span: Span,
    /// The pointer; for a block pointer, the tile that it points to.
    pub pointer: RuntimeValue,
    /// Whether it is a block pointer.
    pub is_block_pointer: bool,
    /// The position of the block pointer, if it is one and the position is known.
    pub block: Option<Arc<BlockPosition>>,
    /// The mask.
    pub mask: Mask,
    /// Whether a load has `other`, which fills the masked lanes.
    pub has_other: bool,
    /// Whether `boundary_check` names an axis; `None` when that is not known.
    pub is_checked: Option<bool>,
    /// The value that is stored or added.
    pub value: AbstractValue<'static>,
    /// Indices of the loops around the access, outermost first.
    pub loops: Vec<u32>,
    /// The number of run-time branches around the access.
    pub branches: u32,
    /// Whether the access is in a branch that may not be compiled.
    pub is_uncertain: bool,
    /// Whether some programs may have returned before the access.
    pub is_after_return: bool,
}

/// A name to which a mask is assigned.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedMask {
    /// The name.
    pub name: String,
    /// Span of the assignment.
    pub span: Span,
    /// The lanes that the mask keeps.
    pub guard: Arc<MaskGuard>,
}

/// A `//` or `%` with a run-time integer.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Span of the operation.
    pub span: Span,
    /// `//` or `%`.
    pub op: String,
    /// The dividend.
    pub left: Index,
    /// The divisor, if it is known.
    pub right: Option<Poly>,
    /// The number of run-time branches around the operation.
    pub branches: u32,
    /// Whether the operation is in a branch that may not be compiled, or some programs may have returned before it.
    pub is_uncertain: bool,
}

/// A call of `tl.dot`.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Span of the whole call.
    pub span: Span,
    /// The operands.
    pub operands: [RuntimeValue; 2],
    /// The accumulator.
    pub accumulator: Option<RuntimeValue>,
    /// Whether the call sets the precision of its inputs.
    pub has_precision: bool,
    /// The `out_dtype` that is passed.
    pub out: Option<Dtype>,
    /// Whether the call is in a branch that may not be compiled.
    pub is_uncertain: bool,
}

/// The leftmost name in a sum: the base of a pointer expression.
#[must_use]
pub fn leftmost(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Binary { op, left, .. } if op == "+" || op == "-" => leftmost(left),
        _ => None,
    }
}

/// The parameters that are bases of loads and stores, also through local names.
#[must_use]
pub fn pointers<'a>(module: &'a Module, kernel: &'a Kernel) -> HashSet<&'a str> {
    let mut origin: HashMap<&str, &str> = HashMap::default();
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind
            && let [target] = targets.as_slice()
            && let (Some(name), Some(from)) = (target.as_name(), leftmost(value))
            && name != from
        {
            origin.insert(name, from);
        }
    });
    let mut found = HashSet::default();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let Some(member) = module.language_member(kernel, &call.func) else { return };
        let is_access = matches!(member.as_str(), "load" | "store" | "make_block_ptr") || member.starts_with("atomic_");
        let Some(mut name) = call.args.first().filter(|_| is_access).and_then(|arg| leftmost(&arg.value)) else {
            return;
        };
        for _ in 0..8 {
            match origin.get(name) {
                Some(from) if kernel.param(name).is_none() => name = from,
                _ => break,
            }
        }
        if let Some(param) = kernel.param(name) {
            found.insert(param.name.as_str());
        }
    });
    found
}
