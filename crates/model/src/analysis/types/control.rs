//! Abstract interpretation of branches.

use rustc_hash::FxHashMap as HashMap;

use super::engine::{Engine, Frame};
use super::statements::{block_span, returns};
use super::value::{Const, Kind, Value};
use crate::kernel::ast::{Expr, ExprKind, Stmt};
use crate::syntax::Span;

pub(super) type Names<'a> = HashMap<&'a str, Value<'a>>;

/// Whether a branch is taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Taken {
    Always,
    Never,
    /// Decided at run time: both branches are compiled.
    AtRunTime,
    /// Not known.
    Unknown,
}

impl<'a> Engine<'a> {
    pub(super) fn branches(
        &mut self,
        stmt: &'a Stmt,
        branches: &'a [(Expr, Vec<Stmt>)],
        orelse: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let Some(((test, body), rest)) = branches.split_first() else { return self.body(orelse, frame) };
        // The front end reads `elif` as a separate `if` at its own position.
        let at =
            if rest.len() + 1 == branches.len() && test.span.start > stmt.span.start { test.span } else { stmt.span };
        let at = Span::new(at.start.min(test.span.start), test.span.end);
        let condition = self.eval(test, frame);
        let taken = self.decide(&condition, at);
        match taken {
            Taken::Always => {
                let others = rest.iter().map(|(_, body)| body.as_slice()).chain([orelse]);
                others.filter(|body| !body.is_empty()).for_each(|body| self.prune(block_span(body)));
                self.body(body, frame);
            }
            Taken::Never => {
                self.prune(block_span(body));
                self.branches(stmt, rest, orelse, frame);
            }
            Taken::AtRunTime | Taken::Unknown => {
                if taken == Taken::AtRunTime && frame.loops > 0 && (returns(body) || self.else_returns(rest, orelse)) {
                    self.problem(Kind::Return, at, "a run-time branch inside a loop cannot return");
                }
                self.both(
                    taken,
                    at,
                    frame,
                    |engine, frame| engine.body(body, frame),
                    |engine, frame| {
                        engine.branches(stmt, rest, orelse, frame);
                    },
                );
            }
        }
    }

    fn else_returns(&self, rest: &[(Expr, Vec<Stmt>)], orelse: &[Stmt]) -> bool {
        rest.iter().any(|(_, body)| returns(body)) || returns(orelse)
    }

    /// Whether a condition holds. Reports values that cannot be conditions.
    pub(super) fn decide(&mut self, condition: &Value<'a>, at: Span) -> Taken {
        match condition {
            Value::Tile(tile) => {
                let lanes = tile.shape.as_ref().map(|shape| super::shape::lanes(shape));
                if tile.is_block() && lanes.and_then(|lanes| lanes.known()).is_some_and(|lanes| lanes > 1) {
                    let message = format!("a tile (`{tile}`) is neither true nor false; reduce it first");
                    self.problem(Kind::Condition, at, message);
                }
                Taken::AtRunTime
            }
            Value::Const(Const::Str(_) | Const::Float(_) | Const::Type(_)) | Value::Tuple(_) => {
                let message = format!("a condition must be a bool, an integer or None, and `{condition}` is not");
                self.problem(Kind::Condition, at, message);
                Taken::Unknown
            }
            Value::Const(value) => match value.truth() {
                Some(true) => Taken::Always,
                Some(false) => Taken::Never,
                None => Taken::Unknown,
            },
            _ => Taken::Unknown,
        }
    }

    /// Runs both branches and joins the resulting scopes.
    fn both(
        &mut self,
        taken: Taken,
        at: Span,
        frame: &mut Frame<'a>,
        yes: impl FnOnce(&mut Self, &mut Frame<'a>),
        no: impl FnOnce(&mut Self, &mut Frame<'a>),
    ) {
        let before = frame.names.clone();
        let at_run_time = taken == Taken::AtRunTime;
        self.uncertain += u32::from(!at_run_time);
        self.branches += u32::from(at_run_time);
        frame.regions += u32::from(at_run_time);
        yes(self, frame);
        let after_yes = std::mem::replace(&mut frame.names, before.clone());
        no(self, frame);
        self.uncertain -= u32::from(!at_run_time);
        self.branches -= u32::from(at_run_time);
        frame.regions -= u32::from(at_run_time);
        let after_no = std::mem::take(&mut frame.names);
        frame.names = if at_run_time && !frame.is_opaque {
            self.join_regions(at, &before, after_yes, &after_no)
        } else {
            join_uncertain(after_yes, after_no)
        };
    }

    /// The names after a run-time branch: those that both branches bind, or that were bound before.
    fn join_regions(&mut self, at: Span, before: &Names<'a>, yes: Names<'a>, no: &Names<'a>) -> Names<'a> {
        let mut joined = Names::default();
        let mut clashes = Vec::new();
        for (name, then) in yes {
            let otherwise = no.get(name);
            match (before.get(name), otherwise) {
                (Some(old), Some(otherwise)) => {
                    let (changes, differs) = (then != *otherwise, |side: &Value<'a>| certainly_differ(old, side));
                    if old.is_runtime() && changes && (differs(&then) || differs(otherwise)) {
                        let side = if differs(&then) { &then } else { otherwise };
                        clashes.push((name, format!("`{name}` is `{old}` before the branch and `{side}` in it")));
                    }
                    let new = [&then, otherwise].into_iter().find(|side| side.is_runtime());
                    if let (Value::Const(Const::None), Some(new), Some(false)) = (old, new, self.since(5)) {
                        clashes.push((name, format!("`{name}` is None before the branch and `{new}` in it")));
                    }
                    // A value that is not a run-time value changes only if both branches change it.
                    let keeps = !old.is_runtime() && *old != Value::Unknown && (then == *old || otherwise == old);
                    joined.insert(name, if keeps { old.clone() } else { then.either(otherwise) });
                }
                // A name that is annotated as a constant exists in its branch only.
                (None, Some(Value::Const(other))) if is_annotated(&then) && *other != Const::None => {}
                (None, Some(otherwise)) => {
                    if certainly_differ(&then, otherwise) {
                        clashes
                            .push((name, format!("`{name}` is `{then}` in one branch and `{otherwise}` in the other")));
                    }
                    joined.insert(name, then.either(otherwise));
                }
                (Some(old), None) => drop(joined.insert(name, old.clone())),
                (None, None) => {}
            }
        }
        clashes.sort_unstable();
        for (_, message) in clashes {
            self.problem(Kind::BranchType, at, format!("{message}; both must be of one type"));
        }
        joined
    }

    /// `body if test else orelse`
    pub(super) fn choice(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> Value<'a> {
        let ExprKind::IfExp { test, body, orelse } = &expr.kind else { return Value::Unknown };
        let condition = self.eval(test, frame);
        let taken = match &condition {
            Value::Tile(_) => Taken::AtRunTime,
            _ => self.decide(&condition, expr.span),
        };
        match taken {
            Taken::Always => {
                self.prune(orelse.span);
                self.enter(body.span);
                self.eval(body, frame)
            }
            Taken::Never => {
                self.prune(body.span);
                self.enter(orelse.span);
                self.eval(orelse, frame)
            }
            Taken::Unknown => {
                self.enter(body.span);
                self.enter(orelse.span);
                self.uncertain += 1;
                let (yes, no) = (self.eval(body, frame), self.eval(orelse, frame));
                self.uncertain -= 1;
                yes.either(&no)
            }
            Taken::AtRunTime => {
                self.enter(body.span);
                self.enter(orelse.span);
                let (yes, no) = (self.eval(body, frame), self.eval(orelse, frame));
                let (yes, no) = (self.to_run_time(yes), self.to_run_time(no));
                if certainly_differ(&yes, &no) {
                    let message = format!("one side is `{yes}`, the other `{no}`; both must be of one type");
                    self.problem(Kind::BranchType, expr.span, message);
                }
                yes.either(&no)
            }
        }
    }

    fn to_run_time(&self, value: Value<'a>) -> Value<'a> {
        match Self::number_of(&value) {
            Some(number) if matches!(value, Value::Const(_)) => Value::scalar(number),
            _ => value,
        }
    }
}

fn is_annotated(value: &Value<'_>) -> bool {
    matches!(value, Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Str(_) | Const::Symbol(_)))
}

/// Whether two values certainly have different types.
pub(super) fn certainly_differ(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Tile(a), Value::Tile(b)) => a.differs(b),
        (Value::Tile(_), Value::Const(Const::None)) | (Value::Const(Const::None), Value::Tile(_)) => true,
        (Value::Tile(_), Value::Tuple(_) | Value::BlockPointer(_) | Value::Descriptor(_)) => true,
        _ => false,
    }
}

/// Joins two paths of which either may be taken. A name that only one of them binds may be unbound.
pub(super) fn join_uncertain<'a>(mut names: Names<'a>, other: Names<'a>) -> Names<'a> {
    for (name, value) in &mut names {
        match other.get(name) {
            Some(known) if known == value => {}
            Some(known) => *value = value.either(known),
            None => *value = Value::Unknown,
        }
    }
    for (name, _) in other {
        names.entry(name).or_insert(Value::Unknown);
    }
    names
}
