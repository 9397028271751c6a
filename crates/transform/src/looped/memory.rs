//! The loads and stores of a kernel, by the parameters that they go through.

use std::collections::BTreeSet;

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};

use super::row::Row;

/// Functions that give pointers for pointers.
const OF_POINTERS: &[&str] = &["cast", "max_contiguous", "multiple_of", "where"];

impl<'a> Row<'a> {
    /// Loads and stores, with the place of the mask among their arguments.
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

    /// Whether nothing is loaded through a parameter through which something is stored, and nothing stored along the row through one
    /// through which something else is stored: the order of those would be another.
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

    /// Parameters that may be the pointer which an address is made of. A product is none.
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
