//! The values of a kernel's parameters, derived from signatures, launches and uses.

use std::sync::Arc;

use rustc_hash::FxHashSet as HashSet;

use super::access::pointers;
use super::engine::{Engine, Trace};
use super::index::{Atom, Index, LaneFact, Poly};
use super::shape::SymbolicSize;
use super::signature::{self, SignatureComment};
use super::value::{AbstractValue, Const, LaneType, RuntimeValue};
use crate::analysis::launches::{self, LaunchVariant};
use crate::kernel::ast::{Expr, ExprKind, Stmt, walk_expressions};
use crate::kernel::{Kernel, Module, Param};

/// The uses of a kernel's parameters, collected from its body once.
pub(super) struct Roles<'a> {
    /// Parameters that are pointers of loads and stores, alone or after adding offsets.
    pointers: HashSet<&'a str>,
    /// Parameters that the kernel itself unconditionally passes as the pointer of an access, alone or in a sum.
    dereferenced: HashSet<&'a str>,
    /// Names that occur as bounds of a range or as sizes of a shape.
    bounds: HashSet<&'a str>,
    is_launched: bool,
    settings: Vec<LaunchVariant<'a>>,
}

impl<'a> Roles<'a> {
    pub(super) fn of(module: &'a Module, kernel: &'a Kernel) -> Self {
        Self {
            pointers: pointers(module, kernel),
            dereferenced: dereferenced(module, kernel),
            bounds: bounds(module, kernel),
            is_launched: launches::certainly_launched(module, kernel),
            settings: launches::settings(module, kernel),
        }
    }

    /// Whether a compile-time parameter certainly is an integer: it is named like a block size, or it bounds a range or
    /// a shape.
    fn is_size(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        upper.starts_with("BLOCK") || upper.ends_with("_SIZE") || upper.ends_with("BLOCK") || self.bounds.contains(name)
    }
}

fn dereferenced<'a>(module: &'a Module, kernel: &'a Kernel) -> HashSet<&'a str> {
    fn leftmost(expr: &Expr) -> Option<&str> {
        match &expr.kind {
            ExprKind::Name(name) => Some(name),
            ExprKind::Binary { op, left, .. } if op == "+" => leftmost(left),
            _ => None,
        }
    }
    let mut found = HashSet::default();
    let mut look = |expr: &'a Expr| {
        if let Some(call) = expr.as_call()
            && let Some(member) = module.language_member(kernel, &call.func)
            && (matches!(member.as_str(), "load" | "store") || member.starts_with("atomic_"))
            && let Some(pointer) = call.args.first()
        {
            found.extend(leftmost(&pointer.value));
        }
    };
    // A parameter used in a branch may be a pointer for some calls only.
    let unconditional = kernel.body.iter().filter(|stmt| stmt.bodies().is_empty());
    unconditional.flat_map(Stmt::exprs).for_each(|expr| expr.walk(&mut look));
    found
}

fn bounds<'a>(module: &'a Module, kernel: &'a Kernel) -> HashSet<&'a str> {
    let mut found = HashSet::default();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let member = module.language_member(kernel, &call.func);
        let args: &[_] = match (member.as_deref(), call.func.as_name()) {
            (Some("arange" | "static_range" | "range"), _) | (None, Some("range")) => &call.args,
            (Some("zeros" | "full"), _) => call.args.get(..1).unwrap_or_default(),
            (Some("reshape" | "view" | "broadcast_to"), _) => call.args.get(1..).unwrap_or_default(),
            (Some("make_block_ptr"), _) => call.args.get(4..5).unwrap_or_default(),
            _ => return,
        };
        for arg in args {
            arg.value.walk(&mut |part| found.extend(part.as_name()));
        }
    });
    found
}

impl<'a> Engine<'a> {
    /// The value of a parameter of the analysed kernel.
    pub(super) fn parameter(
        &mut self,
        kernel: &'a Kernel,
        param: &'a Param,
        signature: Option<&SignatureComment>,
    ) -> AbstractValue<'a> {
        if param.variadic {
            return AbstractValue::Unknown;
        }
        if let Some(value) = signature.and_then(|signature| signature.value(&param.name)) {
            return match value {
                AbstractValue::Tile(tile) => AbstractValue::Tile(tile.knowing(self.about_parameter(&param.name))),
                value => value,
            };
        }
        // A parameter that the signature omits has its default.
        if signature.is_some()
            && let Some(default) = &param.default
            && let Some(value) = signature::literal(default)
        {
            return AbstractValue::Const(value);
        }
        // A helper may get a tile nevertheless, so the annotation proves nothing here.
        if param.constexpr && self.module.called_in_kernels().contains(&kernel.name) {
            return AbstractValue::Unknown;
        }
        if param.constexpr {
            return self.constant_parameter(param);
        }
        if self.trace != Trace::Likely && !self.roles.is_launched {
            return AbstractValue::Unknown;
        }
        let about = self.about_parameter(&param.name);
        if self.roles.dereferenced.contains(param.name.as_str()) {
            return AbstractValue::Tile(
                RuntimeValue::new(LaneType::Pointer(None), Some(Arc::default())).knowing(about),
            );
        }
        AbstractValue::Opaque(about)
    }

    /// The symbolic value of a parameter as an integer, or as the base of a pointer.
    fn about_parameter(&self, name: &str) -> LaneFact {
        let name: Arc<str> = name.into();
        if self.roles.pointers.contains(&*name) {
            return LaneFact::Index(Arc::new(Index {
                base: Some(name),
                poly: Poly::default(),
                axes: Vec::new(),
                narrow: Vec::new(),
            }));
        }
        LaneFact::scalar(Poly::atom(Atom::Param(name)))
    }

    /// The value of a compile-time parameter: the constant that all launches of the file agree on, else a symbol.
    fn constant_parameter(&self, param: &'a Param) -> AbstractValue<'a> {
        let used_as_size = param.name.chars().any(|c| c.is_ascii_uppercase());
        let mut values = self.roles.settings.iter().map(|setting| setting.value(&param.name).map(|(value, _)| value));
        if let Some(Some(first)) = values.next()
            && values.all(|value| value == Some(first))
            && used_as_size
        {
            return AbstractValue::int(first);
        }
        if self.roles.is_size(&param.name) {
            return AbstractValue::Const(Const::Symbol(SymbolicSize::of(&param.name)));
        }
        // A helper may get a tile for a parameter such as `offsets: tl.constexpr`.
        if !used_as_size && !self.roles.is_launched {
            return AbstractValue::Unknown;
        }
        // It may also be a flag, a dtype or a name.
        AbstractValue::Opaque(LaneFact::scalar(Poly::atom(Atom::Param(param.name.as_str().into()))))
    }
}
