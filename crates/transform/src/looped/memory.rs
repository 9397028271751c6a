//! The loads and stores of a kernel, grouped by parameter.

use std::collections::BTreeSet;

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};

use super::row::Row;

/// Functions that return pointers for pointers.
const OF_POINTERS: &[&str] = &["cast", "max_contiguous", "multiple_of", "where"];

impl<'a> Row<'a> {
    /// The loads and stores, each with the position of its mask argument.
    pub(super) fn accesses(&self) -> Vec<(&'a Call, usize)> {
        let mut accesses = Vec::new();
        let kernel: &'a Kernel = self.kernel;
        walk_expressions(&kernel.body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            match self.function(call).as_deref() {
                Some("load") => accesses.push((call, 1)),
                Some("store") => accesses.push((call, 2)),
                _ => {}
            }
        });
        accesses
    }

    /// Whether no parameter is both loaded from and stored to, and none that is stored to along the row is stored to
    /// otherwise: loops would change the order of these.
    pub(super) fn is_unmixed(&self) -> Option<()> {
        let (mut loaded, mut stored, mut stored_along) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (call, position) in self.accesses() {
            let pointer = call.argument("pointer", Some(0))?;
            let mut roots = BTreeSet::new();
            self.roots(pointer, &mut roots, &mut BTreeSet::new())?;
            if position == 1 {
                loaded.extend(roots);
                continue;
            }
            let is_along = self.is_along(pointer)?;
            if !stored_along.is_disjoint(&roots) || is_along && !stored.is_disjoint(&roots) {
                return None;
            }
            stored.extend(roots.clone());
            if is_along {
                stored_along.extend(roots);
            }
        }
        loaded.is_disjoint(&stored).then_some(())
    }

    /// The parameters that may be the base of an address. A product is never a pointer.
    fn roots(&self, expr: &'a Expr, roots: &mut BTreeSet<&'a str>, seen: &mut BTreeSet<&'a str>) -> Option<()> {
        match &expr.kind {
            ExprKind::Name(name) => {
                if !seen.insert(name) {
                    return Some(());
                }
                if self.kernel.param(name).is_some_and(|param| !param.constexpr) {
                    roots.insert(name);
                }
                let values = self.given.iter().filter(|(given, _)| given == name);
                values.filter_map(|(_, value)| *value).try_for_each(|value| self.roots(value, roots, seen))
            }
            ExprKind::Binary { op, left, right } if op == "+" || op == "-" => {
                self.roots(left, roots, seen)?;
                self.roots(right, roots, seen)
            }
            ExprKind::Binary { .. } | ExprKind::Compare { .. } => Some(()),
            ExprKind::Call(call) if self.function(call).is_some_and(|name| !OF_POINTERS.contains(&name.as_str())) => {
                Some(())
            }
            ExprKind::Attribute { .. } => Some(()),
            _ => expr.children().into_iter().try_for_each(|child| self.roots(child, roots, seen)),
        }
    }
}
