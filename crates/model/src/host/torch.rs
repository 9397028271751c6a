//! Functions of torch and methods of tensors.

use super::tensor::{Layout, TensorId, TensorOrigin, axis};
use super::value::HostValue;
use super::{HostNumber, HostTensor, Runner, State};
use crate::analysis::types::dtype::Dtype;
use crate::kernel::ast::{Call, Expr, ExprKind};

/// Functions of torch whose positional arguments are the sizes.
const BY_SIZE: &[&str] = &["empty", "zeros", "ones", "rand", "randn"];
/// Methods of tensors whose positional arguments are the sizes of a new tensor.
const NEW: &[&str] = &["new_empty", "new_zeros", "new_ones"];
/// Functions of torch that make a tensor like their first argument.
const ALIKE: &[&str] = &["empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"];
/// Methods that change the element type.
const CASTS: &[(&str, Dtype)] = &[
    ("half", Dtype::Fp16),
    ("bfloat16", Dtype::Bf16),
    ("float", Dtype::Fp32),
    ("double", Dtype::Fp64),
    ("int", Dtype::Int32),
    ("long", Dtype::Int64),
    ("short", Dtype::Int16),
    ("bool", Dtype::Int1),
];

impl<'a> Runner<'a> {
    /// The result of an operation on tensors: a new tensor.
    pub(super) fn elementwise(&mut self, left: &HostValue, right: &HostValue) -> HostValue {
        let dtype = match (left, right) {
            (HostValue::Tensor(a), HostValue::Tensor(b)) => {
                let (a, b) = (self.run.tensors[*a].dtype, self.run.tensors[*b].dtype);
                a.filter(|dtype| b == Some(*dtype))
            }
            // A number keeps the type of a float, and of an integer if it is one itself.
            (HostValue::Tensor(a), other) | (other, HostValue::Tensor(a)) => {
                self.run.tensors[*a].dtype.filter(|dtype| dtype.is_float() || matches!(other, HostValue::Number(_)))
            }
            _ => None,
        };
        let made = HostTensor { dtype, ..self.new_tensor(TensorOrigin::Set) };
        HostValue::Tensor(self.add(made))
    }

    pub(super) fn attribute_of_tensor(&mut self, id: TensorId, name: &str) -> HostValue {
        let tensor = &self.run.tensors[id];
        match name {
            "shape" => match &tensor.shape {
                Some(shape) => HostValue::Tuple(shape.iter().cloned().map(HostValue::Number).collect()),
                None => HostValue::Sizes(id),
            },
            "dtype" => HostValue::Dtype(tensor.dtype),
            "ndim" => tensor.shape.as_ref().map_or(HostValue::Unknown, |shape| HostValue::known(shape.len() as i128)),
            "T" if tensor.shape.as_ref().is_some_and(|shape| shape.len() == 2) => self.permuted(id, &[1, 0]),
            "mT" => {
                let rank = tensor.shape.as_ref().map_or(0, Vec::len);
                if rank < 2 { HostValue::Unknown } else { self.permuted(id, &swapped(rank, rank - 2, rank - 1)) }
            }
            "data" => HostValue::Tensor(id),
            "device" | "is_cuda" | "T" | "H" | "grad" | "requires_grad" | "names" | "layout" | "itemsize"
            | "nbytes" => HostValue::Unknown,
            _ => HostValue::Method(id),
        }
    }

    fn permuted(&mut self, id: TensorId, order: &[usize]) -> HostValue {
        let tensor = self.run.tensors[id].clone();
        let (Some(shape), Some(strides)) = (&tensor.shape, tensor.strides()) else { return self.view(id) };
        if order.len() != shape.len() {
            return self.view(id);
        }
        let shape = order.iter().map(|&at| shape[at].clone()).collect();
        let strides = order.iter().map(|&at| strides[at].clone()).collect();
        let view = HostTensor { name: None, shape: Some(shape), layout: Layout::Strided(strides), ..tensor };
        HostValue::Tensor(self.add(view))
    }

    /// Another view of the same memory, of which only the element type is known.
    pub(super) fn view(&mut self, id: TensorId) -> HostValue {
        let tensor = self.run.tensors[id].clone();
        let view = HostTensor { name: None, shape: None, layout: Layout::Unknown, ..tensor };
        HostValue::Tensor(self.add(view))
    }

    pub(super) fn method(
        &mut self,
        expr: &'a Expr,
        id: TensorId,
        name: &'a str,
        call: &'a Call,
        state: &mut State<'a>,
    ) -> HostValue {
        let args: Vec<HostValue> = call.args.iter().map(|arg| self.value(&arg.value, state)).collect();
        let numbers: Vec<Option<i128>> = args.iter().map(|value| value.number().known()).collect();
        let tensor = self.run.tensors[id].clone();
        let rank = tensor.shape.as_ref().map(Vec::len);
        match (name, numbers.as_slice()) {
            ("stride", []) => match tensor.strides() {
                Some(strides) => HostValue::Tuple(strides.into_iter().map(HostValue::Number).collect()),
                None => HostValue::Strides(id),
            },
            ("stride", [Some(at)]) => HostValue::Number(tensor.stride(*at)),
            ("size", []) => self.attribute_of_tensor(id, "shape"),
            ("size", [Some(at)]) => HostValue::Number(tensor.size(*at)),
            ("numel" | "nelement", []) => HostValue::Number(tensor.count()),
            ("dim" | "ndimension", []) => self.attribute_of_tensor(id, "ndim"),
            ("is_contiguous", []) => HostValue::Bool(tensor.is_contiguous().then_some(true)),
            ("item", []) | ("data_ptr", []) | ("element_size", []) => HostValue::Unknown,
            ("contiguous", []) => {
                let storage =
                    if tensor.is_contiguous() { tensor.storage } else { self.new_tensor(TensorOrigin::Set).storage };
                let kept = if tensor.is_contiguous() { tensor.origin } else { TensorOrigin::Set };
                let copy = HostTensor { layout: Layout::Contiguous, storage, origin: kept, ..tensor };
                HostValue::Tensor(self.add(copy))
            }
            ("t", []) if rank == Some(2) => self.permuted(id, &[1, 0]),
            ("transpose", [Some(a), Some(b)]) => {
                let Some(rank) = rank else { return self.view(id) };
                match (axis(*a, rank), axis(*b, rank)) {
                    (Some(a), Some(b)) => self.permuted(id, &swapped(rank, a, b)),
                    _ => self.view(id),
                }
            }
            ("permute", _) => {
                let order: Option<Vec<usize>> = numbers.iter().map(|at| axis((*at)?, numbers.len())).collect();
                match order {
                    Some(order) => self.permuted(id, &order),
                    None => self.view(id),
                }
            }
            (
                "expand" | "expand_as" | "unflatten" | "narrow" | "select" | "unbind" | "squeeze" | "unsqueeze"
                | "as_strided",
                _,
            ) => self.view(id),
            ("view" | "reshape" | "flatten", _) => self.reshaped(id, name, &args),
            ("detach" | "data" | "requires_grad_" | "cuda", []) => HostValue::Tensor(id),
            ("clone", []) => self.copy(id, tensor.dtype, expr),
            ("to", _) => self.converted(id, call, &args, expr),
            ("type", [_]) => match args.first() {
                Some(HostValue::Dtype(dtype)) => self.copy(id, *dtype, expr),
                _ => HostValue::Unknown,
            },
            _ => self.other_method(id, name, call, &args, expr, state),
        }
    }

    fn other_method(
        &mut self,
        id: TensorId,
        name: &'a str,
        call: &'a Call,
        args: &[HostValue],
        expr: &'a Expr,
        state: &mut State<'a>,
    ) -> HostValue {
        if let (Some((_, dtype)), []) = (CASTS.iter().find(|(known, _)| *known == name), args) {
            return self.copy(id, Some(*dtype), expr);
        }
        if NEW.contains(&name) {
            let like = self.run.tensors[id].dtype;
            let origin = if name == "new_empty" { TensorOrigin::Unset } else { TensorOrigin::Set };
            return self.by_size(call, args, like, origin, expr, state);
        }
        if name.ends_with('_') && !name.ends_with("__") {
            state.written.insert(self.run.tensors[id].storage);
            return HostValue::Tensor(id);
        }
        for other in args.iter().filter_map(HostValue::tensor) {
            state.written.insert(self.run.tensors[other].storage);
        }
        HostValue::Unknown
    }

    /// A tensor with the values of another one, of which it may share the memory.
    fn copy(&mut self, id: TensorId, dtype: Option<Dtype>, expr: &'a Expr) -> HostValue {
        let tensor = self.run.tensors[id].clone();
        let is_same = dtype.is_some() && dtype == tensor.dtype;
        let storage = if is_same { tensor.storage } else { self.new_tensor(TensorOrigin::Set).storage };
        // A copy of a tensor with gaps has none, or is not dense in the same order.
        let layout = if tensor.is_contiguous() { Layout::Contiguous } else { Layout::Unknown };
        let origin = if is_same { tensor.origin } else { TensorOrigin::Set };
        let like = tensor.sizes_of().cloned();
        let copy = HostTensor { name: None, like, dtype, storage, layout, origin, made: Some(expr.span), ..tensor };
        HostValue::Tensor(self.add(copy))
    }

    /// `x.to(…)`
    fn converted(&mut self, id: TensorId, call: &'a Call, args: &[HostValue], expr: &'a Expr) -> HostValue {
        let mut dtype = self.run.tensors[id].dtype;
        for (value, arg) in args.iter().zip(&call.args) {
            let keyword = arg.keyword.as_ref().map(|(name, _)| name.as_str());
            match (value, keyword) {
                (HostValue::Dtype(found), None | Some("dtype")) => dtype = *found,
                // `x.to(y)` takes the type of another tensor.
                (HostValue::Tensor(other), _) => dtype = self.run.tensors[*other].dtype,
                (HostValue::Text(_), _) | (_, Some("copy" | "non_blocking" | "memory_format" | "device")) => {}
                // `x.to(device)` or `x.to(dtype)` of a name: either may be meant.
                _ => dtype = None,
            }
        }
        self.copy(id, dtype, expr)
    }

    fn reshaped(&mut self, id: TensorId, name: &str, args: &[HostValue]) -> HostValue {
        let tensor = self.run.tensors[id].clone();
        let items: Vec<HostValue> = match args {
            [HostValue::Tuple(items)] => items.clone(),
            items => items.to_vec(),
        };
        let sizes: Vec<HostNumber> = items.iter().map(HostValue::number).collect();
        let is_view_of_type = matches!(args, [HostValue::Dtype(_)]);
        if is_view_of_type || name == "flatten" || sizes.is_empty() {
            let dtype = match args {
                [HostValue::Dtype(dtype)] => *dtype,
                _ => tensor.dtype,
            };
            let layout = if tensor.is_contiguous() { Layout::Contiguous } else { Layout::Unknown };
            let shape = if name == "flatten" && args.is_empty() { Some(vec![tensor.count()]) } else { None };
            let copied_from = if name == "view" { None } else { self.may_copy(id) };
            let view = HostTensor { name: None, dtype, shape, layout, copied_from, ..tensor };
            return HostValue::Tensor(self.add(view));
        }
        let total = tensor.count();
        let free = sizes.iter().position(|size| size.known() == Some(-1));
        let shape = match free {
            // `x.view(-1, n)`: the size that is left is not followed, unless it is the only one.
            Some(at) if sizes.len() == 1 && at == 0 => Some(vec![total]),
            Some(at) => {
                let mut sizes = sizes;
                sizes[at] = HostNumber::Unknown;
                Some(sizes)
            }
            None => Some(sizes),
        };
        let layout = if tensor.is_contiguous() { Layout::Contiguous } else { Layout::Unknown };
        let copied_from = if name == "view" { None } else { self.may_copy(id) };
        let view = HostTensor { name: None, shape, layout, copied_from, ..tensor };
        HostValue::Tensor(self.add(view))
    }

    /// A tensor of which `reshape` may make a copy.
    fn may_copy(&self, id: TensorId) -> Option<TensorId> {
        let tensor = &self.run.tensors[id];
        let is_flat = tensor.shape.as_ref().is_some_and(|shape| shape.len() < 2);
        (!tensor.is_contiguous() && !is_flat).then(|| tensor.copied_from.unwrap_or(id))
    }

    /// A call of a function of torch; `None` for other functions.
    pub(super) fn torch_called(&mut self, expr: &'a Expr, call: &'a Call, state: &mut State<'a>) -> Option<HostValue> {
        let path = call.func.dotted()?;
        let ["torch", function] = path.as_slice() else { return None };
        if state.names.contains_key("torch") {
            return None;
        }
        let function = *function;
        let args: Vec<HostValue> = call
            .args
            .iter()
            .filter(|arg| arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_)))
            .map(|arg| self.value(&arg.value, state))
            .collect();
        let origin = if function.starts_with("empty") { TensorOrigin::Unset } else { TensorOrigin::Set };
        if BY_SIZE.contains(&function) {
            return Some(self.by_size(call, &args, Some(Dtype::Fp32), origin, expr, state));
        }
        if ALIKE.contains(&function) {
            return Some(self.alike(call, &args, origin, expr, state));
        }
        Some(match function {
            "full" => {
                let dtype = match args.get(1) {
                    Some(HostValue::Float) => Some(Dtype::Fp32),
                    _ => None,
                };
                self.by_size(call, args.get(..1).unwrap_or_default(), dtype, origin, expr, state)
            }
            "randint" | "empty_strided" => {
                let default = if function == "randint" { Dtype::Int64 } else { Dtype::Fp32 };
                let dtype = self.dtype_given(call, state).unwrap_or(Some(default));
                let made = self.made(None, dtype, origin, expr);
                if function == "empty_strided" {
                    self.lose_layout(&made);
                }
                made
            }
            "tensor" | "arange" | "linspace" | "eye" | "from_numpy" | "as_tensor" | "randperm" => {
                let dtype = self.dtype_given(call, state).unwrap_or(None);
                let shape = match (function, args.as_slice()) {
                    ("tensor" | "as_tensor", [list @ HostValue::Tuple(_)]) => lengths(list),
                    ("arange" | "randperm", [count]) => Some(vec![count.number()]),
                    _ => None,
                };
                self.made(shape, dtype, TensorOrigin::Set, expr)
            }
            _ => {
                let tensors = args.iter().filter_map(HostValue::tensor);
                let all: Vec<Option<Dtype>> = tensors.map(|id| self.run.tensors[id].dtype).collect();
                let keyword = call.args.iter().filter(|arg| arg.keyword.is_some());
                let named: Vec<HostValue> = keyword.map(|arg| self.value(&arg.value, state)).collect();
                for id in args.iter().chain(&named).filter_map(HostValue::tensor) {
                    state.written.insert(self.run.tensors[id].storage);
                }
                if all.is_empty() || !is_elementwise(function) {
                    return Some(HostValue::Unknown);
                }
                let dtype = all[0].filter(|dtype| all.iter().all(|other| *other == Some(*dtype)));
                self.made(None, dtype.filter(|dtype| dtype.is_float()), TensorOrigin::Set, expr)
            }
        })
    }

    fn made(
        &mut self,
        shape: Option<Vec<HostNumber>>,
        dtype: Option<Dtype>,
        origin: TensorOrigin,
        expr: &'a Expr,
    ) -> HostValue {
        let made =
            HostTensor { made: Some(expr.span), dtype, shape, layout: Layout::Contiguous, ..self.new_tensor(origin) };
        HostValue::Tensor(self.add(made))
    }

    /// The argument `dtype=` of a call: `None` when there is none, or its value.
    fn dtype_given(&mut self, call: &'a Call, state: &mut State<'a>) -> Option<Option<Dtype>> {
        let given = call.argument("dtype", None)?;
        Some(match self.value(given, state) {
            HostValue::Dtype(dtype) => dtype,
            _ => None,
        })
    }

    fn by_size(
        &mut self,
        call: &'a Call,
        args: &[HostValue],
        default: Option<Dtype>,
        origin: TensorOrigin,
        expr: &'a Expr,
        state: &mut State<'a>,
    ) -> HostValue {
        // `torch.set_default_dtype` changes what is made without a type.
        let default = default.filter(|_| !self.text.contains("set_default_dtype"));
        let dtype = self.dtype_given(call, state).unwrap_or(default);
        let named = call.argument("size", None).map(|size| self.value(size, state));
        let sizes: Option<Vec<HostNumber>> = match (args, &named) {
            (_, Some(HostValue::Tuple(items))) | ([HostValue::Tuple(items)], None) => {
                Some(items.iter().map(HostValue::number).collect())
            }
            ([HostValue::Sizes(id)], None) => {
                // The same number of axes, which is not known.
                let like = self.run.tensors[*id].clone();
                let made = HostTensor {
                    made: Some(expr.span),
                    dtype,
                    layout: Layout::Contiguous,
                    name: None,
                    ..HostTensor { shape: like.shape, ..self.new_tensor(origin) }
                };
                return HostValue::Tensor(self.add(made));
            }
            ([], None) => None,
            (items, None) if !call.has_star() => Some(items.iter().map(HostValue::number).collect()),
            _ => None,
        };
        let made = self.made(sizes, dtype, origin, expr);
        if call.argument("memory_format", None).is_some() {
            self.lose_layout(&made);
        }
        made
    }

    fn lose_layout(&mut self, made: &HostValue) {
        if let Some(id) = made.tensor() {
            self.run.tensors[id].layout = Layout::Unknown;
        }
    }

    /// `torch.empty_like(x, …)`, which keeps the strides of a dense tensor.
    fn alike(
        &mut self,
        call: &'a Call,
        args: &[HostValue],
        origin: TensorOrigin,
        expr: &'a Expr,
        state: &mut State<'a>,
    ) -> HostValue {
        let first = call.args.first().filter(|arg| arg.keyword.is_none()).and_then(|arg| arg.value.as_name());
        let like = args.first().cloned().unwrap_or_default();
        let Some(id) = self.as_tensor(&like, first, state) else { return self.made(None, None, origin, expr) };
        let tensor = self.run.tensors[id].clone();
        let dtype = self.dtype_given(call, state).unwrap_or(tensor.dtype);
        // The number of axes is that of the other tensor, whose name stands for its sizes.
        let shape = tensor.shape.clone();
        let made = self.made(shape, dtype, origin, expr);
        if let HostValue::Tensor(made) = made {
            self.run.tensors[made].like = tensor.sizes_of().cloned();
        }
        let format = call.argument("memory_format", None);
        let is_contiguous = match format.map(|format| format.dotted()) {
            None => tensor.is_contiguous(),
            Some(path) => path.is_some_and(|path| path.last() == Some(&"contiguous_format")),
        };
        if !is_contiguous {
            self.lose_layout(&made);
        }
        made
    }
}

/// The shape of a tensor that is made from a list of numbers, or of lists of them.
fn lengths(list: &HostValue) -> Option<Vec<HostNumber>> {
    match list {
        HostValue::Tuple(items) => {
            let mut shape = vec![HostNumber::Known(i128::try_from(items.len()).ok()?)];
            if let Some(first) = items.first() {
                shape.extend(lengths(first)?);
            }
            Some(shape)
        }
        HostValue::Number(_) | HostValue::Float | HostValue::Bool(_) => Some(Vec::new()),
        _ => None,
    }
}

/// Axes in order, with two of them exchanged.
fn swapped(rank: usize, a: usize, b: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(a, b);
    order
}

/// Functions of torch that give floats of the type of their arguments.
fn is_elementwise(name: &str) -> bool {
    matches!(
        name,
        "relu"
            | "exp"
            | "log"
            | "sqrt"
            | "rsqrt"
            | "sigmoid"
            | "tanh"
            | "softmax"
            | "matmul"
            | "mm"
            | "bmm"
            | "sin"
            | "cos"
    )
}
