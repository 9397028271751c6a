//! The reduction loop of a kernel.

use std::collections::BTreeMap;

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{LaneType, infer};
use model::api::TritonTarget;
use model::kernel::Kernel;
use model::kernel::ast::{Arg, Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};

use crate::names::{Names, are_given, bound_by, bound_in, in_expr, read_in, uses};
use crate::subject::Subject;

/// Prefixes of members of Triton's language that have effects.
const EFFECTS: &[&str] = &["store", "atomic", "debug", "device_", "inline_asm", "async", "make_tensor_descriptor"];
/// Functions of Python that kernels may use.
const BUILTINS: &[&str] = &["float", "int", "max", "min", "range", "len", "tuple"];
/// The greatest depth of nested helpers that are followed.
const DEPTH: usize = 3;

/// The operation that combines partial results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Sum,
    Max,
    Min,
}

/// A name that advances by the same amount in each iteration.
pub(super) struct Move<'a> {
    pub(super) name: &'a str,
    pub(super) op: &'a str,
    pub(super) by: &'a Expr,
    pub(super) is_pointer: bool,
}

/// A kernel with one such loop.
pub(super) struct Gather<'a> {
    pub(super) before: &'a [Stmt],
    pub(super) stmt: &'a Stmt,
    pub(super) body: &'a [Stmt],
    /// The statements after the loop, and after those that belong to it.
    pub(super) after: &'a [Stmt],
    /// `range(0, end, step)`
    pub(super) range: &'a Call,
    pub(super) end: &'a Expr,
    pub(super) step: Option<&'a Expr>,
    pub(super) moves: Vec<Move<'a>>,
    /// The name of the accumulated value after the loop.
    pub(super) result: &'a str,
    /// All names of that value.
    pub(super) names: Names<'a>,
    pub(super) how: How,
    /// The name of its type in torch and in Triton.
    pub(super) dtype: &'static str,
}

impl<'a> Gather<'a> {
    pub(super) fn of(subject: &Subject<'a>) -> Option<Self> {
        let kernel = subject.kernel;
        let has_loop = |stmt: &Stmt| {
            let mut found = false;
            walk_statements(std::slice::from_ref(stmt), &mut |stmt| {
                found |= matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. });
            });
            found
        };
        let mut loops = (0..kernel.body.len()).filter(|&at| has_loop(&kernel.body[at]));
        let at = loops.next().filter(|_| loops.next().is_none())?;
        let (before, stmt) = (&kernel.body[..at], &kernel.body[at]);
        let StmtKind::For { target, iter, body, orelse } = &stmt.kind else { return None };
        let variable = target.as_name().filter(|_| orelse.is_empty())?;
        let (range, end, step) = range(subject, iter)?;
        is_pure(subject, kernel, before, DEPTH)?;
        is_pure(subject, kernel, body, DEPTH)?;
        let bound = bound_in(body).filter(|bound| !bound.contains(variable))?;
        let is_steady = |expr: &Expr| in_expr(expr).iter().all(|name| !bound.contains(name) && *name != variable);
        if !is_steady(end) || !step.is_none_or(is_steady) {
            return None;
        }

        let mut gathered = gathered(subject, body);
        gathered.retain(|name, _| uses(body, name) == mentions(body, name));
        let (moves, others): (Vec<Move<'_>>, Names<'_>) = moves(subject, body, &bound, &is_steady, &gathered);
        // A name that only advances is not an accumulator.
        gathered.retain(|name, _| moves.iter().all(|one| one.name != *name));
        let (name, how) = gathered.pop_first().filter(|_| gathered.is_empty())?;
        are_given(body, &others, &mut Names::from([variable]))?;

        let mut gone = others;
        gone.extend(moves.iter().map(|one| one.name));
        gone.insert(variable);
        let rest = &kernel.body[at + 1..];
        are_given(rest, &gone, &mut Names::new())?;
        let dtype = begins(subject, before, name, how)?;
        let (result, after) =
            match rest.split_first().and_then(|(first, rest)| Some((folded(subject, first, name, how)?, rest))) {
                Some((result, after)) if after.iter().all(|stmt| result == name || !read_in(stmt).contains(name)) => {
                    let is_sum = matches!(rest[0].kind, StmtKind::AugAssign { .. });
                    if is_sum && begins(subject, before, result, how) != Some(dtype) {
                        return None;
                    }
                    (result, after)
                }
                _ => (name, rest),
            };
        let names = Names::from([name, result]);
        Some(Self { before, stmt, body, after, range, end, step, moves, result, names, how, dtype })
    }
}

/// `range(0, end, step)`
fn range<'a>(subject: &Subject<'a>, iter: &'a Expr) -> Option<(&'a Call, &'a Expr, Option<&'a Expr>)> {
    let call = iter.as_call().filter(|call| !call.has_star())?;
    let is_python = call.func.as_name() == Some("range") && !subject.kernel.locals.contains("range");
    if !is_python && member(subject, subject.kernel, &call.func).as_deref() != Some("range") {
        return None;
    }
    let is_known = |arg: &Arg| arg.keyword.as_ref().is_none_or(|(name, _)| !name.starts_with("arg") && name != "step");
    if !call.args.iter().all(is_known) {
        return None;
    }
    let plain: Vec<&Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
    match plain.as_slice() {
        [end] => Some((call, end, None)),
        [start, end] if start.as_int() == Some(0) => Some((call, end, None)),
        [start, end, step] if start.as_int() == Some(0) => {
            let is_simple = step.as_name().is_some() || step.as_int().is_some_and(|step| step > 0);
            is_simple.then_some((call, *end, Some(*step)))
        }
        _ => None,
    }
}

pub(super) fn member(subject: &Subject<'_>, kernel: &Kernel, func: &Expr) -> Option<String> {
    subject.candidate.module.language_member(kernel, func)
}

/// Whether some statements only bind names.
fn is_pure(subject: &Subject<'_>, kernel: &Kernel, body: &[Stmt], depth: usize) -> Option<()> {
    let mut is_pure = true;
    walk_statements(body, &mut |stmt| {
        is_pure &= match &stmt.kind {
            StmtKind::Expr(value) => match value.as_call() {
                Some(call) => {
                    matches!(member(subject, kernel, &call.func).as_deref(), Some("assume" | "static_assert"))
                }
                None => matches!(value.kind, ExprKind::Str(_)),
            },
            StmtKind::Assign { .. } | StmtKind::AugAssign { .. } | StmtKind::If { .. } | StmtKind::Pass => true,
            StmtKind::For { orelse, .. } => orelse.is_empty(),
            StmtKind::Return(_) => depth < DEPTH,
            _ => false,
        };
    });
    walk_expressions(body, &mut |expr| match &expr.kind {
        ExprKind::Call(call) => is_pure &= is_pure_call(subject, kernel, call, depth),
        ExprKind::Lambda { .. } | ExprKind::Comprehension { .. } | ExprKind::Named { .. } | ExprKind::Other(_) => {
            is_pure = false;
        }
        _ => {}
    });
    is_pure.then_some(())
}

/// The same for a single statement of the kernel.
pub(super) fn has_no_effect(subject: &Subject<'_>, stmt: &Stmt) -> bool {
    is_pure(subject, subject.kernel, std::slice::from_ref(stmt), DEPTH).is_some()
}

fn is_pure_call(subject: &Subject<'_>, kernel: &Kernel, call: &Call, depth: usize) -> bool {
    let has_effect = |name: &str| EFFECTS.iter().any(|effect| name.starts_with(effect));
    if let Some(name) = member(subject, kernel, &call.func) {
        return !name.split('.').any(has_effect);
    }
    match &call.func.kind {
        ExprKind::Attribute { value, name, .. } => value.as_name() != Some("self") && !has_effect(name),
        ExprKind::Name(name) if BUILTINS.contains(&name.as_str()) => true,
        ExprKind::Name(name) => {
            let helper = subject.candidate.module.kernel(name).filter(|_| !kernel.locals.contains(name));
            let Some((helper, depth)) = helper.zip(depth.checked_sub(1)) else { return false };
            !helper.has_error && is_pure(subject, helper, &helper.body, depth).is_some()
        }
        _ => false,
    }
}

/// Names that the iterations only accumulate into.
fn gathered<'a>(subject: &Subject<'a>, body: &'a [Stmt]) -> BTreeMap<&'a str, How> {
    let mut found: BTreeMap<&str, Option<How>> = BTreeMap::new();
    walk_statements(body, &mut |stmt| {
        for name in bound_by(stmt).unwrap_or_default() {
            let how = gathers(subject, stmt, name);
            let known = found.entry(name).or_insert(how);
            *known = known.filter(|known| Some(*known) == how);
        }
    });
    found.into_iter().filter_map(|(name, how)| Some((name, how?))).collect()
}

/// How often a name occurs in statements that accumulate into it.
fn mentions(body: &[Stmt], name: &str) -> usize {
    let mut count = 0;
    walk_statements(body, &mut |stmt| {
        if bound_by(stmt).unwrap_or_default().contains(&name) {
            count += if matches!(stmt.kind, StmtKind::AugAssign { .. }) { 1 } else { 2 };
        }
    });
    count
}

/// The operation by which a statement accumulates into a name: `acc += x`, `acc = acc + x`, `acc = tl.dot(a, b, acc)`,
/// `acc = tl.maximum(acc, x)`.
fn gathers(subject: &Subject<'_>, stmt: &Stmt, name: &str) -> Option<How> {
    let is_it = |expr: &Expr| expr.as_name() == Some(name);
    match &stmt.kind {
        StmtKind::AugAssign { target, op, value } => {
            let is_sum = matches!(op.as_str(), "+" | "-") && is_it(target) && !value.mentions(name);
            is_sum.then_some(How::Sum)
        }
        StmtKind::Assign { targets, value: Some(value), .. } if matches!(targets.as_slice(), [one] if is_it(one)) => {
            match &value.kind {
                ExprKind::Binary { op, left, .. } if op == "-" => is_it(left).then_some(How::Sum),
                ExprKind::Binary { op, left, right } if op == "+" => (is_it(left) || is_it(right)).then_some(How::Sum),
                ExprKind::Call(call) => {
                    let name = member(subject, subject.kernel, &call.func)
                        .or_else(|| call.func.as_name().map(str::to_owned))?;
                    let first_two = call.args.get(..2)?.iter().any(|arg| arg.keyword.is_none() && is_it(&arg.value));
                    let third = |name: &str| call.argument(name, Some(2)).is_some_and(is_it);
                    match name.as_str() {
                        "dot" if third("acc") => Some(How::Sum),
                        "fma" if third("z") => Some(How::Sum),
                        "maximum" | "max" if first_two && call.args.len() == 2 => Some(How::Max),
                        "minimum" | "min" if first_two && call.args.len() == 2 => Some(How::Min),
                        _ => None,
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Names that advance by the same amount in each iteration, and names that are neither this nor accumulators.
fn moves<'a>(
    subject: &Subject<'a>,
    body: &'a [Stmt],
    bound: &Names<'a>,
    is_steady: &dyn Fn(&Expr) -> bool,
    sums: &BTreeMap<&'a str, How>,
) -> (Vec<Move<'a>>, Names<'a>) {
    let (mut moves, mut others) = (Vec::new(), Names::new());
    for &name in bound {
        let of_name = |stmt: &&Stmt| bound_by(stmt).unwrap_or_default().contains(&name);
        let mut all = 0;
        walk_statements(body, &mut |stmt| all += usize::from(of_name(&stmt)));
        let step = body.iter().find(of_name).and_then(|stmt| step_of(stmt, name)).filter(|_| all == 1);
        match step.filter(|(_, by)| is_steady(by) && !has_load(subject, by)) {
            Some((op, by)) => moves.push(Move { name, op, by, is_pointer: is_loaded(subject, body, name) }),
            None if sums.contains_key(name) => {}
            None => _ = others.insert(name),
        }
    }
    (moves, others)
}

/// `name += by`, `name = name + by`
fn step_of<'a>(stmt: &'a Stmt, name: &str) -> Option<(&'a str, &'a Expr)> {
    let is_it = |expr: &Expr| expr.as_name() == Some(name);
    let (op, by) = match &stmt.kind {
        StmtKind::AugAssign { target, op, value } if is_it(target) => (op, value),
        StmtKind::Assign { targets, value: Some(value), .. } if targets.len() == 1 => match &value.kind {
            ExprKind::Binary { op, left, right } if is_it(left) => (op, &**right),
            ExprKind::Binary { op, left, right } if is_it(right) && op == "+" => (op, &**left),
            _ => return None,
        },
        _ => return None,
    };
    (matches!(op.as_str(), "+" | "-") && !by.mentions(name)).then_some((op.as_str(), by))
}

fn has_load(subject: &Subject<'_>, expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| {
        found |=
            expr.as_call().is_some_and(|call| member(subject, subject.kernel, &call.func).as_deref() == Some("load"))
    });
    found
}

/// Whether something is loaded from `name`, or from `name + …`.
fn is_loaded(subject: &Subject<'_>, body: &[Stmt], name: &str) -> bool {
    let mut found = false;
    walk_expressions(body, &mut |expr| {
        let of_load =
            expr.as_call().filter(|call| member(subject, subject.kernel, &call.func).as_deref() == Some("load"));
        found |= of_load.and_then(|call| leftmost(call.argument("pointer", Some(0))?)) == Some(name);
    });
    found
}

/// The leftmost name in a sum.
pub(super) fn leftmost(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Binary { op, left, .. } if op == "+" => leftmost(left),
        _ => None,
    }
}

/// The type of an accumulator that begins with the neutral value and is not used otherwise before the loop.
fn begins(subject: &Subject<'_>, before: &[Stmt], name: &str, how: How) -> Option<&'static str> {
    let is_it = |stmt: &&Stmt| matches!(&stmt.kind, StmtKind::Assign { targets, .. } if matches!(targets.as_slice(), [one] if one.as_name() == Some(name)));
    let stmt = before.iter().find(is_it).filter(|_| uses(before, name) == 1)?;
    let StmtKind::Assign { value: Some(value), .. } = &stmt.kind else { return None };
    // The initial value of a maximum may count several times.
    if how == How::Sum && !is_zero(subject, value) {
        return None;
    }
    if is_float(value) {
        return Some("float32");
    }
    let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
    let index = module.kernels.iter().position(|one| std::ptr::eq(one, subject.kernel))?;
    let types = infer(module, text, TritonTarget::newest(), index, true).types;
    let (_, found) = types.iter().rev().find(|(span, _)| *span == value.span)?;
    match found.tile()?.element {
        LaneType::Number(Dtype::Fp32) => Some("float32"),
        LaneType::Number(Dtype::Fp64) => Some("float64"),
        LaneType::Number(Dtype::Int32) => Some("int32"),
        LaneType::Number(Dtype::Int64) => Some("int64"),
        _ => None,
    }
}

fn is_float(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Float(_) => true,
        ExprKind::Unary { operand, .. } => is_float(operand),
        ExprKind::Call(call) => call.func.as_name() == Some("float"),
        _ => false,
    }
}

fn is_zero(subject: &Subject<'_>, value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Float(number) => *number == 0.0,
        ExprKind::Int(number) => *number == 0,
        ExprKind::Call(call) => match member(subject, subject.kernel, &call.func).as_deref() {
            Some("zeros" | "zeros_like") => true,
            Some("full") => call.argument("value", Some(1)).is_some_and(|value| is_zero(subject, value)),
            _ => false,
        },
        _ => false,
    }
}

/// The name to which a statement binds the sum over a tile of sums: `acc += tl.sum(acc_rows, axis=0)`,
/// `total = tl.sum(acc)`.
fn folded<'a>(subject: &Subject<'_>, stmt: &'a Stmt, name: &str, how: How) -> Option<&'a str> {
    let (target, value) = match &stmt.kind {
        StmtKind::AugAssign { target, op, value } if op == "+" && how == How::Sum => (target, value),
        StmtKind::Assign { targets, value: Some(value), .. } => {
            (targets.first().filter(|_| targets.len() == 1)?, value)
        }
        _ => return None,
    };
    let call = value.as_call()?;
    let is_fold = match member(subject, subject.kernel, &call.func).as_deref() {
        Some("sum") => how == How::Sum,
        Some("max") => how == How::Max,
        Some("min") => how == How::Min,
        _ => false,
    };
    let (first, rest) = call.args.split_first()?;
    let is_plain = |arg: &Arg| match &arg.keyword {
        Some((keyword, _)) => matches!(keyword.as_str(), "axis" | "keep_dims"),
        None => true,
    };
    let is_of_it = first.keyword.is_none() && first.value.as_name() == Some(name);
    let is_alone = rest.len() <= 2 && rest.iter().all(|arg| is_plain(arg) && !arg.value.mentions(name));
    let target = target.as_name()?;
    let is_own = target != name || matches!(stmt.kind, StmtKind::Assign { .. });
    (is_fold && is_of_it && is_alone && is_own).then_some(target)
}
