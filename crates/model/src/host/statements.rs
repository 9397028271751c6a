//! Runs the statements of a host function.

use super::tensor::Layout;
use super::value::HostValue;
use super::{HostNumber, HostOperator, HostTensor, Runner, State};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};

/// Whether control continues after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Continues,
    Ends,
}

impl<'a> Runner<'a> {
    pub(super) fn body(&mut self, body: &'a [Stmt], state: &mut State<'a>) -> bool {
        self.statements(body, state) == Then::Continues
    }

    fn statements(&mut self, body: &'a [Stmt], state: &mut State<'a>) -> Then {
        for stmt in body {
            if self.statement(stmt, state) == Then::Ends {
                return Then::Ends;
            }
        }
        Then::Continues
    }

    fn statement(&mut self, stmt: &'a Stmt, state: &mut State<'a>) -> Then {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let found = self.value(value, state);
                for target in targets {
                    self.bind(target, found.clone(), state);
                }
            }
            StmtKind::AugAssign { target, op, value } => {
                let (old, value) = (self.value(target, state), self.value(value, state));
                let result = match old.tensor() {
                    // An operation in place keeps the tensor.
                    Some(id) => {
                        state.written.insert(self.run.tensors[id].storage);
                        old
                    }
                    None => self.arithmetic(op, &old, &value),
                };
                if target.as_name().is_some() {
                    self.bind(target, result, state);
                }
            }
            StmtKind::If { branches, orelse } => return self.branches(branches, orelse, state),
            StmtKind::For { target, iter, body, orelse } => {
                let items = self.value(iter, state);
                let item = match items {
                    HostValue::Tuple(items) if items.len() == 1 => items[0].clone(),
                    HostValue::Tuple(items) if self.callers.is_some() => match items.split_first() {
                        Some((first, rest)) => rest.iter().fold(first.clone(), |all, item| self.either(&all, item)),
                        None => HostValue::Unknown,
                    },
                    _ => HostValue::Unknown,
                };
                self.repeated(Some((target, item)), body, state);
                self.body(orelse, state);
            }
            StmtKind::While { test, body, orelse } => {
                self.check(test, state);
                self.repeated(None, body, state);
                self.body(orelse, state);
            }
            StmtKind::Assert(parts) => {
                if let Some(test) = parts.first() {
                    self.check(test, state);
                    self.assume(test, true, state);
                }
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map_or(HostValue::None, |value| self.value(value, state));
                self.returned = Some(match self.returned.take() {
                    Some(other) => self.either(&other, &value),
                    None => value,
                });
                return Then::Ends;
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Raise => return Then::Ends,
            StmtKind::Block(bodies) => return self.block(stmt, bodies, state),
            StmtKind::Definition { name, lambda } => {
                let value = lambda.as_ref().map_or(HostValue::Unknown, |lambda| self.value(lambda, state));
                state.names.insert(name, value);
                // A nested function that is not followed may write to all that it mentions.
                let text = self.text.get(stmt.span.start..stmt.span.end).unwrap_or_default();
                let mentioned = state.names.iter().filter(|(name, _)| text.contains(**name));
                let storages: Vec<usize> =
                    mentioned.filter_map(|(_, value)| Some(self.run.tensors[value.tensor()?].storage)).collect();
                state.written.extend(storages);
            }
            StmtKind::Other(_) => forget(std::slice::from_ref(stmt), state),
            _ => stmt.exprs().into_iter().for_each(|expr| drop(self.value(expr, state))),
        }
        Then::Continues
    }

    /// `with` runs its body; of `try` and the like it is not known how far each body runs.
    fn block(&mut self, stmt: &'a Stmt, bodies: &'a [Vec<Stmt>], state: &mut State<'a>) -> Then {
        if self.text[stmt.span.start..].starts_with("with") {
            for body in bodies {
                if self.statements(body, state) == Then::Ends {
                    return Then::Ends;
                }
            }
            return Then::Continues;
        }
        for body in bodies {
            let mut after = state.clone();
            self.statements(body, &mut after);
            self.join(state, after);
        }
        Then::Continues
    }

    fn branches(&mut self, branches: &'a [(Expr, Vec<Stmt>)], orelse: &'a [Stmt], state: &mut State<'a>) -> Then {
        let mut outcome: Option<State<'a>> = None;
        let mut otherwise = state.clone();
        let mut is_reachable = true;
        for (test, body) in branches {
            let found = self.check(test, &mut otherwise);
            if found != Some(false) {
                let mut taken = otherwise.clone();
                self.assume(test, true, &mut taken);
                if self.statements(body, &mut taken) == Then::Continues {
                    outcome = Some(self.joined(outcome, taken));
                }
            }
            self.assume(test, false, &mut otherwise);
            if found == Some(true) {
                is_reachable = false;
                break;
            }
        }
        if is_reachable && self.statements(orelse, &mut otherwise) == Then::Continues {
            outcome = Some(self.joined(outcome, otherwise));
        }
        match outcome {
            Some(after) => {
                *state = after;
                Then::Continues
            }
            None => Then::Ends,
        }
    }

    fn joined(&mut self, known: Option<State<'a>>, more: State<'a>) -> State<'a> {
        match known {
            Some(mut known) => {
                self.join(&mut known, more);
                known
            }
            None => more,
        }
    }

    /// Runs a body that may run any number of times.
    fn repeated(&mut self, counter: Option<(&'a Expr, HostValue)>, body: &'a [Stmt], state: &mut State<'a>) {
        let before = state.clone();
        forget(body, state);
        if let Some((target, item)) = counter {
            self.bind(target, item, state);
        }
        self.loops += 1;
        self.statements(body, state);
        self.loops -= 1;
        forget(body, state);
        state.written.extend(before.written);
    }

    /// Joins two states.
    fn join(&mut self, into: &mut State<'a>, other: State<'a>) {
        let names: Vec<&'a str> = into.names.keys().chain(other.names.keys()).copied().collect();
        for name in names {
            let (Some(a), Some(b)) = (into.names.get(name), other.names.get(name)) else {
                into.names.insert(name, HostValue::Unknown);
                continue;
            };
            if a != b {
                let (a, b) = (a.clone(), b.clone());
                let either = self.either(&a, &b);
                into.names.insert(name, either);
            }
        }
        // Memory that one of the paths writes may be written.
        into.written.extend(other.written);
    }

    /// One of two values.
    pub(super) fn either(&mut self, a: &HostValue, b: &HostValue) -> HostValue {
        match (a, b) {
            (a, b) if a == b => a.clone(),
            (HostValue::Tensor(a), HostValue::Tensor(b)) => {
                let (a, b) = (self.run.tensors[*a].clone(), self.run.tensors[*b].clone());
                let shape = a.shape.clone().filter(|shape| b.shape.as_ref() == Some(shape));
                let layout = if a.layout == b.layout { a.layout.clone() } else { Layout::Unknown };
                let origin = if a.origin == b.origin { a.origin } else { super::TensorOrigin::Given };
                let storage = if a.storage == b.storage {
                    a.storage
                } else {
                    self.storages += 1;
                    self.storages
                };
                let either = HostTensor {
                    name: a.name.clone().filter(|name| b.name.as_ref() == Some(name)),
                    like: a.sizes_of().filter(|name| b.sizes_of() == Some(name)).cloned(),
                    origin,
                    made: a.made.filter(|made| b.made == Some(*made)),
                    storage,
                    copied_from: a.copied_from.filter(|from| b.copied_from == Some(*from)),
                    dtype: a.dtype.filter(|dtype| b.dtype == Some(*dtype)),
                    shape,
                    layout,
                };
                HostValue::Tensor(self.add(either))
            }
            (HostValue::Number(_) | HostValue::Given(_), HostValue::Number(_) | HostValue::Given(_)) => {
                HostValue::Number(a.number().either(&b.number()))
            }
            (HostValue::Bool(_), HostValue::Bool(_)) => HostValue::Bool(None),
            (HostValue::Dtype(_), HostValue::Dtype(_)) => HostValue::Dtype(None),
            (HostValue::Tuple(a), HostValue::Tuple(b)) if a.len() == b.len() => {
                HostValue::Tuple(a.iter().zip(b).map(|(a, b)| self.either(a, b)).collect())
            }
            _ => HostValue::Unknown,
        }
    }

    /// Evaluates a condition, and notes which numbers from outside it looks at.
    fn check(&mut self, test: &'a Expr, state: &mut State<'a>) -> Option<bool> {
        let value = self.value(test, state);
        self.note_checked(test, state);
        value.truth()
    }

    pub(super) fn note_checked(&mut self, test: &'a Expr, state: &mut State<'a>) {
        let mut parts = Vec::new();
        test.walk(&mut |part| parts.push(part));
        for part in parts {
            if matches!(
                part.kind,
                ExprKind::Name(_) | ExprKind::Subscript { .. } | ExprKind::Call(_) | ExprKind::Binary { .. }
            ) {
                let sources = self.quiet(part, state).number().sources();
                self.run.checked.extend(sources.into_iter().flatten().map(|name| name.to_string()));
            }
        }
    }

    /// The value of an expression, without recording launches and calls again.
    fn quiet(&mut self, expr: &'a Expr, state: &mut State<'a>) -> HostValue {
        let (launches, calls, settled) = (self.run.launches.len(), self.run.calls.len(), self.run.settled.len());
        let value = self.value(expr, state);
        self.run.launches.truncate(launches);
        self.run.calls.truncate(calls);
        self.run.settled.truncate(settled);
        value
    }

    /// What holds when a condition is true, or false.
    fn assume(&mut self, test: &'a Expr, holds: bool, state: &mut State<'a>) {
        match &test.kind {
            ExprKind::Unary { op, operand } if op == "not" => self.assume(operand, !holds, state),
            ExprKind::BoolOp { op, left, right } if (op == "and") == holds => {
                self.assume(left, holds, state);
                self.assume(right, holds, state);
            }
            ExprKind::Call(call) => {
                if let ExprKind::Attribute { value, name, .. } = &call.func.kind
                    && name == "is_contiguous"
                    && call.args.is_empty()
                    && holds
                {
                    self.replace(value, state, |tensor| tensor.layout = Layout::Contiguous);
                }
            }
            ExprKind::Compare { left, rest } => {
                if let [(op, right)] = rest.as_slice()
                    && (op == "==") == holds
                    && matches!(op.as_str(), "==" | "!=")
                {
                    self.assume_equal(left, right, state);
                }
            }
            _ => {}
        }
    }

    fn assume_equal(&mut self, left: &'a Expr, right: &'a Expr, state: &mut State<'a>) {
        let value = self.quiet(right, state);
        match &left.kind {
            // `assert tiles == 1`
            ExprKind::Name(name) if value.number().known().is_some() => {
                if let Some(HostValue::Number(_) | HostValue::Given(_)) = state.names.get(name.as_str()) {
                    state.names.insert(name, HostValue::Number(value.number()));
                }
            }
            ExprKind::Attribute { value: tensor, name, .. } if name == "dtype" => {
                if let HostValue::Dtype(Some(dtype)) = value {
                    self.replace(tensor, state, |tensor| tensor.dtype = Some(dtype));
                }
            }
            // `x.dim() == 2` and `x.ndim == 2`
            ExprKind::Attribute { value: tensor, name, .. } if name == "ndim" => {
                self.assume_rank(tensor, &value, state)
            }
            ExprKind::Call(call) => {
                if let ExprKind::Attribute { value: tensor, name, .. } = &call.func.kind {
                    match (name.as_str(), call.args.as_slice()) {
                        ("dim" | "ndimension", []) => self.assume_rank(tensor, &value, state),
                        ("stride", [at]) => {
                            let at = at.value.as_int();
                            let last = HostNumber::Known(1);
                            if at == Some(-1) && value.number() == last {
                                self.replace(tensor, state, |tensor| {
                                    if let (Layout::Unknown, Some(mut strides)) = (&tensor.layout, tensor.strides()) {
                                        if let Some(end) = strides.last_mut() {
                                            *end = last.clone();
                                        }
                                        tensor.layout = Layout::Strided(strides);
                                    }
                                });
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn assume_rank(&mut self, tensor: &'a Expr, rank: &HostValue, state: &mut State<'a>) {
        if let Some(rank) = rank.number().known().and_then(|rank| usize::try_from(rank).ok()).filter(|rank| *rank < 9) {
            self.replace(tensor, state, |tensor| with_rank(tensor, rank));
        }
    }

    /// Binds the name of a tensor to the same tensor with other facts.
    fn replace(&mut self, expr: &'a Expr, state: &mut State<'a>, change: impl FnOnce(&mut HostTensor)) {
        let Some(name) = expr.as_name() else { return };
        let value = state.names.get(name).cloned().unwrap_or_default();
        let Some(id) = self.as_tensor(&value, Some(name), state) else { return };
        let mut tensor = self.run.tensors[id].clone();
        change(&mut tensor);
        let id = self.add(tensor);
        state.names.insert(name, HostValue::Tensor(id));
    }

    pub(super) fn bind(&mut self, target: &'a Expr, value: HostValue, state: &mut State<'a>) {
        match &target.kind {
            ExprKind::Name(name) => {
                if let HostValue::Tensor(id) = value
                    && self.run.tensors[id].name.is_none()
                {
                    self.run.tensors[id].name = Some(name.as_str().into());
                }
                state.names.insert(name, value);
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => {
                let is_starred = parts.iter().any(|part| matches!(part.kind, ExprKind::Starred(_)));
                let values = if is_starred { None } else { self.unpacked(&value, parts.len()) };
                for (at, part) in parts.iter().enumerate() {
                    let value = values.as_ref().and_then(|values| values.get(at)).cloned().unwrap_or_default();
                    self.bind(part, value, state);
                }
            }
            ExprKind::Starred(inner) => self.bind(inner, HostValue::Unknown, state),
            ExprKind::Subscript { value, .. } => {
                // `x[…] = value` writes to the memory of a tensor.
                if let Some(id) = self.value(value, state).tensor() {
                    state.written.insert(self.run.tensors[id].storage);
                }
            }
            _ => {}
        }
    }

    fn unpacked(&mut self, value: &HostValue, count: usize) -> Option<Vec<HostValue>> {
        match value {
            HostValue::Tuple(items) if items.len() == count => Some(items.clone()),
            // To unpack the sizes of a tensor tells how many there are.
            HostValue::Sizes(id) => {
                with_rank(&mut self.run.tensors[*id], count);
                let shape = self.run.tensors[*id].shape.clone()?;
                Some(shape.into_iter().map(HostValue::Number).collect())
            }
            HostValue::Strides(id) => {
                with_rank(&mut self.run.tensors[*id], count);
                Some(self.run.tensors[*id].strides()?.into_iter().map(HostValue::Number).collect())
            }
            _ => None,
        }
    }
}

/// Gives a tensor whose number of axes was not known one size for each.
pub(super) fn with_rank(tensor: &mut HostTensor, rank: usize) {
    if tensor.shape.is_none()
        && let Some(name) = tensor.sizes_of().cloned()
    {
        tensor.shape = Some((0..rank).map(|at| HostNumber::given(format!("{name}.shape[{at}]"))).collect());
    }
}

/// Makes the names that statements bind unknown, and marks the memory that they may write.
fn forget<'a>(body: &'a [Stmt], state: &mut State<'a>) {
    let forget_target = |target: &'a Expr, state: &mut State<'a>| {
        target.walk(&mut |part| {
            if let Some(name) = part.as_name() {
                state.names.insert(name, HostValue::Unknown);
            }
        });
    };
    walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => {
            for target in targets {
                // `x[i] = …` changes what `x` holds and not what it is.
                if !matches!(target.kind, ExprKind::Subscript { .. } | ExprKind::Attribute { .. }) {
                    forget_target(target, state);
                }
            }
        }
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } if target.as_name().is_some() => {
            forget_target(target, state);
        }
        StmtKind::For { target, .. } => forget_target(target, state),
        _ => {}
    });
    walk_expressions(body, &mut |expr| {
        if let ExprKind::Named { name, .. } = &expr.kind {
            state.names.insert(name, HostValue::Unknown);
        }
    });
}

impl<'a> Runner<'a> {
    /// `left op right` of numbers and tensors.
    pub(super) fn arithmetic(&mut self, op: &str, left: &HostValue, right: &HostValue) -> HostValue {
        if left.tensor().is_some() || right.tensor().is_some() || op == "@" {
            return self.elementwise(left, right);
        }
        if let (HostValue::Tuple(a), HostValue::Tuple(b), "+") = (left, right, op) {
            return HostValue::Tuple(a.iter().chain(b).cloned().collect());
        }
        if matches!(left, HostValue::Float) || matches!(right, HostValue::Float) || op == "/" {
            return HostValue::Float;
        }
        match HostOperator::of_python(op) {
            Some(op) => HostValue::Number(HostNumber::operation(op, &left.number(), &right.number())),
            None => HostValue::Unknown,
        }
    }
}
