//! Transfer functions of calls: the results of functions of `triton.language`.

use super::super::fills::{self, Fill};
use super::super::lanes::{Along, LaneValue, NumberKind, Operation, Undefined};
use super::reductions::REDUCTIONS;
use super::{Names, Run};
use crate::kernel::ast::{Call, Expr, ExprKind};

/// Elementwise functions of one tile, each with whether it maps zero to zero and whether it is never negative.
const MAPS: &[(&str, bool, bool)] = &[
    ("abs", true, true),
    ("ceil", true, false),
    ("cos", false, false),
    ("erf", true, false),
    ("exp", false, true),
    ("exp2", false, true),
    ("floor", true, false),
    ("log", false, false),
    ("log2", false, false),
    ("rsqrt", false, true),
    ("sigmoid", false, true),
    ("sin", true, false),
    ("sqrt", true, true),
    ("sqrt_rn", true, true),
    ("tanh", true, false),
];
/// Helpers that call each other deeper than this are not run.
const MAX_CALLS: usize = 3;
/// Functions that return their first argument.
const HINTS: &[&str] = &["debug_barrier", "max_constancy", "max_contiguous", "multiple_of"];
impl<'a> Run<'a> {
    pub(super) fn call(&mut self, expr: &'a Expr, call: &'a Call, names: &mut Names<'a>) -> LaneValue<'a> {
        let member = self.member(&call.func);
        if member.is_none()
            && let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && self.module.resolve_in(self.kernel, &call.func).is_none()
        {
            return self.method(expr, call, value, name, names);
        }
        let values: Vec<_> = call.args.iter().map(|arg| self.eval(&arg.value, names)).collect();
        if call.has_star() {
            return LaneValue::unknown();
        }
        let arguments = CallArguments { call, values: &values, first: 0 };
        match (member, call.func.as_name()) {
            (Some(member), _) => self.function(expr, &member, &arguments, names),
            (None, Some(name)) if !self.kernel.locals.contains(name) => {
                match (name, values.iter().all(|value| value.rank() == Some(0))) {
                    ("float", _) if infinity(call).is_some() => LaneValue::scalar().of_number(infinity(call)),
                    ("float" | "int" | "min" | "max", true) => LaneValue::scalar(),
                    ("min" | "max", false) if values.len() == 2 => values[0].binary(Operation::Other, &values[1]),
                    // A function of another file computes a number from numbers.
                    (_, true) if !values.is_empty() && self.module.kernel(name).is_none() => LaneValue::scalar(),
                    _ => self.helper(name, &arguments),
                }
            }
            _ => LaneValue::unknown(),
        }
    }

    /// Runs a helper of the file with these arguments.
    fn helper(&mut self, name: &str, arguments: &CallArguments<'a, '_>) -> LaneValue<'a> {
        let callee = self.module.kernel(name).filter(|callee| !callee.has_error && callee.span != self.kernel.span);
        let Some(callee) = callee.filter(|_| self.calls < MAX_CALLS) else { return LaneValue::unknown() };
        let mut names = Names::default();
        for (at, param) in callee.params.iter().enumerate() {
            let number = || if param.default.is_some() { LaneValue::scalar() } else { LaneValue::unknown() };
            let value = arguments.value(&param.name, at).cloned().unwrap_or_else(number);
            names.values.insert(&param.name, value);
        }
        let kernel = std::mem::replace(&mut self.kernel, callee);
        let (assignment, reads, returned) = (self.assignment.take(), self.reads.take(), self.returned.take());
        self.calls += 1;
        self.body(&callee.body, &mut names);
        self.calls -= 1;
        let value = std::mem::replace(&mut self.returned, returned);
        (self.kernel, self.assignment, self.reads) = (kernel, assignment, reads);
        value.unwrap_or_else(LaneValue::unknown)
    }

    /// `value.name(…)`
    fn method(
        &mut self,
        expr: &'a Expr,
        call: &'a Call,
        value: &'a Expr,
        name: &'a str,
        names: &mut Names<'a>,
    ) -> LaneValue<'a> {
        let receiver = self.eval(value, names);
        let mut values = vec![receiver];
        values.extend(call.args.iter().map(|arg| self.eval(&arg.value, names)));
        if call.has_star() {
            return LaneValue::unknown();
        }
        let arguments = CallArguments { call, values: &values, first: 1 };
        match name {
            "to" | "cast" => {
                let dtype = arguments.expr("dtype", 1);
                cast(values.swap_remove(0), dtype)
            }
            // A wrapper of another module, which returns a wider integer.
            "program_id" | "num_programs" => LaneValue::scalar(),
            _ if REDUCTIONS.contains(&name) || matches!(name, "abs" | "exp" | "log" | "sqrt" | "sigmoid" | "trans") => {
                self.function(expr, name, &arguments, names)
            }
            _ => LaneValue::unknown(),
        }
    }

    fn function(
        &mut self,
        expr: &'a Expr,
        name: &str,
        args: &CallArguments<'a, '_>,
        names: &Names<'a>,
    ) -> LaneValue<'a> {
        let first = args.value("input", 0).or_else(|| args.values.first()).cloned().unwrap_or_else(LaneValue::unknown);
        if let Some(&reduction) = REDUCTIONS.iter().find(|&&known| known == name) {
            return self.reduction(expr, reduction, first, args);
        }
        let two = |operation| match (args.values.first(), args.values.get(1)) {
            (Some(left), Some(right)) => left.binary(operation, right),
            _ => LaneValue::unknown(),
        };
        match name {
            "arange" => arange(args),
            "load" => self.load(expr, args, names),
            "program_id" | "num_programs" | "constexpr" => LaneValue::scalar(),
            "zeros" => shaped(args.expr("shape", 0)).of_kind(NumberKind::Zero).of_number(Some(0.0)),
            "full" => {
                let number = args.value("value", 1).and_then(|value| value.number);
                let kind = if number == Some(0.0) { NumberKind::Zero } else { NumberKind::Plain };
                shaped(args.expr("shape", 0)).of_kind(kind).of_number(number)
            }
            "zeros_like" => match first.rank() {
                Some(rank) => LaneValue::tile(vec![Along::Same; rank]).of_kind(NumberKind::Zero).of_number(Some(0.0)),
                None => LaneValue::unknown(),
            },
            "where" => match args.values {
                [condition, yes, no] => condition.choose(yes, no),
                _ => LaneValue::unknown(),
            },
            "expand_dims" => match (first.rank(), args.expr("axis", 1).and_then(Expr::as_int)) {
                (Some(rank), Some(axis)) => {
                    let at = if axis < 0 { axis + as_int(rank) + 1 } else { axis };
                    usize::try_from(at).map_or_else(|_| LaneValue::unknown(), |at| first.expanded(at))
                }
                _ => LaneValue::unknown(),
            },
            "broadcast_to" => match (first.rank(), shaped(args.expr("shape", 1))) {
                (Some(rank), shape) if rank == 0 || shape.rank() == Some(rank) => {
                    let axes = shape.axes.clone();
                    if rank == 0 { LaneValue { axes, ..first } } else { first }
                }
                _ => LaneValue::unknown(),
            },
            "trans" if args.values.len() == 1 && first.rank() == Some(2) => first.transposed(),
            "fdiv" | "div_rn" | "cdiv" => two(Operation::Quotient),
            "add" => two(Operation::Sum),
            "sub" => two(Operation::Difference),
            "mul" => two(Operation::Product),
            "maximum" | "minimum" => {
                let mut value = two(Operation::Other);
                if let ([left, right], Some(_)) = (args.values, value.rank()) {
                    value.fill = fills::bounded(name == "maximum", left, right);
                }
                value
            }
            "dot" => self.product(expr, args),
            "cast" => cast(first, args.expr("dtype", 1)),
            "fma" => match args.values {
                [a, b, c] => a.binary(Operation::Product, b).binary(Operation::Sum, c),
                _ => LaneValue::unknown(),
            },
            "clamp" => match args.values {
                [x, low, high] => x.binary(Operation::Other, low).binary(Operation::Other, high),
                _ => LaneValue::unknown(),
            },
            _ if HINTS.contains(&name) => first,
            _ => match MAPS.iter().find(|(known, ..)| *known == name) {
                Some((_, zero_stays, nonnegative)) => {
                    let fill = first.fill.clone().and_then(|fill| fill.mapped(name));
                    LaneValue { fill, ..first.mapped(*zero_stays, *nonnegative) }
                }
                None => LaneValue::unknown(),
            },
        }
    }

    fn load(&mut self, expr: &'a Expr, args: &CallArguments<'a, '_>, names: &Names<'a>) -> LaneValue<'a> {
        let Some(pointer) = args.value("pointer", 0) else { return LaneValue::unknown() };
        let given = |expr: &&Expr| !matches!(expr.kind, ExprKind::None);
        let mask_expr = args.expr("mask", 1).filter(given);
        let mask = match mask_expr {
            Some(_) => args.value("mask", 1).cloned().unwrap_or_else(LaneValue::unknown),
            None => LaneValue::scalar(),
        };
        let (Some(pointer_rank), Some(mask_rank)) = (pointer.rank(), mask.rank()) else { return LaneValue::unknown() };
        if pointer_rank == 0 && mask_rank > 0 {
            return LaneValue::unknown();
        }
        let lanes = pointer.binary(Operation::Other, &mask);
        let mut loaded = LaneValue::tile(lanes.axes.unwrap_or_default());
        let rank = pointer_rank.max(mask_rank);
        let changes: Vec<bool> = (0..rank)
            .map(|at| (at + mask_rank).checked_sub(rank))
            .map(|at| at.is_some_and(|at| mask.axes.as_ref().is_some_and(|axes| axes[at] == Along::Varies)))
            .collect();
        if let Some(other) = args.expr("other", 2).filter(given) {
            let literal = matches!(other.kind, ExprKind::Int(_)) || other.as_int().is_some();
            let literal = literal || matches!(other.kind, ExprKind::Float(value) if value.is_finite());
            let number = args.value("other", 2).and_then(|other| other.number);
            if let (Some(number), Some(mask), true) = (number, mask_expr, changes.contains(&true)) {
                loaded.fill = Some(Fill::of(expr, mask, changes, number));
            }
            return loaded.of_kind(if literal { NumberKind::Filled } else { NumberKind::Plain });
        }
        if changes.contains(&true) {
            loaded.undefined.push(Undefined::of(expr, changes));
            let assigned = mask_expr.and_then(Expr::as_name).and_then(|name| names.assigned.get(name));
            if let Some(&span) = assigned {
                self.masks.insert(expr.span, span);
            }
        }
        loaded
    }
}

/// The arguments of a call with their values. For a method, the receiver comes first.
pub(super) struct CallArguments<'a, 'v> {
    call: &'a Call,
    values: &'v [LaneValue<'a>],
    /// The number of entries of `values` before the arguments: 1 for a method.
    first: usize,
}

impl<'a> CallArguments<'a, '_> {
    /// The argument for a parameter, by keyword or by position.
    pub(super) fn expr(&self, name: &str, position: usize) -> Option<&'a Expr> {
        self.call.argument(name, position.checked_sub(self.first))
    }

    pub(super) fn value(&self, name: &str, position: usize) -> Option<&LaneValue<'a>> {
        if position < self.first {
            return self.values.get(position);
        }
        let expr = self.expr(name, position)?;
        let at = self.call.args.iter().position(|arg| std::ptr::eq(&raw const arg.value, expr))?;
        self.values.get(at + self.first)
    }
}

fn arange<'a>(args: &CallArguments<'a, '_>) -> LaneValue<'a> {
    let (Some(start), Some(end)) = (args.expr("start", 0), args.expr("end", 1)) else { return LaneValue::unknown() };
    let (start, end_value) = (start.as_int(), end.as_int());
    let one = matches!((start, end_value), (Some(start), Some(end)) if end - start == 1);
    let value = LaneValue::tile(vec![if one { Along::Same } else { Along::Varies }]);
    value.of_kind(if start == Some(0) { NumberKind::Index(end) } else { NumberKind::Affine })
}

/// A value that is the same in all lanes, with a shape that is a literal.
fn shaped<'a>(shape: Option<&Expr>) -> LaneValue<'a> {
    match shape.map(|shape| &shape.kind) {
        Some(ExprKind::List(sizes) | ExprKind::Tuple(sizes)) => LaneValue::tile(vec![Along::Same; sizes.len()]),
        _ => LaneValue::unknown(),
    }
}

pub(super) fn as_int(n: usize) -> i128 {
    i128::try_from(n).unwrap_or(i128::MAX)
}

/// The number that `float("inf")` or `float("-inf")` evaluates to.
fn infinity(call: &Call) -> Option<f64> {
    match &call.args.first()?.value.kind {
        ExprKind::Str(text) => match text.as_str() {
            "inf" | "+inf" | "Infinity" => Some(f64::INFINITY),
            "-inf" | "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        ExprKind::Float(number) => Some(*number),
        _ => None,
    }
}

/// `value.to(dtype)`
fn cast<'a>(mut value: LaneValue<'a>, dtype: Option<&Expr>) -> LaneValue<'a> {
    let name = dtype.and_then(|dtype| dtype.dotted()?.last().copied()).unwrap_or_default();
    if name == "int1" {
        value.fill = None;
    } else if name.starts_with("int") || name.starts_with("uint") {
        value.fill = value.fill.and_then(Fill::truncated);
    }
    value
}
