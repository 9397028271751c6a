//! Tensor descriptors that host code makes.

use super::tensor::TensorId;
use super::value::HostValue;
use super::{HostNumber, Runner, State};
use crate::kernel::ast::{Call, Expr, ExprKind};
use crate::syntax::Span;

/// The class of tensor descriptors that hosts make.
const CLASS: &str = "triton.tools.tensor_descriptor.TensorDescriptor";

/// `TensorDescriptor(base, shape, strides, block_shape)` or `TensorDescriptor.from_tensor(base, block_shape)`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostDescriptor {
    /// The tensor that it describes, if it is known.
    pub base: Option<TensorId>,
    /// The strides in elements, each with the span where it is written, or that of the call; none where not even their
    /// number is known.
    pub strides: Vec<(HostNumber, Span)>,
    /// The sizes of a block; `None` where not even their number is known.
    pub block: Option<Vec<HostNumber>>,
    /// Span of the call.
    pub span: Span,
}

impl<'a> Runner<'a> {
    /// The descriptor that a call makes; `None` when it makes none.
    pub(super) fn descriptor(&mut self, expr: &'a Expr, call: &'a Call, state: &mut State<'a>) -> Option<HostValue> {
        let path = self.module.imports.resolve(&call.func)?.path;
        let is_of_tensor = path.strip_suffix(".from_tensor") == Some(CLASS);
        if path != CLASS && !is_of_tensor || call.has_star() {
            return None;
        }
        let base = call.argument(if is_of_tensor { "tensor" } else { "base" }, Some(0))?;
        let value = self.value(base, state);
        let base = self.as_tensor(&value, base.as_name(), state);
        let block = call.argument("block_shape", Some(if is_of_tensor { 1 } else { 3 }));
        let block = block.map(|block| self.value(block, state)).and_then(|block| numbers(&block));
        let strides = if is_of_tensor {
            let strides = base.and_then(|base| self.run.tensor(base).strides()).unwrap_or_default();
            strides.into_iter().map(|stride| (stride, expr.span)).collect()
        } else {
            let shape = call.argument("shape", Some(1));
            shape.into_iter().for_each(|shape| drop(self.value(shape, state)));
            let strides = call.argument("strides", Some(2))?;
            let spans: Vec<Span> = match &strides.kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().map(|item| item.span).collect(),
                _ => Vec::new(),
            };
            let all = numbers(&self.value(strides, state)).unwrap_or_default();
            let span = |at: usize| if spans.len() == all.len() { spans[at] } else { strides.span };
            all.iter().enumerate().map(|(at, stride)| (stride.clone(), span(at))).collect()
        };
        self.run.descriptors.push(HostDescriptor { base, strides, block, span: expr.span });
        Some(HostValue::Descriptor(self.run.descriptors.len() - 1))
    }
}

fn numbers(value: &HostValue) -> Option<Vec<HostNumber>> {
    match value {
        HostValue::Tuple(items) => Some(items.iter().map(HostValue::number).collect()),
        _ => None,
    }
}
