//! The constant values of expressions.

use crate::kernel::ast::{Expr, ExprKind};

/// The truth value that `expr` certainly has, when its text determines it: `False`, `0`, `not True`, `False and x`.
#[must_use]
pub fn constant_truth(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Bool(value) => Some(*value),
        ExprKind::Int(value) => Some(*value != 0),
        ExprKind::Float(value) => Some(*value != 0.0),
        ExprKind::None => Some(false),
        ExprKind::Unary { op, operand } if op == "not" => constant_truth(operand).map(|value| !value),
        ExprKind::BoolOp { op, left, right } => {
            let (left, right, decisive) = (constant_truth(left), constant_truth(right), op == "or");
            if left == Some(decisive) || right == Some(decisive) { Some(decisive) } else { left.and(right) }
        }
        _ => None,
    }
}

/// The integer value of `expr` by Python's rules, where `name` supplies the integers of names. `None` when a part is
/// not known or the result is not an integer.
pub fn integer(expr: &Expr, name: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
    match &expr.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Bool(value) => Some(i128::from(*value)),
        ExprKind::Name(text) => name(text),
        ExprKind::Unary { op, operand } => {
            let value = integer(operand, name)?;
            match op.as_str() {
                "-" => value.checked_neg(),
                "+" => Some(value),
                "~" => Some(!value),
                _ => None,
            }
        }
        ExprKind::Binary { op, left, right } => binary(op, integer(left, name)?, integer(right, name)?),
        _ => None,
    }
}

/// `left op right` by Python's rules; `None` when the result is not an integer or not defined.
#[must_use]
pub fn binary(op: &str, left: i128, right: i128) -> Option<i128> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 100);
    match op {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "//" => {
            let quotient = left.checked_div(right)?;
            let inexact = quotient * right != left;
            Some(if inexact && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
        }
        "%" => Some(left - right.checked_mul(binary("//", left, right)?)?),
        "<<" => left.checked_mul(1_i128.checked_shl(shift()?)?),
        ">>" => Some(left >> shift()?),
        "**" => left.checked_pow(u32::try_from(right).ok()?),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_arithmetic_follows_python() {
        for (left, op, right, expected) in [
            (7, "//", 2, Some(3)),
            (-7, "//", 2, Some(-4)),
            (7, "//", -2, Some(-4)),
            (-8, "//", 2, Some(-4)),
            (-7, "%", 3, Some(2)),
            (7, "%", -3, Some(-2)),
            (1, "//", 0, None),
            (1, "%", 0, None),
            (2, "**", 10, Some(1024)),
            (2, "**", -1, None),
            (1, "<<", 20, Some(1 << 20)),
            (1, "<<", 4000, None),
            (-1, ">>", 32, Some(-1)),
            (3, "/", 1, None),
        ] {
            assert_eq!(binary(op, left, right), expected, "{left} {op} {right}");
        }
    }
}
