//! Atomic additions of rows to a sum that they share.

use model::kernel::ast::{Call, ExprKind};

use super::{Lift, SCALAR};

impl<'a> Lift<'a> {
    /// Whether a statement is a call of `tl.atomic_add`; elsewhere its result would be used.
    pub(super) fn is_atomic_sum(&self, call: &Call) -> bool {
        self.module.language_member(self.kernel, &call.func).as_deref() == Some("atomic_add") && !call.has_star()
    }

    /// Rewrites `tl.atomic_add(dw + cols, dy * x, mask=…)`. Where all rows add to one address, the rows of a program
    /// are summed first, which saves atomic operations; otherwise the call is treated like a store.
    pub(super) fn summed(&mut self, call: &'a Call) -> Option<()> {
        let (pointer, value) = (call.argument("pointer", Some(0))?, call.argument("val", Some(1))?);
        let places = self.expr(pointer)?;
        let added = self.expr(value)?;
        let mut rest = SCALAR;
        for arg in call.args.iter().filter(|arg| ![pointer.span, value.span].contains(&arg.value.span)) {
            rest = rest.with(self.expr(&arg.value)?);
        }
        if places.of_row {
            self.mask(call, 2)?;
            return (places.along || !(added.along || rest.along)).then_some(());
        }
        // In other forms, a value that does not differ between rows would have to be multiplied by the number of rows.
        let is_common = !rest.of_row && added.of_row && added.along == places.along && (places.along || !rest.along);
        let is_one = matches!(value.kind, ExprKind::Name(_) | ExprKind::Binary { .. } | ExprKind::Call(_));
        let of = |name: &str| self.module.language_name(self.kernel, name);
        let (sum, choose) = (of("sum")?, of("where")?);
        let axis = if places.along { ", axis=0, keep_dims=True" } else { "" };
        self.put(value.span.start, format!("{sum}({choose}({}, ", self.names.exist));
        self.put(value.span.end, format!(", 0){axis})"));
        (is_common && is_one).then_some(())
    }
}
