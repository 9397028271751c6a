//! Gives an elementwise kernel the tile of another kernel.

use model::kernel::ast::{Expr, ExprKind, StmtKind};

use super::flat::Flat;
use super::names::FusedNames;
use super::side::{Side, mask_of, times_bound};
use super::write::{Fusion, FusionKind, only};
use crate::names::in_expr;
use crate::words::indent_of;
use crate::written::{bindings, only_value};

impl<'a> Fusion<'a> {
    /// Gives the elementwise kernel over a flat range the tile of the other kernel. Returns the text that must precede
    /// it.
    pub(super) fn take_tile(&mut self) -> Option<String> {
        let (guest, owner, text) = (self.names.guest, self.names.owner, self.pair.around.text);
        let [between] = self.pair.between.as_slice() else { return None };
        let flat = Flat::of(guest)?;
        let ((access, own), end) = match self.way {
            FusionKind::AtLoad => ((only(&between.loads)?, vec![&between.store]), 1),
            _ => ((&between.store, between.loads.iter().collect()), 2),
        };
        let mask = mask_of(access.call, end == 2);
        if !own.iter().all(|access| flat.is_own(guest, access)) || (mask.is_some() && !flat.is_bounded) {
            return None;
        }
        // Every program that reads the element would write it.
        let writes = guest.accesses.iter().filter(|access| access.is_store).count();
        if self.way == FusionKind::AtLoad && !access.is_outer && (between.is_kept || writes > 1) {
            return None;
        }
        let indent = indent_of(text, access.stmt.span.start)?;
        let mut lines = String::new();
        let mut named = |names: &mut FusedNames<'a>, expr: String, base: &str| {
            if names.is_owners(&expr) {
                return expr;
            }
            let name = names.fresh(base);
            lines.push_str(&format!("{indent}{name} = {expr}\n"));
            name
        };
        let pointer = access.call.argument("pointer", Some(0))?;
        let offsets = self.offsets(owner, pointer, access.root)?;
        let offsets = named(&mut self.names, offsets, flat.offsets);
        self.names.renamed.insert(flat.offsets, offsets.clone());
        if let Some(mask) = mask {
            let said = self.text(mask.span).to_owned();
            let mask = named(&mut self.names, said, "mask");
            let elements = guest.around.elements(guest.passed(own.first()?.root)?);
            for (bound, end) in flat.bounds {
                let is_all = guest.form(end) == elements;
                let end = Some(end).filter(|_| !is_all);
                self.bounds.push((bound, mask.clone(), end));
                if let Some((stmt, name)) = flat.masks.iter().find(|(stmt, _)| stmt.span.end == bound.span.end)
                    && is_all
                {
                    self.names.renamed.insert(name, mask.clone());
                    self.drop(guest, stmt)?;
                }
            }
        }
        for stmt in flat.dropped {
            self.drop(guest, stmt)?;
        }
        Some(lines)
    }

    /// Replaces the guest's bounds by the owner's mask.
    pub(super) fn bound(&mut self) {
        for (bound, mask, end) in std::mem::take(&mut self.bounds) {
            let own = end.map(|_| self.edited(self.names.guest, bound));
            let text = own.map_or(mask.clone(), |own| format!("({mask} & ({own}))"));
            self.replaced.insert(bound.span, text);
        }
    }

    /// The offset of an address from the start of the memory.
    fn offsets(&self, side: &Side<'a>, pointer: &'a Expr, root: &str) -> Option<String> {
        let expr = match pointer.as_name() {
            Some(name) if name != root => {
                let value = only_value(&side.kernel.body, name)?;
                let mut names = in_expr(value);
                names.remove(root);
                let is_steady = |name: &&str| times_bound(side.kernel, name) <= 1;
                if !names.iter().all(is_steady) {
                    return None;
                }
                value
            }
            _ => pointer,
        };
        let mut moved = self.moved(side, root, pointer)?;
        let mut terms = Vec::new();
        terms_of(expr, &mut terms);
        let at = terms.iter().position(|term| term.as_name() == Some(root))?;
        terms.remove(at);
        moved.append(&mut terms);
        let terms = moved;
        if terms.is_empty() || terms.iter().any(|term| term.mentions(root)) {
            return None;
        }
        let said: Vec<String> = terms.into_iter().map(|term| self.in_parentheses(term)).collect();
        Some(said.join(" + "))
    }

    /// The amount that was added to the base pointer before an address is computed: `x_ptr += row * stride`.
    fn moved(&self, side: &Side<'a>, root: &str, pointer: &Expr) -> Option<Vec<&'a Expr>> {
        let mut by = Vec::new();
        for stmt in bindings(&side.kernel.body, root) {
            let StmtKind::AugAssign { op, value, .. } = &stmt.kind else { return None };
            let is_outer = side.kernel.body.iter().any(|outer| std::ptr::eq(outer, stmt));
            let is_steady = in_expr(value).iter().all(|name| times_bound(side.kernel, name) <= 1);
            if op != "+" || !is_outer || !is_steady || stmt.span.start > pointer.span.start {
                return None;
            }
            by.push(value);
        }
        // The address may have been computed before or after the additions.
        (by.is_empty() || pointer.mentions(root)).then_some(by)
    }

    fn in_parentheses(&self, expr: &Expr) -> String {
        let text = self.text(expr.span);
        let is_one = match &expr.kind {
            ExprKind::Binary { op, .. } => op == "*",
            ExprKind::Name(_) | ExprKind::Call(_) | ExprKind::Subscript { .. } | ExprKind::Attribute { .. } => true,
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            _ => false,
        };
        if is_one { text.to_owned() } else { format!("({text})") }
    }
}

fn terms_of<'b>(expr: &'b Expr, terms: &mut Vec<&'b Expr>) {
    match &expr.kind {
        ExprKind::Binary { op, left, right } if op == "+" => {
            terms_of(left, terms);
            terms_of(right, terms);
        }
        _ => terms.push(expr),
    }
}
