//! What a kernel that takes several rows looks like from outside: its parameters, and how it is launched.

use super::{Lift, Names};
use crate::explore::rewrite::written::{grid_of, is_steady};
use crate::explore::rewrite::{first_statement, indent_of};
use crate::kernel::Launch;
use crate::kernel::ast::{ExprKind, has_star};
use crate::rules::Edit;

impl<'a> Lift<'a> {
    /// Parameters, and what the rows are.
    pub(super) fn head(&mut self) -> Option<()> {
        let of = |name: &str| self.module.language_name(self.kernel, name);
        let (constexpr, program, arange) = (of("constexpr")?, of("program_id")?, of("arange")?);
        let Names { rows, exist, count, size } = &self.names;
        let first = first_statement(self.kernel)?.span.start;
        let indent = indent_of(self.text, first)?.to_owned();
        let text = format!(
            "{rows} = ({program}(0) * {size} + {arange}(0, {size}))[:, None]\n{indent}{exist} = {rows} < {count}\n{indent}"
        );
        let last = self.kernel.params.last()?;
        if self.kernel.params.iter().any(|param| param.variadic) {
            return None;
        }
        let params = match last.default {
            None => format!(", {count}, {size}: {constexpr}"),
            // Behind a default there must be one; the launches pass both by name.
            Some(_) => format!(", {count}=0, {size}: {constexpr} = 1"),
        };
        let at = last.span.end;
        self.put(at, params);
        self.put(first, text);
        Some(())
    }

    /// As many programs as there are parts of so many rows.
    pub(super) fn launch(&mut self, launch: &'a Launch, size: i64) -> Option<()> {
        let grid = grid_of(self.module, launch)?;
        let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &grid.kind else { return None };
        let [count] = parts.as_slice() else { return None };
        let is_open = launch.has_error || has_star(&launch.args);
        if is_open || !is_steady(count) || self.slice(launch.grid.span).contains(['#', '\n']) {
            return None;
        }
        let triton = self.module.imports.aliases_of("triton").into_iter().next()?;
        let (rows, names) = (self.slice(count.span), &self.names);
        let grid = format!("lambda meta: ({triton}.cdiv({rows}, meta[\"{}\"]),)", names.size);
        let args = format!(", {}={rows}, {}={size}", names.count, names.size);
        let last = launch.args.last()?;
        self.edits.push(Edit { span: launch.grid.span, text: grid });
        self.put(last.span.end, args);
        Some(())
    }
}
