//! Moves the spans of a model when its text moves within the file.

use super::ast::{Arg, Expr, ExprKind, Stmt, StmtKind};
use super::{Autotune, Config, Decorator, Global, HostFunction, Kernel, Launch, Param, PlainFunction};
use crate::syntax::Span;

/// A value that contains spans.
pub trait ShiftSpans {
    /// Moves all spans by `by` bytes.
    fn shift(&mut self, by: isize);
}

impl ShiftSpans for Span {
    fn shift(&mut self, by: isize) {
        self.start = self.start.wrapping_add_signed(by);
        self.end = self.end.wrapping_add_signed(by);
    }
}

impl<T: ShiftSpans> ShiftSpans for Box<T> {
    fn shift(&mut self, by: isize) {
        (**self).shift(by);
    }
}

impl<T: ShiftSpans> ShiftSpans for Vec<T> {
    fn shift(&mut self, by: isize) {
        self.iter_mut().for_each(|item| item.shift(by));
    }
}

impl<T: ShiftSpans> ShiftSpans for Option<T> {
    fn shift(&mut self, by: isize) {
        self.iter_mut().for_each(|item| item.shift(by));
    }
}

impl<A: ShiftSpans, B: ShiftSpans> ShiftSpans for (A, B) {
    fn shift(&mut self, by: isize) {
        self.0.shift(by);
        self.1.shift(by);
    }
}

impl ShiftSpans for String {
    fn shift(&mut self, _: isize) {}
}

impl ShiftSpans for Expr {
    fn shift(&mut self, by: isize) {
        self.span.shift(by);
        match &mut self.kind {
            ExprKind::Attribute { value, name_span, .. } => {
                value.shift(by);
                name_span.shift(by);
            }
            ExprKind::Call(call) => {
                call.func.shift(by);
                call.args.shift(by);
                call.args_span.shift(by);
            }
            ExprKind::Subscript { value, index } => {
                value.shift(by);
                index.shift(by);
            }
            ExprKind::Slice(items) | ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::FString(items) => {
                items.shift(by);
            }
            ExprKind::Binary { left, right, .. } | ExprKind::BoolOp { left, right, .. } => {
                left.shift(by);
                right.shift(by);
            }
            ExprKind::Compare { left, rest } => {
                left.shift(by);
                rest.shift(by);
            }
            ExprKind::IfExp { test, body, orelse } => {
                test.shift(by);
                body.shift(by);
                orelse.shift(by);
            }
            ExprKind::Dict { items, .. } => items.shift(by),
            ExprKind::Comprehension { element, clauses, .. } => {
                element.shift(by);
                clauses.shift(by);
            }
            ExprKind::Unary { operand: inner, .. }
            | ExprKind::Lambda { body: inner, .. }
            | ExprKind::Named { value: inner, .. }
            | ExprKind::Starred(inner) => inner.shift(by),
            ExprKind::Name(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Other(_) => {}
        }
    }
}

impl ShiftSpans for Arg {
    fn shift(&mut self, by: isize) {
        self.keyword.shift(by);
        self.value.shift(by);
        self.span.shift(by);
    }
}

impl ShiftSpans for Stmt {
    fn shift(&mut self, by: isize) {
        self.span.shift(by);
        match &mut self.kind {
            StmtKind::Assign { targets, annotation, value } => {
                targets.shift(by);
                annotation.shift(by);
                value.shift(by);
            }
            StmtKind::AugAssign { target, value, .. } => {
                target.shift(by);
                value.shift(by);
            }
            StmtKind::Expr(expr) => expr.shift(by),
            StmtKind::If { branches, orelse } => {
                branches.shift(by);
                orelse.shift(by);
            }
            StmtKind::For { target, iter, body, orelse } => {
                target.shift(by);
                iter.shift(by);
                body.shift(by);
                orelse.shift(by);
            }
            StmtKind::While { test, body, orelse } => {
                test.shift(by);
                body.shift(by);
                orelse.shift(by);
            }
            StmtKind::Return(value) | StmtKind::Definition { lambda: value, .. } => value.shift(by),
            StmtKind::Assert(parts) => parts.shift(by),
            StmtKind::Block(bodies) => bodies.shift(by),
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Raise
            | StmtKind::Import
            | StmtKind::Other(_) => {}
        }
    }
}

macro_rules! shift_fields {
    ($($type:ty { $($field:ident),* })*) => {$(
        impl ShiftSpans for $type {
            fn shift(&mut self, by: isize) {
                $(self.$field.shift(by);)*
            }
        }
    )*};
}

// Fields without spans are left out. `Host::line` is updated separately, where line numbers are known.
shift_fields! {
    Kernel { name_span, span, def_span, params, decorators, autotune, body, facts }
    Param { name_span, span, annotation, default }
    Decorator { expr }
    Autotune { span, configs }
    Config { span, meta, options }
    Launch { target, grid, args, args_span, span }
    HostFunction { name_span, span, defaults, body, facts }
    Global { value, span }
    PlainFunction { name_span, span, result }
}
