//! Abstract interpretation of `return`.

use super::engine::{Engine, Frame};
use super::value::{AbstractValue, Const, ProblemKind};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind};

impl<'a> Engine<'a> {
    pub(super) fn give_back(&mut self, stmt: &Stmt, returned: Option<&'a Expr>, frame: &mut Frame<'a>) {
        let value = returned.map_or_else(AbstractValue::none, |value| self.eval(value, frame));
        self.has_left |= self.branches > 0 || self.uncertain > 0 || frame.loops > 0;
        match returned.map(|value| &value.kind) {
            Some(ExprKind::List(_)) if self.since(3) == Some(false) => {
                self.problem(ProblemKind::Return, stmt.span, "a function cannot return a list; return a tuple");
            }
            // A function whose body is only `return None` is a stub for one that the release lacks.
            Some(ExprKind::None) if self.since(7) == Some(false) && !is_stub(&frame.kernel.body) => {
                self.problem(ProblemKind::Return, stmt.span, "`return None` needs Triton 3.7; write `return`");
            }
            Some(ExprKind::Call(call)) if frame.is_launched => {
                let member = self.module.language_member(frame.kernel, &call.func);
                if member.as_deref() == Some("store") {
                    let message = "this kernel returns what `tl.store` gives; write the `return` behind it";
                    let at =
                        if self.since(7) == Some(true) { self.first_line(frame.kernel.def_span) } else { stmt.span };
                    self.problem(ProblemKind::Return, at, message);
                }
            }
            _ => {}
        }
        // Since 3.7 a constant stays a constant if all returned values are the same.
        let value = match self.since(7) {
            _ if frame.is_launched => value,
            Some(true) => value,
            None if matches!(value, AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_))) => {
                AbstractValue::Unknown
            }
            _ => self.stored(value, stmt.span),
        };
        frame.returned = Some(match frame.returned.take() {
            Some(known) if known != value => self.joined_returns(stmt, known, value, frame),
            _ => value,
        });
    }

    fn joined_returns(
        &mut self,
        stmt: &Stmt,
        known: AbstractValue<'a>,
        value: AbstractValue<'a>,
        frame: &Frame<'a>,
    ) -> AbstractValue<'a> {
        let is_late = self.since(7) == Some(true);
        let (known, value) = if is_late && !frame.is_launched {
            (self.stored(known, stmt.span), self.stored(value, stmt.span))
        } else {
            (known, value)
        };
        let differ = match (&known, &value) {
            (AbstractValue::Tile(a), AbstractValue::Tile(b)) => a.differs(b),
            (AbstractValue::Tuple(a), AbstractValue::Tuple(b)) => a.len() != b.len(),
            (AbstractValue::Tile(_), AbstractValue::Tuple(_)) | (AbstractValue::Tuple(_), AbstractValue::Tile(_)) => {
                true
            }
            (AbstractValue::Tile(_), AbstractValue::Const(Const::None))
            | (AbstractValue::Const(Const::None), AbstractValue::Tile(_)) => true,
            _ => false,
        };
        if differ && self.uncertain == 0 && !frame.is_opaque {
            // Since 3.7 types are compared after the whole function is compiled.
            let at = if is_late { self.first_line(frame.kernel.def_span) } else { stmt.span };
            let message = format!("`{}` returns `{value}` and `{known}`; both must be of one type", frame.kernel.name);
            let related = vec![(stmt.span, "one of them here".to_owned())];
            self.problem_with(ProblemKind::Return, at, message, related);
        }
        known.either(&value)
    }
}

fn is_stub(body: &[Stmt]) -> bool {
    let says_nothing = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Expr(expr) => matches!(expr.kind, ExprKind::Str(_)),
        StmtKind::Return(_) | StmtKind::Pass => true,
        _ => false,
    };
    body.iter().all(says_nothing)
}
