//! Transfer functions of comparisons, `and` and `or`.

use super::constant_folding;
use super::dtype::Dtype;
use super::engine::{Engine, Frame};
use super::index::{self, LaneFact};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
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
    ) -> AbstractValue<'a> {
        let first = self.eval(left, frame);
        let [(op, right)] = rest else {
            rest.iter().for_each(|(_, right)| drop(self.eval(right, frame)));
            if self.since(9) == Some(false) {
                self.problem(
                    ProblemKind::Syntax,
                    expr.span,
                    "comparisons cannot be chained before Triton 3.9; use `and`",
                );
            }
            return AbstractValue::Unknown;
        };
        let second = self.eval(right, frame);
        match op.as_str() {
            "in" | "not in" => {
                self.problem(
                    ProblemKind::Syntax,
                    expr.span,
                    format!("a kernel has no `{op}`; compare with each value"),
                );
                AbstractValue::Unknown
            }
            "is" | "is not" => identity(op == "is", &first, &second),
            _ => self.compared(expr.span, op, &first, &second),
        }
    }

    fn compared(
        &mut self,
        span: Span,
        op: &str,
        left: &AbstractValue<'a>,
        right: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        match (left, right) {
            (AbstractValue::Const(a), AbstractValue::Const(b)) => {
                let is_number = |value: &Const| matches!(value, Const::Int(_) | Const::Float(_) | Const::Bool(_));
                let has_none = *a == Const::None && is_number(b) || *b == Const::None && is_number(a);
                if has_none && !matches!(op, "==" | "!=") {
                    self.problem(ProblemKind::Operand, span, format!("`{op}` cannot compare `{a}` with `{b}`"));
                }
                AbstractValue::Const(constant_folding::compare(op, a, b))
            }
            (AbstractValue::Tile(_), AbstractValue::Const(Const::None | Const::Str(_) | Const::Type(_)))
            | (AbstractValue::Const(Const::None | Const::Str(_) | Const::Type(_)), AbstractValue::Tile(_)) => {
                let hint = if *right == AbstractValue::none() { "; use `is`" } else { "" };
                let message = format!(
                    "`{op}` cannot compare a run-time value with `{}`{hint}",
                    if left.is_runtime() { right } else { left }
                );
                self.problem(ProblemKind::Operand, span, message);
                AbstractValue::Unknown
            }
            (AbstractValue::Tile(_), _) | (_, AbstractValue::Tile(_)) => {
                let (left, right) = (&left.scalarized(), &right.scalarized());
                let (Some(a), Some(b)) = (self.operand(span, left), self.operand(span, right)) else {
                    return AbstractValue::Unknown;
                };
                if a.tile.element.is_pointer() || b.tile.element.is_pointer() {
                    let message = format!("`{op}` does not take a pointer; cast it to `tl.int64`");
                    self.problem(ProblemKind::Operand, span, message);
                    return AbstractValue::Unknown;
                }
                if let Some(pair) = a.tile.element.number().zip(b.tile.element.number()) {
                    self.computed(span, op, &a, &b, pair, false);
                }
                let shape = self.common_shape(span, &a.tile, &b.tile);
                let about = index::comparison(op, left, right, span);
                AbstractValue::Tile(RuntimeValue::new(LaneType::Number(Dtype::Int1), shape).knowing(about))
            }
            _ => AbstractValue::Unknown,
        }
    }

    /// `a and b`, `a or b`, and chains of them.
    pub(super) fn bool_op(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        let ExprKind::BoolOp { op, left, right } = &expr.kind else { return AbstractValue::Unknown };
        let is_chain = matches!(&left.kind, ExprKind::BoolOp { op: inner, .. } if inner == op)
            && left.span.start == expr.span.start;
        if is_chain && self.since(4) == Some(false) {
            let message = format!("`{op}` cannot be chained before Triton 3.4; write parentheses");
            self.problem(ProblemKind::Syntax, expr.span, message);
        }
        let first = self.eval(left, frame);
        let decisive = op == "or";
        if let AbstractValue::Const(constant) = &first
            && constant.truth() == Some(decisive)
            && self.since(4) != Some(false)
        {
            self.prune(right.span);
            return first;
        }
        self.enter(right.span);
        let is_open = matches!(&first, AbstractValue::Const(constant) if constant.truth().is_none())
            || first == AbstractValue::Unknown;
        self.uncertain += u32::from(is_open);
        let second = self.eval(right, frame);
        self.uncertain -= u32::from(is_open);
        match (&first, &second) {
            (AbstractValue::Const(constant), AbstractValue::Const(_)) if constant.truth() == Some(decisive) => first,
            (AbstractValue::Const(constant), AbstractValue::Tile(_)) if self.since(4) == Some(false) => {
                if let Some(number) = Self::number_of(&first).filter(|number| number.bits() != 1) {
                    let message = format!("`{op}` takes conditions, and `{constant}` is `{number}`; compare it first");
                    self.problem(ProblemKind::Operand, expr.span, message);
                }
                second
            }
            (AbstractValue::Tile(tile), AbstractValue::Const(_)) if self.since(4) == Some(false) => {
                let numbers = [tile.element.number(), Self::number_of(&second)];
                if let Some(number) = numbers.into_iter().flatten().find(|number| number.bits() != 1) {
                    let message = format!("`{op}` takes conditions, and this is `{number}`; compare it first");
                    self.problem(ProblemKind::Operand, expr.span, message);
                    return AbstractValue::Unknown;
                }
                first
            }
            (AbstractValue::Const(constant), _) if constant.truth().is_some() => second,
            (AbstractValue::Const(_), AbstractValue::Const(_)) => AbstractValue::Const(Const::Unknown),
            (AbstractValue::Tile(_), AbstractValue::Const(constant)) => match (constant.truth(), self.since(4)) {
                (Some(truth), Some(true)) if truth == decisive => second,
                (Some(_), Some(true)) => first,
                _ => AbstractValue::Unknown,
            },
            (AbstractValue::Tile(a), AbstractValue::Tile(b)) => {
                for tile in [a, b] {
                    let wrong = match tile.element {
                        LaneType::Number(number) => number.bits() != 1,
                        _ => false,
                    };
                    if wrong {
                        let message = format!("`{op}` takes conditions, and this is `{tile}`; compare it first");
                        self.problem(ProblemKind::Operand, expr.span, message);
                        return AbstractValue::Unknown;
                    }
                }
                let shape = self.common_shape(expr.span, a, b);
                let about = if op == "and" { index::binary(op, &first, &second) } else { LaneFact::Nothing };
                AbstractValue::Tile(RuntimeValue::new(LaneType::Number(Dtype::Int1), shape).knowing(about))
            }
            _ => AbstractValue::Unknown,
        }
    }
}

fn identity<'a>(is: bool, left: &AbstractValue<'a>, right: &AbstractValue<'a>) -> AbstractValue<'a> {
    let same = match (left.is_none(), right.is_none()) {
        (Some(true), Some(true)) => Some(true),
        (Some(a), Some(b)) if a != b => Some(false),
        _ => None,
    };
    // A symbol or an object on the left may be any value, so the result is not known.
    let same = same.filter(|_| !matches!((left, right), (AbstractValue::Const(Const::Symbol(_) | Const::Object), _)));
    AbstractValue::Const(same.map_or(Const::Unknown, |same| Const::Bool(same == is)))
}
