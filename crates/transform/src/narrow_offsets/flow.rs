//! Follows the values that a kernel casts to 64 bits to their uses.

use std::collections::{BTreeMap, BTreeSet};

use model::analysis::types::access::pointers;
use model::kernel::Launch;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::syntax::Span;

use super::number::{Number, Pointer, Value, product};
use crate::subject::Subject;
use crate::subject_launch::{given, only_launch, programs_along};
use crate::written::bindings;

/// The maximum number of passes over a kernel until nothing new is found about names that loops bind again.
const PASSES: usize = 6;

/// `operand.to(tl.int64)`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cast {
    pub(super) whole: Span,
    pub(super) operand: Span,
}

/// The conditions on a call under which the casts may be omitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Demands<'a> {
    /// Parameters that must be non-negative.
    pub(super) numbers: BTreeSet<&'a str>,
    /// Parameters that must be tensors in memory of less than 2³¹ elements.
    pub(super) tensors: BTreeSet<&'a str>,
    /// Expressions that must be less than 2³¹.
    pub(super) bounds: BTreeSet<String>,
}

/// The analysis of a kernel. `None` means something that is not understood, and ends the analysis where a narrow number
/// is an operand.
pub(super) struct Flow<'a> {
    subject: &'a Subject<'a>,
    pointers: BTreeSet<&'a str>,
    bound: BTreeMap<&'a str, Value<'a>>,
    casts: BTreeMap<usize, Cast>,
    demands: Demands<'a>,
}

impl<'a> Flow<'a> {
    /// The casts that may be omitted, and under which conditions.
    pub(super) fn of(subject: &'a Subject<'a>) -> Option<(Vec<Cast>, Demands<'a>)> {
        let pointers = pointers(&subject.candidate.module, subject.kernel).into_iter().collect();
        let (bound, casts, demands) = Default::default();
        let mut flow = Self { subject, pointers, bound, casts, demands };
        let mut stmts = Vec::new();
        walk_statements(&subject.kernel.body, &mut |stmt| stmts.push(stmt));
        for _ in 0..PASSES {
            let before = (flow.bound.clone(), flow.demands.clone());
            // A name that gets another kind of value may have been cast before.
            flow.casts.clear();
            stmts.iter().try_for_each(|stmt| flow.statement(stmt))?;
            if before == (flow.bound.clone(), flow.demands.clone()) {
                let casts: Vec<Cast> = flow.casts.into_values().collect();
                return (!casts.is_empty()).then_some((casts, flow.demands));
            }
        }
        None
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, annotation: None, value: Some(value) } if targets.len() == 1 => {
                let value = self.value(value)?;
                self.bind(&targets[0], value)
            }
            StmtKind::AugAssign { target, op, value } => {
                let value = (self.value(target)?, self.value(value)?);
                let value = self.binary(op, value.0, value.1)?;
                self.bind(target, value)
            }
            StmtKind::For { target, iter, .. } => {
                let value = self.rounds(iter)?;
                self.bind(target, value)
            }
            _ => {
                stmt.exprs().into_iter().try_for_each(|expr| self.plain(expr))?;
                stmt.targets().iter().try_for_each(|target| self.bind(target, Value::Other))
            }
        }
    }

    /// Binds a name to a value. A name with several bindings has one of several values.
    fn bind(&mut self, target: &'a Expr, value: Value<'a>) -> Option<()> {
        let ExprKind::Name(name) = &target.kind else {
            is_plain(&value).then_some(())?;
            let mut names = Vec::new();
            target.walk(&mut |expr| names.extend(expr.as_name()));
            return names.into_iter().try_for_each(|name| self.bind_name(name, Value::Other));
        };
        self.bind_name(name, value)
    }

    fn bind_name(&mut self, name: &'a str, value: Value<'a>) -> Option<()> {
        let kernel = self.subject.kernel;
        let is_param = kernel.param(name).is_some();
        let is_bound_once = bindings(&kernel.body, name).len() == 1 && !is_param;
        let before = if is_param { Some(self.named(name)) } else { self.bound.get(name).cloned() };
        let value = match (before, value) {
            (_, value) if is_bound_once => value,
            // The type of the name must stay the same.
            (_, Value::Number(number)) if number.is_narrow => return None,
            (None, value) => value,
            (Some(Value::Number(one)), Value::Number(other)) => Value::Number(one.either(other)),
            (Some(Value::Pointer(one)), Value::Pointer(other)) if one.root == other.root => {
                let (is_narrow, is_open) = (one.is_narrow || other.is_narrow, one.is_open || other.is_open);
                Value::Pointer(Pointer { root: one.root, is_narrow, is_open }.checked()?)
            }
            (Some(before), value) => (is_plain(&before) && is_plain(&value)).then_some(Value::Other)?,
        };
        self.bound.insert(name, value);
        Some(())
    }

    fn named(&self, name: &str) -> Value<'a> {
        if let Some(value) = self.bound.get(name) {
            return value.clone();
        }
        // A heuristic does not see arguments that are not passed.
        let Some(param) = self.subject.kernel.param(name).filter(|param| param.default.is_none()) else {
            return Value::Other;
        };
        if self.pointers.contains(name) {
            return Value::Pointer(Pointer { root: &param.name, is_narrow: false, is_open: false });
        }
        Value::Number(Number::param(&param.name))
    }

    fn value(&mut self, expr: &'a Expr) -> Option<Value<'a>> {
        match &expr.kind {
            ExprKind::Name(name) => Some(self.named(name)),
            ExprKind::Int(number) => Some(Value::Number(Number::literal(*number))),
            ExprKind::Subscript { value, index } if index.iter().all(is_axis) => self.value(value),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(op, left, right)
            }
            ExprKind::Compare { left, rest } => {
                for operand in std::iter::once(&**left).chain(rest.iter().map(|(_, operand)| operand)) {
                    let value = self.value(operand)?;
                    self.exact(&value)?;
                }
                Some(Value::Other)
            }
            ExprKind::Call(call) if !call.has_star() => self.call(expr, call),
            ExprKind::Attribute { value, name, .. } if name == "dtype" => {
                let value = self.value(value)?;
                (is_plain(&value) || matches!(value, Value::Pointer(_))).then_some(Value::Other)
            }
            _ => self.apart(expr),
        }
    }

    /// Reads an expression that must not contain a narrow number.
    fn apart(&mut self, expr: &'a Expr) -> Option<Value<'a>> {
        expr.children().into_iter().try_for_each(|child| self.plain(child))?;
        Some(Value::Other)
    }

    fn plain(&mut self, expr: &'a Expr) -> Option<()> {
        is_plain(&self.value(expr)?).then_some(())
    }

    /// Demands that a number has its 64-bit value in all programs.
    fn exact(&mut self, value: &Value<'a>) -> Option<()> {
        let Value::Number(number) = value else { return is_plain(value).then_some(()) };
        if number.is_narrow {
            self.demands.bounds.insert(number.most.clone()?);
            self.demands.numbers.extend(&number.params);
        }
        Some(())
    }

    fn binary(&mut self, op: &str, left: Value<'a>, right: Value<'a>) -> Option<Value<'a>> {
        Some(match (op, left, right) {
            ("+", Value::Number(left), Value::Number(right)) => Value::Number(left.plus(right)),
            ("*", Value::Number(left), Value::Number(right)) => Value::Number(left.times(right)),
            ("//" | "%", left @ Value::Number(_), right @ Value::Number(_)) => {
                self.exact(&left)?;
                self.exact(&right)?;
                let (Value::Number(left), Value::Number(right)) = (left, right) else { return None };
                Value::Number(left.at_most(right))
            }
            ("+", Value::Pointer(pointer), Value::Number(number))
            | ("+", Value::Number(number), Value::Pointer(pointer)) => {
                self.demands.numbers.extend(&number.params);
                let fits = number.most.is_some_and(|most| self.demands.bounds.contains(&most));
                let is_narrow = number.is_narrow && !fits;
                self.demands.tensors.extend(is_narrow.then_some(pointer.root));
                Value::Pointer(Pointer { is_narrow: pointer.is_narrow || is_narrow, ..pointer }.checked()?)
            }
            ("+" | "-", Value::Pointer(pointer), other) | ("+", other, Value::Pointer(pointer)) if is_plain(&other) => {
                Value::Pointer(Pointer { is_open: true, ..pointer }.checked()?)
            }
            (_, left, right) => (is_plain(&left) && is_plain(&right)).then_some(Value::Other)?,
        })
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Option<Value<'a>> {
        if let Some(operand) = self.operand(call) {
            return self.cast(expr, operand);
        }
        let args: Vec<&'a Expr> = call.args.iter().map(|arg| &arg.value).collect();
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        match (module.language_member(kernel, &call.func).as_deref(), &args[..]) {
            (Some("program_id"), _) => {
                let axis = call.argument("axis", Some(0)).and_then(Expr::as_int);
                let (most, params) = axis.and_then(|axis| self.programs(usize::try_from(axis).ok()?)).unzip();
                Some(Value::Number(Number { most, params: params.unwrap_or_default(), is_narrow: false }))
            }
            (Some("num_programs"), _) => Some(Value::Number(Number::default())),
            (Some("arange"), [start, end]) if !has_keyword(call, &["start", "end"]) => {
                self.numbers(end, start, Number::at_most)
            }
            (Some("cdiv"), [of, by]) if !has_keyword(call, &["x", "div"]) => self.numbers(of, by, Number::at_most),
            (Some("multiple_of" | "max_contiguous"), [of, rest @ ..]) if !has_keyword(call, &["input", "values"]) => {
                rest.iter().try_for_each(|arg| self.plain(arg))?;
                self.value(of)
            }
            (Some(member), [pointer, rest @ ..]) if is_access(member) && call.args[0].keyword.is_none() => {
                rest.iter().try_for_each(|arg| self.plain(arg))?;
                let value = self.value(pointer)?;
                (is_plain(&value) || matches!(value, Value::Pointer(_))).then_some(Value::Other)
            }
            _ => self.apart(expr),
        }
    }

    fn cast(&mut self, expr: &'a Expr, operand: &'a Expr) -> Option<Value<'a>> {
        let value = self.value(operand)?;
        Some(match value {
            Value::Number(number) if !number.is_narrow => {
                self.casts.insert(expr.span.start, Cast { whole: expr.span, operand: operand.span });
                Value::Number(Number { is_narrow: true, ..number })
            }
            // The pointer is converted to a number.
            Value::Pointer(_) => is_plain(&value).then_some(Value::Other)?,
            value => value,
        })
    }

    /// The result of an operation on two numbers that have 64 bits only where the kernel's arguments do.
    fn numbers(
        &mut self,
        one: &'a Expr,
        other: &'a Expr,
        of: impl Fn(Number<'a>, Number<'a>) -> Number<'a>,
    ) -> Option<Value<'a>> {
        let (one, other) = (self.value(one)?, self.value(other)?);
        (is_plain(&one) && is_plain(&other)).then_some(())?;
        let (Value::Number(one), Value::Number(other)) = (one, other) else { return Some(Value::Other) };
        Some(Value::Number(of(one, other)))
    }

    /// The operand of a cast to 64 bits.
    fn operand(&self, call: &'a Call) -> Option<&'a Expr> {
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        let is_int64 = |dtype: &Expr| module.language_member(kernel, dtype).as_deref() == Some("int64");
        let [first, rest @ ..] = call.args.as_slice() else { return None };
        let (operand, dtype) = match (module.language_member(kernel, &call.func).as_deref(), &call.func.kind) {
            (Some("cast"), _) => (&first.value, rest.first()?),
            (None, ExprKind::Attribute { value, name, .. }) if name == "to" => (&**value, first),
            _ => return None,
        };
        let is_all = call.args.last() == Some(dtype) && dtype.keyword.as_ref().is_none_or(|(name, _)| name == "dtype");
        (is_all && is_int64(&dtype.value)).then_some(operand)
    }

    /// The values of the variable of a `range` or `tl.range`.
    fn rounds(&mut self, iter: &'a Expr) -> Option<Value<'a>> {
        self.plain(iter)?;
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        let is_read = |call: &&Call| !call.has_star() && !has_keyword(call, &["arg1", "arg2", "step"]);
        let Some(call) = iter.as_call().filter(is_read) else { return Some(Value::Other) };
        let is_builtin = call.func.as_name() == Some("range") && !kernel.locals.contains("range");
        if !is_builtin && module.language_member(kernel, &call.func).as_deref() != Some("range") {
            return Some(Value::Other);
        }
        let plain = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value);
        let mut values = plain.map(|arg| self.value(arg)).collect::<Option<Vec<_>>>()?.into_iter();
        let (first, second, step) = (values.next()?, values.next(), values.next());
        let (start, end) = match second {
            Some(end) => (first, end),
            None => (Value::Number(Number::literal(0)), first),
        };
        let is_up = step.as_ref().is_none_or(|step| matches!(step, Value::Number(_)));
        let (Value::Number(start), true) = (start, is_up) else { return Some(Value::Other) };
        let mut params = start.params;
        let mut most = None;
        for (value, is_end) in [(Some(end), true), (step, false)] {
            let Some(Value::Number(number)) = value else { continue };
            params.extend(number.params);
            most = if is_end { number.most } else { most };
        }
        Some(Value::Number(Number { is_narrow: false, most, params }))
    }

    /// The number of programs along an axis as a heuristic computes it, and the parameters that it needs.
    fn programs(&self, axis: usize) -> Option<(String, BTreeSet<&'a str>)> {
        let launch = only_launch(self.subject)?;
        let (count, meta) = programs_along(self.subject, launch, axis)?;
        let mut params = BTreeSet::new();
        Some((self.count(launch, meta, count, &mut params)?, params))
    }

    fn count(
        &self,
        launch: &'a Launch,
        meta: Option<&str>,
        expr: &'a Expr,
        params: &mut BTreeSet<&'a str>,
    ) -> Option<String> {
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        if let ExprKind::Int(number) = expr.kind {
            return Some(number.to_string());
        }
        let mut given = given(self.subject, launch, meta, expr).into_iter();
        if let Some(name) = given.find(|name| kernel.param(name).is_some_and(|param| param.default.is_none())) {
            params.insert(name);
            return Some(format!("args[\"{name}\"]"));
        }
        let mut of = |expr: &'a Expr| self.count(launch, meta, expr, params);
        match &expr.kind {
            ExprKind::Binary { op, left, right } if op == "*" => Some(product(&of(left)?, &of(right)?)),
            ExprKind::Call(call) => {
                let triton = module.imports.aliases_of("triton").into_iter().next()?;
                let is_cdiv = module.imports.resolve(&call.func).is_some_and(|it| it.path == "triton.cdiv");
                let [size, tile] = call.args.as_slice() else { return None };
                let (size, tile) = (of(&size.value)?, of(&tile.value)?);
                is_cdiv.then(|| format!("{triton}.cdiv({size}, {tile})"))
            }
            _ => None,
        }
    }
}

/// Whether the value is the same in 32 bits.
fn is_plain(value: &Value<'_>) -> bool {
    match value {
        Value::Number(number) => !number.is_narrow,
        Value::Pointer(pointer) => !pointer.is_narrow,
        Value::Other => true,
    }
}

/// `None` or `:` in a subscript.
fn is_axis(part: &Expr) -> bool {
    match &part.kind {
        ExprKind::None => true,
        ExprKind::Slice(parts) => parts.is_empty(),
        _ => false,
    }
}

fn has_keyword(call: &Call, names: &[&str]) -> bool {
    names.iter().any(|name| call.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(given, _)| given == name)))
}

fn is_access(member: &str) -> bool {
    member == "load" || member == "store" || member.starts_with("atomic_")
}
