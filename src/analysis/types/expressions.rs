//! Expressions.

use super::dtype::Number;
use super::engine::{Engine, Frame};
use super::fold;
use super::shape::{self, Dim, Shape};
use super::value::{Const, Element, Kind, Tile, Value};
use crate::api::{Lookup, MemberKind};
use crate::kernel::ast::{Expr, ExprKind};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// What an expression stands for.
    pub(super) fn eval(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> Value<'a> {
        if !self.step() {
            return Value::Unknown;
        }
        let value = self.expression(expr, frame);
        if self.trace {
            self.facts.types.push((expr.span, value.detached()));
        }
        value
    }

    fn expression(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> Value<'a> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, expr.span, frame),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::None => {
                Value::Const(fold::literal(expr).unwrap_or(Const::Unknown))
            }
            ExprKind::Attribute { value, name, .. } => {
                let value = self.eval(value, frame);
                self.attribute(expr, value, name, frame)
            }
            ExprKind::Call(call) => self.call(expr, call, frame),
            ExprKind::Subscript { value, index } => self.subscript(expr, value, index, frame),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.eval(left, frame), self.eval(right, frame));
                self.binary(expr.span, op, &left, &right)
            }
            ExprKind::Unary { op, operand } => {
                let operand = self.eval(operand, frame);
                self.unary(expr.span, op, &operand)
            }
            ExprKind::Compare { left, rest } => self.compare(expr, left, rest, frame),
            ExprKind::BoolOp { .. } => self.bool_op(expr, frame),
            ExprKind::IfExp { .. } => self.choice(expr, frame),
            ExprKind::Tuple(parts) | ExprKind::List(parts) => {
                let parts: Vec<Value<'a>> = parts.iter().map(|part| self.eval(part, frame)).collect();
                Value::tuple(parts)
            }
            ExprKind::Slice(parts) => {
                parts.iter().for_each(|part| drop(self.eval(part, frame)));
                Value::Slice
            }
            ExprKind::Starred(_) => Value::Unknown,
            ExprKind::FString(parts) => {
                for part in parts {
                    if self.eval(part, frame).is_runtime() {
                        let message = "an f-string in a kernel can only hold compile-time values";
                        self.problem(Kind::Conversion, expr.span, message);
                    }
                }
                Value::Const(Const::Unknown)
            }
            ExprKind::Named { name, value } => {
                let value = self.eval(value, frame);
                if self.since(8) == Some(false) {
                    self.problem(Kind::Syntax, expr.span, "`:=` in a kernel needs Triton 3.8");
                }
                frame.names.insert(name, value.clone());
                value
            }
            ExprKind::Comprehension { .. } => self.comprehension(expr, frame),
            ExprKind::Lambda { .. } | ExprKind::Dict { .. } | ExprKind::Other(_) => self.unsupported(expr),
        }
    }

    /// An expression that Triton has no meaning for.
    fn unsupported(&mut self, expr: &Expr) -> Value<'a> {
        let what = match &expr.kind {
            ExprKind::Lambda { .. } => "a `lambda`; define a function under `@triton.jit`",
            ExprKind::Dict { .. } => "a dict; pass its entries as parameters",
            ExprKind::Other(kind) => match kind.as_str() {
                "set" => "a set",
                "dictionary_comprehension" => "a dict comprehension",
                "set_comprehension" => "a set comprehension",
                "generator_expression" => "a generator; use `tl.static_range`",
                "yield" => "`yield`",
                "await" => "`await`",
                _ => return Value::Unknown,
            },
            _ => return Value::Unknown,
        };
        self.problem(Kind::Syntax, self.first_line(expr.span), format!("a kernel cannot contain {what}"));
        Value::Unknown
    }

    fn comprehension(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> Value<'a> {
        let ExprKind::Comprehension { element, clauses, filtered } = &expr.kind else { return Value::Unknown };
        let Some((target, iter)) = clauses.first() else { return Value::Unknown };
        if self.since(5) == Some(false) {
            self.problem(Kind::Syntax, expr.span, "a kernel cannot contain a list comprehension before Triton 3.5");
            return Value::Unknown;
        }
        let iterated = self.eval(iter, frame);
        match iterated {
            Value::Tuple(parts) if clauses.len() == 1 && !filtered => {
                let results = parts.iter().map(|part| {
                    self.assign(target, part.clone(), expr.span, frame);
                    self.eval(element, frame)
                });
                Value::tuple(results.collect())
            }
            Value::Tile(_) | Value::Builtin(_) if self.since(5) == Some(true) => {
                self.problem(Kind::Syntax, expr.span, "a list comprehension in a kernel can only run over a tuple");
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    fn name(&mut self, name: &'a str, span: Span, frame: &mut Frame<'a>) -> Value<'a> {
        if let Some(value) = frame.names.get(name) {
            self.record_stale(name, span, frame);
            return value.clone();
        }
        if frame.kernel.locals.contains(name) {
            // Bound somewhere, not here; a global of the same name is what the front end takes.
            if frame.is_opaque || self.module.bindings.contains_key(name) || self.module.has_star_import {
                return Value::Unknown;
            }
            if frame.kernel.nested || self.uncertain > 0 && frame.regions == 0 {
                return Value::Unknown;
            }
            let bindings = super::statements::bound(&frame.kernel.body);
            let related = bindings
                .get(name)
                .map(|place| (*place, "it is bound inside a branch or loop only, which ends its life".to_owned()));
            self.problem_with(
                Kind::UndefinedName,
                span,
                format!("`{name}` is not defined here: what a branch or loop binds is gone behind it"),
                related.into_iter().collect(),
            );
            return Value::Unknown;
        }
        self.global_name(name, span, frame)
    }

    fn attribute(&mut self, expr: &'a Expr, value: Value<'a>, name: &'a str, frame: &Frame<'a>) -> Value<'a> {
        match &value {
            Value::Member(path) => {
                let direct = self.module.resolve_in(frame.kernel, expr).is_none_or(|resolved| resolved.direct);
                let full = format!("{path}.{name}");
                if !path.starts_with("triton") {
                    return host_member(&full);
                }
                match self.target.lookup(&full) {
                    Lookup::Absent => Value::Unknown,
                    Lookup::Found(member) if member.kind == MemberKind::Dtype => self.member(&full, direct),
                    _ => self.member(&full, direct),
                }
            }
            Value::Const(Const::Type(element)) => self.type_attribute(*element, name, &value),
            Value::Const(_) if matches!(name, "value") => value,
            Value::Const(Const::Str(_) | Const::Int(_) | Const::Float(_)) if self.since(4) == Some(false) => {
                if name != "type" {
                    let message = format!("a compile-time value has no `{name}` before Triton 3.4");
                    self.problem(Kind::Attribute, expr.span, message);
                }
                Value::Const(Const::Unknown)
            }
            Value::Const(_) => Value::Const(Const::Unknown),
            Value::Tile(tile) => self.tile_attribute(expr, tile, name, &value),
            Value::Descriptor(tile) => match name {
                "dtype" => Value::Const(Const::Type(tile.element)),
                "block_shape" => sizes(tile.shape.as_ref()),
                "shape" | "strides" | "type" | "block_type" | "handle" | "base" => Value::Unknown,
                _ => Value::Method(value.into(), name),
            },
            Value::BlockPointer(_) => match name {
                "dtype" | "type" | "shape" => Value::Unknown,
                _ => Value::Method(value.into(), name),
            },
            Value::Tuple(_)
            | Value::Kernel(_)
            | Value::Builtin(_)
            | Value::Method(..)
            | Value::Unknown
            | Value::Opaque(_)
            | Value::Slice => self.other_attribute(expr, &value, name),
        }
    }

    fn other_attribute(&mut self, expr: &Expr, value: &Value<'a>, name: &str) -> Value<'a> {
        let list_methods = ["append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear"];
        if matches!(value, Value::Tuple(_)) && list_methods.contains(&name) {
            let message = format!("lists in a kernel are tuples, which have no `{name}`");
            self.problem(Kind::Attribute, expr.span, message);
        }
        Value::Unknown
    }

    fn type_attribute(&self, element: Element, name: &'a str, value: &Value<'a>) -> Value<'a> {
        match (name, element) {
            ("scalar" | "dtype", _) => value.clone(),
            ("element_ty", Element::Pointer(pointee)) => {
                Value::Const(Const::Type(pointee.map_or(Element::Unknown, Element::Number)))
            }
            ("element_ty", _) => value.clone(),
            ("primitive_bitwidth" | "int_bitwidth", Element::Number(number)) => Value::int(i128::from(number.bits())),
            ("itemsize", Element::Number(number)) => Value::int(i128::from(number.bits() / 8)),
            ("name", Element::Number(number)) => Value::Const(Const::Str(number.name().into())),
            _ if name.starts_with("is_") => Value::Method(value.clone().into(), name),
            _ => Value::Const(Const::Unknown),
        }
    }

    fn tile_attribute(&mut self, expr: &Expr, tile: &Tile, name: &'a str, value: &Value<'a>) -> Value<'a> {
        match name {
            "dtype" | "type" => Value::Const(Const::Type(tile.element)),
            "shape" => sizes(tile.shape.as_ref()),
            "numel" => Value::Const(tile.shape.as_ref().map_or(Const::Unknown, |shape| constant(&shape::lanes(shape)))),
            "handle" => Value::Unknown,
            "T" => {
                let Some(shape) = &tile.shape else { return Value::Unknown };
                let [rows, columns] = shape.as_ref() else {
                    let message = format!("`.T` needs a tile of two axes, not `{tile}`");
                    self.problem(Kind::ShapeChange, expr.span, message);
                    return Value::Unknown;
                };
                let turned = Tile::new(tile.element, Some([columns.clone(), rows.clone()].into()));
                Value::Tile(turned.knowing(tile.about.permuted(&[1, 0])))
            }
            _ => match self.tensor_has(name) {
                Some(false) => {
                    let instead = tensor_instead(name).map_or(String::new(), |instead| format!("; use {instead}"));
                    self.problem(Kind::Attribute, expr.span, format!("values in a kernel have no `{name}`{instead}"));
                    Value::Unknown
                }
                _ => Value::Method(value.clone().into(), name),
            },
        }
    }

    /// Whether values of a kernel have this attribute; `None` when the release decides and is not known.
    fn tensor_has(&self, name: &str) -> Option<bool> {
        match self.target.lookup(&format!("triton.language.tensor.{name}")) {
            Lookup::Found(_) => Some(true),
            Lookup::Absent => Some(false),
            Lookup::Undescribed => None,
        }
    }

    fn subscript(&mut self, expr: &'a Expr, value: &'a Expr, index: &'a [Expr], frame: &mut Frame<'a>) -> Value<'a> {
        let value = self.eval(value, frame);
        let parts = match index {
            [Expr { kind: ExprKind::Tuple(parts), .. }] => parts.as_slice(),
            parts => parts,
        };
        let indices: Vec<Value<'a>> = parts.iter().map(|part| self.eval(part, frame)).collect();
        match &value {
            Value::Tile(tile) => self.expand(expr, tile, parts, &indices),
            Value::Tuple(known) => match indices.as_slice() {
                [Value::Const(Const::Int(at))] => {
                    let len = i128::try_from(known.len()).unwrap_or(i128::MAX);
                    let at = if *at < 0 { at + len } else { *at };
                    match usize::try_from(at).ok().and_then(|at| known.get(at)) {
                        Some(part) => part.clone(),
                        None => {
                            let message = format!("a tuple of {len} has no part {at}");
                            self.problem(Kind::Subscript, expr.span, message);
                            Value::Unknown
                        }
                    }
                }
                _ => Value::Unknown,
            },
            Value::Const(_) => {
                if matches!(indices.as_slice(), [Value::Const(Const::Str(_))]) {
                    self.problem(
                        Kind::Subscript,
                        expr.span,
                        "a kernel cannot look up a string; pass the entry as a parameter",
                    );
                } else if self.since(4) == Some(false)
                    && !matches!(value, Value::Const(Const::Unknown | Const::Symbol(_)))
                {
                    self.problem(
                        Kind::Subscript,
                        expr.span,
                        "a compile-time value cannot be subscripted before Triton 3.4",
                    );
                }
                Value::Const(Const::Unknown)
            }
            _ => Value::Unknown,
        }
    }

    /// `tile[:, None]`
    fn expand(&mut self, expr: &Expr, tile: &Tile, parts: &[Expr], indices: &[Value<'a>]) -> Value<'a> {
        let mut sizes: Option<Vec<Dim>> = tile.shape.as_ref().map(|shape| shape.to_vec());
        let mut about = tile.about.clone();
        for (at, (part, value)) in parts.iter().zip(indices).enumerate() {
            match (&part.kind, value) {
                (ExprKind::None, _) | (_, Value::Const(Const::None)) => match &mut sizes {
                    Some(sizes) if at <= sizes.len() => {
                        sizes.insert(at, Dim::Known(1));
                        about = about.expanded(at);
                    }
                    // A scalar takes any index: it gets one axis for each `None`.
                    Some(sizes) if tile.is_scalar() == Some(true) => sizes.push(Dim::Known(1)),
                    Some(_) => return Value::Unknown,
                    None => {}
                },
                (ExprKind::Slice(bounds), _) if bounds.is_empty() => {}
                (_, Value::Unknown | Value::Const(Const::Unknown | Const::Symbol(_))) => return Value::Unknown,
                _ => {
                    let hint = if tile.element.is_pointer() {
                        "use `tl.load`"
                    } else {
                        "a tile can only be subscripted with `:` and `None`"
                    };
                    self.problem(
                        Kind::Subscript,
                        expr.span,
                        format!("this value (`{tile}`) has no single elements; {hint}"),
                    );
                    return Value::Unknown;
                }
            }
        }
        Value::Tile(Tile::new(tile.element, sizes.map(Shape::from)).knowing(about))
    }

    pub(super) fn type_question(element: Element, name: &str) -> Const {
        let Element::Number(number) = element else {
            return match (name, element) {
                ("is_ptr", Element::Pointer(_)) => Const::Bool(true),
                (_, Element::Pointer(_)) if name != "is_const" => Const::Bool(false),
                _ => Const::Unknown,
            };
        };
        Const::Bool(match name {
            "is_floating" => number.is_float(),
            "is_standard_floating" => number.is_float() && !number.is_fp8(),
            "is_int" => number.is_int(),
            "is_int_signed" => number.is_signed(),
            "is_int_unsigned" => number.is_int() && !number.is_signed(),
            "is_bool" | "is_int1" => number == Number::Int1,
            "is_fp8" => number.is_fp8(),
            "is_ptr" | "is_block" | "is_void" => false,
            _ => match name.strip_prefix("is_") {
                Some(asked) => number.name() == asked,
                None => return Const::Unknown,
            },
        })
    }
}

/// A member of a module of the host: numbers are compile-time values.
fn host_member<'a>(path: &str) -> Value<'a> {
    match path {
        "math.pi" | "numpy.pi" | "torch.pi" => Value::Const(Const::Float(std::f64::consts::PI)),
        "math.e" | "numpy.e" => Value::Const(Const::Float(std::f64::consts::E)),
        "math.inf" | "numpy.inf" | "torch.inf" => Value::Const(Const::Float(f64::INFINITY)),
        _ => Value::Member(std::sync::Arc::from(path)),
    }
}

/// The sizes of a tile as a tuple of compile-time values.
fn sizes<'a>(shape: Option<&Shape>) -> Value<'a> {
    shape.map_or(Value::Unknown, |shape| Value::tuple(shape.iter().map(|size| Value::Const(constant(size))).collect()))
}

/// A size as a compile-time value.
pub(super) fn constant(size: &Dim) -> Const {
    match size {
        Dim::Known(size) => Const::Int(i128::from(*size)),
        Dim::Symbol(symbol) => Const::Symbol(symbol.clone()),
        Dim::Unknown => Const::Unknown,
    }
}

/// What to write instead of a method of torch or numpy.
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
