//! A loop over rows, whose rounds take several of them.

use super::{Kind, Lift};
use crate::explore::rewrite::indent_of;
use crate::explore::rewrite::written::only_value;
use crate::kernel::ast::{Expr, Stmt};
use crate::rules::Edit;

impl<'a> Lift<'a> {
    /// `for row in range(tl.program_id(0), count, tl.num_programs(0))`: parts of so many rows are dealt out as the rows were.
    pub(super) fn rounds(&mut self, target: &'a Expr, iter: &'a Expr, body: &'a [Stmt]) -> Option<()> {
        let row = target.as_name()?;
        let call = iter.as_call()?;
        let is_language = self.module.language_member(self.kernel, &call.func).as_deref() == Some("range");
        let is_range = is_language || call.func.as_name() == Some("range") && !self.kernel.locals.contains("range");
        let [start, count, step, options @ ..] = call.args.as_slice() else { return None };
        let is_plain = call.args.iter().take(3).all(|arg| arg.keyword.is_none())
            && options.iter().all(|arg| arg.keyword.is_some())
            && !call.has_star();
        let is_dealt =
            self.is_of_programs(&start.value, "program_id") && self.is_of_programs(&step.value, "num_programs");
        // It is asked for again in each round.
        let count = count.value.as_name().filter(|name| {
            self.kernel.params.iter().any(|param| param.name == **name) && !self.kinds.contains_key(*name)
        })?;
        let first = body.first()?.span.start;
        let indent = indent_of(self.text, first)?.to_owned();
        if !is_range || !is_plain || !is_dealt {
            return None;
        }
        let arange = self.module.language_name(self.kernel, "arange")?;
        let (part, exist, size) = (self.names.rows.clone(), self.names.exist.clone(), self.names.size.clone());
        self.edits.push(Edit { span: target.span, text: part.clone() });
        self.put(start.value.span.end, format!(" * {size}"));
        self.put(step.value.span.end, format!(" * {size}"));
        self.put(
            first,
            format!("{row} = ({part} + {arange}(0, {size}))[:, None]\n{indent}{exist} = {row} < {count}\n{indent}"),
        );
        self.has_rows = true;
        self.bind(row, Kind { of_row: true, along: false })?;
        self.repeated(body)?;
        (!self.kinds.contains_key(count)).then_some(())
    }

    /// Whether something is `tl.program_id(0)` or `tl.num_programs(0)`, or a name that is nothing else.
    fn is_of_programs(&self, expr: &Expr, function: &str) -> bool {
        let value = match expr.as_name() {
            Some(name) if self.kernel.params.iter().all(|param| param.name != name) => {
                only_value(&self.kernel.body, name)
            }
            _ => Some(expr),
        };
        let Some(call) = value.and_then(Expr::as_call) else { return false };
        let is_named = self.module.language_member(self.kernel, &call.func).as_deref() == Some(function);
        is_named && call.argument("axis", Some(0)).and_then(Expr::as_int) == Some(0)
    }
}
