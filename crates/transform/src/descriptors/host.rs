//! The host's side of a kernel with descriptors: conditions on tensors, scratch memory, the launch.

use model::analysis::types::index::Poly;
use model::kernel::ast::{Arg, Expr, ExprKind};
use model::kernel::{GlobalBinding, Launch};
use model::syntax::Span;
use protocol::ArgumentValue;
use rules::Edit;

use super::Loaded;
use super::tile::Tile;
use crate::launched::innermost;
use crate::parameter::add_constant;
use crate::subject::Subject;
use crate::subject_launch::{only_launch, passed};
use crate::words::{fresh, indent_of};
use crate::written::is_steady;

/// The only launch, and its arguments.
pub(super) struct Host<'a> {
    subject: &'a Subject<'a>,
    launch: &'a Launch,
    passed: Vec<(&'a str, &'a Arg)>,
    torch: String,
    triton: &'a str,
}

impl<'a> Host<'a> {
    pub(super) fn of(subject: &'a Subject<'a>) -> Option<Self> {
        let module = &subject.candidate.module;
        let launch = only_launch(subject)?;
        let is_torch =
            |(_, binding): &(&String, &GlobalBinding)| **binding == GlobalBinding::Import("torch".to_owned());
        let torch = module.bindings.iter().find(is_torch).map(|(name, _)| name.clone())?;
        let triton = module.imports.aliases_of("triton").into_iter().next()?;
        Some(Self { subject, launch, passed: passed(subject, launch), torch, triton })
    }

    fn of_parameter(&self, name: &str) -> Option<&'a Expr> {
        let (_, arg) = self.passed.iter().find(|(param, _)| *param == name)?;
        Some(&arg.value).filter(|value| is_steady(value))
    }

    fn slice(&self, expr: &Expr) -> Option<&'a str> {
        self.subject.candidate.text.get(expr.span.start..expr.span.end).filter(|text| !text.contains(['\n', '#']))
    }

    /// The axis along which elements were contiguous in the recorded call; each call checks it anew.
    pub(super) fn inner(&self, tile: &Tile) -> Option<usize> {
        let last_first = [1, 0];
        let by = |is_one: &dyn Fn(&Poly) -> bool| last_first.into_iter().find(|&at| is_one(&tile.axes[at].stride));
        by(&|stride| stride.as_number() == Some(1))
            .or_else(|| by(&|stride| stride.as_param().is_some_and(|name| self.was_one(name))))
            .or_else(|| by(&|stride| stride.as_param().is_some_and(|name| self.is_of_last_axis(name))))
    }

    /// Whether the recorded call passed a 1.
    fn was_one(&self, name: &str) -> bool {
        let of_kernel = self.subject.records();
        let mut values = of_kernel.flat_map(|launch| &launch.arguments).filter(|(param, _)| param == name).peekable();
        values.peek().is_some() && values.all(|(_, value)| *value == ArgumentValue::Int(1))
    }

    /// `x.stride(1)`, `x.stride(-1)`
    fn is_of_last_axis(&self, name: &str) -> bool {
        let Some(call) = self.of_parameter(name).and_then(Expr::as_call) else { return false };
        let is_stride = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "stride");
        let axis = call.args.first().and_then(|arg| arg.value.as_int());
        is_stride && matches!(axis, Some(1 | -1))
    }

    /// The conditions on a tensor for a descriptor of it.
    pub(super) fn conditions(&self, it: &Loaded<'_>) -> Option<Vec<String>> {
        let tensor = self.of_parameter(&it.tile.base)?.as_name()?;
        let [outer, inner] = it.axes();
        let mut asked = vec![format!("{tensor}.data_ptr() % 16 == 0")];
        let stride = match outer.stride.as_number() {
            Some(number) => number.to_string(),
            None => self.slice(self.of_parameter(outer.stride.as_param()?)?)?.to_owned(),
        };
        asked.push(format!("{stride} * {tensor}.element_size() % 16 == 0"));
        if inner.stride.as_number().is_none() {
            asked.push(format!("{} == 1", self.slice(self.of_parameter(inner.stride.as_param()?)?)?));
        }
        Some(asked)
    }

    /// The edits of the host function: scratch memory for descriptors, the check of whether they can be used, and its
    /// result for the kernel.
    pub(super) fn edits(&self, switch: &str, asked: &[String]) -> Option<Vec<Edit>> {
        let (module, text) = (&self.subject.candidate.module, self.subject.candidate.text.as_str());
        let host = &module.hosts[self.launch.host?];
        let statement = innermost(host, self.launch.span)?;
        let indent = indent_of(text, statement.span.start)?;
        let kernel = with_comments(text, self.subject.kernel.span.start);
        indent_of(text, kernel).filter(|indent| indent.is_empty())?;
        let (torch, triton) = (&self.torch, self.triton);
        let (allocate, answer) = (fresh(text, "allocate_scratch"), fresh(text, "has_descriptors"));
        let function = format!(
            "def {allocate}(size: int, alignment: int, stream):\n    return {torch}.empty(size, device=\"cuda\", dtype={torch}.int8)\n\n\n"
        );
        let asked = asked.join(&format!("\n{indent}    and "));
        let question = format!(
            "{answer} = (\n{indent}    {asked}\n{indent})\n{indent}{triton}.set_allocator({allocate})\n{indent}"
        );
        let put = |at: usize, text: String| Edit { span: Span::new(at, at), text };
        let mut edits = vec![put(kernel, function), put(statement.span.start, question)];
        edits.extend(add_constant(self.subject, switch, "False", &answer)?);
        Some(edits)
    }
}

/// The start of the comments directly above.
fn with_comments(text: &str, mut at: usize) -> usize {
    while let Some(above) = text[..at].strip_suffix('\n') {
        let start = above.rfind('\n').map_or(0, |end| end + 1);
        if !above[start..].starts_with('#') {
            break;
        }
        at = start;
    }
    at
}
