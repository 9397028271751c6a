//! The first kernel, whose programs share the range of the loop.

use model::kernel::ast::{Arg, Expr, ExprKind};
use model::syntax::Span;
use rules::Edit;

use super::Split;
use super::gather::Gather;
use crate::lines::lines_with_comments;
use crate::statements::first_statement;
use crate::words::indent_of;

pub(super) fn put(at: usize, text: impl Into<String>) -> Edit {
    Edit { span: Span::new(at, at), text: text.into() }
}

impl Split<'_> {
    /// The text of further parameters: run-time numbers, and then the constexpr.
    pub(super) fn parameters(&self, numbers: &[&str]) -> Option<Edit> {
        let (kernel, constexpr) = (self.subject.kernel, self.language("constexpr")?);
        let last = kernel.params.last()?;
        // A parameter after one with a default needs a default; the launch passes all by name.
        let (number, constant) = if last.default.is_some() { ("=0", " = 1") } else { ("", "") };
        let mut text: String = numbers.iter().map(|name| format!(", {name}{number}")).collect();
        text += &format!(", {}: {constexpr}{constant}", self.names.size);
        Some(put(last.span.end, text))
    }

    /// The statements at the start of each program.
    pub(super) fn head(&self, more: &[String]) -> Option<Edit> {
        let first = first_statement(self.subject.kernel)?.span.start;
        let indent = indent_of(self.text, first)?;
        let mut text = format!("{} = {}({})\n{indent}", self.names.split, self.language("program_id")?, self.site.axes);
        more.iter().for_each(|line| text += &format!("{line}\n{indent}"));
        Some(put(first, text))
    }

    /// The edits that restrict the loop to a part of its range.
    pub(super) fn range(&self) -> Option<Vec<Edit>> {
        let Gather { stmt, range, end, step, moves, .. } = &self.gather;
        let (cdiv, int64) = (self.language("cdiv")?, self.language("int64")?);
        let (minimum, maximum) = (self.language("minimum")?, self.language("maximum")?);
        let (names, indent) = (&self.names, indent_of(self.text, stmt.span.start)?);
        let (end, step) = (self.slice(end.span), step.map(|step| self.slice(step.span)));
        let (rounds, first, last) = (&names.rounds, &names.first, &names.last);
        let (width, from, to) = match step {
            None => (names.size.clone(), first.clone(), format!("{first} + {rounds}")),
            Some(step) => (
                format!("{} * {step}", names.size),
                format!("{first} * {step}"),
                format!("({first} + {rounds}) * {step}"),
            ),
        };
        let mut lines = vec![
            format!("{rounds} = {cdiv}({end}, {width})"),
            format!("{first} = {} * {rounds}", names.split),
            // The stop must not be below the start: Triton runs unrolled loops in that case.
            format!("{last} = {maximum}({minimum}({to}, {end}), {from})"),
        ];
        for one in moves {
            let by = self.slice(one.by.span);
            let is_product = match &one.by.kind {
                ExprKind::Binary { op, .. } => op == "*",
                kind => matches!(kind, ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Call(_)),
            };
            let by = if is_product { by.to_owned() } else { format!("({by})") };
            let times = if one.is_pointer { format!("{first}.to({int64})") } else { first.clone() };
            lines.push(format!("{} {}= {times} * {by}", one.name, one.op));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n{indent}")).collect();
        let plain: Vec<&Arg> = range.args.iter().filter(|arg| arg.keyword.is_none()).collect();
        let replaced = |arg: &Arg, text: String| Edit { span: arg.value.span, text };
        let mut edits = vec![put(stmt.span.start, text)];
        match plain.as_slice() {
            [end] => edits.push(replaced(end, format!("{from}, {last}"))),
            [start, end, ..] => edits.extend([replaced(start, from), replaced(end, last.clone())]),
            [] => return None,
        }
        Some(edits)
    }

    /// The edits that drop the work that moves to the second kernel, and store the accumulated value as it is.
    pub(super) fn bare(&self) -> Option<Vec<Edit>> {
        let after = &self.after;
        let mut edits = vec![Edit { span: after.value.span, text: self.gather.result.to_owned() }];
        for (at, stmt) in self.gather.after.iter().enumerate() {
            if at == after.at || after.places.contains(&at) {
                continue;
            }
            let lines = lines_with_comments(self.text, stmt)?;
            let end = (lines.end + 1).min(self.text.len());
            edits.push(Edit { span: Span::new(lines.start, end), text: String::new() });
        }
        Some(edits)
    }

    /// The text of the additional arguments of the launch.
    pub(super) fn passed(&self, more: &[String]) -> Option<Edit> {
        let last = self.site.launch.args.last()?;
        let mut text: String = more.iter().map(|one| format!(", {one}")).collect();
        text += &format!(", {}={}", self.names.size, self.names.count);
        Some(put(last.span.end, text))
    }

    pub(super) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    pub(super) fn text_of(&self, expr: &Expr) -> &str {
        self.slice(expr.span)
    }
}
