//! Abstract interpretation of a kernel's body over the domain of [`lanes`](super::lanes).
//!
//! Statements run in order over an environment of values by name. Both branches of an `if` run and are joined. The body
//! of a loop runs twice, the second time over the result of the first, which is enough for a domain that only loses
//! information at joins. Every expression is evaluated wherever it occurs, so that reductions inside unknown calls are
//! seen.

mod calls;
mod findings;
mod reductions;

pub use findings::{PaddedReduction, Reductions, UndefinedReduction};

use rustc_hash::FxHashMap as HashMap;

use super::constants::constant_truth;
use super::fills;
use super::lanes::{Along, LaneValue, NumberKind, Operation};
use super::launches::{certainly_launched, global, passed_alike, same};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// Loops nested deeper than this run once, to bound the cost of hostile code.
const MAX_DOUBLED_LOOPS: usize = 4;
/// The largest number of values that are copied for the paths of one kernel, to bound the cost of many names in many
/// loops.
const MAX_COPIES: usize = 500_000;

/// The reductions of `kernel` that mix in undefined lanes or padding that is not neutral.
#[must_use]
pub fn lanes_that_count<'a>(module: &'a Module, kernel: &'a Kernel) -> Reductions<'a> {
    let mut run = Run {
        module,
        kernel,
        launched: certainly_launched(module, kernel),
        masks: HashMap::default(),
        found: Vec::new(),
        padded: Vec::new(),
        assignment: None,
        reads: None,
        copies: 0,
        depth: 0,
        calls: 0,
        returned: None,
    };
    let mut names = Names::default();
    run.body(&kernel.body, &mut names);
    if run.copies > MAX_COPIES {
        return Reductions::default();
    }
    run.found.sort_by_key(|found| found.load.span);
    run.padded.sort_by_key(|found| found.reduction.span);
    Reductions { undefined: run.found, padded: run.padded }
}

/// The masked loads of `kernel` without `other` whose undefined lanes certainly reach a reduction along an axis in
/// which the mask changes, in source order of the loads.
#[must_use]
pub fn undefined_reductions<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<UndefinedReduction<'a>> {
    lanes_that_count(module, kernel).undefined
}

/// The environment at one point of the kernel: values and assignments by name.
#[derive(Clone, Default)]
struct Names<'a> {
    values: HashMap<&'a str, LaneValue<'a>>,
    assigned: HashMap<&'a str, Span>,
}

struct Run<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    launched: bool,
    /// Span of the assignment of a load's mask, by the load's span.
    masks: HashMap<Span, Span>,
    found: Vec<UndefinedReduction<'a>>,
    padded: Vec<PaddedReduction<'a>>,
    /// The statement that is running and the name that it assigns, when that is its only effect.
    assignment: Option<(&'a Stmt, &'a str)>,
    /// The places where names are read; computed on first use.
    reads: Option<reductions::Reads<'a>>,
    /// The number of values copied so far.
    copies: usize,
    depth: usize,
    /// The number of helpers around the current statement.
    calls: usize,
    /// What the helper that is running returns, as far as it was met.
    returned: Option<LaneValue<'a>>,
}

/// Whether control continues after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Continues,
    Ends,
}

impl<'a> Run<'a> {
    fn body(&mut self, body: &'a [Stmt], names: &mut Names<'a>) -> Then {
        for stmt in body {
            if self.stmt(stmt, names) == Then::Ends || self.copies > MAX_COPIES {
                return Then::Ends;
            }
        }
        Then::Continues
    }

    fn stmt(&mut self, stmt: &'a Stmt, names: &mut Names<'a>) -> Then {
        self.assignment = match &stmt.kind {
            StmtKind::Assign { targets, .. } if targets.len() == 1 => targets[0].as_name().map(|name| (stmt, name)),
            StmtKind::AugAssign { target, .. } => target.as_name().map(|name| (stmt, name)),
            _ => None,
        };
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
                let counter = if self.is_range(iter) { LaneValue::scalar() } else { LaneValue::unknown() };
                self.repeat(Some((target, counter)), body, names);
                self.body(orelse, names);
            }
            StmtKind::While { test, body, orelse } => {
                self.eval(test, names);
                self.repeat(None, body, names);
                self.body(orelse, names);
            }
            StmtKind::Return(value) => {
                let value = value.as_ref().map_or_else(LaneValue::unknown, |value| self.eval(value, names));
                self.returned = Some(match self.returned.take() {
                    Some(before) => before.either(&value),
                    None => value,
                });
                return Then::Ends;
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Raise => return Then::Ends,
            StmtKind::Block(_) | StmtKind::Other(_) | StmtKind::Definition { .. } => {
                // It is not known which of its bodies run, so everything that it may bind is unknown from here on.
                names.values.clear();
                let locals = self.kernel.locals.iter();
                names.values.extend(locals.map(|local| (local.as_str(), LaneValue::unknown())));
            }
            _ => stmt.exprs().into_iter().for_each(|expr| drop(self.eval(expr, names))),
        }
        Then::Continues
    }

    /// Whether the environment may be copied for one more path. When it may not, the run ends without findings.
    fn may_copy(&mut self, names: &Names<'a>) -> bool {
        self.copies += names.values.len();
        self.copies <= MAX_COPIES
    }

    fn branches(&mut self, branches: &'a [(Expr, Vec<Stmt>)], orelse: &'a [Stmt], names: &mut Names<'a>) -> Then {
        if !self.may_copy(names) {
            return Then::Ends;
        }
        let mut outcome: Option<Names<'a>> = None;
        let mut add = |then: Then, after: Names<'a>| match (&mut outcome, then) {
            (_, Then::Ends) => {}
            (Some(known), Then::Continues) => join(known, after, LaneValue::either),
            (None, Then::Continues) => outcome = Some(after),
        };
        let mut otherwise = std::mem::take(names);
        let mut certain = None;
        for (test, body) in branches {
            self.eval(test, &mut otherwise);
            match constant_truth(test) {
                Some(false) => {}
                Some(true) => {
                    certain = Some(body);
                    break;
                }
                None => {
                    let mut taken = otherwise.clone();
                    add(self.body(body, &mut taken), taken);
                }
            }
        }
        let last = certain.map_or(orelse, Vec::as_slice);
        add(self.body(last, &mut otherwise), otherwise);
        match outcome {
            Some(after) => {
                *names = after;
                Then::Continues
            }
            None => Then::Ends,
        }
    }

    fn repeat(&mut self, counter: Option<(&'a Expr, LaneValue<'a>)>, body: &'a [Stmt], names: &mut Names<'a>) {
        if !self.may_copy(names) {
            return;
        }
        self.depth += 1;
        for _ in 0..if self.depth > MAX_DOUBLED_LOOPS { 1 } else { 2 } {
            let mut after = names.clone();
            if let Some((target, value)) = &counter {
                assign(target, value.clone(), target.span, &mut after);
            }
            if self.body(body, &mut after) == Then::Continues {
                join(names, after, LaneValue::looped);
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

    fn eval(&mut self, expr: &'a Expr, names: &mut Names<'a>) -> LaneValue<'a> {
        let mut value = self.eval_kind(expr, names);
        value.fill.iter_mut().for_each(|fill| fill.note(expr.span));
        value
    }

    fn eval_kind(&mut self, expr: &'a Expr, names: &mut Names<'a>) -> LaneValue<'a> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, names),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {
                let number = literal(expr);
                let kind = if number == Some(0.0) { NumberKind::Zero } else { NumberKind::Plain };
                LaneValue::scalar().of_kind(kind).of_number(number)
            }
            ExprKind::Binary { op, left, right } | ExprKind::BoolOp { op, left, right } => {
                let is_square = left.as_name().is_some() && left.as_name() == right.as_name();
                let (left, right) = (self.eval(left, names), self.eval(right, names));
                let value = left.binary(operation(op), &right);
                match value.rank() {
                    Some(rank) if is_square => {
                        let fill = fills::binary(operation(op), &left, &right, rank, true);
                        LaneValue { fill, ..value }
                    }
                    _ => value,
                }
            }
            ExprKind::Unary { op, operand } => {
                let value = self.eval(operand, names);
                let axes = value.axes.clone();
                let fill = value.fill.clone().and_then(|fill| if op == "+" { Some(fill) } else { fill.mapped(op) });
                let number = value.number.filter(|_| op == "-").map(|number| -number);
                let mapped = value.mapped(op == "-" || op == "+", false);
                LaneValue { axes, fill, number, ..mapped }
            }
            ExprKind::Compare { left, rest } => self.compare(left, rest, names),
            ExprKind::IfExp { test, body, orelse } => {
                self.eval(test, names);
                let (body, orelse) = (self.eval(body, names), self.eval(orelse, names));
                match constant_truth(test) {
                    Some(true) => body,
                    Some(false) => orelse,
                    None => body.either(&orelse),
                }
            }
            ExprKind::Subscript { value, index } => self.subscript(value, index, names),
            ExprKind::Attribute { value, name, .. } => {
                let value = self.eval(value, names);
                if name == "T" && value.rank() == Some(2) { value.transposed() } else { LaneValue::unknown() }
            }
            ExprKind::Call(call) => self.call(expr, call, names),
            ExprKind::Named { name, value } => {
                let value = self.eval(value, names);
                names.values.insert(name, value.clone());
                names.assigned.insert(name, expr.span);
                value
            }
            ExprKind::Lambda { .. } | ExprKind::Comprehension { .. } => LaneValue::unknown(),
            _ => {
                expr.children().into_iter().for_each(|child| drop(self.eval(child, names)));
                LaneValue::unknown()
            }
        }
    }

    fn name(&self, name: &str, names: &Names<'a>) -> LaneValue<'a> {
        if let Some(value) = names.values.get(name) {
            return value.clone();
        }
        if let Some(param) = self.kernel.param(name) {
            let number = (self.launched || param.constexpr) && !param.variadic;
            return if number { LaneValue::scalar() } else { LaneValue::unknown() };
        }
        let is_number = |value: &Expr| match &value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Call(call) => {
                self.module.imports.resolve(&call.func).is_some_and(|found| found.path.ends_with(".constexpr"))
            }
            _ => false,
        };
        match global(self.module, name) {
            Some(value) if !self.kernel.locals.contains(name) && is_number(value) => LaneValue::scalar(),
            _ => LaneValue::unknown(),
        }
    }

    fn compare(&mut self, left: &'a Expr, rest: &'a [(String, Expr)], names: &mut Names<'a>) -> LaneValue<'a> {
        let first = self.eval(left, names);
        let [(op, right_expr)] = rest else {
            rest.iter().for_each(|(_, right)| drop(self.eval(right, names)));
            return LaneValue::unknown();
        };
        let right = self.eval(right_expr, names);
        if !matches!(op.as_str(), "<" | "<=" | ">" | ">=" | "==" | "!=") {
            return LaneValue::unknown();
        }
        let mut value = first.binary(Operation::Comparison, &right);
        value.fill = value.rank().and_then(|rank| fills::compared(op, &first, &right, rank));
        let always = match (&first.kind, op.as_str()) {
            (NumberKind::Index(end), "<" | "<=" | "!=") => {
                same(end, right_expr)
                    || matches!((end.as_name(), right_expr.as_name()), (Some(end), Some(bound))
                        if passed_alike(self.module, self.kernel, end, bound))
            }
            (NumberKind::Index(_), ">=") => right_expr.as_int() == Some(0),
            _ => false,
        };
        if let (true, Some(axes)) = (always, &mut value.axes) {
            axes.fill(Along::Same);
        }
        value
    }

    fn subscript(&mut self, value: &'a Expr, index: &'a [Expr], names: &mut Names<'a>) -> LaneValue<'a> {
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
                _ => return LaneValue::unknown(),
            }
        }
        // `x[:, None]` on a tile of one axis; more axes than `:` would be kept behind.
        let added = parts.len() - kept;
        if value.rank().is_some_and(|rank| rank == kept + added) { value } else { LaneValue::unknown() }
    }
}

fn assign<'a>(target: &'a Expr, value: LaneValue<'a>, span: Span, names: &mut Names<'a>) {
    match &target.kind {
        ExprKind::Name(name) => {
            names.values.insert(name, value);
            names.assigned.insert(name, span);
        }
        ExprKind::Tuple(parts) | ExprKind::List(parts) => {
            parts.iter().for_each(|part| assign(part, LaneValue::unknown(), span, names));
        }
        ExprKind::Starred(inner) => assign(inner, LaneValue::unknown(), span, names),
        _ => {}
    }
}

/// Joins the environments of two paths. A name that only one of them binds can only be used after that path.
fn join<'a>(names: &mut Names<'a>, other: Names<'a>, both: fn(&LaneValue<'a>, &LaneValue<'a>) -> LaneValue<'a>) {
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

/// The number that a literal denotes.
fn literal(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        #[expect(clippy::cast_precision_loss, reason = "what is filled in has few digits")]
        ExprKind::Int(number) => Some(*number as f64),
        ExprKind::Float(number) => Some(*number),
        _ => None,
    }
}

fn operation(op: &str) -> Operation {
    match op {
        "+" => Operation::Sum,
        "-" => Operation::Difference,
        "*" => Operation::Product,
        "/" => Operation::Quotient,
        "&" | "and" => Operation::And,
        "|" | "or" => Operation::Or,
        _ => Operation::Other,
    }
}
