//! Compile-time values, in the form in which they are sent to the compiler.

use serde::ser::{Serialize, SerializeMap, Serializer};

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{Const, LaneType};
use model::kernel::Module;
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Source;

/// A compile-time value.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// A string.
    Str(String),
    /// A dtype by its name in `triton.language`.
    Dtype(&'static str),
    /// A tuple or list.
    Tuple(Vec<Constant>),
    /// A dict with strings for keys.
    Dict(Vec<(String, Constant)>),
}

impl Serialize for Constant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn tagged<S: Serializer>(to: S, tag: &'static str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
            let mut map = to.serialize_map(Some(1))?;
            map.serialize_entry(tag, value)?;
            map.end()
        }
        match self {
            Self::None => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Str(text) => serializer.serialize_str(text),
            Self::Dtype(name) => tagged(serializer, "dtype", name),
            Self::Tuple(items) => tagged(serializer, "tuple", items),
            Self::Dict(items) => tagged(serializer, "dict", items),
        }
    }
}

impl Constant {
    /// An integer; `None` if it does not fit 64 bits.
    #[must_use]
    pub fn integer(value: i128) -> Option<Self> {
        i64::try_from(value).ok().map(Self::Int)
    }

    /// A float; `None` if it is not finite.
    #[must_use]
    pub fn float(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self::Float(value))
    }

    /// A dtype.
    #[must_use]
    pub fn dtype(number: Dtype) -> Self {
        Self::Dtype(number.member())
    }

    /// Converts a constant of the analysis.
    pub(super) fn of_const(value: &Const) -> Option<Self> {
        match value {
            Const::None => Some(Self::None),
            Const::Bool(value) => Some(Self::Bool(*value)),
            Const::Int(value) => Self::integer(*value),
            Const::Float(value) => Self::float(*value),
            Const::Str(text) => Some(Self::Str(text.to_string())),
            Const::Type(LaneType::Number(number)) => Some(Self::dtype(*number)),
            Const::Type(_) | Const::Unknown | Const::Symbol(_) | Const::Object => None,
        }
    }

    /// Evaluates an expression of literals.
    pub(super) fn of_expr(expr: &Expr) -> Option<Self> {
        let all = |items: &[Expr]| items.iter().map(Self::of_expr).collect::<Option<Vec<_>>>();
        match &expr.kind {
            ExprKind::None => Some(Self::None),
            ExprKind::Bool(value) => Some(Self::Bool(*value)),
            ExprKind::Int(value) => Self::integer(*value),
            ExprKind::Float(value) => Self::float(*value),
            ExprKind::Str(text) => (!text.contains('\\')).then(|| Self::Str(text.clone())),
            ExprKind::Unary { op, operand } => match (op.as_str(), Self::of_expr(operand)?) {
                ("-", Self::Int(value)) => value.checked_neg().map(Self::Int),
                ("-", Self::Float(value)) => Some(Self::Float(-value)),
                ("not", Self::Bool(value)) => Some(Self::Bool(!value)),
                _ => None,
            },
            ExprKind::Tuple(items) | ExprKind::List(items) => all(items).map(Self::Tuple),
            ExprKind::Dict { items, open: false } => {
                let items = items.iter().map(|(key, value)| match Self::of_expr(key)? {
                    Self::Str(key) => Some((key, Self::of_expr(value)?)),
                    _ => None,
                });
                items.collect::<Option<Vec<_>>>().map(Self::Dict)
            }
            ExprKind::Attribute { .. } => {
                let path = expr.dotted()?;
                let (name, before) = path.split_last()?;
                matches!(before, ["tl" | "torch" | "language"] | [_, "language"])
                    .then(|| Dtype::of_torch(name))?
                    .map(Self::dtype)
            }
            ExprKind::Call(call) => {
                // `tl.constexpr(3)`
                let [only] = call.args.as_slice() else { return None };
                (*call.func.dotted()?.last()? == "constexpr").then(|| Self::of_expr(&only.value))?
            }
            _ => None,
        }
    }

    /// Parses a text as a Python expression of literals.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let module = Module::build_whole(&Source::parse(format!("value = {text}\n")));
        let [global] = module.globals.as_slice() else { return None };
        Self::of_expr(&global.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_worker_reads_them() {
        for (text, expected) in [
            ("None", "null"),
            ("True", "true"),
            ("-3", "-3"),
            ("1e-5", "0.00001"),
            ("'a'", "\"a\""),
            ("tl.float16", r#"{"dtype":"float16"}"#),
            ("(1, [2, None])", r#"{"tuple":[1,{"tuple":[2,null]}]}"#),
            ("{'k': 1.5}", r#"{"dict":[["k",1.5]]}"#),
        ] {
            let value = Constant::of_text(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), expected);
        }
        for unknown in ["x", "f(1)", "1 +", "99999999999999999999", "{1: 2}", "1e999"] {
            assert_eq!(Constant::of_text(unknown), None, "{unknown}");
        }
    }
}
