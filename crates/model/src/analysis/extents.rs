//! The number of elements of tensors that host functions create, in terms of the sizes passed to create them.
//!
//! [`super::tensors`] computes numbers; this computes polynomials over sizes that are not known: `m * n` for
//! `torch.empty(m, n)` after `m, n = x.shape`, which is certainly more than `m` unless `n` is 1.

use super::expressions::alike;
use super::host::{HostNames, LocalBinding};
use super::types::index::{Atom, Poly};
use crate::kernel::HostFunction;
use crate::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_statements};

/// Names that refer to each other deeper than this are not followed.
const DEEP: usize = 12;

/// Functions of torch, and methods of tensors, that create a tensor and whose only positional arguments are the sizes.
const BY_SIZE: &[&str] = &["empty", "zeros", "ones", "rand", "randn", "new_empty", "new_zeros", "new_ones"];

/// Functions of torch that create a tensor with the shape of their first argument.
const ALIKE: &[&str] = &["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"];

/// The sizes of tensors in a host function.
#[derive(Clone, Copy, Debug)]
pub struct Extents<'n, 'a> {
    host: Option<&'a HostFunction>,
    names: &'n HostNames<'a>,
}

impl<'n, 'a> Extents<'n, 'a> {
    /// The sizes in the function `host`, whose names are `names`.
    #[must_use]
    pub fn new(host: Option<&'a HostFunction>, names: &'n HostNames<'a>) -> Self {
        Self { host, names }
    }

    /// An integer as a polynomial over sizes, each at least 0.
    #[must_use]
    pub fn integer(&self, expr: &'a Expr) -> Option<Poly> {
        self.integer_at(expr, 0)
    }

    /// The number of elements of a tensor that the function creates.
    #[must_use]
    pub fn element_count(&self, expr: &'a Expr) -> Option<Poly> {
        let made = self.names.resolve(expr).as_call()?;
        let shape = self.made(made, 0).and_then(product);
        shape.or_else(|| self.count(self.likened(made)?, 0))
    }

    /// The number of elements as a quotient: `n` and 2 for a tensor created with `n // 2` elements.
    #[must_use]
    pub fn divided_element_count(&self, expr: &'a Expr) -> Option<(Poly, i128)> {
        let call = self.names.resolve(expr).as_call()?;
        let sizes = self.sizes_passed(call)?;
        let [size] = sizes.as_slice() else { return None };
        let ExprKind::Binary { op, left, right } = &self.names.resolve(size).kind else { return None };
        let by = right.as_int().filter(|by| op == "//" && *by > 1)?;
        Some((self.integer(left)?, by))
    }

    fn integer_at(&self, expr: &'a Expr, depth: usize) -> Option<Poly> {
        let of = |expr: &'a Expr| self.integer_at(expr, depth + 1);
        match &expr.kind {
            _ if depth > DEEP => None,
            ExprKind::Int(value) => Some(Poly::number(*value)),
            ExprKind::Name(name) => match self.names.binding(name) {
                Some(LocalBinding::Item(value, at))
                    if !matches!(value.kind, ExprKind::Tuple(_) | ExprKind::List(_)) =>
                {
                    self.size(self.shape_asked(value)?, i128::try_from(at).ok()?, depth)
                }
                _ => match self.names.value(name) {
                    Some(value) => of(value),
                    None => self.names.is_param(name).then(|| atom(name.clone())),
                },
            },
            ExprKind::Binary { op, left, right } => match op.as_str() {
                "+" => of(left)?.plus(&of(right)?, 1),
                "*" => of(left)?.times(&of(right)?),
                _ => None,
            },
            ExprKind::Subscript { value, index } => {
                let [at] = index.as_slice() else { return None };
                self.size(self.shape_asked(value)?, at.as_int()?, depth)
            }
            ExprKind::Call(call) => {
                let ExprKind::Attribute { value, name, .. } = &call.func.kind else { return None };
                match (name.as_str(), call.args.as_slice()) {
                    ("numel", []) => self.count(value, depth),
                    ("size", [at]) if at.keyword.is_none() => self.size(value, at.value.as_int()?, depth),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `x` of `x.shape` and `x.size()`.
    fn shape_asked(&self, expr: &'a Expr) -> Option<&'a Expr> {
        match &self.names.resolve(expr).kind {
            ExprKind::Attribute { value, name, .. } if name == "shape" => Some(value),
            ExprKind::Call(call) if call.args.is_empty() => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if name == "size" => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The size of a tensor along `axis`, which counts from the end when it is negative.
    fn size(&self, tensor: &'a Expr, axis: i128, depth: usize) -> Option<Poly> {
        if let Some(shape) = self.shape(tensor, depth + 1) {
            let rank = i128::try_from(shape.len()).ok()?;
            return shape.into_iter().nth(usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?);
        }
        let name = tensor.as_name().filter(|name| self.is_fixed(name))?;
        Some(atom(format!("{name}.shape[{axis}]")))
    }

    /// The number of elements of a tensor.
    fn count(&self, tensor: &'a Expr, depth: usize) -> Option<Poly> {
        if let Some(shape) = self.shape(tensor, depth + 1) {
            return product(shape);
        }
        let name = tensor.as_name().filter(|name| self.is_fixed(name))?;
        Some(atom(format!("{name}.numel()")))
    }

    /// The sizes of a tensor whose rank is known.
    fn shape(&self, tensor: &'a Expr, depth: usize) -> Option<Vec<Poly>> {
        if depth > DEEP {
            return None;
        }
        if let ExprKind::Call(call) = &self.names.resolve(tensor).kind
            && let Some(shape) = self.made(call, depth + 1)
        {
            return Some(shape);
        }
        let name = tensor.as_name().filter(|name| self.is_fixed(name))?;
        let rank = self.rank(tensor)?;
        Some((0..rank).map(|axis| atom(format!("{name}.shape[{axis}]"))).collect())
    }

    /// Whether a name refers to the same tensor throughout the function.
    fn is_fixed(&self, name: &str) -> bool {
        self.names.is_param(name) || self.names.binding(name).is_some()
    }

    /// The sizes of a tensor that a call creates.
    fn made(&self, call: &'a Call, depth: usize) -> Option<Vec<Poly>> {
        let function = *call.func.dotted()?.last()?;
        if ALIKE.contains(&function) {
            return self.shape(self.likened(call)?, depth + 1);
        }
        if let [one] = self.positional(call)?.as_slice()
            && let Some(tensor) = self.shape_asked(one).filter(|_| self.makes_by_size(call))
        {
            return self.shape(tensor, depth + 1);
        }
        self.sizes_passed(call)?.into_iter().map(|size| self.integer_at(size, depth + 1)).collect()
    }

    /// `x` of `torch.empty_like(x)`.
    fn likened(&self, call: &'a Call) -> Option<&'a Expr> {
        let is_like = call.func.dotted()?.last().is_some_and(|name| ALIKE.contains(name)) && self.is_of_torch(call);
        let first = call.args.first().filter(|arg| is_like && arg.keyword.is_none())?;
        Some(&first.value)
    }

    fn makes_by_size(&self, call: &Call) -> bool {
        let Some(path) = call.func.dotted() else { return false };
        let Some(function) = path.last() else { return false };
        BY_SIZE.contains(function) && (function.starts_with("new_") || self.is_of_torch(call))
    }

    fn is_of_torch(&self, call: &Call) -> bool {
        let is_bound = |name: &str| self.names.is_param(name) || self.names.binding(name).is_some();
        matches!(call.func.dotted().as_deref(), Some(["torch", _])) && !is_bound("torch")
    }

    fn positional(&self, call: &'a Call) -> Option<Vec<&'a Expr>> {
        let plain = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value);
        (!call.has_star()).then(|| plain.collect())
    }

    /// The sizes passed to a call that creates a tensor of these sizes.
    fn sizes_passed(&self, call: &'a Call) -> Option<Vec<&'a Expr>> {
        if !self.makes_by_size(call) {
            return None;
        }
        let args = self.positional(call)?;
        let sizes = match args.as_slice() {
            [] => return None,
            [one] => match &self.names.resolve(one).kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().collect(),
                _ => vec![*one],
            },
            _ => args,
        };
        let starred = sizes.iter().any(|size| matches!(size.kind, ExprKind::Starred(_)));
        (!starred).then_some(sizes)
    }

    /// The number of axes of a tensor, when the function unpacks its shape somewhere.
    fn rank(&self, tensor: &Expr) -> Option<usize> {
        let mut ranks = Vec::new();
        let body = self.host.map_or(&[][..], |host| &host.body);
        walk_statements(body, &mut |stmt| {
            let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return };
            let asked = match &value.kind {
                ExprKind::Attribute { value, name, .. } if name == "shape" => value.as_ref(),
                ExprKind::Call(call) if call.args.is_empty() => match &call.func.kind {
                    ExprKind::Attribute { value, name, .. } if name == "size" => value.as_ref(),
                    _ => return,
                },
                _ => return,
            };
            for target in targets.iter().filter(|_| alike(asked, tensor)) {
                if let ExprKind::Tuple(items) | ExprKind::List(items) = &target.kind {
                    let starred = items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_)));
                    ranks.push((!starred).then_some(items.len()));
                }
            }
        });
        let first = ranks.first().copied().flatten()?;
        ranks.iter().all(|rank| *rank == Some(first)).then_some(first)
    }
}

fn atom(name: String) -> Poly {
    Poly::atom(Atom::Param(name.into()))
}

fn product(sizes: Vec<Poly>) -> Option<Poly> {
    sizes.iter().try_fold(Poly::number(1), |product, size| product.times(size))
}

/// The quotient of `whole` and `part` when both are products and it is exact: `n` for `m*n` and `m`.
#[must_use]
pub fn quotient(whole: &Poly, part: &Poly) -> Option<Poly> {
    let factors = |poly: &Poly| match (poly.terms.as_slice(), poly.constant) {
        ([(atoms, factor)], 0) => Some((atoms.clone(), *factor)),
        ([], constant) => Some((Vec::new(), constant)),
        _ => None,
    };
    let ((mut rest, whole), (atoms, part)) = (factors(whole)?, factors(part)?);
    for atom in &atoms {
        let at = rest.iter().position(|other| other == atom)?;
        rest.remove(at);
    }
    if part <= 0 || whole <= 0 || whole % part != 0 {
        return None;
    }
    let number = Poly::number(whole / part);
    rest.into_iter().try_fold(number, |product, atom| product.times(&Poly::atom(atom)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::host::Hosts;
    use crate::kernel::Module;
    use crate::syntax::Source;

    #[test]
    fn element_counts_are_products_of_sizes() {
        let text = "
import torch
import triton
def run(x, y, count):
    m, n = x.shape
    rows = y.size(0)
    a = torch.empty(m, device=x.device)
    b = torch.empty((m, n, 2))
    c = torch.zeros_like(x)
    d = x.new_empty(x.shape)
    e = torch.empty(rows * count)
    f = torch.empty(y.numel())
    g = torch.empty(c.shape[1])
    h = x.view(-1)
    i = torch.empty(m, n).t()
    j = torch.empty(*x.shape)
    l = torch.empty_like(y)
    k[(1,)](x)
";
        let module = Module::build(&Source::parse(text));
        let names = Hosts::new(&module).around(&module.launches[0]);
        let extents = Extents::new(module.hosts.first(), &names);
        let room = |name: &str| {
            let room = names.value(name).and_then(|value| extents.element_count(value));
            room.map_or_else(|| "?".to_owned(), |room| room.to_string())
        };
        let found: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "l"].map(room).into();
        let (m, n) = ("x.shape[0]", "x.shape[1]");
        let all = format!("{m}*{n}");
        let count = "count*y.shape[0]";
        assert_eq!(found, [m, &format!("2*{all}"), &all, &all, count, "y.numel()", n, "?", "?", "?", "y.numel()"]);
    }

    #[test]
    fn exact_quotients_of_products_are_found() {
        let (m, n) = (atom("m".to_owned()), atom("n".to_owned()));
        let both = m.times(&n).unwrap();
        assert_eq!(quotient(&both, &m), Some(n.clone()));
        assert_eq!(
            quotient(&both.times(&Poly::number(6)).unwrap(), &n.times(&Poly::number(2)).unwrap()),
            m.times(&Poly::number(3))
        );
        assert_eq!(quotient(&m, &both), None);
        assert_eq!(quotient(&m.plus(&n, 1).unwrap(), &m), None);
    }
}
