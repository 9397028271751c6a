//! Values of attributes: `x.dtype`, `x.to`, `tl.load`.

use super::dtype::Dtype;
use super::engine::{Engine, Frame};
use super::shape::{self, Dim, Shape};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::api::{Lookup, MemberKind};
use crate::kernel::ast::{Expr, ExprKind};

impl<'a> Engine<'a> {
    pub(super) fn attribute(
        &mut self,
        expr: &'a Expr,
        value: AbstractValue<'a>,
        name: &'a str,
        frame: &Frame<'a>,
    ) -> AbstractValue<'a> {
        match &value {
            AbstractValue::Member(path) => {
                let direct = self.module.resolve_in(frame.kernel, expr).is_none_or(|resolved| resolved.direct);
                let full = format!("{path}.{name}");
                if !path.starts_with("triton") {
                    return host_member(&full);
                }
                match self.target.lookup(&full) {
                    Lookup::Absent => AbstractValue::Unknown,
                    Lookup::Found(member) if member.kind == MemberKind::Dtype => self.member(&full, direct),
                    _ => self.member(&full, direct),
                }
            }
            AbstractValue::Const(Const::Type(element)) => {
                self.wrapped_attribute(expr, name, frame);
                self.type_attribute(expr, *element, name, &value)
            }
            AbstractValue::Const(_) if matches!(name, "value") => value,
            AbstractValue::Const(constant) => {
                self.constant_attribute(expr, constant, name);
                AbstractValue::Const(Const::Unknown)
            }
            AbstractValue::Tile(tile) => self.tile_attribute(expr, tile, name, &value),
            AbstractValue::Descriptor(tile) => match name {
                "dtype" => AbstractValue::Const(Const::Type(tile.element)),
                "block_shape" => sizes(tile.shape.as_ref()),
                "shape" | "strides" | "type" | "block_type" | "handle" | "base" => AbstractValue::Unknown,
                _ => AbstractValue::Method(value.into(), name),
            },
            AbstractValue::BlockPointer(_) => match name {
                "dtype" | "type" | "shape" => AbstractValue::Unknown,
                _ => AbstractValue::Method(value.into(), name),
            },
            AbstractValue::File(file) => self.member_of(*file, name),
            AbstractValue::Tuple(_)
            | AbstractValue::Kernel(_)
            | AbstractValue::Builtin(_)
            | AbstractValue::Method(..)
            | AbstractValue::Unknown
            | AbstractValue::Opaque(_)
            | AbstractValue::Slice => self.other_attribute(expr, &value, name),
        }
    }

    fn other_attribute(&mut self, expr: &Expr, value: &AbstractValue<'a>, name: &str) -> AbstractValue<'a> {
        let list_methods = ["append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear"];
        if matches!(value, AbstractValue::Tuple(_)) && list_methods.contains(&name) {
            let message = format!("lists in a kernel are tuples, which have no `{name}`");
            self.problem(ProblemKind::Attribute, expr.span, message);
        }
        AbstractValue::Unknown
    }

    /// Checks an attribute of a compile-time value: since 3.4 it is that of the Python value.
    fn constant_attribute(&mut self, expr: &Expr, constant: &Const, name: &str) {
        let is_python = match &expr.kind {
            ExprKind::Attribute { value, .. } => {
                matches!(&value.kind, ExprKind::Attribute { name, .. } if name == "value")
            }
            _ => false,
        };
        let known = match constant {
            _ if name.starts_with("__") || matches!(name, "type" | "value") => return,
            Const::Str(_) => None,
            Const::Int(_) | Const::Bool(_) => Some(INT_ATTRIBUTES),
            Const::Float(_) => Some(FLOAT_ATTRIBUTES),
            _ => return,
        };
        if !is_python && self.since(4) == Some(false) {
            let message = format!("a compile-time value has no `{name}` before Triton 3.4");
            self.problem(ProblemKind::Attribute, expr.span, message);
        } else if known.is_some_and(|known| !known.contains(&name)) {
            let message = format!("`{constant}` is a compile-time number, which has no `{name}`");
            self.problem(ProblemKind::Attribute, expr.span, message);
        }
    }

    /// Reports attributes of a parameter that holds a dtype: before 3.4 only `.value` exists.
    fn wrapped_attribute(&mut self, expr: &Expr, name: &str, frame: &Frame<'a>) {
        let ExprKind::Attribute { value, .. } = &expr.kind else { return };
        let is_param = |of: &str| frame.kernel.params.iter().any(|param| param.constexpr && param.name == of);
        if self.since(4) == Some(false) && !matches!(name, "value" | "type") && value.as_name().is_some_and(is_param) {
            let message =
                format!("a `tl.constexpr` parameter has no `{name}` before Triton 3.4; write `.value.{name}`");
            self.problem(ProblemKind::Attribute, expr.span, message);
        }
    }

    fn type_attribute(
        &mut self,
        expr: &Expr,
        element: LaneType,
        name: &'a str,
        value: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let is_of_type = match &expr.kind {
            ExprKind::Attribute { value, .. } => {
                matches!(&value.kind, ExprKind::Attribute { name, .. } if name == "type")
            }
            _ => false,
        };
        if let ("element_ty", LaneType::Number(number), false) = (name, element, is_of_type) {
            self.problem(
                ProblemKind::Attribute,
                expr.span,
                format!("`{number}` is not a pointer type and has no `element_ty`"),
            );
            return AbstractValue::Unknown;
        }
        if name == "itemsize" && self.since(4) == Some(false) {
            self.problem(
                ProblemKind::Attribute,
                expr.span,
                "dtypes have no `itemsize` before Triton 3.4; use `primitive_bitwidth // 8`",
            );
        }
        match (name, element) {
            ("scalar" | "dtype", _) => value.clone(),
            ("element_ty", LaneType::Pointer(pointee)) => {
                AbstractValue::Const(Const::Type(pointee.map_or(LaneType::Unknown, LaneType::Number)))
            }
            ("element_ty", _) => value.clone(),
            ("primitive_bitwidth" | "int_bitwidth", LaneType::Number(number)) => {
                AbstractValue::int(i128::from(number.bits()))
            }
            ("itemsize", LaneType::Number(number)) => AbstractValue::int(i128::from(number.bits() / 8)),
            ("name", LaneType::Number(number)) => AbstractValue::Const(Const::Str(number.name().into())),
            _ if name.starts_with("is_") => AbstractValue::Method(value.clone().into(), name),
            _ => AbstractValue::Const(Const::Unknown),
        }
    }

    fn tile_attribute(
        &mut self,
        expr: &Expr,
        tile: &RuntimeValue,
        name: &'a str,
        value: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        match name {
            "dtype" | "type" => AbstractValue::Const(Const::Type(tile.element)),
            "shape" => sizes(tile.shape.as_ref()),
            "numel" => {
                AbstractValue::Const(tile.shape.as_ref().map_or(Const::Unknown, |shape| constant(&shape::lanes(shape))))
            }
            "handle" => AbstractValue::Unknown,
            "T" => {
                let Some(shape) = &tile.shape else { return AbstractValue::Unknown };
                let [rows, columns] = shape.as_ref() else {
                    let message = format!("`.T` needs a tile of two axes, not `{tile}`");
                    self.problem(ProblemKind::ShapeChange, expr.span, message);
                    return AbstractValue::Unknown;
                };
                let turned = RuntimeValue::new(tile.element, Some([columns.clone(), rows.clone()].into()));
                AbstractValue::Tile(turned.knowing(tile.about.permuted(&[1, 0])))
            }
            _ => match self.tensor_has(name) {
                Some(false) => {
                    let instead = tensor_instead(name).map_or(String::new(), |instead| format!("; use {instead}"));
                    self.problem(
                        ProblemKind::Attribute,
                        expr.span,
                        format!("values in a kernel have no `{name}`{instead}"),
                    );
                    AbstractValue::Unknown
                }
                _ => AbstractValue::Method(value.clone().into(), name),
            },
        }
    }

    /// Whether tensors in kernels have this attribute; `None` when that depends on the release, which is not known.
    fn tensor_has(&self, name: &str) -> Option<bool> {
        match self.target.lookup(&format!("triton.language.tensor.{name}")) {
            Lookup::Found(_) => Some(true),
            Lookup::Absent => Some(false),
            Lookup::Undescribed => None,
        }
    }

    pub(super) fn type_question(element: LaneType, name: &str) -> Const {
        let LaneType::Number(number) = element else {
            return match (name, element) {
                ("is_ptr", LaneType::Pointer(_)) => Const::Bool(true),
                (_, LaneType::Pointer(_)) if name != "is_const" => Const::Bool(false),
                _ => Const::Unknown,
            };
        };
        Const::Bool(match name {
            "is_floating" => number.is_float(),
            "is_standard_floating" => number.is_float() && !number.is_fp8(),
            "is_int" => number.is_int(),
            "is_int_signed" => number.is_signed(),
            "is_int_unsigned" => number.is_int() && !number.is_signed(),
            "is_bool" | "is_int1" => number == Dtype::Int1,
            "is_fp8" => number.is_fp8(),
            "is_ptr" | "is_block" | "is_void" => false,
            _ => match name.strip_prefix("is_") {
                Some(asked) => number.name() == asked,
                None => return Const::Unknown,
            },
        })
    }
}

const INT_ATTRIBUTES: &[&str] = &[
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "conjugate",
    "denominator",
    "from_bytes",
    "imag",
    "is_integer",
    "numerator",
    "real",
    "to_bytes",
];
const FLOAT_ATTRIBUTES: &[&str] = &["as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"];

/// A member of a host module. Numbers are compile-time values.
fn host_member<'a>(path: &str) -> AbstractValue<'a> {
    match path {
        "math.pi" | "numpy.pi" | "torch.pi" => AbstractValue::Const(Const::Float(std::f64::consts::PI)),
        "math.e" | "numpy.e" => AbstractValue::Const(Const::Float(std::f64::consts::E)),
        "math.inf" | "numpy.inf" | "torch.inf" => AbstractValue::Const(Const::Float(f64::INFINITY)),
        _ => AbstractValue::Member(std::sync::Arc::from(path)),
    }
}

/// The sizes of a tile as a tuple of compile-time values.
fn sizes<'a>(shape: Option<&Shape>) -> AbstractValue<'a> {
    shape.map_or(AbstractValue::Unknown, |shape| {
        AbstractValue::tuple(shape.iter().map(|size| AbstractValue::Const(constant(size))).collect())
    })
}

/// A size as a compile-time value.
pub(super) fn constant(size: &Dim) -> Const {
    match size {
        Dim::Known(size) => Const::Int(i128::from(*size)),
        Dim::Symbol(symbol) => Const::Symbol(symbol.clone()),
        Dim::Unknown => Const::Unknown,
    }
}

/// The replacement for a method of torch or numpy, for messages.
fn tensor_instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "float" => "`.to(tl.float32)`",
        "half" => "`.to(tl.float16)`",
        "bfloat16" => "`.to(tl.bfloat16)`",
        "long" => "`.to(tl.int64)`",
        "int" => "`.to(tl.int32)`",
        "double" => "`.to(tl.float64)`",
        "type_as" | "astype" => "`.to(…)`",
        "size" => "`.shape`",
        "ndim" | "dim" => "`len(x.shape)`",
        "transpose" | "t" => "`tl.trans`",
        "squeeze" | "flatten" => "`.reshape(…)`",
        "unsqueeze" => "`x[:, None]`",
        "expand" | "expand_as" => "`.broadcast_to(…)`",
        "mean" => "`tl.sum(x) / n`",
        "item" => "the scalar itself",
        "load" => "`tl.load`",
        "pow" => "`tl.extra.libdevice.pow`",
        "clamp" => "`tl.clamp`",
        "clone" | "copy" | "contiguous" | "detach" => "the value itself: it never changes",
        _ => return None,
    })
}
