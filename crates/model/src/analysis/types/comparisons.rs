//! Transfer functions of comparisons, `and` and `or`.

use super::dtype::Number;
use super::engine::{Engine, Frame};
use super::fold;
use super::index::{self, About};
use super::value::{Const, Element, Kind, Tile, Value};
use crate::kernel::ast::{Expr, ExprKind};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// `left op right`, and chains of comparisons.
    pub(super) fn compare(
        &mut self,
        expr: &'a Expr,
        left: &'a Expr,
        rest: &'a [(String, Expr)],
        frame: &mut Frame<'a>,
    ) -> Value<'a> {
        let first = self.eval(left, frame);
        let [(op, right)] = rest else {
            rest.iter().for_each(|(_, right)| drop(self.eval(right, frame)));
            if self.since(9) == Some(false) {
                self.problem(Kind::Syntax, expr.span, "comparisons cannot be chained before Triton 3.9; use `and`");
            }
            return Value::Unknown;
        };
        let second = self.eval(right, frame);
        match op.as_str() {
            "in" | "not in" => {
                self.problem(Kind::Syntax, expr.span, format!("a kernel has no `{op}`; compare with each value"));
                Value::Unknown
            }
            "is" | "is not" => identity(op == "is", &first, &second),
            _ => self.compared(expr.span, op, &first, &second),
        }
    }

    fn compared(&mut self, span: Span, op: &str, left: &Value<'a>, right: &Value<'a>) -> Value<'a> {
        match (left, right) {
            (Value::Const(a), Value::Const(b)) => {
                let is_number = |value: &Const| matches!(value, Const::Int(_) | Const::Float(_) | Const::Bool(_));
                let has_none = *a == Const::None && is_number(b) || *b == Const::None && is_number(a);
                if has_none && !matches!(op, "==" | "!=") {
                    self.problem(Kind::Operand, span, format!("`{op}` cannot compare `{a}` with `{b}`"));
                }
                Value::Const(fold::compare(op, a, b))
            }
            (Value::Tile(_), Value::Const(Const::None | Const::Str(_) | Const::Type(_)))
            | (Value::Const(Const::None | Const::Str(_) | Const::Type(_)), Value::Tile(_)) => {
                let hint = if *right == Value::none() { "; use `is`" } else { "" };
                let message = format!(
                    "`{op}` cannot compare a run-time value with `{}`{hint}",
                    if left.is_runtime() { right } else { left }
                );
                self.problem(Kind::Operand, span, message);
                Value::Unknown
            }
            (Value::Tile(_), _) | (_, Value::Tile(_)) => {
                let (left, right) = (&left.scalarized(), &right.scalarized());
                let (Some(a), Some(b)) = (self.operand(span, left), self.operand(span, right)) else {
                    return Value::Unknown;
                };
                if a.tile.element.is_pointer() || b.tile.element.is_pointer() {
                    let message = format!("`{op}` does not take a pointer; cast it to `tl.int64`");
                    self.problem(Kind::Operand, span, message);
                    return Value::Unknown;
                }
                if let Some(pair) = a.tile.element.number().zip(b.tile.element.number()) {
                    self.computed(span, op, &a, &b, pair, false);
                }
                let shape = self.common_shape(span, &a.tile, &b.tile);
                let about = index::comparison(op, left, right, span);
                Value::Tile(Tile::new(Element::Number(Number::Int1), shape).knowing(about))
            }
            _ => Value::Unknown,
        }
    }

    /// `a and b`, `a or b`, and chains of them.
    pub(super) fn bool_op(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> Value<'a> {
        let ExprKind::BoolOp { op, left, right } = &expr.kind else { return Value::Unknown };
        let is_chain = matches!(&left.kind, ExprKind::BoolOp { op: inner, .. } if inner == op)
            && left.span.start == expr.span.start;
        if is_chain && self.since(4) == Some(false) {
            let message = format!("`{op}` cannot be chained before Triton 3.4; write parentheses");
            self.problem(Kind::Syntax, expr.span, message);
        }
        let first = self.eval(left, frame);
        let decisive = op == "or";
        if let Value::Const(constant) = &first
            && constant.truth() == Some(decisive)
            && self.since(4) != Some(false)
        {
            self.prune(right.span);
            return first;
        }
        self.enter(right.span);
        let is_open = matches!(&first, Value::Const(constant) if constant.truth().is_none()) || first == Value::Unknown;
        self.uncertain += u32::from(is_open);
        let second = self.eval(right, frame);
        self.uncertain -= u32::from(is_open);
        match (&first, &second) {
            (Value::Const(constant), Value::Const(_)) if constant.truth() == Some(decisive) => first,
            (Value::Const(constant), Value::Tile(_)) if self.since(4) == Some(false) => {
                if let Some(number) = Self::number_of(&first).filter(|number| number.bits() != 1) {
                    let message = format!("`{op}` takes conditions, and `{constant}` is `{number}`; compare it first");
                    self.problem(Kind::Operand, expr.span, message);
                }
                second
            }
            (Value::Tile(tile), Value::Const(_)) if self.since(4) == Some(false) => {
                let numbers = [tile.element.number(), Self::number_of(&second)];
                if let Some(number) = numbers.into_iter().flatten().find(|number| number.bits() != 1) {
                    let message = format!("`{op}` takes conditions, and this is `{number}`; compare it first");
                    self.problem(Kind::Operand, expr.span, message);
                    return Value::Unknown;
                }
                first
            }
            (Value::Const(constant), _) if constant.truth().is_some() => second,
            (Value::Const(_), Value::Const(_)) => Value::Const(Const::Unknown),
            (Value::Tile(_), Value::Const(constant)) => match (constant.truth(), self.since(4)) {
                (Some(truth), Some(true)) if truth == decisive => second,
                (Some(_), Some(true)) => first,
                _ => Value::Unknown,
            },
            (Value::Tile(a), Value::Tile(b)) => {
                for tile in [a, b] {
                    let wrong = match tile.element {
                        Element::Number(number) => number.bits() != 1,
                        _ => false,
                    };
                    if wrong {
                        let message = format!("`{op}` takes conditions, and this is `{tile}`; compare it first");
                        self.problem(Kind::Operand, expr.span, message);
                        return Value::Unknown;
                    }
                }
                let shape = self.common_shape(expr.span, a, b);
                let about = if op == "and" { index::binary(op, &first, &second) } else { About::Nothing };
                Value::Tile(Tile::new(Element::Number(Number::Int1), shape).knowing(about))
            }
            _ => Value::Unknown,
        }
    }
}

fn identity<'a>(is: bool, left: &Value<'a>, right: &Value<'a>) -> Value<'a> {
    let same = match (left.is_none(), right.is_none()) {
        (Some(true), Some(true)) => Some(true),
        (Some(a), Some(b)) if a != b => Some(false),
        _ => None,
    };
    // A symbol or an object on the left may be any value, so the result is not known.
    let same = same.filter(|_| !matches!((left, right), (Value::Const(Const::Symbol(_) | Const::Object), _)));
    Value::Const(same.map_or(Const::Unknown, |same| Const::Bool(same == is)))
}
