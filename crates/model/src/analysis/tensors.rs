//! The shapes of tensors that host functions create, and the integers that follow from them.

use super::constants::binary;
use super::host::{HostNames, LocalBinding};
use crate::kernel::Module;
use crate::kernel::ast::{Call, Expr, ExprKind};

/// Names that refer to each other deeper than this are not followed.
const DEEP: usize = 12;

/// Functions of torch whose only positional arguments are the sizes.
const BY_SIZE: &[&str] = &["empty", "zeros", "ones", "rand", "randn"];

/// Functions of torch that return a tensor with the shape of their first argument.
const ALIKE: &[&str] = &["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"];

/// The sizes of tensors in a host function.
#[derive(Clone, Copy, Debug)]
pub struct HostSizes<'n, 'a> {
    module: &'a Module,
    names: &'n HostNames<'a>,
}

impl<'n, 'a> HostSizes<'n, 'a> {
    /// The sizes that follow from `names`.
    #[must_use]
    pub fn new(module: &'a Module, names: &'n HostNames<'a>) -> Self {
        Self { module, names }
    }

    /// The integer that `expr` certainly has. `known` supplies integers of expressions that the caller knows.
    #[must_use]
    pub fn integer(&self, expr: &'a Expr, known: &dyn Fn(&'a Expr) -> Option<i128>) -> Option<i128> {
        self.integer_at(expr, known, 0)
    }

    fn integer_at(&self, expr: &'a Expr, known: &dyn Fn(&'a Expr) -> Option<i128>, depth: usize) -> Option<i128> {
        let of = |expr: &'a Expr| self.integer_at(expr, known, depth + 1);
        if depth > DEEP {
            return None;
        }
        if let Some(value) = known(expr) {
            return Some(value);
        }
        match &expr.kind {
            ExprKind::Int(value) => Some(*value),
            ExprKind::Name(name) => match self.names.binding(name) {
                Some(LocalBinding::Item(value, at))
                    if !matches!(value.kind, ExprKind::Tuple(_) | ExprKind::List(_)) =>
                {
                    self.sizes(value, depth)?.get(at).copied()
                }
                _ => of(self.names.value(name)?),
            },
            ExprKind::Unary { op, operand } if op == "-" => of(operand)?.checked_neg(),
            ExprKind::Binary { op, left, right } => binary(op, of(left)?, of(right)?),
            ExprKind::Subscript { value, index } => {
                let [at] = index.as_slice() else { return None };
                part(&self.sizes(value, depth)?, at.as_int()?)
            }
            ExprKind::Call(call) => self.called(call, &of, depth),
            _ => None,
        }
    }

    fn called(&self, call: &'a Call, of: &dyn Fn(&'a Expr) -> Option<i128>, depth: usize) -> Option<i128> {
        let args: Vec<&'a Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
        if let ExprKind::Attribute { value, name, .. } = &call.func.kind {
            match (name.as_str(), args.as_slice()) {
                ("numel", []) => return self.shape_at(value, depth)?.into_iter().try_fold(1, i128::checked_mul),
                ("size", [axis]) => return part(&self.shape_at(value, depth)?, of(axis)?),
                ("stride", [axis]) => return part(&strides(&self.shape_at(value, depth)?)?, of(axis)?),
                _ => {}
            }
        }
        match (call.func.as_name(), args.as_slice()) {
            (Some("min"), [left, right]) => Some(of(left)?.min(of(right)?)),
            (Some("max"), [left, right]) => Some(of(left)?.max(of(right)?)),
            (_, [size, block]) if self.names.is_cdiv(call) => {
                let (size, block) = (of(size)?, of(block)?);
                (block > 0).then(|| -(-size).div_euclid(block))
            }
            (_, [size]) if self.path(&call.func).as_deref() == Some("triton.next_power_of_2") => {
                let size = u64::try_from(of(size)?).ok()?;
                size.checked_next_power_of_two().map(i128::from)
            }
            _ => None,
        }
    }

    fn path(&self, expr: &Expr) -> Option<String> {
        self.module.imports.resolve(expr).map(|found| found.path)
    }

    /// The sizes in `x.shape` or `x.size()`.
    fn sizes(&self, expr: &'a Expr, depth: usize) -> Option<Vec<i128>> {
        let expr = self.names.resolve(expr);
        match &expr.kind {
            ExprKind::Attribute { value, name, .. } if name == "shape" => self.shape_at(value, depth + 1),
            ExprKind::Call(call) if call.args.is_empty() => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if name == "size" => self.shape_at(value, depth + 1),
                ExprKind::Attribute { value, name, .. } if name == "stride" => {
                    strides(&self.shape_at(value, depth + 1)?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The shape of `expr` when it certainly is a contiguous tensor of known shape.
    #[must_use]
    pub fn shape(&self, expr: &'a Expr) -> Option<Vec<i128>> {
        self.shape_at(expr, 0)
    }

    fn shape_at(&self, expr: &'a Expr, depth: usize) -> Option<Vec<i128>> {
        if depth > DEEP {
            return None;
        }
        let call = self.names.resolve(expr).as_call()?;
        let path = call.func.dotted()?;
        let [.., "torch", function] = path.as_slice() else { return None };
        let args: Vec<&'a Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
        if ALIKE.contains(function) {
            return self.shape_at(args.first()?, depth + 1);
        }
        if !BY_SIZE.contains(function) || call.has_star() {
            return None;
        }
        let sizes: Vec<&'a Expr> = match args.as_slice() {
            [one] => match &self.names.resolve(one).kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().collect(),
                _ => vec![one],
            },
            many => many.to_vec(),
        };
        sizes.into_iter().map(|size| self.integer_at(size, &|_| None, depth + 1)).collect()
    }
}

fn part(sizes: &[i128], at: i128) -> Option<i128> {
    let len = i128::try_from(sizes.len()).ok()?;
    let at = if at < 0 { at + len } else { at };
    sizes.get(usize::try_from(at).ok()?).copied()
}

fn strides(shape: &[i128]) -> Option<Vec<i128>> {
    let mut strides = vec![1_i128; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].checked_mul(shape[at])?;
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::host::Hosts;
    use crate::syntax::Source;

    #[test]
    fn shapes_give_sizes_and_strides() {
        let text = "
import torch
import triton
def run(given):
    x = torch.empty((128, 64), device='cuda')
    y = torch.randn(4, 8, 16)
    z = torch.zeros_like(y)
    rows, columns = x.shape
    shape = y.shape
    a = x.stride(0) + z.stride(-3)
    b = x.numel() // columns
    c = shape[2] * rows
    d = triton.cdiv(y.size(1), 3)
    e = triton.next_power_of_2(x.shape[1] + 1)
    f = given.shape[0]
    g = x.T.shape[0]
    k[(1,)](x)
";
        let module = Module::build(&Source::parse(text));
        let names = Hosts::new(&module).around(&module.launches[0]);
        let sizes = HostSizes::new(&module, &names);
        let integer = |name: &str| names.value(name).and_then(|value| sizes.integer(value, &|_| None));
        let found = ["a", "b", "c", "d", "e", "f", "g"].map(integer);
        assert_eq!(found, [Some(64 + 128), Some(128), Some(16 * 128), Some(3), Some(128), None, None]);
    }
}
