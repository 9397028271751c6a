//! A tile size that depends on whether it divides sizes: `128 if n % 128 == 0 else 64`.

use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

/// The larger tile, the sizes that it must divide, and the smaller tile.
pub(super) fn choice(expr: &Expr) -> Option<(i64, Vec<&Expr>, i64)> {
    let ExprKind::IfExp { test, body, orelse } = &expr.kind else { return None };
    let number = |expr: &Expr| i64::try_from(expr.as_int()?).ok();
    let (tile, mut sizes) = (number(body)?, Vec::new());
    is_divided(test, tile, &mut sizes).then_some((tile, sizes, number(orelse)?))
}

/// Whether a condition is `m % 128 == 0 and n % 128 == 0`.
fn is_divided<'a>(test: &'a Expr, by: i64, sizes: &mut Vec<&'a Expr>) -> bool {
    let is = |expr: &Expr, number: i64| expr.as_int() == Some(i128::from(number));
    match &test.kind {
        ExprKind::BoolOp { op, left, right } if op == "and" => {
            is_divided(left, by, sizes) && is_divided(right, by, sizes)
        }
        ExprKind::Compare { left, rest } => match (&left.kind, rest.as_slice()) {
            (ExprKind::Binary { op, left: size, right: tile }, [(equal, zero)])
                if op == "%" && equal == "==" && is(tile, by) && is(zero, 0) =>
            {
                sizes.push(size);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// The larger tile of such a choice.
pub(super) fn greater(expr: &Expr) -> Option<(i64, Span)> {
    choice(expr).map(|(tile, ..)| (tile, expr.span))
}
