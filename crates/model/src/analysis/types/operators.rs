//! Transfer functions of unary and binary operators.

use super::dtype::{self, Kind as Sort, Mismatch, Number};
use super::engine::Engine;
use super::fold;
use super::index::{self, About};
use super::shape::{self, Shape};
use super::value::{Const, Element, Kind, Tile, Value};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// `left op right`
    pub(super) fn binary(&mut self, span: Span, op: &str, left: &Value<'a>, right: &Value<'a>) -> Value<'a> {
        if op == "@" {
            self.problem(Kind::Operand, span, "a kernel has no `@`; use `tl.dot`");
            return Value::Unknown;
        }
        match (left, right) {
            (Value::Const(a), Value::Const(b)) => self.folded(span, op, a, b),
            (Value::Tuple(a), Value::Tuple(b)) if op == "+" => {
                Value::tuple(a.iter().chain(b.iter()).cloned().collect())
            }
            (Value::Opaque(_), Value::Opaque(_) | Value::Const(_)) | (Value::Const(_), Value::Opaque(_)) => {
                Value::Opaque(self.about_binary(span, op, &left.scalarized(), &right.scalarized()))
            }
            (Value::Tile(_), _) | (_, Value::Tile(_)) => {
                self.tile_binary(span, op, &left.scalarized(), &right.scalarized())
            }
            _ => Value::Unknown,
        }
    }

    /// The symbolic value of `left op right`.
    fn about_binary(&mut self, span: Span, op: &str, left: &Value<'a>, right: &Value<'a>) -> About {
        if matches!(op, "//" | "%") {
            self.record_division(span, op, left, right);
        }
        match index::binary(op, left, right) {
            About::Nothing if matches!(op, "//" | "%") => self.quotient(op, left, right),
            about => about,
        }
    }

    /// Folds compile-time values. Reports operations that Python itself rejects.
    fn folded(&mut self, span: Span, op: &str, a: &Const, b: &Const) -> Value<'a> {
        let divides = matches!(op, "/" | "//" | "%");
        let is_number = |value: &Const| matches!(value, Const::Bool(_) | Const::Int(_) | Const::Float(_));
        if divides && is_number(a) && matches!(b, Const::Int(0) | Const::Bool(false)) {
            self.problem(Kind::Operand, span, format!("`{a} {op} {b}` divides by zero while compiling"));
            return Value::Unknown;
        }
        Value::Const(fold::binary(op, a, b).unwrap_or(Const::Unknown))
    }

    fn tile_binary(&mut self, span: Span, op: &str, left: &Value<'a>, right: &Value<'a>) -> Value<'a> {
        if op == "**" {
            let message = "values in a kernel have no `**`; multiply, or use `tl.exp2` and `tl.log2`";
            self.problem(Kind::Operand, span, message);
            return Value::Unknown;
        }
        let (Some(a), Some(b)) = (self.operand(span, left), self.operand(span, right)) else { return Value::Unknown };
        let element = match op {
            "+" | "-" | "*" | "/" | "//" | "%" => self.arithmetic(span, op, &a, &b),
            "&" | "|" | "^" | "<<" | ">>" => self.bitwise(span, op, &a, &b),
            _ => None,
        };
        let Some(element) = element else { return Value::Unknown };
        let shape = self.common_shape(span, &a.tile, &b.tile);
        let mut about = self.about_binary(span, op, left, right);
        if self.notes_width && element == Element::Number(Number::Int32) && matches!(op, "+" | "-" | "*") {
            about = about.noting(span);
        }
        Value::Tile(Tile::new(element, shape).knowing(about))
    }

    /// The value as an operand. Reports values that cannot be operands.
    pub(super) fn operand(&mut self, span: Span, value: &Value<'a>) -> Option<Operand> {
        match value {
            Value::Tile(tile) => Some(Operand { tile: tile.clone(), constant: None }),
            Value::Opaque(_) => {
                let tile = Tile::new(Element::Unknown, Some(Shape::default()));
                Some(Operand { tile, constant: Some(Const::Unknown) })
            }
            Value::Const(constant @ (Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                if let Some(number) = Self::number_of(value) {
                    Some(Operand { tile: Tile::scalar(number), constant: Some(constant.clone()) })
                } else {
                    self.problem(Kind::Overflow, span, format!("`{constant}` does not fit into 64 bits"));
                    None
                }
            }
            Value::Const(constant @ Const::Symbol(_)) => {
                Some(Operand { tile: Tile::scalar(Number::Int32), constant: Some(constant.clone()) })
            }
            Value::Const(Const::Unknown | Const::Object) => {
                let tile = Tile::new(Element::Unknown, Some(Shape::default()));
                Some(Operand { tile, constant: Some(Const::Unknown) })
            }
            Value::Const(constant @ (Const::Str(_) | Const::Type(_) | Const::None)) => {
                self.problem(Kind::Operand, span, format!("`{constant}` cannot be an operand beside a run-time value"));
                None
            }
            Value::Tuple(_) => {
                let message = "a tuple or list cannot be an operand beside a run-time value; take one part of it";
                self.problem(Kind::Operand, span, message);
                None
            }
            Value::Member(path) if self.is_function(path) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                self.problem(Kind::Operand, span, format!("`{name}` is a function and no operand; call it"));
                None
            }
            _ => None,
        }
    }

    /// The element type of `a op b`; `None` when there is none or it is not known.
    fn arithmetic(&mut self, span: Span, op: &str, a: &Operand, b: &Operand) -> Option<Element> {
        let (left, right) = (a.tile.element, b.tile.element);
        if left.is_pointer() || right.is_pointer() {
            return self.pointer_arithmetic(span, op, left, right);
        }
        let divides = matches!(op, "/" | "//" | "%");
        if self.is_open(a, b) {
            return Some(Element::Unknown);
        }
        let Some((x, y)) = left.number().zip(right.number()) else {
            return Some(if self.since(2) == Some(true) { half_known(op, a, b) } else { Element::Unknown });
        };
        let number = self.computed(span, op, a, b, (x, y), divides)?;
        match op {
            "/" => Some(Element::Number(if number.is_int() { Number::Fp32 } else { number })),
            "//" if number.is_float() => {
                let message = format!("`//` is for integers, and this is `{number}`; use `/` and `tl.floor`");
                self.problem(Kind::Operand, span, message);
                None
            }
            _ => Some(Element::Number(number)),
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
        (x, y): (Number, Number),
        divides: bool,
    ) -> Option<Number> {
        // Up to 3.1 constants are promoted like other values.
        let is_weak = self.since(2) != Some(false);
        let constants = (is_weak && a.constant.is_some(), is_weak && b.constant.is_some());
        let number = match dtype::computation((x, constants.0), (y, constants.1), divides) {
            Ok(number) => number,
            Err(Mismatch::Signedness) => {
                let message = format!("`{op}` of a signed and an unsigned integer (`{x}` and `{y}`); cast one of them");
                self.problem(Kind::Operand, span, message);
                return None;
            }
            Err(Mismatch::Unexpected) => {
                self.problem(Kind::Operand, span, format!("`{op}` does not take `{x}` and `{y}`; cast one of them"));
                return None;
            }
        };
        let is_3_2 = self.since(2) == Some(true) && self.since(3) == Some(false);
        if let Some(value) = b.constant.as_ref().and_then(Const::int).filter(|value| *value < 0 && is_3_2)
            && number.is_int()
            && !number.is_signed()
        {
            self.problem(Kind::Overflow, span, format!("{value} is combined with an unsigned `{number}`; cast it"));
        }
        for constant in [&a.constant, &b.constant].into_iter().flatten() {
            self.check_range(span, number, constant);
        }
        Some(number)
    }

    fn check_range(&mut self, span: Span, number: Number, constant: &Const) {
        let Some(value) = constant.int().filter(|_| number.is_int() && self.since(3) == Some(true)) else { return };
        let (low, high) = number.bounds();
        if value < low || value > high {
            self.problem(
                Kind::Overflow,
                span,
                format!("{value} does not fit into the `{number}` that it is combined with"),
            );
        }
    }

    fn pointer_arithmetic(&mut self, span: Span, op: &str, left: Element, right: Element) -> Option<Element> {
        let refuse = |engine: &mut Self, why: &str| {
            engine.problem(Kind::Operand, span, why);
            None
        };
        match (op, left, right) {
            ("+", Element::Pointer(_), Element::Pointer(_)) => refuse(self, "two pointers cannot be added"),
            ("+" | "-", _, Element::Number(number)) | ("+", Element::Number(number), _) if number.is_float() => {
                refuse(self, &format!("an offset of a pointer must be an integer, not `{number}`"))
            }
            ("-", Element::Number(_) | Element::Pointer(_), Element::Pointer(_)) => {
                refuse(self, "a pointer cannot be subtracted; cast pointers to `tl.int64` to get a distance")
            }
            ("+", Element::Pointer(_), _) | ("-", Element::Pointer(_), _) => Some(left),
            ("+", _, Element::Pointer(_)) => Some(right),
            ("-", Element::Unknown, _) => None,
            _ => refuse(self, &format!("`{op}` does not take a pointer")),
        }
    }

    fn bitwise(&mut self, span: Span, op: &str, a: &Operand, b: &Operand) -> Option<Element> {
        let (left, right) = (a.tile.element, b.tile.element);
        for element in [left, right] {
            let shown = match element {
                Element::Pointer(_) => Some("a pointer".to_owned()),
                Element::Number(number) if number.is_float() => Some(format!("`{number}`")),
                _ => None,
            };
            if let Some(shown) = shown {
                self.problem(Kind::Operand, span, format!("`{op}` is for integers, and does not take {shown}"));
                return None;
            }
        }
        let Some((x, y)) = left.number().zip(right.number()).filter(|_| !self.is_open(a, b)) else {
            return Some(Element::Unknown);
        };
        let number = self.computed(span, op, a, b, (x, y), false)?;
        if number.is_float() {
            self.problem(Kind::Operand, span, format!("`{op}` is for integers, and does not take `{number}`"));
            return None;
        }
        Some(Element::Number(number))
    }

    /// A tile of the shape to which two operands are broadcast. Reports shapes that do not fit.
    pub(super) fn spread(&mut self, span: Span, element: Element, a: &Tile, b: &Tile) -> Value<'a> {
        Value::Tile(Tile::new(element, self.common_shape(span, a, b)))
    }

    pub(super) fn common_shape(&mut self, span: Span, a: &Tile, b: &Tile) -> Option<Shape> {
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
                self.problem(Kind::Broadcast, span, message);
                None
            }
        }
    }

    /// `op operand`
    pub(super) fn unary(&mut self, span: Span, op: &str, operand: &Value<'a>) -> Value<'a> {
        match operand {
            Value::Const(constant) => Value::Const(fold::unary(op, constant).unwrap_or(Const::Unknown)),
            Value::Tuple(parts) if op == "not" => Value::Const(Const::Bool(parts.is_empty())),
            Value::Tile(tile) => {
                let refused = match (op, tile.element) {
                    ("-" | "~", Element::Pointer(_)) => Some("a pointer".to_owned()),
                    ("~", Element::Number(number)) if number.is_float() => Some(format!("`{number}`")),
                    ("not", Element::Number(number)) if number.bits() != 1 => {
                        Some(format!("`{number}`, only conditions"))
                    }
                    ("+", _) => Some("a run-time value; leave it out".to_owned()),
                    _ => None,
                };
                if let Some(refused) = refused {
                    self.problem(Kind::Operand, span, format!("`{op}` does not take {refused}"));
                    return Value::Unknown;
                }
                let about = index::unary(op, &tile.about);
                let element = if op == "not" { Element::Number(Number::Int1) } else { tile.element };
                Value::Tile(tile.with(element).knowing(about))
            }
            _ => Value::Unknown,
        }
    }
}

/// A value as an operand. A constant among run-time values has its own type only where that is necessary.
pub(super) struct Operand {
    pub(super) tile: Tile,
    pub(super) constant: Option<Const>,
}

/// The element type of a result when one of the two element types is not known.
fn half_known(op: &str, a: &Operand, b: &Operand) -> Element {
    let half = |number: Number| matches!(number, Number::Fp16 | Number::Bf16);
    for (known, other) in [(a, b), (b, a)] {
        let Some(number) = known.tile.element.number().filter(|_| known.constant.is_none()) else { continue };
        // A constant next to a float never changes the float's type.
        if number.kind() == Sort::Floating && other.constant.is_some() {
            let divides = matches!(op, "/" | "//" | "%");
            return Element::Number(if divides && half(number) { Number::Fp32 } else { number });
        }
    }
    Element::Unknown
}
