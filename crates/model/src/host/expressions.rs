//! Evaluates the expressions of a host function.

use super::number::HostOperator;
use super::tensor::axis;
use super::value::HostValue;
use super::{HostCall, HostNumber, Runner, SettledTest, State};
use crate::analysis::launches::global;
use crate::analysis::types::dtype::Dtype;
use crate::kernel::ast::{Call, Expr, ExprKind};

/// Expressions that are nested deeper than this are not evaluated.
const MAX_DEPTH: u32 = 64;
/// Comprehensions over longer ranges than this are not evaluated.
const MAX_ITEMS: i128 = 16;

impl<'a> Runner<'a> {
    /// The value of an expression. Expressions that are nested too deep, and globals that refer to each other in a
    /// circle, are unknown.
    pub(super) fn value(&mut self, expr: &'a Expr, state: &mut State<'a>) -> HostValue {
        if self.depth >= MAX_DEPTH {
            return HostValue::Unknown;
        }
        self.depth += 1;
        let value = self.value_of_kind(expr, state);
        self.depth -= 1;
        value
    }

    fn value_of_kind(&mut self, expr: &'a Expr, state: &mut State<'a>) -> HostValue {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, state),
            ExprKind::Int(value) => HostValue::known(*value),
            ExprKind::Float(_) => HostValue::Float,
            ExprKind::Bool(value) => HostValue::Bool(Some(*value)),
            ExprKind::None => HostValue::None,
            ExprKind::Str(text) => HostValue::Text(text.as_str().into()),
            ExprKind::Tuple(items) | ExprKind::List(items) => self.tuple(items, state),
            ExprKind::Lambda { params, body } => {
                self.lambdas.push((params, body));
                HostValue::Lambda(self.lambdas.len() - 1)
            }
            ExprKind::Attribute { value, name, .. } => self.attribute(expr, value, name, state),
            ExprKind::Subscript { value, index } => self.subscript(value, index, state),
            ExprKind::Call(call) => self.call(expr, call, state),
            ExprKind::Unary { op, operand } => self.unary(op, operand, state),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.value(left, state), self.value(right, state));
                self.arithmetic(op, &left, &right)
            }
            ExprKind::BoolOp { op, left, right } => {
                let (a, b) = (self.value(left, state), self.value(right, state));
                match (a.truth(), b.truth(), op.as_str()) {
                    (Some(false), _, "and") | (_, Some(false), "and") => HostValue::Bool(Some(false)),
                    (Some(true), _, "or") => a,
                    (Some(_), _, _) => b,
                    _ => HostValue::Bool(None),
                }
            }
            ExprKind::Compare { left, rest } => self.compare(expr, left, rest, state),
            ExprKind::IfExp { test, body, orelse } => {
                let found = self.value(test, state).truth();
                self.note_checked(test, state);
                let (body, orelse) = (self.value(body, state), self.value(orelse, state));
                match found {
                    Some(true) => body,
                    Some(false) => orelse,
                    None => self.either(&body, &orelse),
                }
            }
            ExprKind::Named { name, value } => {
                let value = self.value(value, state);
                state.names.insert(name, value.clone());
                value
            }
            ExprKind::Comprehension { element, clauses, filtered: false, .. } if self.callers.is_some() => {
                self.comprehension(element, clauses, state)
            }
            _ => {
                expr.children().into_iter().for_each(|child| drop(self.value(child, state)));
                HostValue::Unknown
            }
        }
    }

    fn tuple(&mut self, items: &'a [Expr], state: &mut State<'a>) -> HostValue {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                // `(*x.shape, n)`
                ExprKind::Starred(inner) => match self.value(inner, state) {
                    HostValue::Tuple(more) => values.extend(more),
                    _ => return HostValue::Unknown,
                },
                _ => values.push(self.value(item, state)),
            }
        }
        HostValue::Tuple(values)
    }

    /// `(torch.rand(n) for _ in range(3))`
    fn comprehension(&mut self, element: &'a Expr, clauses: &'a [(Expr, Expr)], state: &mut State<'a>) -> HostValue {
        let [(target, iter)] = clauses else { return HostValue::Unknown };
        let items = match iter.as_call().map(|call| (call.func.as_name(), call.args.as_slice())) {
            Some((Some("range"), [count])) => {
                let count =
                    self.value(&count.value, state).number().known().filter(|count| (0..=MAX_ITEMS).contains(count));
                count.map(|count| (0..count).map(HostValue::known).collect())
            }
            _ => match self.value(iter, state) {
                HostValue::Tuple(items) => Some(items),
                _ => None,
            },
        };
        let Some(items) = items else { return HostValue::Unknown };
        let mut inner = state.clone();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            self.bind(target, item, &mut inner);
            values.push(self.value(element, &mut inner));
        }
        HostValue::Tuple(values)
    }

    fn name(&mut self, name: &'a str, state: &mut State<'a>) -> HostValue {
        if let Some(value) = state.names.get_mut(name) {
            if *value == HostValue::Unknown {
                self.opaque += 1;
                *value = HostValue::Opaque(format!("{name}@{}", self.opaque).into());
            }
            return value.clone();
        }
        if self.host.qualname.contains("<locals>") {
            return HostValue::Unknown;
        }
        // Values of the top level do not depend on the names of the function.
        match global(self.module, name) {
            Some(value) if is_simple(value) => self.value(value, &mut State::default()),
            _ => HostValue::Unknown,
        }
    }

    fn unary(&mut self, op: &str, operand: &'a Expr, state: &mut State<'a>) -> HostValue {
        let value = self.value(operand, state);
        match op {
            "not" => HostValue::Bool(value.truth().map(|value| !value)),
            _ if value.tensor().is_some() => self.elementwise(&value, &HostValue::Float),
            _ if matches!(value, HostValue::Float) => HostValue::Float,
            "-" => {
                let zero = HostNumber::Known(0);
                HostValue::Number(HostNumber::operation(HostOperator::Python("-"), &zero, &value.number()))
            }
            "+" => value,
            _ => HostValue::Unknown,
        }
    }

    fn attribute(&mut self, expr: &'a Expr, value: &'a Expr, name: &'a str, state: &mut State<'a>) -> HostValue {
        if let Some(dtype) = self.dtype_named(expr, state) {
            return dtype;
        }
        let of = self.value(value, state);
        let is_of_tensor = matches!(
            name,
            "shape" | "dtype" | "device" | "T" | "mT" | "H" | "is_cuda" | "ndim" | "data" | "is_contiguous" | "stride"
        );
        let id = match of.tensor() {
            Some(id) => id,
            None if is_of_tensor && !self.is_module(value) => match self.as_tensor(&of, value.as_name(), state) {
                Some(id) => id,
                None => return HostValue::Unknown,
            },
            None => return HostValue::Unknown,
        };
        self.attribute_of_tensor(id, name)
    }

    /// Whether a name is one of torch or another module.
    fn is_module(&self, expr: &Expr) -> bool {
        matches!(expr.first_name(), Some("torch" | "triton" | "tl" | "np" | "math"))
    }

    fn dtype_named(&self, expr: &Expr, state: &State<'a>) -> Option<HostValue> {
        let path = expr.dotted()?;
        if state.names.contains_key(path.first()?) {
            return None;
        }
        if let ["torch", name] = path.as_slice() {
            return Dtype::of_torch(name).map(|dtype| HostValue::Dtype(Some(dtype)));
        }
        let resolved = self.module.imports.resolve(expr)?.path;
        let dtype = Dtype::of_member(resolved.strip_prefix("triton.language.")?)?;
        Some(HostValue::Dtype(Some(dtype)))
    }

    fn subscript(&mut self, value: &'a Expr, index: &'a [Expr], state: &mut State<'a>) -> HostValue {
        let of = self.value(value, state);
        for part in index {
            // A condition or a name may be used as an index.
            self.value(part, state);
        }
        // Only a tensor takes several indices with slices among them.
        let is_tensor = index.len() > 1 && index.iter().any(|part| matches!(part.kind, ExprKind::Slice(_)));
        let of = match (is_tensor, of.tensor()) {
            (true, None) => self.as_tensor(&of, value.as_name(), state).map_or(of, HostValue::Tensor),
            _ => of,
        };
        match of {
            HostValue::Tensor(id) => self.part_of_tensor(id, index, state),
            HostValue::Tuple(items) => {
                let [at] = index else { return HostValue::Unknown };
                let at = self.value(at, state).number().known();
                at.and_then(|at| axis(at, items.len())).map_or(HostValue::Unknown, |at| items[at].clone())
            }
            HostValue::Sizes(id) => self
                .of_axis(index, state)
                .map_or(HostValue::Unknown, |at| HostValue::Number(self.run.tensors[id].size(at))),
            HostValue::Strides(id) => self
                .of_axis(index, state)
                .map_or(HostValue::Unknown, |at| HostValue::Number(self.run.tensors[id].stride(at))),
            HostValue::Text(_) => HostValue::Unknown,
            // `META["BLOCK"]` in a grid.
            _ => match index {
                [Expr { kind: ExprKind::Str(key), .. }] if value.as_name().is_some() => {
                    HostValue::Number(HostNumber::given(format!("[{key}]")))
                }
                _ => HostValue::Unknown,
            },
        }
    }

    fn of_axis(&mut self, index: &'a [Expr], state: &mut State<'a>) -> Option<i128> {
        let [at] = index else { return None };
        self.value(at, state).number().known()
    }

    fn compare(
        &mut self,
        expr: &'a Expr,
        left: &'a Expr,
        rest: &'a [(String, Expr)],
        state: &mut State<'a>,
    ) -> HostValue {
        let first = self.value(left, state);
        let [(op, right)] = rest else {
            rest.iter().for_each(|(_, right)| drop(self.value(right, state)));
            return HostValue::Bool(None);
        };
        let second = self.value(right, state);
        let truth = match (&first, &second, op.as_str()) {
            (HostValue::None, HostValue::None, "is" | "==") => Some(true),
            (HostValue::None, HostValue::None, "is not" | "!=") => Some(false),
            (HostValue::Tensor(_) | HostValue::Number(_) | HostValue::Tuple(_), HostValue::None, "is") => Some(false),
            (HostValue::Tensor(_) | HostValue::Number(_) | HostValue::Tuple(_), HostValue::None, "is not") => {
                Some(true)
            }
            (HostValue::Dtype(Some(a)), HostValue::Dtype(Some(b)), "==" | "is") => Some(a == b),
            (HostValue::Dtype(Some(a)), HostValue::Dtype(Some(b)), "!=" | "is not") => Some(a != b),
            (HostValue::Text(a), HostValue::Text(b), "==") => Some(a == b),
            (HostValue::Text(a), HostValue::Text(b), "!=") => Some(a != b),
            (a, b, op) => compared(op, &a.number(), &b.number()),
        };
        if let Some(holds) = truth
            && speaks_of_stride(left)
            && let Some(number) = right.as_int()
            && self.loops == 0
        {
            let is_remainder = matches!(&left.kind, ExprKind::Binary { op, .. } if op == "%");
            let is_of_remainder = is_remainder && number == 0 && op == "==";
            self.run.settled.push(SettledTest { span: expr.span, is_of_remainder, holds });
        }
        HostValue::Bool(truth)
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call, state: &mut State<'a>) -> HostValue {
        if let ExprKind::Subscript { .. } = &call.func.kind
            && let Some(at) = self.module.launches.iter().position(|launch| launch.span == expr.span)
        {
            self.launch(at, state);
            return HostValue::Unknown;
        }
        if let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && !self.is_module(value)
        {
            let of = self.value(value, state);
            // `sizes.append(n)`
            if let (HostValue::Tuple(_), Some(list)) = (&of, value.as_name()) {
                state.names.insert(list, HostValue::Unknown);
            }
            let id = match of.tensor() {
                Some(id) => Some(id),
                None if is_method_of_tensor(name) || self.is_cast(name, call, state) => {
                    self.as_tensor(&of, value.as_name(), state)
                }
                None => None,
            };
            if let Some(id) = id {
                return self.method(expr, id, name, call, state);
            }
        }
        if let Some(value) = self.number_called(call, state) {
            return value;
        }
        if let Some(value) = self.descriptor(expr, call, state) {
            return value;
        }
        if let Some(value) = self.called_in_place(call, state) {
            return value;
        }
        // Kernels are launched where there is a GPU.
        if self.callers.is_some() && call.func.dotted().is_some_and(|path| path == ["torch", "cuda", "is_available"]) {
            return HostValue::Bool(Some(true));
        }
        if let Some(value) = self.torch_called(expr, call, state) {
            return value;
        }
        self.other_called(expr, call, state)
    }

    /// `x.to(torch.int16)` and `x.float()`
    fn is_cast(&mut self, name: &str, call: &'a Call, state: &mut State<'a>) -> bool {
        match call.args.as_slice() {
            [] => matches!(name, "float" | "double" | "int" | "long" | "short"),
            [dtype, ..] => name == "to" && matches!(self.value(&dtype.value, state), HostValue::Dtype(Some(_))),
        }
    }

    /// `min`, `max`, `triton.cdiv`, `triton.next_power_of_2` and the like.
    fn number_called(&mut self, call: &'a Call, state: &mut State<'a>) -> Option<HostValue> {
        if call.has_star() || call.args.iter().any(|arg| arg.keyword.is_some()) {
            return None;
        }
        let name = call.func.as_name().filter(|name| !state.names.contains_key(name));
        let path = self.module.imports.resolve(&call.func).map(|found| found.path);
        let op = match (name, path.as_deref()) {
            (Some("min"), None) => HostOperator::Min,
            (Some("max"), None) => HostOperator::Max,
            (_, Some("triton.cdiv")) => HostOperator::CeilDiv,
            (_, Some("triton.next_power_of_2")) => HostOperator::NextPowerOfTwo,
            (Some("int"), None) if call.args.len() == 1 => {
                let value = self.value(&call.args[0].value, state);
                return Some(HostValue::Number(value.number()));
            }
            (Some("len"), None) if call.args.len() == 1 => {
                return Some(match self.value(&call.args[0].value, state) {
                    HostValue::Tuple(items) => HostValue::known(items.len() as i128),
                    _ => HostValue::Unknown,
                });
            }
            (Some("float"), None) => return Some(HostValue::Float),
            _ => return None,
        };
        let numbers: Vec<HostNumber> = call.args.iter().map(|arg| self.value(&arg.value, state).number()).collect();
        let value = match (op, numbers.as_slice()) {
            (HostOperator::NextPowerOfTwo, [one]) => HostNumber::operation(op, one, one),
            (HostOperator::NextPowerOfTwo, _) | (_, [] | [_]) => HostNumber::Unknown,
            (_, [first, rest @ ..]) => rest.iter().fold(first.clone(), |all, one| HostNumber::operation(op, &all, one)),
        };
        Some(HostValue::Number(value))
    }

    /// A call of anything else: it may write to the tensors that it gets.
    fn other_called(&mut self, expr: &'a Expr, call: &'a Call, state: &mut State<'a>) -> HostValue {
        let (mut args, mut keywords) = (Vec::new(), Vec::new());
        let mut tensors = Vec::new();
        for arg in &call.args {
            let value = match &arg.value.kind {
                ExprKind::Starred(inner) => {
                    self.value(inner, state);
                    HostValue::Unknown
                }
                _ => self.value(&arg.value, state),
            };
            tensors.extend(value.tensor());
            match arg.keyword {
                None => args.push((value, arg.value.span)),
                Some(_) => keywords.push(value),
            }
        }
        for id in tensors {
            state.written.insert(self.run.tensors[id].storage);
        }
        self.value(&call.func, state);
        if let Some(name) = call.func.as_name()
            && !call.has_star()
        {
            self.run.calls.push(HostCall { name: name.to_owned(), args, keywords, span: expr.span });
        }
        HostValue::Unknown
    }
}

/// Whether the value of a global can be evaluated without names of a function.
fn is_simple(value: &Expr) -> bool {
    let mut simple = true;
    value.walk(&mut |part| {
        simple &= !matches!(part.kind, ExprKind::Call(_) | ExprKind::Lambda { .. } | ExprKind::Comprehension { .. });
    });
    simple
}

/// Whether an expression contains `x.stride(…)`.
fn speaks_of_stride(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Call(call)
            if matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "stride"));
    });
    found
}

/// Whether only tensors have a method of this name.
fn is_method_of_tensor(name: &str) -> bool {
    matches!(
        name,
        "stride"
            | "size"
            | "numel"
            | "dim"
            | "contiguous"
            | "is_contiguous"
            | "element_size"
            | "data_ptr"
            | "view"
            | "reshape"
            | "transpose"
            | "permute"
            | "t"
            | "half"
            | "bfloat16"
            | "new_empty"
            | "new_zeros"
            | "unsqueeze"
            | "flatten"
            | "clone"
            | "detach"
    )
}

/// Whether a comparison of integers holds, where that is certain.
fn compared(op: &str, left: &HostNumber, right: &HostNumber) -> Option<bool> {
    let (left, right) = (left.known()?, right.known()?);
    Some(match op {
        "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        _ => return None,
    })
}
