//! Runs a kernel's body over the domain of [`lanes`](super::lanes).
//!
//! Statements run in order over an environment of values by name. Both branches of an `if` run and are joined; a loop's
//! body runs twice, the second time over what the first left, which is enough for a domain that only loses knowledge at
//! joins. Every expression is evaluated, wherever it stands, so that reductions inside calls nobody knows are seen.

use std::collections::HashMap;

use super::constants::truth;
use super::lanes::{Along, Kind, Operation, Undefined, Value};
use super::launches::{certainly_launched, global};
use crate::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// Loops nested deeper than this run once, so that hostile code costs no more than it may.
const MAX_DOUBLED_LOOPS: usize = 4;

/// Functions of one tile, lane by lane, that take zero to zero.
const ZERO_STAYS: &[&str] = &["abs", "ceil", "erf", "floor", "sin", "sqrt", "sqrt_rn", "tanh"];
/// Functions of one tile, lane by lane, that do not.
const MAPS: &[&str] = &["cos", "exp", "exp2", "log", "log2", "rsqrt", "sigmoid"];
/// Functions that give their first argument back.
const HINTS: &[&str] = &["cast", "debug_barrier", "max_constancy", "max_contiguous", "multiple_of"];
/// What the domain takes for a reduction.
const REDUCTIONS: &[&str] = &["argmax", "argmin", "max", "min", "reduce", "reduce_or", "sum", "xor_sum"];

/// A reduction that mixes in lanes which a masked load without `other` left undefined.
#[derive(Clone, Debug, PartialEq)]
pub struct UndefinedReduction<'a> {
    /// The load.
    pub load: &'a Expr,
    /// The first reduction that its undefined lanes reach.
    pub reduction: &'a Expr,
    /// The name of that reduction: `sum`, `max`, …
    pub name: &'static str,
    /// Where the load's mask is assigned, when it is a name.
    pub mask: Option<Span>,
    /// Whether all reductions that these lanes reach would find a zero there if the load put one, and only add.
    pub zero_is_neutral: bool,
}

/// The masked loads of `kernel` without `other` whose undefined lanes certainly reach a reduction along an axis in which
/// the mask changes; in source order of the loads.
#[must_use]
pub fn undefined_reductions<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<UndefinedReduction<'a>> {
    let mut run = Run {
        module,
        kernel,
        launched: certainly_launched(module, kernel),
        masks: HashMap::new(),
        found: Vec::new(),
        depth: 0,
    };
    let mut names = Names::default();
    run.body(&kernel.body, &mut names);
    run.found.sort_by_key(|found| found.load.span);
    run.found
}

/// The variables at one place in the kernel.
#[derive(Clone, Default)]
struct Names<'a> {
    values: HashMap<&'a str, Value<'a>>,
    assigned: HashMap<&'a str, Span>,
}

struct Run<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    launched: bool,
    /// Where the mask of a load is assigned, by the load's span.
    masks: HashMap<Span, Span>,
    found: Vec<UndefinedReduction<'a>>,
    depth: usize,
}

/// Whether control goes on behind a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Continues,
    Ends,
}

impl<'a> Run<'a> {
    fn body(&mut self, body: &'a [Stmt], names: &mut Names<'a>) -> Then {
        for stmt in body {
            if self.stmt(stmt, names) == Then::Ends {
                return Then::Ends;
            }
        }
        Then::Continues
    }

    fn stmt(&mut self, stmt: &'a Stmt, names: &mut Names<'a>) -> Then {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                match (targets.as_slice(), &value.kind) {
                    // `a, b = x, y`: all of the right-hand side first.
                    ([Expr { kind: ExprKind::Tuple(left), .. }], ExprKind::Tuple(right))
                        if left.len() == right.len() =>
                    {
                        let values: Vec<_> = right.iter().map(|part| self.eval(part, names)).collect();
                        left.iter().zip(values).for_each(|(target, value)| assign(target, value, stmt.span, names));
                    }
                    _ => {
                        let value = self.eval(value, names);
                        targets.iter().for_each(|target| assign(target, value.clone(), stmt.span, names));
                    }
                }
            }
            StmtKind::AugAssign { target, op, value } => {
                let (old, value) = (self.eval(target, names), self.eval(value, names));
                assign(target, old.binary(operation(op), &value), stmt.span, names);
            }
            StmtKind::If { branches, orelse } => return self.branches(branches, orelse, names),
            StmtKind::For { target, iter, body, orelse } => {
                self.eval(iter, names);
                let counter = if self.is_range(iter) { Value::scalar() } else { Value::unknown() };
                self.repeat(Some((target, counter)), body, names);
                self.body(orelse, names);
            }
            StmtKind::While { test, body, orelse } => {
                self.eval(test, names);
                self.repeat(None, body, names);
                self.body(orelse, names);
            }
            StmtKind::Return(value) => {
                value.iter().for_each(|value| drop(self.eval(value, names)));
                return Then::Ends;
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Raise => return Then::Ends,
            StmtKind::Block(_) | StmtKind::Other(_) | StmtKind::Definition(_) => {
                // Nobody knows what runs of it: what it may bind is unknown from here on.
                names.values.clear();
                let locals = self.kernel.locals.iter();
                names.values.extend(locals.map(|local| (local.as_str(), Value::unknown())));
            }
            _ => stmt.exprs().into_iter().for_each(|expr| drop(self.eval(expr, names))),
        }
        Then::Continues
    }

    fn branches(&mut self, branches: &'a [(Expr, Vec<Stmt>)], orelse: &'a [Stmt], names: &mut Names<'a>) -> Then {
        let Some(((test, body), rest)) = branches.split_first() else { return self.body(orelse, names) };
        self.eval(test, names);
        match truth(test) {
            Some(true) => return self.body(body, names),
            Some(false) => return self.branches(rest, orelse, names),
            None => {}
        }
        let mut otherwise = names.clone();
        let taken = self.body(body, names);
        let not_taken = self.branches(rest, orelse, &mut otherwise);
        match (taken, not_taken) {
            (Then::Ends, Then::Ends) => return Then::Ends,
            (Then::Ends, Then::Continues) => *names = otherwise,
            (Then::Continues, Then::Ends) => {}
            (Then::Continues, Then::Continues) => join(names, otherwise, Value::either),
        }
        Then::Continues
    }

    fn repeat(&mut self, counter: Option<(&'a Expr, Value<'a>)>, body: &'a [Stmt], names: &mut Names<'a>) {
        self.depth += 1;
        for _ in 0..if self.depth > MAX_DOUBLED_LOOPS { 1 } else { 2 } {
            let mut after = names.clone();
            if let Some((target, value)) = &counter {
                assign(target, value.clone(), target.span, &mut after);
            }
            if self.body(body, &mut after) == Then::Continues {
                join(names, after, Value::looped);
            }
        }
        self.depth -= 1;
    }

    fn is_range(&self, iter: &Expr) -> bool {
        let Some(call) = iter.as_call() else { return false };
        let builtin = call.func.as_name() == Some("range") && !self.kernel.locals.contains("range");
        builtin || matches!(self.member(&call.func).as_deref(), Some("range" | "static_range"))
    }

    /// The name of a function of `triton.language`, without `math.` and the modules of libdevice.
    fn member(&self, func: &Expr) -> Option<String> {
        let member = self.module.language_member(self.kernel, func)?;
        let name = member.strip_prefix("math.").map(str::to_owned).or_else(|| {
            let rest = member.strip_prefix("extra.")?;
            rest.rsplit_once("libdevice.").map(|(_, name)| name.to_owned())
        });
        Some(name.unwrap_or(member))
    }

    fn eval(&mut self, expr: &'a Expr, names: &mut Names<'a>) -> Value<'a> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, names),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {
                let zero = matches!(expr.kind, ExprKind::Int(0)) || matches!(expr.kind, ExprKind::Float(0.0));
                Value::scalar().of_kind(if zero { Kind::Zero } else { Kind::Plain })
            }
            ExprKind::Binary { op, left, right } | ExprKind::BoolOp { op, left, right } => {
                let (left, right) = (self.eval(left, names), self.eval(right, names));
                left.binary(operation(op), &right)
            }
            ExprKind::Unary { op, operand } => {
                let value = self.eval(operand, names);
                let axes = value.axes.clone();
                let mapped = value.mapped(op == "-" || op == "+");
                Value { axes, ..mapped }
            }
            ExprKind::Compare { left, rest } => self.compare(left, rest, names),
            ExprKind::IfExp { test, body, orelse } => {
                self.eval(test, names);
                let (body, orelse) = (self.eval(body, names), self.eval(orelse, names));
                match truth(test) {
                    Some(true) => body,
                    Some(false) => orelse,
                    None => body.either(&orelse),
                }
            }
            ExprKind::Subscript { value, index } => self.subscript(value, index, names),
            ExprKind::Attribute { value, name, .. } => {
                let value = self.eval(value, names);
                if name == "T" && value.rank() == Some(2) { value.transposed() } else { Value::unknown() }
            }
            ExprKind::Call(call) => self.call(expr, call, names),
            ExprKind::Named { name, value } => {
                let value = self.eval(value, names);
                names.values.insert(name, value.clone());
                names.assigned.insert(name, expr.span);
                value
            }
            ExprKind::Lambda { .. } => Value::unknown(),
            _ => {
                expr.children().into_iter().for_each(|child| drop(self.eval(child, names)));
                Value::unknown()
            }
        }
    }

    fn name(&self, name: &str, names: &Names<'a>) -> Value<'a> {
        if let Some(value) = names.values.get(name) {
            return value.clone();
        }
        if let Some(param) = self.kernel.param(name) {
            let number = (self.launched || param.constexpr) && !param.variadic;
            return if number { Value::scalar() } else { Value::unknown() };
        }
        let is_number = |value: &Expr| match &value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Call(call) => {
                self.module.imports.resolve(&call.func).is_some_and(|found| found.path.ends_with(".constexpr"))
            }
            _ => false,
        };
        match global(self.module, name) {
            Some(value) if !self.kernel.locals.contains(name) && is_number(value) => Value::scalar(),
            _ => Value::unknown(),
        }
    }

    fn compare(&mut self, left: &'a Expr, rest: &'a [(String, Expr)], names: &mut Names<'a>) -> Value<'a> {
        let first = self.eval(left, names);
        let [(op, right_expr)] = rest else {
            rest.iter().for_each(|(_, right)| drop(self.eval(right, names)));
            return Value::unknown();
        };
        let right = self.eval(right_expr, names);
        if !matches!(op.as_str(), "<" | "<=" | ">" | ">=" | "==" | "!=") {
            return Value::unknown();
        }
        let mut value = first.binary(Operation::Comparison, &right);
        let always = match (&first.kind, op.as_str()) {
            (Kind::Index(end), "<" | "<=" | "!=") => same_text(end, right_expr),
            (Kind::Index(_), ">=") => right_expr.as_int() == Some(0),
            _ => false,
        };
        if let (true, Some(axes)) = (always, &mut value.axes) {
            axes.fill(Along::Same);
        }
        value
    }

    fn subscript(&mut self, value: &'a Expr, index: &'a [Expr], names: &mut Names<'a>) -> Value<'a> {
        let mut value = self.eval(value, names);
        index.iter().for_each(|part| drop(self.eval(part, names)));
        let parts = match index {
            [Expr { kind: ExprKind::Tuple(parts), .. }] => parts.as_slice(),
            parts => parts,
        };
        let mut kept = 0;
        for (at, part) in parts.iter().enumerate() {
            match &part.kind {
                ExprKind::None => value = value.expanded(at),
                ExprKind::Slice(bounds) if bounds.is_empty() => kept += 1,
                _ => return Value::unknown(),
            }
        }
        // `x[:, None]` on a tile of one axis; more axes than `:` would be kept behind.
        let added = parts.len() - kept;
        if value.rank().is_some_and(|rank| rank == kept + added) { value } else { Value::unknown() }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call, names: &mut Names<'a>) -> Value<'a> {
        let member = self.member(&call.func);
        if member.is_none()
            && let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && self.module.resolve_in(self.kernel, &call.func).is_none()
        {
            return self.method(expr, call, value, name, names);
        }
        let values: Vec<_> = call.args.iter().map(|arg| self.eval(&arg.value, names)).collect();
        if call.has_star() {
            return Value::unknown();
        }
        let arguments = Arguments { call, values: &values, first: 0 };
        match (member, call.func.as_name()) {
            (Some(member), _) => self.function(expr, &member, &arguments, names),
            (None, Some(name)) if !self.kernel.locals.contains(name) => {
                match (name, values.iter().all(|value| value.rank() == Some(0))) {
                    ("float" | "int" | "min" | "max", true) => Value::scalar(),
                    ("min" | "max", false) if values.len() == 2 => values[0].binary(Operation::Other, &values[1]),
                    _ => Value::unknown(),
                }
            }
            _ => Value::unknown(),
        }
    }

    /// `value.name(…)`
    fn method(
        &mut self,
        expr: &'a Expr,
        call: &'a Call,
        value: &'a Expr,
        name: &'a str,
        names: &mut Names<'a>,
    ) -> Value<'a> {
        let receiver = self.eval(value, names);
        let mut values = vec![receiver];
        values.extend(call.args.iter().map(|arg| self.eval(&arg.value, names)));
        if call.has_star() {
            return Value::unknown();
        }
        let arguments = Arguments { call, values: &values, first: 1 };
        match name {
            "to" => values.swap_remove(0),
            _ if REDUCTIONS.contains(&name) || matches!(name, "abs" | "exp" | "log" | "sqrt" | "sigmoid" | "trans") => {
                self.function(expr, name, &arguments, names)
            }
            _ => Value::unknown(),
        }
    }

    fn function(&mut self, expr: &'a Expr, name: &str, args: &Arguments<'a, '_>, names: &Names<'a>) -> Value<'a> {
        let first = args.value("input", 0).or_else(|| args.values.first()).cloned().unwrap_or_else(Value::unknown);
        if let Some(&reduction) = REDUCTIONS.iter().find(|&&known| known == name) {
            return self.reduction(expr, reduction, first, args);
        }
        let two = |operation| match (args.values.first(), args.values.get(1)) {
            (Some(left), Some(right)) => left.binary(operation, right),
            _ => Value::unknown(),
        };
        match name {
            "arange" => arange(args),
            "load" => self.load(expr, args, names),
            "program_id" | "num_programs" | "constexpr" => Value::scalar(),
            "zeros" => shaped(args.expr("shape", 0)).of_kind(Kind::Zero),
            "full" => {
                let zero = args.value("value", 1).is_some_and(|value| value.kind == Kind::Zero);
                shaped(args.expr("shape", 0)).of_kind(if zero { Kind::Zero } else { Kind::Plain })
            }
            "zeros_like" => match first.rank() {
                Some(rank) => Value::tile(vec![Along::Same; rank]).of_kind(Kind::Zero),
                None => Value::unknown(),
            },
            "where" => match args.values {
                [condition, yes, no] => condition.choose(yes, no),
                _ => Value::unknown(),
            },
            "expand_dims" => match (first.rank(), args.expr("axis", 1).and_then(Expr::as_int)) {
                (Some(rank), Some(axis)) => {
                    let at = if axis < 0 { axis + as_int(rank) + 1 } else { axis };
                    usize::try_from(at).map_or_else(|_| Value::unknown(), |at| first.expanded(at))
                }
                _ => Value::unknown(),
            },
            "broadcast_to" => match (first.rank(), shaped(args.expr("shape", 1))) {
                (Some(rank), shape) if rank == 0 || shape.rank() == Some(rank) => {
                    let axes = shape.axes.clone();
                    if rank == 0 { Value { axes, ..first } } else { first }
                }
                _ => Value::unknown(),
            },
            "trans" if args.values.len() == 1 && first.rank() == Some(2) => first.transposed(),
            "fdiv" | "div_rn" => two(Operation::Quotient),
            "add" | "sub" => two(Operation::Sum),
            "mul" => two(Operation::Product),
            "maximum" | "minimum" | "cdiv" => two(Operation::Other),
            "fma" => match args.values {
                [a, b, c] => a.binary(Operation::Product, b).binary(Operation::Sum, c),
                _ => Value::unknown(),
            },
            "clamp" => match args.values {
                [x, low, high] => x.binary(Operation::Other, low).binary(Operation::Other, high),
                _ => Value::unknown(),
            },
            _ if HINTS.contains(&name) => first,
            _ if ZERO_STAYS.contains(&name) => first.mapped(true),
            _ if MAPS.contains(&name) => first.mapped(false),
            _ => Value::unknown(),
        }
    }

    fn load(&mut self, expr: &'a Expr, args: &Arguments<'a, '_>, names: &Names<'a>) -> Value<'a> {
        let Some(pointer) = args.value("pointer", 0) else { return Value::unknown() };
        let given = |expr: &&Expr| !matches!(expr.kind, ExprKind::None);
        let mask_expr = args.expr("mask", 1).filter(given);
        let mask = match mask_expr {
            Some(_) => args.value("mask", 1).cloned().unwrap_or_else(Value::unknown),
            None => Value::scalar(),
        };
        let (Some(pointer_rank), Some(mask_rank)) = (pointer.rank(), mask.rank()) else { return Value::unknown() };
        if pointer_rank == 0 && mask_rank > 0 {
            return Value::unknown();
        }
        let lanes = pointer.binary(Operation::Other, &mask);
        let mut loaded = Value::tile(lanes.axes.unwrap_or_default());
        if let Some(other) = args.expr("other", 2).filter(given) {
            let literal = matches!(other.kind, ExprKind::Int(_)) || other.as_int().is_some();
            let literal = literal || matches!(other.kind, ExprKind::Float(value) if value.is_finite());
            return loaded.of_kind(if literal { Kind::Filled } else { Kind::Plain });
        }
        let rank = pointer_rank.max(mask_rank);
        let changes: Vec<bool> = (0..rank)
            .map(|at| (at + mask_rank).checked_sub(rank))
            .map(|at| at.is_some_and(|at| mask.axes.as_ref().is_some_and(|axes| axes[at] == Along::Varies)))
            .collect();
        if changes.contains(&true) {
            loaded.undefined.push(Undefined { load: expr, axes: changes, zero_stays: true });
            let assigned = mask_expr.and_then(Expr::as_name).and_then(|name| names.assigned.get(name));
            if let Some(&span) = assigned {
                self.masks.insert(expr.span, span);
            }
        }
        loaded
    }

    fn reduction(
        &mut self,
        expr: &'a Expr,
        name: &'static str,
        value: Value<'a>,
        args: &Arguments<'a, '_>,
    ) -> Value<'a> {
        let Some(rank) = value.rank() else { return Value::unknown() };
        let axis_expr = args.expr("axis", 1).filter(|axis| !matches!(axis.kind, ExprKind::None));
        let axis = match axis_expr.map(|axis| (axis, axis.as_int())) {
            None => None,
            Some(_) if rank == 1 => None,
            Some((_, Some(axis))) => {
                let at = if axis < 0 { axis + as_int(rank) } else { axis };
                match usize::try_from(at) {
                    Ok(at) if at < rank => Some(at),
                    _ => return Value::unknown(),
                }
            }
            Some((_, None)) => return Value::unknown(),
        };
        let keep_position = match name {
            "max" | "min" => 4,
            "argmax" | "argmin" | "reduce" => 3,
            _ => 2,
        };
        let flag = |expr: Option<&Expr>| match expr {
            None => Some(false),
            Some(expr) => truth(expr),
        };
        let keep_dims = flag(args.expr("keep_dims", keep_position));
        let (left, mixed) = value.reduced(axis, keep_dims == Some(true), name == "sum");
        for lanes in mixed {
            self.report(&lanes, expr, name);
        }
        let pair = matches!(name, "max" | "min") && flag(args.expr("return_indices", 2)) != Some(false);
        if keep_dims.is_none() || pair { Value::unknown() } else { left }
    }

    fn report(&mut self, lanes: &Undefined<'a>, reduction: &'a Expr, name: &'static str) {
        let neutral = lanes.zero_stays && name == "sum";
        match self.found.iter_mut().find(|found| found.load.span == lanes.load.span) {
            Some(found) => found.zero_is_neutral &= neutral,
            None => self.found.push(UndefinedReduction {
                load: lanes.load,
                reduction,
                name,
                mask: self.masks.get(&lanes.load.span).copied(),
                zero_is_neutral: neutral,
            }),
        }
    }
}

/// The arguments of a call with their values; of a method the receiver comes first.
struct Arguments<'a, 'v> {
    call: &'a Call,
    values: &'v [Value<'a>],
    /// How many of `values` stand before the arguments.
    first: usize,
}

impl<'a> Arguments<'a, '_> {
    /// The argument for a parameter, by keyword or by position.
    fn expr(&self, name: &str, position: usize) -> Option<&'a Expr> {
        self.call.argument(name, position.checked_sub(self.first))
    }

    fn value(&self, name: &str, position: usize) -> Option<&Value<'a>> {
        if position < self.first {
            return self.values.get(position);
        }
        let expr = self.expr(name, position)?;
        let at = self.call.args.iter().position(|arg| std::ptr::eq(&raw const arg.value, expr))?;
        self.values.get(at + self.first)
    }
}

fn arange<'a>(args: &Arguments<'a, '_>) -> Value<'a> {
    let (Some(start), Some(end)) = (args.expr("start", 0), args.expr("end", 1)) else { return Value::unknown() };
    let (start, end_value) = (start.as_int(), end.as_int());
    let one = matches!((start, end_value), (Some(start), Some(end)) if end - start == 1);
    let value = Value::tile(vec![if one { Along::Same } else { Along::Varies }]);
    value.of_kind(if start == Some(0) { Kind::Index(end) } else { Kind::Affine })
}

/// A value that is the same everywhere, of the shape written out.
fn shaped<'a>(shape: Option<&Expr>) -> Value<'a> {
    match shape.map(|shape| &shape.kind) {
        Some(ExprKind::List(sizes) | ExprKind::Tuple(sizes)) => Value::tile(vec![Along::Same; sizes.len()]),
        _ => Value::unknown(),
    }
}

fn assign<'a>(target: &'a Expr, value: Value<'a>, span: Span, names: &mut Names<'a>) {
    match &target.kind {
        ExprKind::Name(name) => {
            names.values.insert(name, value);
            names.assigned.insert(name, span);
        }
        ExprKind::Tuple(parts) | ExprKind::List(parts) => {
            parts.iter().for_each(|part| assign(part, Value::unknown(), span, names));
        }
        ExprKind::Starred(inner) => assign(inner, Value::unknown(), span, names),
        _ => {}
    }
}

/// Joins the names of two paths. A name that only one of them binds can only be used behind that one.
fn join<'a>(names: &mut Names<'a>, other: Names<'a>, both: fn(&Value<'a>, &Value<'a>) -> Value<'a>) {
    for (name, value) in other.values {
        match names.values.get_mut(name) {
            Some(known) if *known == value => {}
            Some(known) => *known = both(known, &value),
            None => {
                names.values.insert(name, value);
            }
        }
    }
    names.assigned.extend(other.assigned);
}

fn operation(op: &str) -> Operation {
    match op {
        "+" | "-" => Operation::Sum,
        "*" => Operation::Product,
        "/" => Operation::Quotient,
        "&" | "and" => Operation::And,
        "|" | "or" => Operation::Or,
        _ => Operation::Other,
    }
}

/// Whether two expressions are one name or one number.
fn same_text(left: &Expr, right: &Expr) -> bool {
    match (&left.kind, &right.kind) {
        (ExprKind::Name(left), ExprKind::Name(right)) => left == right,
        (ExprKind::Int(left), ExprKind::Int(right)) => left == right,
        _ => false,
    }
}

fn as_int(n: usize) -> i128 {
    i128::try_from(n).unwrap_or(i128::MAX)
}
