//! Constant folding: arithmetic of compile-time values, by Python's rules.

use super::shape::SymbolicSize;
use super::value::Const;
use crate::analysis::constants;
use crate::kernel::ast::{Expr, ExprKind};

/// The value of a literal.
#[must_use]
pub(super) fn literal(expr: &Expr) -> Option<Const> {
    Some(match &expr.kind {
        ExprKind::Int(value) => Const::Int(*value),
        ExprKind::Float(value) => Const::Float(*value),
        ExprKind::Bool(value) => Const::Bool(*value),
        ExprKind::Str(text) => Const::Str(text.as_str().into()),
        ExprKind::None => Const::None,
        _ => return None,
    })
}

/// `op operand`; `None` when Python has no such operation.
#[must_use]
pub(super) fn unary(op: &str, operand: &Const) -> Option<Const> {
    if op == "not" {
        return Some(operand.truth().map_or(Const::Unknown, |value| Const::Bool(!value)));
    }
    Some(match (op, operand) {
        (_, Const::Unknown | Const::Object) => Const::Unknown,
        ("-", Const::Symbol(symbol)) => symbol.times(-1).map_or(Const::Unknown, Const::Symbol),
        ("+", Const::Symbol(_) | Const::Float(_)) => operand.clone(),
        ("~", Const::Symbol(_)) => Const::Unknown,
        ("-", Const::Float(value)) => Const::Float(-value),
        _ => {
            let value = operand.int()?;
            match op {
                "-" => value.checked_neg().map_or(Const::Unknown, Const::Int),
                "+" => Const::Int(value),
                "~" => Const::Int(!value),
                _ => return None,
            }
        }
    })
}

/// `left op right`; `None` when Python has no such operation.
#[must_use]
pub(super) fn binary(op: &str, left: &Const, right: &Const) -> Option<Const> {
    if matches!(left, Const::Unknown | Const::Object) || matches!(right, Const::Unknown | Const::Object) {
        return Some(Const::Unknown);
    }
    if matches!(left, Const::Symbol(_)) || matches!(right, Const::Symbol(_)) {
        return symbolic(op, left, right);
    }
    if let (Some(a), Some(b)) = (left.int(), right.int()) {
        let exact = if op == "/" { None } else { constants::binary(op, a, b) };
        if let (Const::Bool(a), Const::Bool(b), "&" | "|" | "^") = (left, right, op) {
            return Some(Const::Bool(match op {
                "&" => *a && *b,
                "|" => *a || *b,
                _ => a != b,
            }));
        }
        if let Some(value) = exact {
            return Some(Const::Int(value));
        }
        #[expect(clippy::cast_precision_loss, reason = "Python's own division of integers rounds, too")]
        return Some(match op {
            "/" if b != 0 => Const::Float(a as f64 / b as f64),
            "**" if b < 0 && a != 0 => Const::Float((a as f64).powi(i32::try_from(b).ok()?)),
            _ => Const::Unknown,
        });
    }
    if let (Const::Str(a), Const::Str(b), "+") = (left, right, op) {
        return Some(Const::Str(format!("{a}{b}").into()));
    }
    let (a, b) = (float(left)?, float(right)?);
    Some(match op {
        "+" => Const::Float(a + b),
        "-" => Const::Float(a - b),
        "*" => Const::Float(a * b),
        "/" if b != 0.0 => Const::Float(a / b),
        "//" if b != 0.0 => Const::Float((a / b).floor()),
        "**" => Const::Float(a.powf(b)),
        "%" | "/" | "//" => Const::Unknown,
        _ => return None,
    })
}

fn symbolic(op: &str, left: &Const, right: &Const) -> Option<Const> {
    let number = |value: &Const| value.int().and_then(|value| i64::try_from(value).ok());
    let result = match (op, left, right) {
        (_, Const::Str(_) | Const::None, _) | (_, _, Const::Str(_) | Const::None) => return None,
        ("*", Const::Symbol(a), Const::Symbol(b)) => a.product(b),
        ("*", Const::Symbol(symbol), other) | ("*", other, Const::Symbol(symbol)) => {
            number(other).and_then(|number| symbol.times(number))
        }
        ("//", Const::Symbol(symbol), other) => match number(other) {
            Some(1) => Some(symbol.clone()),
            Some(divisor) if divisor != 0 && symbol.factor % divisor == 0 => {
                Some(SymbolicSize { factor: symbol.factor / divisor, names: symbol.names.clone() })
            }
            _ => SymbolicSize::opaque(symbol, op, other),
        },
        ("+" | "-", Const::Symbol(symbol), other) if number(other) == Some(0) => Some(symbol.clone()),
        ("+" | "-" | "//" | "%" | "<<" | ">>" | "&" | "|" | "^", _, _) => {
            let is_whole = |value: &Const| matches!(value, Const::Symbol(_) | Const::Int(_));
            if is_whole(left) && is_whole(right) { SymbolicSize::opaque(left, op, right) } else { None }
        }
        _ => None,
    };
    Some(result.map_or(Const::Unknown, Const::Symbol))
}

#[expect(clippy::cast_precision_loss, reason = "Python converts so, too")]
fn float(value: &Const) -> Option<f64> {
    match value {
        Const::Float(value) => Some(*value),
        _ => value.int().map(|value| value as f64),
    }
}

/// The comparison `left op right`; [`Const::Unknown`] when the result is not known.
#[must_use]
pub(super) fn compare(op: &str, left: &Const, right: &Const) -> Const {
    let unknown = |value: &Const| matches!(value, Const::Unknown | Const::Symbol(_) | Const::Object);
    if unknown(left) || unknown(right) {
        let same = matches!((left, right), (Const::Symbol(a), Const::Symbol(b)) if a == b);
        return match (op, same) {
            ("==" | "<=" | ">=", true) => Const::Bool(true),
            ("!=" | "<" | ">", true) => Const::Bool(false),
            _ => Const::Unknown,
        };
    }
    let ordering = match (left, right) {
        (Const::Str(a), Const::Str(b)) => Some(a.cmp(b)),
        _ => match (left.int(), right.int()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => float(left).zip(float(right)).and_then(|(a, b)| a.partial_cmp(&b)),
        },
    };
    let equal = match (left, right, ordering) {
        (_, _, Some(ordering)) => ordering.is_eq(),
        (Const::Type(a), Const::Type(b), _) => {
            let open = |element: &super::LaneType| {
                matches!(element, super::LaneType::Unknown | super::LaneType::Pointer(None))
            };
            if open(a) || open(b) {
                return Const::Unknown;
            }
            a == b
        }
        _ => left == right,
    };
    match (op, ordering) {
        ("==", _) => Const::Bool(equal),
        ("!=", _) => Const::Bool(!equal),
        ("<", Some(ordering)) => Const::Bool(ordering.is_lt()),
        ("<=", Some(ordering)) => Const::Bool(ordering.is_le()),
        (">", Some(ordering)) => Const::Bool(ordering.is_gt()),
        (">=", Some(ordering)) => Const::Bool(ordering.is_ge()),
        _ => Const::Unknown,
    }
}
