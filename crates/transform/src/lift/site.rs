//! The parameters and the launch of a kernel that processes several rows.

use model::kernel::Launch;
use model::kernel::ast::{Expr, ExprKind};
use rules::Edit;

use super::{Lift, Names, RowSource};
use crate::statements::first_statement;
use crate::words::indent_of;
use crate::written::{grid_of, is_steady};

impl<'a> Lift<'a> {
    /// Adds the parameters, and the statements that compute the row indices.
    pub(super) fn head(&mut self) -> Option<()> {
        let of = |name: &str| self.module.language_name(self.kernel, name);
        let (constexpr, program, arange) = (of("constexpr")?, of("program_id")?, of("arange")?);
        let Names { rows, exist, count, size } = &self.names;
        let last = self.kernel.params.last()?;
        if self.kernel.params.iter().any(|param| param.variadic) {
            return None;
        }
        let mut params = match last.default {
            None => format!(", {count}, {size}: {constexpr}"),
            // A parameter after one with a default needs a default; the launches pass both by name.
            Some(_) => format!(", {count}=0, {size}: {constexpr} = 1"),
        };
        match self.way {
            // The loop has the number of rows, and computes the row indices.
            RowSource::Rounds => params = params.split_off(params.rfind(',')?),
            RowSource::Programs(axis) => {
                let first = first_statement(self.kernel)?.span.start;
                let indent = indent_of(self.text, first)?;
                let text = format!(
                    "{rows} = ({program}({axis}) * {size} + {arange}(0, {size}))[:, None]\n{indent}{exist} = {rows} < {count}\n{indent}"
                );
                self.put(first, text);
            }
        }
        self.put(last.span.end, params);
        Some(())
    }

    /// The edits of a launch: one program for each group of rows.
    pub(super) fn launch(&mut self, launch: &'a Launch, size: i64) -> Option<()> {
        if launch.has_error {
            return None;
        }
        let end = launch.args.last()?.span.end;
        let RowSource::Programs(axis) = self.way else {
            self.put(end, format!(", {}={size}", self.names.size));
            return Some(());
        };
        let grid = grid_of(self.module, launch)?;
        let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &grid.kind else { return None };
        let count = parts.get(usize::from(axis))?;
        if !parts.iter().all(is_steady) || self.slice(launch.grid.span).contains(['#', '\n']) {
            return None;
        }
        let triton = self.module.imports.aliases_of("triton").into_iter().next()?;
        let (rows, names) = (self.slice(count.span), &self.names);
        let part = |(at, part): (usize, &Expr)| match at == usize::from(axis) {
            true => format!("{triton}.cdiv({rows}, meta[\"{}\"])", names.size),
            false => self.slice(part.span).to_owned(),
        };
        let parts: Vec<String> = parts.iter().enumerate().map(part).collect();
        let grid = format!("lambda meta: ({}{})", parts.join(", "), if parts.len() == 1 { "," } else { "" });
        let args = format!(", {}={rows}, {}={size}", names.count, names.size);
        self.edits.push(Edit { span: launch.grid.span, text: grid });
        self.put(end, args);
        Some(())
    }
}
