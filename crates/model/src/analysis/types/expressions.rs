//! Abstract evaluation of expressions.

use super::constant_folding;
use super::engine::{Engine, Frame, Trace};
use super::value::{AbstractValue, Const, ProblemKind};
use crate::kernel::ast::{Expr, ExprKind};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// The abstract value of an expression.
    pub(super) fn eval(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        if !self.step() {
            return AbstractValue::Unknown;
        }
        let value = self.expression(expr, frame);
        if self.trace != Trace::No && self.silent == 0 {
            self.facts.types.push((expr.span, value.detached()));
        }
        value
    }

    fn expression(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, expr.span, frame),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::None => {
                AbstractValue::Const(constant_folding::literal(expr).unwrap_or(Const::Unknown))
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
                let parts: Vec<AbstractValue<'a>> = parts.iter().map(|part| self.eval(part, frame)).collect();
                AbstractValue::tuple(parts)
            }
            ExprKind::Slice(parts) => {
                parts.iter().for_each(|part| drop(self.eval(part, frame)));
                AbstractValue::Slice
            }
            ExprKind::Starred(_) => AbstractValue::Unknown,
            ExprKind::FString(parts) => {
                for part in parts {
                    // Messages for debugging are mostly in a branch that is not compiled.
                    if self.eval(part, frame).is_runtime() && self.uncertain == 0 {
                        let message = "an f-string in a kernel can only hold compile-time values";
                        self.problem(ProblemKind::Conversion, expr.span, message);
                    }
                }
                AbstractValue::Const(Const::Unknown)
            }
            ExprKind::Named { name, value } => {
                let value = self.eval(value, frame);
                if self.since(8) == Some(false) {
                    self.problem(ProblemKind::Syntax, expr.span, "`:=` in a kernel needs Triton 3.8");
                }
                frame.names.insert(name, value.clone());
                value
            }
            ExprKind::Comprehension { is_generator: false, .. } => self.comprehension(expr, frame),
            ExprKind::Comprehension { .. } | ExprKind::Lambda { .. } | ExprKind::Dict { .. } | ExprKind::Other(_) => {
                self.unsupported(expr)
            }
        }
    }

    /// Reports an expression that Triton does not support.
    fn unsupported(&mut self, expr: &Expr) -> AbstractValue<'a> {
        let what = match &expr.kind {
            ExprKind::Lambda { .. } => "a `lambda`; define a function under `@triton.jit`",
            ExprKind::Dict { .. } => "a dict; pass its entries as parameters",
            ExprKind::Comprehension { .. } => "a generator; use `tl.static_range`",
            ExprKind::Other(kind) => match kind.as_str() {
                "set" => "a set",
                "dictionary_comprehension" => "a dict comprehension",
                "set_comprehension" => "a set comprehension",
                "yield" => "`yield`",
                "await" => "`await`",
                _ => return AbstractValue::Unknown,
            },
            _ => return AbstractValue::Unknown,
        };
        self.problem(ProblemKind::Syntax, self.first_line(expr.span), format!("a kernel cannot contain {what}"));
        AbstractValue::Unknown
    }

    fn comprehension(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        let ExprKind::Comprehension { element, clauses, filtered, .. } = &expr.kind else {
            return AbstractValue::Unknown;
        };
        let Some((target, iter)) = clauses.first() else { return AbstractValue::Unknown };
        if self.since(5) == Some(false) {
            self.problem(
                ProblemKind::Syntax,
                expr.span,
                "a kernel cannot contain a list comprehension before Triton 3.5",
            );
            return AbstractValue::Unknown;
        }
        let iterated = self.eval(iter, frame);
        match iterated {
            AbstractValue::Tuple(parts) if clauses.len() == 1 && !filtered => {
                let results = parts.iter().map(|part| {
                    self.assign(target, part.clone(), expr.span, frame);
                    self.eval(element, frame)
                });
                AbstractValue::tuple(results.collect())
            }
            AbstractValue::Tile(_) | AbstractValue::Builtin(_) if self.since(5) == Some(true) => {
                self.problem(
                    ProblemKind::Syntax,
                    expr.span,
                    "a list comprehension in a kernel can only run over a tuple",
                );
                AbstractValue::Unknown
            }
            _ => AbstractValue::Unknown,
        }
    }

    fn name(&mut self, name: &'a str, span: Span, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        if let Some(value) = frame.names.get(name) {
            self.record_stale(name, span, frame);
            return value.clone();
        }
        if frame.kernel.locals.contains(name) {
            // A local that is not bound on this path: the front end takes the global of the same name.
            if frame.is_opaque || self.module.has_star_import {
                return AbstractValue::Unknown;
            }
            if self.module.bindings.contains_key(name) {
                return if self.uncertain > 0 { AbstractValue::Unknown } else { self.global_name(name, span, frame) };
            }
            if frame.kernel.nested || self.uncertain > 0 && frame.regions == 0 {
                return AbstractValue::Unknown;
            }
            let bindings = super::statements::bound(&frame.kernel.body);
            let related = bindings
                .get(name)
                .map(|place| (*place, "it is bound inside a branch or loop only, which ends its life".to_owned()));
            self.problem_with(
                ProblemKind::UndefinedName,
                span,
                format!("`{name}` is not defined here: names bound in a branch or loop do not exist after it"),
                related.into_iter().collect(),
            );
            return AbstractValue::Unknown;
        }
        self.global_name(name, span, frame)
    }
}
