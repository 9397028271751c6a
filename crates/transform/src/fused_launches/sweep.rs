//! Removes code that the fused kernel no longer needs.

use std::collections::BTreeSet;

use model::kernel::ast::{Expr, Stmt, walk_statements};
use rules::Edit;

use super::side::{Side, times_bound};
use super::write::Fusion;

impl<'a> Fusion<'a> {
    /// Drops the addresses of memory that is not accessed any more, and the guest's values that the owner's replace.
    pub(super) fn sweep(&mut self, side: &Side<'a>) -> Option<()> {
        let is_first = std::ptr::eq(side, &raw const self.pair.first);
        let mut roots = Vec::new();
        for between in &self.pair.between {
            let stores = Some(&between.store).filter(|_| is_first && !between.is_kept);
            let loads = between.loads.iter().filter(|_| !is_first);
            for access in stores.into_iter().chain(loads) {
                roots.push(access.root);
                self.unread.insert(access.call.argument("pointer", Some(0))?.span);
            }
        }
        let mut gone: BTreeSet<&'a str> = BTreeSet::new();
        loop {
            let left = side.given.iter().filter(|(stmt, ..)| !self.is_gone(side, stmt));
            let names = left.map(|(_, name, _)| *name);
            let is_dead = |name: &&str| {
                let is_meant = !self.is_owner(side) || roots.iter().any(|root| side.is_made_of(name, root));
                is_meant && !gone.contains(name) && self.reads(side, name, &gone) == 0
            };
            let Some(name) = names.into_iter().find(is_dead) else { return Some(()) };
            gone.insert(name);
            let stmts: Vec<&'a Stmt> = side.given.iter().filter(|it| it.1 == name).map(|(stmt, ..)| *stmt).collect();
            if stmts.len() == times_bound(side.kernel, name) && stmts.iter().all(|stmt| is_single(stmt)) {
                stmts.into_iter().try_for_each(|stmt| self.drop(side, stmt))?;
            }
        }
    }

    /// How often the rest of a kernel reads a name, apart from assignments of names that are dropped.
    fn reads(&self, side: &Side<'a>, name: &str, gone: &BTreeSet<&str>) -> usize {
        let mut count = 0;
        walk_statements(&side.kernel.body, &mut |stmt| {
            let is_of = |target: &Expr| target.as_name().is_some_and(|it| it == name || gone.contains(it));
            if !stmt.targets().iter().any(is_of) && !self.is_gone(side, stmt) {
                stmt.exprs().into_iter().for_each(|expr| self.reads_in(expr, name, &mut count));
            }
        });
        count
    }

    /// Whether a statement is dropped.
    fn is_gone(&self, side: &Side<'a>, stmt: &Stmt) -> bool {
        let holds = |edit: &Edit| edit.span.start <= stmt.span.start && stmt.span.end <= edit.span.end;
        self.edits[usize::from(!self.is_owner(side))].iter().any(|edit| edit.text.is_empty() && holds(edit))
    }

    fn reads_in(&self, expr: &Expr, name: &str, count: &mut usize) {
        let is_type = expr.dotted().is_some_and(|parts| parts.ends_with(&["dtype", "element_ty"]));
        if self.unread.contains(&expr.span) || is_type && self.replaced.contains_key(&expr.span) {
            return;
        }
        if expr.as_name() == Some(name) {
            *count += 1;
        } else {
            expr.each_child(&mut |child| self.reads_in(child, name, count));
        }
    }
}

/// Whether a statement binds a single name.
fn is_single(stmt: &Stmt) -> bool {
    matches!(stmt.targets(), [target] if target.as_name().is_some())
}
