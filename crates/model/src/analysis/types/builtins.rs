//! Transfer functions of the builtins of Python that kernels may use.

use super::engine::Engine;
use super::functions;
use super::value::{Const, Kind, Value};
use crate::kernel::ast::Expr;

impl<'a> Engine<'a> {
    pub(super) fn builtin_call(&mut self, expr: &Expr, name: &str, values: &[Value<'a>]) -> Value<'a> {
        let span = expr.span;
        match (name, values) {
            ("float" | "int", [Value::Tile(tile)]) => {
                let dtype = if name == "float" { "tl.float32" } else { "tl.int32" };
                let message = format!(
                    "`{name}()` is computed while compiling, and `{tile}` is a run-time value; use `.to({dtype})`"
                );
                self.problem(Kind::Conversion, span, message);
                Value::Unknown
            }
            ("float", [Value::Const(constant)]) => Value::Const(to_float(constant)),
            ("int", [Value::Const(constant)]) => Value::Const(to_int(constant)),
            ("len", [Value::Tuple(parts)]) => Value::int(i128::try_from(parts.len()).unwrap_or(0)),
            ("len", [Value::Tile(tile)]) => {
                let message = format!("`{tile}` has no `len()`; use `.shape[0]`");
                self.problem(Kind::Conversion, span, message);
                Value::Unknown
            }
            ("min" | "max", [_]) => {
                self.problem(
                    Kind::Argument,
                    span,
                    format!("`{name}` in a kernel needs two values at least; use `tl.{name}` for a tile"),
                );
                Value::Unknown
            }
            ("min" | "max", [Value::Const(_), rest @ ..])
                if self.since(6).is_none() && rest.iter().all(|value| value.constant().is_some()) =>
            {
                Value::Unknown
            }
            ("min" | "max", [Value::Const(first), rest @ ..])
                if self.since(6) == Some(true) && rest.iter().all(|value| value.constant().is_some()) =>
            {
                let mut best = first.clone();
                for value in rest.iter().filter_map(Value::constant) {
                    let better = super::fold::compare(if name == "min" { "<" } else { ">" }, value, &best);
                    match better {
                        Const::Bool(true) => best = value.clone(),
                        Const::Bool(false) => {}
                        _ => return Value::Const(Const::Unknown),
                    }
                }
                Value::Const(best)
            }
            ("min" | "max", [first, rest @ ..]) if !rest.is_empty() => {
                // Before 3.6 only the first two arguments count.
                let rest = if self.since(6) == Some(true) { rest } else { &rest[..1] };
                rest.iter().fold(first.clone(), |best, value| functions::elementwise(self, span, &best, value))
            }
            ("print", [first, ..]) => {
                let is_text =
                    matches!(first, Value::Const(Const::Str(_) | Const::Unknown | Const::Symbol(_)) | Value::Unknown);
                if !is_text {
                    self.problem(Kind::Argument, span, "the first argument of `print` must be a string");
                }
                Value::none()
            }
            ("list", [Value::Tuple(_)]) if self.since(3) == Some(true) => Value::Builtin("list()"),
            ("list", [Value::Tuple(parts)]) if self.since(3) == Some(false) => Value::Tuple(parts.clone()),
            ("range", _) => Value::Builtin("range()"),
            ("isinstance" | "hasattr", _) => Value::Const(Const::Unknown),
            _ => Value::Unknown,
        }
    }
}

pub(super) fn to_float(constant: &Const) -> Const {
    #[expect(clippy::cast_precision_loss, reason = "Python rounds, too")]
    match constant {
        Const::Float(_) => constant.clone(),
        Const::Int(value) => Const::Float(*value as f64),
        Const::Bool(value) => Const::Float(f64::from(*value)),
        Const::Str(text) => text.trim().replace('_', "").parse().map_or(Const::Unknown, Const::Float),
        _ => Const::Unknown,
    }
}

pub(super) fn to_int(constant: &Const) -> Const {
    match constant {
        Const::Int(_) | Const::Symbol(_) => constant.clone(),
        Const::Bool(value) => Const::Int(i128::from(*value)),
        #[expect(clippy::cast_possible_truncation, reason = "that is what `int()` does")]
        Const::Float(value) if value.abs() < 1e18 => Const::Int(value.trunc() as i128),
        _ => Const::Unknown,
    }
}
