//! Rewrites a loop over rows so that each iteration processes several of them.

use model::kernel::Launch;
use model::kernel::ast::{Expr, Stmt};
use rules::Edit;

use super::{Kind, Lift};
use crate::grid_tiles::uncast;
use crate::launched::passed_for;
use crate::words::indent_of;
use crate::written::{bindings, grid_of, is_steady, only_value, tuple_of};

impl<'a> Lift<'a> {
    /// Rewrites `for row in range(tl.program_id(0), count, tl.num_programs(0))`: groups of rows are distributed over
    /// the programs as the rows were.
    pub(super) fn rounds(&mut self, target: &'a Expr, iter: &'a Expr, body: &'a [Stmt]) -> Option<()> {
        let row = target.as_name()?;
        let call = iter.as_call()?;
        let is_language = self.module.language_member(self.kernel, &call.func).as_deref() == Some("range");
        let is_range = is_language || call.func.as_name() == Some("range") && !self.kernel.locals.contains("range");
        let [start, count, step, options @ ..] = call.args.as_slice() else { return None };
        let is_plain = call.args.iter().take(3).all(|arg| arg.keyword.is_none())
            && options.iter().all(|arg| arg.keyword.is_some())
            && !call.has_star();
        let is_step = self.is_of_programs(&step.value, "num_programs") || self.is_grid(&step.value);
        let is_dealt = self.is_of_programs(&start.value, "program_id") && is_step;
        // The bound is evaluated again in each iteration.
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

    /// Whether an expression is a parameter for which each launch passes its number of programs.
    fn is_grid(&self, expr: &Expr) -> bool {
        let Some(name) = expr.as_name().filter(|name| bindings(&self.kernel.body, name).is_empty()) else {
            return false;
        };
        let mut launches = self.module.launches_of(&self.kernel.name).peekable();
        let passes = |launch: &Launch| {
            let grid = grid_of(self.module, launch)?;
            let count = tuple_of(grid).and_then(|(_, parts, _)| parts.first())?;
            let value = passed_for(self.kernel, launch, name)?;
            Some(is_steady(count) && self.slice(count.span) == self.slice(value.span))
        };
        launches.peek().is_some() && launches.all(|launch| passes(launch) == Some(true))
    }

    /// Whether an expression is `tl.program_id(0)` or `tl.num_programs(0)`, or a name for it.
    fn is_of_programs(&self, expr: &Expr, function: &str) -> bool {
        let value = match expr.as_name() {
            Some(name) if self.kernel.params.iter().all(|param| param.name != name) => {
                only_value(&self.kernel.body, name)
            }
            _ => Some(expr),
        };
        let Some(call) = value.and_then(|value| uncast(value).as_call()) else { return false };
        let is_named = self.module.language_member(self.kernel, &call.func).as_deref() == Some(function);
        is_named && call.argument("axis", Some(0)).and_then(Expr::as_int) == Some(0)
    }
}
