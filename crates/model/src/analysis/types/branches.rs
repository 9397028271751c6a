//! Abstract interpretation of branches.

use rustc_hash::FxHashMap as HashMap;

use super::engine::{Engine, Frame};
use super::statements::{block_span, returns};
use super::value::{AbstractValue, Const, ProblemKind};
use crate::kernel::ast::{Expr, ExprKind, Stmt};
use crate::syntax::Span;

pub(super) type NameValues<'a> = HashMap<&'a str, AbstractValue<'a>>;

/// Whether a branch is taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BranchTaken {
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
            BranchTaken::Always => {
                let others = rest.iter().map(|(_, body)| body.as_slice()).chain([orelse]);
                others.filter(|body| !body.is_empty()).for_each(|body| self.prune(block_span(body)));
                self.body(body, frame);
            }
            BranchTaken::Never => {
                self.prune(block_span(body));
                self.branches(stmt, rest, orelse, frame);
            }
            BranchTaken::AtRunTime | BranchTaken::Unknown => {
                if taken == BranchTaken::AtRunTime
                    && frame.loops > 0
                    && (returns(body) || self.else_returns(rest, orelse))
                {
                    self.problem(ProblemKind::Return, at, "a run-time branch inside a loop cannot return");
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
    pub(super) fn decide(&mut self, condition: &AbstractValue<'a>, at: Span) -> BranchTaken {
        match condition {
            AbstractValue::Tile(tile) => {
                let lanes = tile.shape.as_ref().map(|shape| super::shape::lanes(shape));
                if tile.is_block() && lanes.and_then(|lanes| lanes.known()).is_some_and(|lanes| lanes > 1) {
                    let message = format!("a tile (`{tile}`) is neither true nor false; reduce it first");
                    self.problem(ProblemKind::Condition, at, message);
                }
                BranchTaken::AtRunTime
            }
            AbstractValue::Const(Const::Str(_) | Const::Float(_) | Const::Type(_)) | AbstractValue::Tuple(_) => {
                let message = format!("a condition must be a bool, an integer or None, and `{condition}` is not");
                self.problem(ProblemKind::Condition, at, message);
                BranchTaken::Unknown
            }
            AbstractValue::Const(value) => match value.truth() {
                Some(true) => BranchTaken::Always,
                Some(false) => BranchTaken::Never,
                None => BranchTaken::Unknown,
            },
            _ => BranchTaken::Unknown,
        }
    }

    /// Runs both branches and joins the resulting scopes.
    fn both(
        &mut self,
        taken: BranchTaken,
        at: Span,
        frame: &mut Frame<'a>,
        yes: impl FnOnce(&mut Self, &mut Frame<'a>),
        no: impl FnOnce(&mut Self, &mut Frame<'a>),
    ) {
        let before = frame.names.clone();
        let at_run_time = taken == BranchTaken::AtRunTime;
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
    fn join_regions(
        &mut self,
        at: Span,
        before: &NameValues<'a>,
        yes: NameValues<'a>,
        no: &NameValues<'a>,
    ) -> NameValues<'a> {
        let mut joined = NameValues::default();
        let mut clashes = Vec::new();
        for (name, then) in yes {
            let otherwise = no.get(name);
            match (before.get(name), otherwise) {
                (Some(old), Some(otherwise)) => {
                    let (changes, differs) =
                        (then != *otherwise, |side: &AbstractValue<'a>| certainly_differ(old, side));
                    if old.is_runtime() && changes && (differs(&then) || differs(otherwise)) {
                        let side = if differs(&then) { &then } else { otherwise };
                        clashes.push((name, format!("`{name}` is `{old}` before the branch and `{side}` in it")));
                    }
                    let new = [&then, otherwise].into_iter().find(|side| side.is_runtime());
                    if let (AbstractValue::Const(Const::None), Some(new), Some(false)) = (old, new, self.since(5)) {
                        clashes.push((name, format!("`{name}` is None before the branch and `{new}` in it")));
                    }
                    // A value that is not a run-time value changes only if both branches change it.
                    let keeps =
                        !old.is_runtime() && *old != AbstractValue::Unknown && (then == *old || otherwise == old);
                    joined.insert(name, if keeps { old.clone() } else { then.either(otherwise) });
                }
                // A name that is annotated as a constant exists in its branch only.
                (None, Some(AbstractValue::Const(other))) if is_annotated(&then) && *other != Const::None => {}
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
            self.problem(ProblemKind::BranchType, at, format!("{message}; both must be of one type"));
        }
        joined
    }

    /// `body if test else orelse`
    pub(super) fn choice(&mut self, expr: &'a Expr, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        let ExprKind::IfExp { test, body, orelse } = &expr.kind else { return AbstractValue::Unknown };
        let condition = self.eval(test, frame);
        let taken = match &condition {
            AbstractValue::Tile(_) => BranchTaken::AtRunTime,
            _ => self.decide(&condition, expr.span),
        };
        match taken {
            BranchTaken::Always => {
                self.prune(orelse.span);
                self.enter(body.span);
                self.eval(body, frame)
            }
            BranchTaken::Never => {
                self.prune(body.span);
                self.enter(orelse.span);
                self.eval(orelse, frame)
            }
            BranchTaken::Unknown => {
                self.enter(body.span);
                self.enter(orelse.span);
                self.uncertain += 1;
                let (yes, no) = (self.eval(body, frame), self.eval(orelse, frame));
                self.uncertain -= 1;
                yes.either(&no)
            }
            BranchTaken::AtRunTime => {
                self.enter(body.span);
                self.enter(orelse.span);
                self.branches += 1;
                let (yes, no) = (self.eval(body, frame), self.eval(orelse, frame));
                self.branches -= 1;
                let (yes, no) = (self.to_run_time(yes), self.to_run_time(no));
                if certainly_differ(&yes, &no) {
                    let message = format!("one side is `{yes}`, the other `{no}`; both must be of one type");
                    self.problem(ProblemKind::BranchType, expr.span, message);
                }
                yes.either(&no)
            }
        }
    }

    fn to_run_time(&self, value: AbstractValue<'a>) -> AbstractValue<'a> {
        match Self::number_of(&value) {
            Some(number) if matches!(value, AbstractValue::Const(_)) => AbstractValue::scalar(number),
            _ => value,
        }
    }
}

fn is_annotated(value: &AbstractValue<'_>) -> bool {
    matches!(
        value,
        AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Str(_) | Const::Symbol(_))
    )
}

/// Whether two values certainly have different types.
pub(super) fn certainly_differ(a: &AbstractValue<'_>, b: &AbstractValue<'_>) -> bool {
    match (a, b) {
        (AbstractValue::Tile(a), AbstractValue::Tile(b)) => a.differs(b),
        (AbstractValue::Tile(_), AbstractValue::Const(Const::None))
        | (AbstractValue::Const(Const::None), AbstractValue::Tile(_)) => true,
        (
            AbstractValue::Tile(_),
            AbstractValue::Tuple(_) | AbstractValue::BlockPointer(_) | AbstractValue::Descriptor(_),
        ) => true,
        _ => false,
    }
}

/// Joins two paths of which either may be taken. A name that only one of them binds may be unbound.
pub(super) fn join_uncertain<'a>(mut names: NameValues<'a>, other: NameValues<'a>) -> NameValues<'a> {
    for (name, value) in &mut names {
        match other.get(name) {
            Some(known) if known == value => {}
            Some(known) => *value = value.either(known),
            None => *value = AbstractValue::Unknown,
        }
    }
    for (name, _) in other {
        names.entry(name).or_insert(AbstractValue::Unknown);
    }
    names
}
