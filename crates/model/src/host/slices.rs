//! Parts of tensors: `x[:, :n]`.

use super::statements::with_rank;
use super::tensor::{Layout, TensorId};
use super::value::HostValue;
use super::{HostNumber, HostTensor, Runner, State};
use crate::kernel::ast::{Expr, ExprKind};

impl<'a> Runner<'a> {
    /// `x[…]`
    pub(super) fn part_of_tensor(&mut self, id: TensorId, index: &'a [Expr], state: &mut State<'a>) -> HostValue {
        let is_plain = |part: &Expr| matches!(part.kind, ExprKind::Slice(_));
        if !index.iter().all(is_plain) || index.is_empty() {
            return self.view(id);
        }
        // `x[:, :n]` has two axes or more, and hardly ever more where a kernel gets it.
        with_rank(&mut self.run.tensors[id], index.len());
        let tensor = self.run.tensors[id].clone();
        let (Some(mut shape), Some(mut strides)) = (tensor.shape.clone(), tensor.strides()) else {
            return self.view(id);
        };
        let (mut cut, mut is_stepped) = (None, false);
        for (at, part) in index.iter().enumerate().take(shape.len()) {
            let ExprKind::Slice(parts) = &part.kind else { continue };
            let source = &self.text[part.span.start..part.span.end];
            match parts.as_slice() {
                [] => {}
                // `:n`
                [end] if source.trim_start().starts_with(':') && !source.trim_start().starts_with("::") => {
                    let end = self.value(end, state).number();
                    if end.known().is_none_or(|end| end >= 0) && !end.is(&shape[at]) {
                        shape[at] = end;
                        cut = Some(at);
                    }
                }
                // `a:b:c`, of known numbers.
                _ => {
                    let Some((size, step)) = self.stepped(source, parts, &shape[at], state) else {
                        return self.view(id);
                    };
                    strides[at] = strides[at].times(&HostNumber::Known(step));
                    shape[at] = size;
                    is_stepped = true;
                }
            }
        }
        let layout = match cut {
            _ if is_stepped => Layout::Strided(strides),
            None => tensor.layout.clone(),
            // The first axis may be cut: the rows that are left lie as before.
            Some(0) => tensor.layout.clone(),
            Some(axis) => Layout::Sliced { axis, strides },
        };
        let part = HostTensor { name: None, shape: Some(shape), layout, ..tensor };
        HostValue::Tensor(self.add(part))
    }

    /// The number of elements and the step of the slice `source` of `size` elements, whose `parts` are known numbers.
    fn stepped(
        &mut self,
        source: &str,
        parts: &'a [Expr],
        size: &HostNumber,
        state: &mut State<'a>,
    ) -> Option<(HostNumber, i128)> {
        let mut values = parts.iter().map(|part| self.value(part, state).number().known());
        let mut written: Vec<Option<i128>> = Vec::new();
        for piece in source.split(':') {
            written.push(if piece.trim().is_empty() { None } else { Some(values.next()??) });
        }
        let (start, end) = (written.first().copied().flatten().unwrap_or(0), written.get(1).copied().flatten());
        let step = written.get(2).copied().flatten().unwrap_or(1);
        let end = match (end, size.known()) {
            (Some(end), Some(size)) => end.min(size),
            (Some(end), None) => end,
            (None, size) => size?,
        };
        let is_simple = written.len() <= 3 && start >= 0 && step > 0 && end >= 0;
        is_simple.then(|| (HostNumber::Known(((end - start).max(0) + step - 1) / step), step))
    }
}
