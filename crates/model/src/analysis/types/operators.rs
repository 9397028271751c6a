//! Transfer functions of unary and binary operators.

use super::constant_folding;
use super::dtype::{self, Dtype, DtypeKind, Mismatch};
use super::engine::Engine;
use super::index::{self, LaneFact};
use super::shape::{self, Shape};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// `left op right`
    pub(super) fn binary(
        &mut self,
        span: Span,
        op: &str,
        left: &AbstractValue<'a>,
        right: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        if op == "@" {
            self.problem(ProblemKind::Operand, span, "a kernel has no `@`; use `tl.dot`");
            return AbstractValue::Unknown;
        }
        match (left, right) {
            (AbstractValue::Const(a), AbstractValue::Const(b)) => self.folded(span, op, a, b),
            (AbstractValue::Tuple(a), AbstractValue::Tuple(b)) if op == "+" => {
                AbstractValue::tuple(a.iter().chain(b.iter()).cloned().collect())
            }
            (AbstractValue::Opaque(_), AbstractValue::Opaque(_) | AbstractValue::Const(_))
            | (AbstractValue::Const(_), AbstractValue::Opaque(_)) => {
                AbstractValue::Opaque(self.about_binary(span, op, &left.scalarized(), &right.scalarized()))
            }
            (AbstractValue::Tile(_), _) | (_, AbstractValue::Tile(_)) => {
                self.tile_binary(span, op, &left.scalarized(), &right.scalarized())
            }
            _ => AbstractValue::Unknown,
        }
    }

    /// The symbolic value of `left op right`.
    fn about_binary(&mut self, span: Span, op: &str, left: &AbstractValue<'a>, right: &AbstractValue<'a>) -> LaneFact {
        if matches!(op, "//" | "%") {
            self.record_division(span, op, left, right);
        }
        match index::binary(op, left, right) {
            LaneFact::Nothing if matches!(op, "//" | "%") => self.quotient(op, left, right),
            about => about,
        }
    }

    /// Folds compile-time values. Reports operations that Python itself rejects.
    fn folded(&mut self, span: Span, op: &str, a: &Const, b: &Const) -> AbstractValue<'a> {
        let divides = matches!(op, "/" | "//" | "%");
        let is_number = |value: &Const| matches!(value, Const::Bool(_) | Const::Int(_) | Const::Float(_));
        if divides && is_number(a) && matches!(b, Const::Int(0) | Const::Bool(false)) {
            self.problem(ProblemKind::Operand, span, format!("`{a} {op} {b}` divides by zero while compiling"));
            return AbstractValue::Unknown;
        }
        AbstractValue::Const(constant_folding::binary(op, a, b).unwrap_or(Const::Unknown))
    }

    fn tile_binary(
        &mut self,
        span: Span,
        op: &str,
        left: &AbstractValue<'a>,
        right: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        if op == "**" {
            let message = "values in a kernel have no `**`; multiply, or use `tl.exp2` and `tl.log2`";
            self.problem(ProblemKind::Operand, span, message);
            return AbstractValue::Unknown;
        }
        let (Some(a), Some(b)) = (self.operand(span, left), self.operand(span, right)) else {
            return AbstractValue::Unknown;
        };
        let element = match op {
            "+" | "-" | "*" | "/" | "//" | "%" => self.arithmetic(span, op, &a, &b),
            "&" | "|" | "^" | "<<" | ">>" => self.bitwise(span, op, &a, &b),
            _ => None,
        };
        let Some(element) = element else { return AbstractValue::Unknown };
        let shape = self.common_shape(span, &a.tile, &b.tile);
        let mut about = self.about_binary(span, op, left, right);
        if self.notes_width && element == LaneType::Number(Dtype::Int32) && matches!(op, "+" | "-" | "*") {
            about = about.noting(span);
        }
        AbstractValue::Tile(RuntimeValue::new(element, shape).knowing(about))
    }

    /// The value as an operand. Reports values that cannot be operands.
    pub(super) fn operand(&mut self, span: Span, value: &AbstractValue<'a>) -> Option<Operand> {
        match value {
            AbstractValue::Tile(tile) => Some(Operand { tile: tile.clone(), constant: None }),
            AbstractValue::Opaque(_) => {
                let tile = RuntimeValue::new(LaneType::Unknown, Some(Shape::default()));
                Some(Operand { tile, constant: Some(Const::Unknown) })
            }
            AbstractValue::Const(constant @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                if let Some(number) = Self::number_of(value) {
                    Some(Operand { tile: RuntimeValue::scalar(number), constant: Some(constant.clone()) })
                } else {
                    self.problem(ProblemKind::Overflow, span, format!("`{constant}` does not fit into 64 bits"));
                    None
                }
            }
            AbstractValue::Const(constant @ Const::Symbol(_)) => {
                Some(Operand { tile: RuntimeValue::scalar(Dtype::Int32), constant: Some(constant.clone()) })
            }
            AbstractValue::Const(Const::Unknown | Const::Object) => {
                let tile = RuntimeValue::new(LaneType::Unknown, Some(Shape::default()));
                Some(Operand { tile, constant: Some(Const::Unknown) })
            }
            AbstractValue::Const(constant @ (Const::Str(_) | Const::Type(_) | Const::None)) => {
                self.problem(
                    ProblemKind::Operand,
                    span,
                    format!("`{constant}` cannot be combined with a run-time value"),
                );
                None
            }
            AbstractValue::Tuple(_) => {
                let message = "a tuple or list cannot be combined with a run-time value; use one of its elements";
                self.problem(ProblemKind::Operand, span, message);
                None
            }
            AbstractValue::Member(path) if self.is_function(path) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                self.problem(ProblemKind::Operand, span, format!("`{name}` is a function and no operand; call it"));
                None
            }
            _ => None,
        }
    }

    /// The element type of `a op b`; `None` when there is none or it is not known.
    fn arithmetic(&mut self, span: Span, op: &str, a: &Operand, b: &Operand) -> Option<LaneType> {
        let (left, right) = (a.tile.element, b.tile.element);
        if left.is_pointer() || right.is_pointer() {
            return self.pointer_arithmetic(span, op, left, right);
        }
        let divides = matches!(op, "/" | "//" | "%");
        if self.is_open(a, b) {
            return Some(LaneType::Unknown);
        }
        let Some((x, y)) = left.number().zip(right.number()) else {
            return Some(if self.since(2) == Some(true) { half_known(op, a, b) } else { LaneType::Unknown });
        };
        let number = self.computed(span, op, a, b, (x, y), divides)?;
        match op {
            "/" => Some(LaneType::Number(if number.is_int() { Dtype::Fp32 } else { number })),
            "//" if number.is_float() => {
                let message = format!("`//` is for integers, and this is `{number}`; use `/` and `tl.floor`");
                self.problem(ProblemKind::Operand, span, message);
                None
            }
            _ => Some(LaneType::Number(number)),
        }
    }

    /// Whether the result depends on the type of a symbolic constant, which may be a condition.
    fn is_open(&self, a: &Operand, b: &Operand) -> bool {
        let is_symbol = |operand: &Operand| matches!(operand.constant, Some(Const::Symbol(_)));
        let decides = |other: &Operand| {
            self.since(2) == Some(false) || other.tile.element.number().is_none_or(|number| number.bits() == 1)
        };
        is_symbol(a) && decides(b) || is_symbol(b) && decides(a)
    }

    /// The common type of two numbers. Makes the same checks as the front end.
    pub(super) fn computed(
        &mut self,
        span: Span,
        op: &str,
        a: &Operand,
        b: &Operand,
        (x, y): (Dtype, Dtype),
        divides: bool,
    ) -> Option<Dtype> {
        // Up to 3.1 constants are promoted like other values.
        let is_weak = self.since(2) != Some(false);
        let constants = (is_weak && a.constant.is_some(), is_weak && b.constant.is_some());
        let number = match dtype::computation((x, constants.0), (y, constants.1), divides) {
            Ok(number) => number,
            Err(Mismatch::Signedness) => {
                let message = format!("`{op}` of a signed and an unsigned integer (`{x}` and `{y}`); cast one of them");
                self.problem(ProblemKind::Operand, span, message);
                return None;
            }
            Err(Mismatch::Unexpected) => {
                self.problem(
                    ProblemKind::Operand,
                    span,
                    format!("`{op}` does not take `{x}` and `{y}`; cast one of them"),
                );
                return None;
            }
        };
        let is_3_2 = self.since(2) == Some(true) && self.since(3) == Some(false);
        if let Some(value) = b.constant.as_ref().and_then(Const::int).filter(|value| *value < 0 && is_3_2)
            && number.is_int()
            && !number.is_signed()
        {
            self.problem(
                ProblemKind::Overflow,
                span,
                format!("{value} is combined with an unsigned `{number}`; cast it"),
            );
        }
        // Comparisons make a tensor of the constant first, which takes any number.
        let is_comparison = matches!(op, "<" | "<=" | ">" | ">=" | "==" | "!=");
        for constant in [&a.constant, &b.constant].into_iter().flatten().filter(|_| !is_comparison) {
            self.check_range(span, number, constant);
        }
        Some(number)
    }

    fn check_range(&mut self, span: Span, number: Dtype, constant: &Const) {
        let Some(value) = constant.int().filter(|_| number.is_int() && self.since(3) == Some(true)) else { return };
        let (low, high) = number.bounds();
        if value < low || value > high {
            self.problem(
                ProblemKind::Overflow,
                span,
                format!("{value} does not fit into the `{number}` that it is combined with"),
            );
        }
    }

    fn pointer_arithmetic(&mut self, span: Span, op: &str, left: LaneType, right: LaneType) -> Option<LaneType> {
        let refuse = |engine: &mut Self, why: &str| {
            engine.problem(ProblemKind::Operand, span, why);
            None
        };
        match (op, left, right) {
            ("+", LaneType::Pointer(_), LaneType::Pointer(_)) => refuse(self, "two pointers cannot be added"),
            ("+" | "-", _, LaneType::Number(number)) | ("+", LaneType::Number(number), _) if number.is_float() => {
                refuse(self, &format!("an offset of a pointer must be an integer, not `{number}`"))
            }
            ("-", LaneType::Number(_) | LaneType::Pointer(_), LaneType::Pointer(_)) => {
                refuse(self, "a pointer cannot be subtracted; cast pointers to `tl.int64` to get a distance")
            }
            ("+", LaneType::Pointer(_), _) | ("-", LaneType::Pointer(_), _) => Some(left),
            ("+", _, LaneType::Pointer(_)) => Some(right),
            ("-", LaneType::Unknown, _) => None,
            _ => refuse(self, &format!("`{op}` does not take a pointer")),
        }
    }

    fn bitwise(&mut self, span: Span, op: &str, a: &Operand, b: &Operand) -> Option<LaneType> {
        let (left, right) = (a.tile.element, b.tile.element);
        for element in [left, right] {
            let shown = match element {
                LaneType::Pointer(_) => Some("a pointer".to_owned()),
                LaneType::Number(number) if number.is_float() => Some(format!("`{number}`")),
                _ => None,
            };
            if let Some(shown) = shown {
                self.problem(ProblemKind::Operand, span, format!("`{op}` is for integers, and does not take {shown}"));
                return None;
            }
        }
        let Some((x, y)) = left.number().zip(right.number()).filter(|_| !self.is_open(a, b)) else {
            return Some(LaneType::Unknown);
        };
        let number = self.computed(span, op, a, b, (x, y), false)?;
        if number.is_float() {
            self.problem(ProblemKind::Operand, span, format!("`{op}` is for integers, and does not take `{number}`"));
            return None;
        }
        Some(LaneType::Number(number))
    }

    /// A tile of the shape to which two operands are broadcast. Reports shapes that do not fit.
    pub(super) fn spread(
        &mut self,
        span: Span,
        element: LaneType,
        a: &RuntimeValue,
        b: &RuntimeValue,
    ) -> AbstractValue<'a> {
        AbstractValue::Tile(RuntimeValue::new(element, self.common_shape(span, a, b)))
    }

    pub(super) fn common_shape(&mut self, span: Span, a: &RuntimeValue, b: &RuntimeValue) -> Option<Shape> {
        let (Some(left), Some(right)) = (&a.shape, &b.shape) else {
            return None;
        };
        match shape::broadcast(left, right) {
            Ok(shape) => Some(shape),
            Err(clash) => {
                let message = format!(
                    "shapes `{}` and `{}` do not fit: {} and {} along axis {}",
                    shape::text(left),
                    shape::text(right),
                    clash.left,
                    clash.right,
                    clash.axis
                );
                self.problem(ProblemKind::Broadcast, span, message);
                None
            }
        }
    }

    /// `op operand`
    pub(super) fn unary(&mut self, span: Span, op: &str, operand: &AbstractValue<'a>) -> AbstractValue<'a> {
        match operand {
            AbstractValue::Const(constant) => {
                AbstractValue::Const(constant_folding::unary(op, constant).unwrap_or(Const::Unknown))
            }
            AbstractValue::Tuple(parts) if op == "not" => AbstractValue::Const(Const::Bool(parts.is_empty())),
            AbstractValue::Tile(tile) => {
                let refused = match (op, tile.element) {
                    ("-" | "~", LaneType::Pointer(_)) => Some("a pointer".to_owned()),
                    ("~", LaneType::Number(number)) if number.is_float() => Some(format!("`{number}`")),
                    ("not", LaneType::Number(number)) if number.bits() != 1 => {
                        Some(format!("`{number}`, only conditions"))
                    }
                    ("+", _) => Some("a run-time value; leave it out".to_owned()),
                    _ => None,
                };
                if let Some(refused) = refused {
                    self.problem(ProblemKind::Operand, span, format!("`{op}` does not take {refused}"));
                    return AbstractValue::Unknown;
                }
                let about = index::unary(op, &tile.about);
                let element = if op == "not" { LaneType::Number(Dtype::Int1) } else { tile.element };
                AbstractValue::Tile(tile.with(element).knowing(about))
            }
            _ => AbstractValue::Unknown,
        }
    }
}

/// A value as an operand. A constant among run-time values has its own type only where that is necessary.
pub(super) struct Operand {
    pub(super) tile: RuntimeValue,
    pub(super) constant: Option<Const>,
}

/// The element type of a result when one of the two element types is not known.
fn half_known(op: &str, a: &Operand, b: &Operand) -> LaneType {
    let half = |number: Dtype| matches!(number, Dtype::Fp16 | Dtype::Bf16);
    for (known, other) in [(a, b), (b, a)] {
        let Some(number) = known.tile.element.number().filter(|_| known.constant.is_none()) else { continue };
        // A constant next to a float never changes the float's type.
        if number.kind() == DtypeKind::Floating && other.constant.is_some() {
            let divides = matches!(op, "/" | "//" | "%");
            return LaneType::Number(if divides && half(number) { Dtype::Fp32 } else { number });
        }
    }
    LaneType::Unknown
}
