//! Tile sizes that a grid repeats as a number of its own: `(triton.cdiv(n, 64),)` with `BLOCK=64`. A change of one must
//! change the other.

use model::kernel::ast::{Call, Expr, ExprKind, argument, walk_expressions};
use model::kernel::{Kernel, Launch, Module};
use model::syntax::Span;

use super::written::{bindings, grid_of, parts_of};

/// The places of a tile size in a grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tied {
    /// The tile size itself.
    pub(super) whole: Vec<Span>,
    /// The tile size minus one, as in `(n + 63) // 64`.
    pub(super) less: Vec<Span>,
}

/// The places in the grid of a launch for a parameter with this value.
pub(super) fn tied(module: &Module, kernel: &Kernel, launch: &Launch, param: &str, current: i64) -> Tied {
    let known = || {
        let grid = grid_of(module, launch).filter(|_| is_own(module, launch))?;
        let parts = parts_of(grid);
        // A grid that mentions the tile by its name changes with it, so no other number in it is the tile size.
        let at = kernel.params.iter().position(|one| one.name == param);
        let names = [Some(param), argument(&launch.args, param, at).and_then(Expr::as_name)];
        if names.iter().flatten().any(|name| has_name(grid, name)) {
            return None;
        }
        match axis(module, kernel, param) {
            Some(axis) => only(divisions(parts.get(axis)?, current)),
            None => {
                let sizes = sizes(kernel, launch, param);
                let is_meant = |of: &Expr| sizes.iter().any(|size| is_same(size, of));
                let all = parts.iter().flat_map(|part| divisions(part, current));
                only(all.filter(|division| is_meant(division.of)).collect())
            }
        }
    };
    known().unwrap_or_default()
}

/// Whether an expression mentions the name directly, as `meta["B"]`, or as `meta.B`.
fn has_name(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= match &part.kind {
            ExprKind::Str(one) | ExprKind::Name(one) | ExprKind::Attribute { name: one, .. } => one == name,
            _ => false,
        }
    });
    found
}

/// Whether no other kernel is launched with the same grid.
fn is_own(module: &Module, launch: &Launch) -> bool {
    let Some(name) = launch.grid.as_name() else { return true };
    let is_other = |other: &&Launch| other.host == launch.host && other.kernel != launch.kernel;
    !module.launches.iter().filter(is_other).any(|other| other.grid.as_name() == Some(name))
}

/// The axis whose program index is multiplied with the parameter.
pub(super) fn axis(module: &Module, kernel: &Kernel, param: &str) -> Option<usize> {
    let id = |expr: &Expr| {
        let call = uncast(expr).as_call()?;
        let is_id = module.language_member(kernel, &call.func).as_deref() == Some("program_id");
        usize::try_from(call.argument("axis", Some(0)).filter(|_| is_id)?.as_int()?).ok()
    };
    let of_name = |name: &str| match bindings(&kernel.body, name).as_slice() {
        [only] => id(super::written::assigned(only, name)?),
        _ => None,
    };
    let of = |expr: &Expr| id(expr).or_else(|| of_name(expr.as_name()?));
    let mut found = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        if let ExprKind::Binary { op, left, right } = &expr.kind
            && op == "*"
        {
            let sides = [(left, right), (right, left)];
            found.extend(sides.iter().filter(|(_, by)| by.as_name() == Some(param)).filter_map(|(side, _)| of(side)));
        }
    });
    found.dedup();
    match found.as_slice() {
        [axis] => Some(*axis),
        _ => None,
    }
}

/// `x` of `x.to(tl.int64)`
pub(super) fn uncast(expr: &Expr) -> &Expr {
    match expr.as_call().map(|call| &call.func.kind) {
        Some(ExprKind::Attribute { value, name, .. }) if name == "to" => value,
        _ => expr,
    }
}

/// The arguments for the sizes that the kernel divides into tiles of this parameter.
fn sizes<'a>(kernel: &Kernel, launch: &'a Launch, param: &str) -> Vec<&'a Expr> {
    let mut found = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        if let Some((of, by)) = quotient(expr)
            && by.as_name() == Some(param)
            && let Some(size) = of.as_name()
        {
            let at = kernel.params.iter().position(|param| param.name == size);
            found.extend(argument(&launch.args, size, at));
        }
    });
    found
}

/// Whether the number of programs does not depend on the tile size: the grid divides nothing by it, and no program
/// begins at a multiple of it.
pub(super) fn is_free(module: &Module, kernel: &Kernel, param: &str) -> bool {
    let mut is_free = axis(module, kernel, param).is_none();
    walk_expressions(&kernel.body, &mut |expr| is_free &= quotient(expr).is_none_or(|(_, by)| !by.mentions(param)));
    is_free
}

/// The dividend and the divisor.
pub(super) fn quotient(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match &expr.kind {
        ExprKind::Call(call) => of_cdiv(call),
        ExprKind::Binary { op, left, right } if op == "//" => Some((rounded_up(left, right), right)),
        _ => None,
    }
}

/// `n` of `n + (B - 1)`, `n + B - 1`, `n + 63` and `n - 1`.
fn rounded_up<'a>(of: &'a Expr, by: &Expr) -> &'a Expr {
    let less_one = |expr: &'a Expr| match &expr.kind {
        ExprKind::Binary { op, left, right } if op == "-" && right.as_int() == Some(1) => Some(left.as_ref()),
        _ => None,
    };
    if let Some(more) = less_one(of) {
        return rounded_up(more, by);
    }
    match &of.kind {
        ExprKind::Binary { op, left, right } if op == "+" => {
            let is_all = right.as_int().is_some() || is_same(less_one(right).unwrap_or(right), by);
            if is_all { left } else { of }
        }
        _ => of,
    }
}

/// `cdiv(of, by)`
fn of_cdiv(call: &Call) -> Option<(&Expr, &Expr)> {
    let name = match &call.func.kind {
        ExprKind::Name(name) | ExprKind::Attribute { name, .. } => name,
        _ => return None,
    };
    match call.args.as_slice() {
        [of, by] if name == "cdiv" && of.keyword.is_none() && by.keyword.is_none() => Some((&of.value, &by.value)),
        _ => None,
    }
}

/// A division by a number.
struct Division<'a> {
    of: &'a Expr,
    tied: Tied,
}

fn divisions(part: &Expr, by: i64) -> Vec<Division<'_>> {
    let is = |expr: &Expr, number: i64| expr.as_int() == Some(i128::from(number));
    let mut found = Vec::new();
    part.walk(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => {
            if let Some((of, number)) = of_cdiv(call).filter(|(_, number)| is(number, by)) {
                found.push(Division { of, tied: Tied { whole: vec![number.span], less: Vec::new() } });
            }
        }
        ExprKind::Binary { op, left, right } if op == "//" && is(right, by) => {
            let (mut of, mut tied) = (left.as_ref(), Tied { whole: vec![right.span], less: Vec::new() });
            if let ExprKind::Binary { op, left, right } = &left.kind {
                match op.as_str() {
                    // `n + 63`
                    "+" if is(right, by - 1) => (of, tied.less) = (left, vec![right.span]),
                    // `n + 64 - 1`
                    "-" if is(right, 1) => {
                        if let ExprKind::Binary { op, left, right } = &left.kind
                            && op == "+"
                            && is(right, by)
                        {
                            of = left;
                            tied.whole.push(right.span);
                        }
                    }
                    _ => {}
                }
            }
            found.push(Division { of, tied });
        }
        _ => {}
    });
    found
}

/// The only division; with several, it is unknown which one is meant.
fn only(mut found: Vec<Division<'_>>) -> Option<Tied> {
    let one = found.pop()?;
    found.is_empty().then_some(one.tied)
}

/// Whether two expressions are the same, at any places.
fn is_same(one: &Expr, other: &Expr) -> bool {
    let (names, numbers) = (one.dotted(), one.as_int());
    if names.is_some() || numbers.is_some() {
        return names == other.dotted() && numbers == other.as_int();
    }
    match (&one.kind, &other.kind) {
        (ExprKind::Str(one), ExprKind::Str(other)) => one == other,
        (ExprKind::Subscript { value: a, index: x }, ExprKind::Subscript { value: b, index: y }) => {
            is_same(a, b) && x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y))
        }
        (ExprKind::Call(a), ExprKind::Call(b)) => {
            let is_plain = a.args.iter().chain(&b.args).all(|arg| arg.keyword.is_none());
            let pairs = a.args.iter().zip(&b.args);
            is_plain
                && is_same(&a.func, &b.func)
                && a.args.len() == b.args.len()
                && pairs.into_iter().all(|(x, y)| is_same(&x.value, &y.value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::syntax::Source;

    const KERNEL: &str = "import triton
import triton.language as tl
@triton.jit
def k(x, M, N, A: tl.constexpr, B: tl.constexpr):
    m = tl.program_id(0)
    rows = m * A + tl.arange(0, A)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    tl.store(x + rows * N + cols, 0)
";
    const FLAT: &str = "import triton
import triton.language as tl
@triton.jit
def k(x, M, N, A: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    across = tl.cdiv(N, B)
    down = tl.cdiv(M, A)
    tl.store(x + p % across * B + p // across * A + down, 0)
";

    /// The places for a parameter of value 64, which is the third or fourth parameter.
    fn found(kernel: &str, host: &str, param: &str) -> (Vec<String>, Vec<String>) {
        let text = format!("{kernel}{host}");
        let module = Module::build(&Source::parse(text.as_str()));
        let of = tied(&module, &module.kernels[0], module.launches_of("k").next().unwrap(), param, 64);
        // The text around each place.
        let shown = |spans: Vec<Span>| spans.iter().map(|span| text[span.start - 3..=span.end].to_owned()).collect();
        (shown(of.whole), shown(of.less))
    }

    fn whole(kernel: &str, host: &str, param: &str) -> Vec<String> {
        found(kernel, host, param).0
    }

    #[test]
    fn numbers_are_tied_by_their_axis() {
        let host = "def run(x):\n    k[(triton.cdiv(7, 64), triton.cdiv(x.n, 64))](x, 7, x.n, 64, B=64)\n";
        assert_eq!(whole(KERNEL, host, "A"), ["7, 64)"]);
        assert_eq!(whole(KERNEL, host, "B"), ["n, 64)"]);
        let by_name = "def run(x, n):\n    grid = lambda meta: (3, (n + 63) // 64)\n    k[grid](x, 7, n, 64, B=64)\n";
        assert_eq!(found(KERNEL, by_name, "B"), (vec!["// 64)".to_owned()], vec![" + 63)".to_owned()]));
        assert_eq!(whole(KERNEL, by_name, "A"), Vec::<String>::new());
        let cast = KERNEL.replace("program_id(0)", "program_id(0).to(tl.int64)");
        assert_eq!(whole(&cast, host, "A"), ["7, 64)"]);
        let long = "def run(x, n):\n    k[3, (n + 64 - 1) // 64](x, 7, n, 64, B=64)\n";
        assert_eq!(whole(KERNEL, long, "B"), ["// 64]", " + 64 "]);
    }

    #[test]
    fn numbers_of_one_axis_are_tied_by_what_they_divide() {
        let host = "def run(x):\n    m, n = x.shape\n    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)\n    k[grid](x, m, n, 64, 64)\n";
        assert_eq!([whole(FLAT, host, "A"), whole(FLAT, host, "B")], [["m, 64)"], ["n, 64)"]]);
        // The host passes other values for the sizes.
        assert!(whole(FLAT, &host.replace("x, m, n", "x, 7, 8"), "A").is_empty());
    }

    #[test]
    fn ambiguous_grid_numbers_are_not_matched() {
        let host = "def run(x, n):\n    grid = (n // 64, n // 64)\n    k[grid](x, 7, n, 64, 64)\n";
        assert_eq!(whole(KERNEL, host, "A"), ["// 64,"]);
        let shared = host.replace("    k[grid]", "    other[grid](x)\n    k[grid]");
        assert!(whole(KERNEL, &shared, "A").is_empty());
        // Two divisions in one dimension, a number of another tile, and an unknown axis.
        assert!(whole(KERNEL, &host.replace("(n // 64,", "(n // 64 + n // 64,"), "A").is_empty());
        assert!(whole(KERNEL, &host.replace("n // 64", "n // 32"), "A").is_empty());
        // A number that depends on the tile through its name.
        let named = host.replace("(n // 64,", "(triton.cdiv(n, A) + A // 64,").replace("7, n, 64,", "7, n, A,");
        assert!(whole(KERNEL, &named, "A").is_empty());
        let meta = host.replace("(n // 64,", "lambda meta: (n // meta['A'] + 7 // 64,");
        assert!(whole(KERNEL, &meta, "A").is_empty());
        assert!(whole(&KERNEL.replace("= m * A", "= m * A + tl.program_id(1) * A"), host, "A").is_empty());
    }
}
