//! The number of programs that a launch starts, in terms of the arguments that it passes.

use super::expressions::alike;
use super::host::HostNames;
use super::launches::{ArgumentSource, passed};
use crate::kernel::ast::{Expr, ExprKind};
use crate::kernel::{Kernel, Launch};

/// The number of programs along one dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Extent<'a> {
    /// A known number of programs.
    Number(i128),
    /// The number of tiles of `block` that cover `size`: `triton.cdiv(size, block)`.
    Tiles {
        /// The size that the tiles cover.
        size: &'a Expr,
        /// The size of one program's tile.
        block: &'a Expr,
    },
    /// Another expression.
    Other(&'a Expr),
}

/// The dimensions of a launch's grid; `None` when they are not written out.
#[must_use]
pub fn extents<'a>(names: &HostNames<'a>, launch: &'a Launch) -> Option<Vec<Extent<'a>>> {
    let grid = names.resolve(&launch.grid);
    let grid = match &grid.kind {
        ExprKind::Lambda { body, .. } => body.as_ref(),
        _ => grid,
    };
    let items: &[Expr] = match &grid.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => items,
        _ => return None,
    };
    let starred = items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_)));
    (!starred).then(|| items.iter().map(|item| extent(names, item)).collect())
}

fn extent<'a>(names: &HostNames<'a>, expr: &'a Expr) -> Extent<'a> {
    let resolved = names.resolve(expr);
    if let Some(number) = names.integer(resolved) {
        return Extent::Number(number);
    }
    match &resolved.kind {
        ExprKind::Call(call) if names.is_cdiv(call) => match call.args.as_slice() {
            [size, block] => Extent::Tiles { size: &size.value, block: &block.value },
            _ => Extent::Other(resolved),
        },
        ExprKind::Binary { op, left, right } if op == "//" => match rounded_up(left, right) {
            Some(size) => Extent::Tiles { size, block: right },
            None => Extent::Other(resolved),
        },
        _ => Extent::Other(resolved),
    }
}

/// `n` of `(n + block - 1) // block`; `None` for other expressions.
fn rounded_up<'a>(left: &'a Expr, block: &Expr) -> Option<&'a Expr> {
    let ExprKind::Binary { op, left: sum, right: one } = &left.kind else { return None };
    let ExprKind::Binary { op: plus, left: size, right: added } = &sum.kind else { return None };
    (op == "-" && plus == "+" && one.as_int() == Some(1) && alike(added, block)).then_some(size)
}

/// Whether `launch` passes `expr` for the parameter `name` of `kernel`, or `expr` reads that parameter from the
/// configuration (`META["BLOCK"]`).
#[must_use]
pub fn is_passed<'a>(names: &HostNames<'a>, launch: &'a Launch, kernel: &Kernel, name: &str, expr: &'a Expr) -> bool {
    if let ExprKind::Subscript { value, index } = &expr.kind
        && value.as_name().is_some()
        && let [Expr { kind: ExprKind::Str(key), .. }] = index.as_slice()
    {
        return key == name;
    }
    match passed(launch, kernel, name) {
        ArgumentSource::Argument(argument) => {
            alike(argument, expr)
                || alike(names.resolve(argument), names.resolve(expr))
                || names.integer(argument).is_some_and(|value| names.integer(expr) == Some(value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::host::Hosts;
    use crate::kernel::Module;
    use crate::syntax::Source;

    #[test]
    fn grids_are_read_through_names_and_lambdas() {
        let text = "
import triton
@triton.jit
def k(x, n, m, B: int):
    pass
def run(x):
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta['B']), (n + 64 - 1) // 64, 2 * 3, n // 4)
    k[grid](x, n, x.shape[1], B=64)
    k[(triton.cdiv(x.shape[1], 64), )](x, n, x.shape[1], B=64)
    k[grid(1)](x, n, 1, B=64)
";
        let module = Module::build(&Source::parse(text));
        let mut hosts = Hosts::new(&module);
        let found = |launch: &Launch, names: &HostNames<'_>| -> Vec<String> {
            let Some(extents) = extents(names, &module.launches[0]) else { return Vec::new() };
            let _ = launch;
            extents
                .iter()
                .map(|extent| match extent {
                    Extent::Number(number) => number.to_string(),
                    Extent::Tiles { size, block } => {
                        let of = |expr| {
                            ["n", "m", "B"]
                                .into_iter()
                                .find(|name| is_passed(names, &module.launches[0], &module.kernels[0], name, expr))
                        };
                        format!("{:?} by {:?}", of(size), of(block))
                    }
                    Extent::Other(_) => "?".to_owned(),
                })
                .collect()
        };
        let names = hosts.around(&module.launches[0]);
        let seen = found(&module.launches[0], &names);
        assert_eq!(seen, ["Some(\"n\") by Some(\"B\")", "Some(\"n\") by Some(\"B\")", "6", "?"]);
        assert_eq!(extents(&names, &module.launches[2]), None);
        let Some([Extent::Tiles { size, .. }]) =
            extents(&names, &module.launches[1]).as_deref().map(|e| <&[Extent<'_>; 1]>::try_from(e).unwrap().clone())
        else {
            panic!("one dimension")
        };
        assert!(is_passed(&names, &module.launches[1], &module.kernels[0], "m", size));
        assert!(!is_passed(&names, &module.launches[1], &module.kernels[0], "n", size));
    }
}
