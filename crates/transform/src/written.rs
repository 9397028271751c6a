//! The place in the source of a number that a launch passes.

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::kernel::{HostFunction, Launch, Module};
use model::syntax::Span;

use super::conditional_tile::greater;
use super::words::is_of_word;

/// The greatest number of names that are followed.
const DEPTH: usize = 3;

/// A number and its span.
type LiteralSpan = Option<(i64, Span)>;

/// The number that an argument is, and its span. The argument is a literal, a call with an upper bound
/// (`min(1024, …)`), a choice by divisibility, of which the larger number counts (`128 if n % 128 == 0 else 64`), or a
/// name that is bound once: in the function, as the default of its parameter, or else in the file.
pub(super) fn literal(module: &Module, launch: &Launch, expr: &Expr) -> LiteralSpan {
    let host = launch.host.map(|host| &module.hosts[host]);
    let bounded = |expr: &Expr| bound(expr, |part| followed(module, host, part, &number, DEPTH));
    followed(module, host, expr, &|expr| number(expr).or_else(|| bounded(expr)).or_else(|| greater(expr)), DEPTH)
}

/// The number that an argument certainly is.
pub(super) fn certain(module: &Module, launch: &Launch, expr: &Expr) -> Option<i64> {
    let host = launch.host.map(|host| &module.hosts[host]);
    followed(module, host, expr, &number, DEPTH).map(|(number, _)| number)
}

fn followed(
    module: &Module,
    host: Option<&HostFunction>,
    expr: &Expr,
    of: &dyn Fn(&Expr) -> LiteralSpan,
    depth: usize,
) -> LiteralSpan {
    if let Some(found) = of(expr) {
        return Some(found);
    }
    let (name, depth) = (expr.as_name()?, depth.checked_sub(1)?);
    if let Some(host) = host {
        if is_assigned(host, name) {
            return followed(module, Some(host), only_value(&host.body, name)?, of, depth);
        }
        if host.params.iter().any(|param| param == name) {
            return number(&host.defaults.iter().find(|(param, _)| param == name)?.1);
        }
    }
    let mut globals = module.globals.iter().filter(|global| global.name == name);
    let global = globals.next().filter(|_| !module.uncertain.contains(name))?;
    followed(module, None, &global.value, of, depth)
}

/// The grid of a launch: the expression itself, or the only value of its name in the function.
pub(super) fn grid_of<'a>(module: &'a Module, launch: &'a Launch) -> Option<&'a Expr> {
    match (launch.grid.as_name(), launch.host) {
        (None, _) => Some(&launch.grid),
        (Some(name), Some(host)) => only_value(&module.hosts[host].body, name),
        (Some(_), None) => None,
    }
}

/// How often a name occurs in a text as a word, without comments on lines of their own.
pub(super) fn word_count(text: &str, name: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    code.flat_map(|line| line.split(|letter| !is_of_word(letter))).filter(|word| *word == name).count()
}

/// Whether a name is bound in a function and read once.
pub(super) fn is_used_once(host: &HostFunction, name: &str) -> bool {
    let mut count = 0;
    walk_statements(&host.body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| count += usize::from(expr.as_name() == Some(name)));
        }
    });
    // One occurrence is its binding, the other its use in the launch.
    count == 2
}

/// A grid without its function: the tuple, its parts, and the name by which they refer to the kernel's constexprs.
pub(super) fn tuple_of(grid: &Expr) -> Option<(&Expr, &[Expr], Option<&str>)> {
    let (tuple, meta) = match &grid.kind {
        ExprKind::Lambda { params, body } => (body.as_ref(), Some(params.first()?.as_str())),
        _ => (grid, None),
    };
    let (ExprKind::Tuple(parts) | ExprKind::List(parts)) = &tuple.kind else { return None };
    Some((tuple, parts, meta))
}

/// The numbers of programs along each axis, also of a grid function, or of a grid that is no tuple.
pub(super) fn parts_of(grid: &Expr) -> &[Expr] {
    let grid = if let ExprKind::Lambda { body, .. } = &grid.kind { body } else { grid };
    match &grid.kind {
        ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.as_slice(),
        _ => std::slice::from_ref(grid),
    }
}

/// Whether an expression of the host can be evaluated twice: it consists of names, parts of shapes, numbers, and
/// operations on them.
pub(super) fn is_steady(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Int(_) => true,
        ExprKind::Attribute { value, .. } => is_steady(value),
        ExprKind::Subscript { value, index } => is_steady(value) && index.iter().all(is_steady),
        ExprKind::Unary { operand, .. } => is_steady(operand),
        ExprKind::Binary { left, right, .. } => is_steady(left) && is_steady(right),
        ExprKind::Call(call) => {
            let is_known = match &call.func.kind {
                ExprKind::Name(name) => ["cdiv", "len", "max", "min"].contains(&name.as_str()),
                ExprKind::Attribute { name, value, .. } => {
                    ["cdiv", "numel", "size", "stride"].contains(&name.as_str()) && is_steady(value)
                }
                _ => false,
            };
            is_known && call.args.iter().all(|arg| is_steady(&arg.value))
        }
        _ => false,
    }
}

/// Whether no name in an expression is bound again after a place in the function.
pub(super) fn is_settled(host: &HostFunction, expr: &Expr, since: usize) -> bool {
    let mut is_settled = true;
    walk_statements(&host.body, &mut |stmt| {
        for target in stmt.targets().iter().filter(|_| stmt.span.start > since) {
            target.walk(&mut |name| is_settled &= !name.as_name().is_some_and(|name| expr.mentions(name)));
        }
    });
    is_settled
}

fn number(expr: &Expr) -> LiteralSpan {
    Some((folded(expr)?, expr.span))
}

/// The value of a number, also as `65536 // 2`.
fn folded(expr: &Expr) -> Option<i64> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return i64::try_from(expr.as_int()?).ok() };
    let (left, right) = (folded(left)?, folded(right)?);
    match op.as_str() {
        "*" => left.checked_mul(right),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "//" => (left >= 0 && right > 0).then(|| left / right),
        "**" => left.checked_pow(u32::try_from(right).ok()?),
        "<<" => left.checked_mul(1_i64.checked_shl(u32::try_from(right).ok()?)?),
        _ => None,
    }
}

/// `min(1024, triton.next_power_of_2(n))`
fn bound(expr: &Expr, of: impl Fn(&Expr) -> LiteralSpan) -> LiteralSpan {
    let Call { func, args, .. } = expr.as_call()?;
    if !matches!(func.as_name(), Some("min" | "max")) || args.iter().any(|arg| arg.keyword.is_some()) {
        return None;
    }
    let mut numbers = args.iter().filter_map(|arg| of(&arg.value));
    let only = numbers.next()?;
    numbers.next().is_none().then_some(only)
}

fn is_assigned(host: &HostFunction, name: &str) -> bool {
    !bindings(&host.body, name).is_empty()
}

/// The statements that bind a name, or change a part of its value.
pub(super) fn bindings<'a>(body: &'a [Stmt], name: &str) -> Vec<&'a Stmt> {
    let mut found = Vec::new();
    walk_statements(body, &mut |stmt| {
        if stmt.targets().iter().any(|target| target.mentions(name)) {
            found.push(stmt);
        }
    });
    found
}

/// The value of the only assignment to a name, also as `a, b = 1, 2`.
pub(super) fn only_value<'a>(body: &'a [Stmt], name: &str) -> Option<&'a Expr> {
    let found = bindings(body, name);
    let [only] = found.as_slice() else { return None };
    assigned(only, name)
}

/// The value that an assignment gives a name, also as `a, b = 1, 2`.
pub(super) fn assigned<'a>(stmt: &'a Stmt, name: &str) -> Option<&'a Expr> {
    let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    if target.as_name() == Some(name) {
        return Some(value);
    }
    match (&target.kind, &value.kind) {
        (ExprKind::Tuple(names), ExprKind::Tuple(values)) if names.len() == values.len() => {
            values.get(names.iter().position(|one| one.as_name() == Some(name))?)
        }
        _ => None,
    }
}
