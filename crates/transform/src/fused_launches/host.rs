//! The function that makes two launches: the arguments, and the memory that it allocates for them.

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, argument, walk_statements};
use model::kernel::{GlobalBinding, HostFunction, Launch, Module};

use super::form::Form;
use crate::written::{assigned, bindings, certain, is_steady, only_value};

/// Functions and methods that return memory to which nothing else refers.
const FUNCTIONS: &[&str] = &["empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like"];
const METHODS: &[&str] = &["new_empty", "new_zeros"];
/// The attributes and methods of a tensor that do not read its contents.
const ASKED: &[&str] =
    &["shape", "dtype", "device", "stride", "size", "numel", "element_size", "ndim", "dim", "nelement"];
/// The greatest number of names that are followed.
const DEPTH: usize = 4;

/// A host function, with its module and its text.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) module: &'a Module,
    pub(super) host: &'a HostFunction,
    pub(super) text: &'a str,
}

/// An allocation of memory.
pub(super) struct Allocation<'a> {
    pub(super) stmt: &'a Stmt,
    pub(super) call: &'a Call,
    name: &'a str,
    /// The tensor that determines the size and type of the memory.
    of: Option<&'a Expr>,
}

impl<'a> Around<'a> {
    fn allocation_in(&self, value: &'a Expr) -> Option<(&'a Call, &'a str, Option<&'a Expr>)> {
        let call = value.as_call()?;
        let ExprKind::Attribute { value: from, name, .. } = &call.func.kind else { return None };
        let is_torch = from.as_name().is_some_and(
            |name| matches!(self.module.bindings.get(name), Some(GlobalBinding::Import(path)) if path == "torch"),
        );
        if is_torch && FUNCTIONS.contains(&name.as_str()) {
            let like = name.ends_with("_like").then(|| call.args.first().map(|arg| &arg.value));
            return Some((call, name, like.flatten()));
        }
        (!is_torch && METHODS.contains(&name.as_str())).then_some((call, name, Some(&**from)))
    }

    /// The allocation that a name refers to, where that is certain.
    pub(super) fn allocation(&self, tensor: &str) -> Option<Allocation<'a>> {
        let found = bindings(&self.host.body, tensor);
        let [stmt] = found.as_slice() else { return None };
        let is_param = self.host.params.iter().any(|param| param == tensor);
        let (call, name, of) = self.allocation_in(assigned(stmt, tensor)?).filter(|_| !is_param)?;
        Some(Allocation { stmt, call, name, of })
    }

    /// Whether a statement only allocates memory, or computes values without reading the contents of tensors.
    pub(super) fn is_quiet(&self, stmt: &'a Stmt) -> bool {
        let is_value = |value: &'a Expr| {
            let is_lambda = matches!(value.kind, ExprKind::Lambda { .. });
            is_lambda || is_number(value) || self.allocation_in(value).is_some()
        };
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let are_names = targets.iter().all(|target| match &target.kind {
                    ExprKind::Tuple(parts) => parts.iter().all(|part| part.as_name().is_some()),
                    _ => target.as_name().is_some(),
                });
                are_names
                    && match &value.kind {
                        ExprKind::Tuple(parts) => parts.iter().all(is_value),
                        _ => is_value(value),
                    }
            }
            StmtKind::Pass => true,
            _ => false,
        }
    }

    /// The places where a tensor itself is used, not only its attributes.
    pub(super) fn uses(&self, tensor: &str) -> Vec<usize> {
        let mut found = Vec::new();
        walk_statements(&self.host.body, &mut |stmt| {
            let targets = stmt.targets().len();
            stmt.exprs().into_iter().skip(targets).for_each(|expr| plain_uses(expr, tensor, &mut found));
        });
        found
    }

    // --- forms ----------------------------------------------------------------------------------------------------

    /// The normal form of a host expression.
    pub(super) fn form(&self, launch: &Launch, expr: &Expr) -> Form {
        match certain(self.module, launch, expr) {
            Some(number) => Form::leaf(number.to_string()),
            None => self.followed(expr, DEPTH),
        }
    }

    fn followed(&self, expr: &Expr, depth: usize) -> Form {
        let of = |expr: &Expr| self.followed(expr, depth);
        match &expr.kind {
            ExprKind::Int(number) => Form::leaf(number.to_string()),
            ExprKind::Name(name) => {
                let value = only_value(&self.host.body, name).filter(|value| !value.mentions(name) && is_number(value));
                match (value, depth.checked_sub(1)) {
                    (Some(value), Some(depth)) => self.followed(value, depth),
                    _ => Form::leaf(format!("host {name}")),
                }
            }
            ExprKind::Binary { op, left, right } => Form::binary(op, of(left), of(right)),
            ExprKind::Subscript { value, index } => match (&value.kind, index.as_slice()) {
                (ExprKind::Attribute { value, name, .. }, [at]) if name == "shape" => self.size(value, at, depth),
                _ => self.said(expr),
            },
            ExprKind::Call(call) => match (&call.func.kind, call.args.as_slice()) {
                (ExprKind::Attribute { value, name, .. }, [at]) if name == "size" => self.size(value, &at.value, depth),
                (ExprKind::Attribute { value, name, .. }, [at]) if name == "stride" => {
                    self.stride(value, &at.value, depth)
                }
                (ExprKind::Attribute { value, name, .. }, []) if name == "numel" => self.count(value, depth),
                (ExprKind::Attribute { name, .. } | ExprKind::Name(name), args) if is_steady(expr) => {
                    Form::of(name.clone(), args.iter().map(|arg| of(&arg.value)).collect())
                }
                _ => self.said(expr),
            },
            _ => self.said(expr),
        }
    }

    fn said(&self, expr: &Expr) -> Form {
        Form::leaf(self.text.get(expr.span.start..expr.span.end).unwrap_or_default())
    }

    /// The sizes of a tensor, where they are written down.
    fn sizes(&self, tensor: &Expr, depth: usize) -> Option<Vec<Form>> {
        let (name, depth) = (tensor.as_name()?, depth.checked_sub(1)?);
        if let Some(Allocation { call, name, of, .. }) = self.allocation(name) {
            if name.ends_with("_like") {
                return self.sizes(of?, depth);
            }
            let first = &call.args.first().filter(|arg| arg.keyword.is_none())?.value;
            let sizes: Vec<&Expr> = match &first.kind {
                ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().collect(),
                ExprKind::Attribute { value, name, .. } if name == "shape" => return self.sizes(value, depth),
                _ => call.args.iter().take_while(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect(),
            };
            return Some(sizes.into_iter().map(|size| self.followed(size, depth)).collect());
        }
        // `rows, columns = x.shape`
        let mut found = None;
        walk_statements(&self.host.body, &mut |stmt| {
            let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return };
            let ExprKind::Attribute { value, name: asked, .. } = &value.kind else { return };
            if let ([Expr { kind: ExprKind::Tuple(parts), .. }], "shape") = (targets.as_slice(), asked.as_str())
                && value.as_name() == Some(name)
            {
                found = Some(parts.iter().map(|part| self.followed(part, depth)).collect());
            }
        });
        found
    }

    /// The tensor that has the same sizes, and the same strides if it has no gaps.
    fn like<'b>(&self, tensor: &'b Expr) -> &'b Expr
    where
        'a: 'b,
    {
        let of = tensor.as_name().and_then(|name| self.allocation(name)).filter(|it| it.name.ends_with("_like"));
        of.and_then(|allocation| allocation.of).map_or(tensor, |of| self.like(of))
    }

    fn size(&self, tensor: &Expr, at: &Expr, depth: usize) -> Form {
        let known = self.sizes(tensor, depth).and_then(|sizes| Some(sizes[place(at, sizes.len())?].clone()));
        known.unwrap_or_else(|| Form::of("shape", vec![self.said(self.like(tensor)), self.said(at)]))
    }

    fn count(&self, tensor: &Expr, depth: usize) -> Form {
        let known = self.sizes(tensor, depth).map(Form::product);
        known.unwrap_or_else(|| Form::of("numel", vec![self.said(self.like(tensor))]))
    }

    fn stride(&self, tensor: &Expr, at: &Expr, depth: usize) -> Form {
        let known = self.sizes(tensor, depth).filter(|_| self.is_contiguous(tensor));
        let known = known.and_then(|sizes| Some(Form::product(sizes[place(at, sizes.len())? + 1..].to_vec())));
        known.unwrap_or_else(|| Form::of("stride", vec![self.said(self.like(tensor)), self.said(at)]))
    }

    /// The number of elements of a tensor.
    pub(super) fn elements(&self, tensor: &Expr) -> Form {
        self.count(tensor, DEPTH)
    }

    fn is_contiguous(&self, tensor: &Expr) -> bool {
        let like = self.like(tensor);
        let Some(name) = like.as_name() else { return false };
        let made = |stmt: &&Stmt| {
            let call = assigned(stmt, name).and_then(Expr::as_call);
            call.is_some_and(|call| matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "contiguous"))
        };
        let found = bindings(&self.host.body, name);
        self.allocation(name).is_some() || matches!(found.as_slice(), [only] if made(only))
    }

    // --- element types --------------------------------------------------------------------------------------------

    /// The source of a tensor's element type: another tensor, or a dtype of torch.
    pub(super) fn element(&self, tensor: &str) -> Option<Element<'a>> {
        let allocation = self.allocation(tensor)?;
        let tensor = match (argument(&allocation.call.args, "dtype", None), allocation.of) {
            (Some(dtype), _) => match &dtype.kind {
                ExprKind::Attribute { value, name, .. } if name == "dtype" => value.as_name()?,
                ExprKind::Attribute { value, name, .. } if value.as_name() == Some("torch") => {
                    return Some(Element::Named(name));
                }
                _ => return None,
            },
            (None, of) => of?.as_name()?,
        };
        // The tensor is not assigned again.
        let is_before = |stmt: &&Stmt| stmt.span.start < allocation.stmt.span.start;
        bindings(&self.host.body, tensor).iter().all(is_before).then_some(Element::Of(tensor))
    }
}

/// The element type of a tensor.
pub(super) enum Element<'a> {
    /// The type of another tensor's elements.
    Of(&'a str),
    Named(&'a str),
}

fn place(at: &Expr, count: usize) -> Option<usize> {
    let at = at.as_int()?;
    let at = if at < 0 { at + i128::try_from(count).ok()? } else { at };
    usize::try_from(at).ok().filter(|&at| at < count)
}

/// Whether an expression only computes with the sizes of tensors.
fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => {
            let is_power = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "next_power_of_2");
            is_steady(expr) || (is_power && call.args.iter().all(|arg| is_number(&arg.value)))
        }
        // A plain name may be an alias of a tensor.
        ExprKind::Name(_) => false,
        _ => is_steady(expr),
    }
}

fn plain_uses(expr: &Expr, tensor: &str, found: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Name(name) if name == tensor => found.push(expr.span.start),
        ExprKind::Attribute { value, name, .. } if value.as_name() == Some(tensor) => {
            if !ASKED.contains(&name.as_str()) && !METHODS.contains(&name.as_str()) {
                found.push(expr.span.start);
            }
        }
        ExprKind::Call(call) => {
            let is_like = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name.ends_with("_like"));
            let args = call.args.iter().skip(usize::from(is_like));
            plain_uses(&call.func, tensor, found);
            args.for_each(|arg| plain_uses(&arg.value, tensor, found));
        }
        _ => expr.each_child(&mut |child| plain_uses(child, tensor, found)),
    }
}
