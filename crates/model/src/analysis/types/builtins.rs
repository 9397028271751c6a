//! Transfer functions of the builtins of Python that kernels may use.

use super::engine::Engine;
use super::functions;
use super::value::{AbstractValue, Const, ProblemKind};
use crate::kernel::ast::Expr;

impl<'a> Engine<'a> {
    pub(super) fn builtin_call(&mut self, expr: &Expr, name: &str, values: &[AbstractValue<'a>]) -> AbstractValue<'a> {
        let span = expr.span;
        match (name, values) {
            ("float" | "int", [AbstractValue::Tile(tile)]) => {
                let dtype = if name == "float" { "tl.float32" } else { "tl.int32" };
                let message = format!(
                    "`{name}()` is computed while compiling, and `{tile}` is a run-time value; use `.to({dtype})`"
                );
                self.problem(ProblemKind::Conversion, span, message);
                AbstractValue::Unknown
            }
            ("float", [AbstractValue::Const(constant)]) => AbstractValue::Const(to_float(constant)),
            ("int", [AbstractValue::Const(constant)]) => AbstractValue::Const(to_int(constant)),
            ("len", [AbstractValue::Tuple(parts)]) => AbstractValue::int(i128::try_from(parts.len()).unwrap_or(0)),
            ("len", [AbstractValue::Tile(tile)]) => {
                let message = format!("`{tile}` has no `len()`; use `.shape[0]`");
                self.problem(ProblemKind::Conversion, span, message);
                AbstractValue::Unknown
            }
            ("min" | "max", [_]) => {
                self.problem(
                    ProblemKind::Argument,
                    span,
                    format!("`{name}` in a kernel needs two values at least; use `tl.{name}` for a tile"),
                );
                AbstractValue::Unknown
            }
            ("min" | "max", [AbstractValue::Const(_), rest @ ..])
                if self.since(6).is_none() && rest.iter().all(|value| value.constant().is_some()) =>
            {
                AbstractValue::Unknown
            }
            ("min" | "max", [AbstractValue::Const(first), rest @ ..])
                if self.since(6) == Some(true) && rest.iter().all(|value| value.constant().is_some()) =>
            {
                let mut best = first.clone();
                for value in rest.iter().filter_map(AbstractValue::constant) {
                    let better = super::constant_folding::compare(if name == "min" { "<" } else { ">" }, value, &best);
                    match better {
                        Const::Bool(true) => best = value.clone(),
                        Const::Bool(false) => {}
                        _ => return AbstractValue::Const(Const::Unknown),
                    }
                }
                AbstractValue::Const(best)
            }
            ("min" | "max", [first, rest @ ..]) if !rest.is_empty() => {
                // Before 3.6 only the first two arguments count.
                let rest = if self.since(6) == Some(true) { rest } else { &rest[..1] };
                rest.iter().fold(first.clone(), |best, value| {
                    let about = super::index::extreme(name, &best.scalarized(), &value.scalarized());
                    match functions::elementwise(self, span, &best, value) {
                        AbstractValue::Tile(tile) => AbstractValue::Tile(tile.knowing(about)),
                        other => other,
                    }
                })
            }
            ("print", [first, ..]) => {
                let is_text = matches!(
                    first,
                    AbstractValue::Const(Const::Str(_) | Const::Unknown | Const::Symbol(_)) | AbstractValue::Unknown
                );
                if !is_text {
                    self.problem(ProblemKind::Argument, span, "the first argument of `print` must be a string");
                }
                AbstractValue::none()
            }
            ("list", [AbstractValue::Tuple(_)]) if self.since(3) == Some(true) => AbstractValue::Builtin("list()"),
            ("list", [AbstractValue::Tuple(parts)]) if self.since(3) == Some(false) => {
                AbstractValue::Tuple(parts.clone())
            }
            ("range", _) => AbstractValue::Builtin("range()"),
            ("isinstance" | "hasattr", _) => AbstractValue::Const(Const::Unknown),
            _ => AbstractValue::Unknown,
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
