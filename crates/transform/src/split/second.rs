//! The second kernel, which combines the partial results.

use model::kernel::ast::{Arg, Expr, ExprKind, Stmt, argument, walk_expressions};
use model::kernel::{Config, Param};
use model::syntax::Span;

use super::Split;
use super::after::needed_of;
use super::gather::How;
use crate::lines::lines_with_comments;
use crate::names::{Names, in_expr, read_in};
use crate::words::{fresh, indent_of};

/// The second kernel, and its launch.
pub(super) struct Second {
    pub(super) definition: String,
    pub(super) launch: String,
}

/// The number of elements per program where all elements are treated alike.
const ELEMENTS: i64 = 256;

impl Split<'_> {
    /// Writes the second kernel; `None` where that is not possible.
    pub(super) fn second(&self) -> Option<Second> {
        self.of_elements().or_else(|| self.of_tiles())
    }

    /// A kernel over the flat memory of the result, independent of its tiles: for kernels that only store the
    /// accumulated value.
    fn of_elements(&self) -> Option<Second> {
        let (names, after, subject) = (&self.names, &self.after, self.subject);
        let result = self.gather.result;
        let is_known = |name: &str| name == result || name == after.root || !subject.kernel.locals.contains(name);
        if !after.is_plain || !self.site.is_fresh() || !in_expr(after.value).into_iter().all(is_known) {
            return None;
        }
        let of = |name: &str| self.language(name);
        let (constexpr, id, arange, int64) = (of("constexpr")?, of("program_id")?, of("arange")?, of("int64")?);
        let (load, store, range) = (of("load")?, of("store")?, of("static_range")?);
        let triton = subject.candidate.module.imports.aliases_of("triton").into_iter().next()?;
        let name = self.second_name();
        let own = format!("{} {} {} {}", self.text_of(after.value), names.parts, after.root, result);
        let fresh = |base: &str| fresh(&own, base);
        let (offsets, mask, count, block) = (fresh("offsets"), fresh("mask"), fresh("count"), fresh("BLOCK"));
        let (parts, root, size) = (&names.parts, after.root, &names.size);
        let (indent, deeper) = (indent_of(self.text, self.gather.stmt.span.start)?, self.deeper()?);
        let part = format!("{load}({parts} + {offsets}, mask={mask})");
        let lines = [
            format!("@{}", self.jit()?),
            format!("def {name}({parts}, {root}, {count}, {size}: {constexpr}, {block}: {constexpr}):"),
            format!("{indent}{offsets} = {id}(0).to({int64}) * {block} + {arange}(0, {block})"),
            format!("{indent}{mask} = {offsets} < {count}"),
            format!("{indent}{result} = {part}"),
            format!("{indent}for {} in {range}(1, {size}):", names.part),
            format!("{deeper}{parts} += {count}"),
            format!("{deeper}{}", self.joined(&part)?),
            format!("{indent}{store}({root} + {offsets}, {}, mask={mask})", self.text_of(after.value)),
        ];
        let (out, partial, splits) = (self.text_of(self.site.out), &names.partial, &names.count);
        let launch = format!(
            "{name}[({triton}.cdiv({out}.numel(), {ELEMENTS}),)]({partial}, {out}, {out}.numel(), {splits}, {ELEMENTS})"
        );
        Some(Second { definition: lines.join("\n"), launch })
    }

    fn second_name(&self) -> String {
        fresh(self.text, &format!("{}_of_parts", self.subject.kernel.name))
    }

    /// The statement that combines a further part with the result.
    fn joined(&self, part: &str) -> Option<String> {
        let result = self.gather.result;
        Some(match self.gather.how {
            How::Sum => format!("{result} += {part}"),
            How::Max => format!("{result} = {}({result}, {part})", self.language("maximum")?),
            How::Min => format!("{result} = {}({result}, {part})", self.language("minimum")?),
        })
    }

    /// The original kernel, with a sum over the parts in place of the loop.
    fn of_tiles(&self) -> Option<Second> {
        let (gather, after) = (&self.gather, &self.after);
        let mut read = in_expr(after.pointer);
        gather.after.iter().for_each(|stmt| read.extend(read_in(stmt)));
        read.extend(after.pointers.iter().copied());
        let needed = read.difference(&gather.names).copied().collect();
        let before = needed_of(gather, needed)?;
        before.iter().for_each(|stmt| read.extend(read_in(stmt)));
        let name = self.second_name();
        let asked = self.site.asked();
        let is_kept = |param: &&Param| read.contains(param.name.as_str()) || asked.contains(&param.name.as_str());
        let params: Vec<&Param> = self.subject.kernel.params.iter().filter(is_kept).collect();
        let definition = self.definition(&name, &params, &before)?;
        Some(Second { definition, launch: self.launch(&name, &params)? })
    }

    fn definition(&self, name: &str, params: &[&Param], before: &[&Stmt]) -> Option<String> {
        let (gather, after, names) = (&self.gather, &self.after, &self.names);
        let indent = indent_of(self.text, gather.stmt.span.start)?;
        let mut lines = vec![format!("@{}", self.jit()?)];
        let first =
            [names.parts.clone(), names.stride.clone(), format!("{}: {}", names.size, self.language("constexpr")?)];
        let own = params.iter().map(|param| self.slice(param.span).to_owned());
        let all: Vec<String> = first.into_iter().chain(own).collect();
        lines.push(format!("def {name}({}):", all.join(", ")));

        let (places, others): (Vec<_>, Vec<_>) = (0..gather.after.len()).partition(|at| after.places.contains(at));
        for stmt in before.iter().copied().chain(places.iter().map(|&at| &gather.after[at])) {
            let lines_of = lines_with_comments(self.text, stmt)?;
            lines.push(self.slice(lines_of).to_owned());
            lines.extend(self.of_parts(stmt).map(|text| format!("{indent}{text}")));
        }
        let load = self.language("load")?;
        let mask = after.mask.map(|mask| format!(", mask={}", self.text_of(mask))).unwrap_or_default();
        let pointer = self.renamed(after.pointer);
        let is_named = after.pointer.as_name().is_some();
        let at = if is_named { &pointer } else { &names.at };
        if !is_named {
            lines.push(format!("{indent}{at} = {pointer}"));
        }
        let (deeper, part) = (self.deeper()?, format!("{load}({at}{mask})"));
        lines.push(format!("{indent}{} = {part}", gather.result));
        lines.push(format!("{indent}for {} in {}(1, {}):", names.part, self.language("static_range")?, names.size));
        lines.push(format!("{deeper}{at} += {}", names.stride));
        lines.push(format!("{deeper}{}", self.joined(&part)?));
        for at in others {
            lines.push(self.slice(lines_with_comments(self.text, &gather.after[at])?).to_owned());
        }
        Some(lines.join("\n"))
    }

    /// The indentation of the loop's body.
    fn deeper(&self) -> Option<&str> {
        indent_of(self.text, self.gather.body.first()?.span.start)
    }

    /// `triton.jit`, as the file calls it.
    fn jit(&self) -> Option<&str> {
        let mut decorators = self.subject.kernel.decorators.iter();
        let jit = decorators.find(|decorator| decorator.path.as_deref() == Some("triton.jit"))?;
        Some(self.text_of(jit.expr.as_call().map_or(&jit.expr, |call| &call.func)))
    }

    /// The statement for the buffer of parts, where it computes the pointer.
    fn of_parts(&self, stmt: &Stmt) -> Option<String> {
        let is_of = read_in(stmt).intersection(&self.after.pointers).next().is_some();
        is_of.then(|| {
            let (mut text, mut end) = (String::new(), stmt.span.start);
            walk_expressions(std::slice::from_ref(stmt), &mut |expr| self.rename(expr, &mut text, &mut end));
            text + self.slice(Span::new(end, stmt.span.end))
        })
    }

    /// An expression with the pointer to the parts in place of the original one.
    fn renamed(&self, expr: &Expr) -> String {
        let (mut text, mut end) = (String::new(), expr.span.start);
        expr.walk(&mut |expr| self.rename(expr, &mut text, &mut end));
        text + self.slice(Span::new(end, expr.span.end))
    }

    /// Writes the text up to a name that is renamed, and the new name.
    fn rename(&self, expr: &Expr, text: &mut String, end: &mut usize) {
        let Some(name) = expr.as_name().filter(|name| self.after.pointers.contains(name)) else { return };
        text.push_str(self.slice(Span::new(*end, expr.span.start)));
        let is_root = name == self.after.root;
        text.push_str(&if is_root {
            self.names.parts.clone()
        } else {
            fresh(self.slice(self.subject.kernel.span), &format!("part_{name}"))
        });
        *end = expr.span.end;
    }

    fn launch(&self, name: &str, params: &[&Param]) -> Option<String> {
        let (kernel, launch, names) = (self.subject.kernel, self.site.launch, &self.names);
        let configs =
            kernel.autotune.as_ref().map(|autotune| autotune.configs.as_deref()).map(|configs| configs?.first());
        let config: Option<&Config> = match configs {
            Some(config) => Some(config?),
            None => None,
        };
        let parts = &names.partial;
        let mut all = vec![parts.clone(), format!("{parts}.stride(0)"), names.count.clone()];
        let (mut is_by_name, mut given) = (false, Names::new());
        for param in params {
            let at = kernel.params.iter().position(|one| one.name == param.name)?;
            let own = argument(&launch.args, &param.name, Some(at));
            let chosen = config.and_then(|config| config.meta.iter().find(|(name, _)| *name == param.name));
            let value = match (own, chosen) {
                (Some(value), None) => value,
                (None, Some((_, value))) if is_literal(value) => value,
                (None, None) if param.default.is_some() => {
                    is_by_name = true;
                    continue;
                }
                _ => return None,
            };
            given.insert(&param.name);
            is_by_name |= !launch.args.iter().any(|arg| arg.keyword.is_none() && arg.value.span == value.span);
            let text = self.text_of(value);
            all.push(if is_by_name { format!("{}={text}", param.name) } else { text.to_owned() });
        }
        let is_warps = |arg: &&Arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == "num_warps");
        let own = launch.args.iter().find(is_warps).map(|arg| &arg.value);
        let chosen = config.and_then(|config| config.options.iter().find(|(name, _)| name == "num_warps"));
        all.extend(own.or(chosen.map(|(_, value)| value)).map(|warps| format!("num_warps={}", self.text_of(warps))));
        Some(format!("{name}[{}]({})", self.text_of(&launch.grid), all.join(", ")))
    }
}

fn is_literal(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::None)
}
