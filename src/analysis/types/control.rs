//! Branches and loops.

use std::collections::HashMap;

use super::dtype::Number;
use super::engine::{Engine, Frame};
use super::statements::{bound, returns};
use super::value::{Const, Kind, Tile, Value};
use crate::kernel::ast::{Call, Expr, ExprKind, Stmt};
use crate::syntax::Span;

type Names<'a> = HashMap<&'a str, Value<'a>>;

/// Loops of compile-time counts up to this are run round by round.
const MAX_UNROLLED: i128 = 128;

/// When a branch is taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Taken {
    Always,
    Never,
    /// Decided while the kernel runs: both sides are compiled.
    AtRunTime,
    /// Nobody can tell.
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
        // The front end sees `elif` as an `if` of its own, at its own place.
        let at =
            if rest.len() + 1 == branches.len() && test.span.start > stmt.span.start { test.span } else { stmt.span };
        let at = Span::new(at.start.min(test.span.start), test.span.end);
        let condition = self.eval(test, frame);
        let taken = self.decide(&condition, at);
        match taken {
            Taken::Always => self.body(body, frame),
            Taken::Never => self.branches(stmt, rest, orelse, frame),
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

    /// When a condition holds; reports what cannot be one.
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

    /// Runs two sides of a branch and joins what they leave.
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

    /// What is left behind a run-time branch: a name that both sides bind, or that was bound before.
    fn join_regions(&mut self, at: Span, before: &Names<'a>, yes: Names<'a>, no: &Names<'a>) -> Names<'a> {
        let mut joined = Names::new();
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
                    // What is not a run-time value is only changed when both sides change it.
                    let keeps = !old.is_runtime() && *old != Value::Unknown && (then == *old || otherwise == old);
                    joined.insert(name, if keeps { old.clone() } else { then.either(otherwise) });
                }
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

    pub(super) fn for_loop(
        &mut self,
        stmt: &'a Stmt,
        target: &'a Expr,
        iter: &'a Expr,
        body: &'a [Stmt],
        orelse: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let at = Span::new(stmt.span.start, iter.span.end);
        let Some(call) = iter.as_call() else {
            self.eval(iter, frame);
            self.problem(Kind::LoopBounds, at, "a kernel can only loop over `range`, `tl.range` and `tl.static_range`");
            return self.run_loop(at, Some((target, Value::Unknown)), None, body, frame);
        };
        let function = self.eval(&call.func, frame);
        let Some((is_static, bounds)) = self.bounds(at, &function, call, frame) else {
            self.uncertain += 1;
            self.run_loop(at, Some((target, Value::Unknown)), None, body, frame);
            self.uncertain -= 1;
            return;
        };
        if target.as_name().is_none() {
            self.problem(Kind::LoopBounds, at, "the loop variable must be one name");
        }
        if is_static {
            return self.static_loop(at, &bounds, target, body, frame);
        }
        if !orelse.is_empty() {
            self.problem(Kind::Syntax, at, "a loop in a kernel cannot have an `else`");
        }
        let counter = self.counter(at, &bounds);
        let counter = self.known_counter(at, &bounds, counter);
        self.run_loop(at, Some((target, counter)), None, body, frame);
    }

    /// Start, end and step; and whether the loop is unrolled. `None` when nobody can tell what is iterated.
    fn bounds(
        &mut self,
        at: Span,
        function: &Value<'a>,
        call: &'a Call,
        frame: &mut Frame<'a>,
    ) -> Option<(bool, [Value<'a>; 3])> {
        let path = match function {
            Value::Builtin("range") => "range",
            Value::Member(path) => match path.as_ref() {
                "triton.language.range" => "tl.range",
                "triton.language.static_range" => "tl.static_range",
                _ => "",
            },
            Value::Builtin(_) | Value::Kernel(_) | Value::Method(..) => "",
            _ => {
                call.args.iter().for_each(|arg| drop(self.eval(&arg.value, frame)));
                return None;
            }
        };
        if path.is_empty() {
            call.args.iter().for_each(|arg| drop(self.eval(&arg.value, frame)));
            self.problem(Kind::LoopBounds, at, "a kernel can only loop over `range`, `tl.range` and `tl.static_range`");
            return None;
        }
        if path != "range" {
            self.check_arguments(at, &format!("triton.language.{}", &path[3..]), call);
        }
        let values: Vec<Value<'a>> = call.args.iter().map(|arg| self.eval(&arg.value, frame)).collect();
        if call.has_star() {
            return None;
        }
        let named = |name: &str| {
            let at = call.args.iter().position(|arg| arg.keyword.as_ref().is_some_and(|(known, _)| known == name))?;
            values.get(at).cloned()
        };
        let plain: Vec<&Value<'a>> =
            values.iter().zip(&call.args).filter(|(_, arg)| arg.keyword.is_none()).map(|(value, _)| value).collect();
        let first = plain.first().copied().cloned().or_else(|| named("arg1"));
        let second = plain.get(1).copied().cloned().or_else(|| named("arg2"));
        let step = plain.get(2).copied().cloned().or_else(|| named("step")).unwrap_or_else(|| Value::int(1));
        let (start, end) = match second {
            Some(second) if second.is_none() != Some(true) => (first?, second),
            _ => (Value::int(0), first?),
        };
        let bounds = [start, end, step];
        if path == "tl.static_range" {
            let run_time = bounds.iter().find(|bound| bound.is_runtime());
            if let Some(bound) = run_time {
                let message = format!(
                    "`tl.static_range` is unrolled while compiling, and `{bound}` is a run-time value; use `range` or `tl.range`"
                );
                self.problem(Kind::LoopBounds, at, message);
            }
        }
        Some((path == "tl.static_range", bounds))
    }

    /// The loop variable of a loop at run time.
    fn counter(&mut self, at: Span, bounds: &[Value<'a>; 3]) -> Value<'a> {
        let mut number: Option<Number> = None;
        for bound in bounds {
            if let Value::Tile(tile) = bound
                && tile.is_block()
            {
                self.problem(Kind::LoopBounds, at, format!("a bound of a loop must be a scalar, not `{tile}`"));
                return Value::Unknown;
            }
            let is_pointer = bound.tile().is_some_and(|tile| tile.element.is_pointer());
            match Self::number_of(bound) {
                Some(of_bound) if of_bound.is_int() => {
                    number = Some(number.map_or(of_bound, |number| number.promoted(of_bound)));
                }
                Some(_) => {
                    self.problem(Kind::LoopBounds, at, format!("a bound of a loop must be an integer, not `{bound}`"));
                    return Value::Unknown;
                }
                None if is_pointer => {
                    self.problem(Kind::LoopBounds, at, "a bound of a loop must be an integer, not a pointer");
                    return Value::Unknown;
                }
                None => return Value::Tile(Tile::new(super::Element::Unknown, Some(super::shape::Shape::default()))),
            }
        }
        number.map_or(Value::Unknown, Value::scalar)
    }

    fn static_loop(
        &mut self,
        at: Span,
        bounds: &[Value<'a>; 3],
        target: &'a Expr,
        body: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let number = |value: &Value<'a>| value.constant().and_then(Const::int);
        let (start, end, step) = (number(&bounds[0]), number(&bounds[1]), number(&bounds[2]));
        let (Some(start), Some(end), Some(step)) = (start, end, step) else {
            return self.rounds_unknown(target, body, frame);
        };
        if step == 0 {
            return self.problem(Kind::LoopBounds, at, "the step of a loop cannot be 0");
        }
        let mut round = start;
        while (step > 0 && round < end) || (step < 0 && round > end) {
            if (round - start).abs() / step.abs() >= MAX_UNROLLED || self.budget == 0 {
                return self.rounds_unknown(target, body, frame);
            }
            if let Some(name) = target.as_name() {
                frame.stale.remove(name);
                frame.names.insert(name, Value::int(round));
            }
            self.body(body, frame);
            round += step;
        }
    }

    /// An unrolled loop of which nobody knows how many rounds it has: two stand for all of them.
    fn rounds_unknown(&mut self, target: &'a Expr, body: &'a [Stmt], frame: &mut Frame<'a>) {
        self.uncertain += 1;
        for _ in 0..2 {
            let before = frame.names.clone();
            if let Some(name) = target.as_name() {
                frame.stale.remove(name);
                frame.names.insert(name, Value::Const(Const::Unknown));
            }
            self.body(body, frame);
            let after = std::mem::take(&mut frame.names);
            frame.names = join_uncertain(before, after);
        }
        self.uncertain -= 1;
    }

    pub(super) fn while_loop(
        &mut self,
        stmt: &'a Stmt,
        test: &'a Expr,
        body: &'a [Stmt],
        orelse: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let at = Span::new(stmt.span.start, test.span.end);
        if !orelse.is_empty() {
            self.problem(Kind::Syntax, at, "a loop in a kernel cannot have an `else`");
        }
        self.run_loop(at, None, Some(test), body, frame);
    }

    /// A loop at run time: what its body changes must keep its type.
    fn run_loop(
        &mut self,
        at: Span,
        counter: Option<(&'a Expr, Value<'a>)>,
        test: Option<&'a Expr>,
        body: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let counter_name = counter.as_ref().and_then(|(target, _)| target.as_name());
        if let Some((target, value)) = counter {
            self.assign(target, value, at, frame);
        }
        self.enter_loop(at, body, frame);
        let before = frame.names.clone();
        if let Some(test) = test {
            let condition = self.eval(test, frame);
            if let Value::Const(value) = &condition
                && value.truth().is_some()
                && self.uncertain == 0
            {
                self.problem(Kind::Condition, test.span, "the condition of `while` must be a run-time value");
            }
        }
        frame.loops += 1;
        frame.regions += 1;
        self.body(body, frame);
        frame.loops -= 1;
        frame.regions -= 1;
        self.around.pop();
        let after = std::mem::take(&mut frame.names);
        frame.names = if frame.is_opaque {
            join_uncertain(before, after)
        } else {
            self.join_rounds(at, counter_name, before, &after, body)
        };
        if let Some(name) = counter_name
            && self.uncertain == 0
        {
            frame.stale.insert(name, at);
        }
    }

    fn join_rounds(
        &mut self,
        at: Span,
        counter: Option<&str>,
        before: Names<'a>,
        after: &Names<'a>,
        body: &'a [Stmt],
    ) -> Names<'a> {
        let bound = bound(body);
        let mut clashes = Vec::new();
        let joined = before.into_iter().map(|(name, old)| {
            let Some(new) = after.get(name).filter(|_| Some(name) != counter) else { return (name, old) };
            let place = bound.get(name).copied();
            match (&old, new) {
                (Value::Const(_), Value::Tile(_)) if place.is_some() => {
                    clashes.push((
                        place,
                        name,
                        format!("`{name}` is a compile-time value before the loop and cannot be assigned in it"),
                    ));
                    (name, Value::Unknown)
                }
                _ if certainly_differ(&old, new) => {
                    clashes.push((
                        place,
                        name,
                        format!("`{name}` is `{old}` before the loop and `{new}` after a round; it must keep its type"),
                    ));
                    (name, old.either(new))
                }
                // The body sees what the loop is entered with, so a known type stays.
                (Value::Tile(tile), Value::Tile(_)) if tile.is_known() => (name, old),
                _ => (name, old.either(new)),
            }
        });
        let joined: Names<'a> = joined.collect();
        clashes.sort_unstable_by_key(|(place, name, _)| (*place, *name));
        for (place, _, message) in clashes {
            let related = place.map(|place| (place, "it is assigned here".to_owned())).into_iter().collect();
            self.problem_with(Kind::LoopCarried, at, message, related);
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
            Taken::Always => self.eval(body, frame),
            Taken::Never => self.eval(orelse, frame),
            Taken::Unknown => {
                self.uncertain += 1;
                let (yes, no) = (self.eval(body, frame), self.eval(orelse, frame));
                self.uncertain -= 1;
                yes.either(&no)
            }
            Taken::AtRunTime => {
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

/// Whether two values certainly have different types.
fn certainly_differ(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Tile(a), Value::Tile(b)) => a.differs(b),
        (Value::Tile(_), Value::Const(Const::None)) | (Value::Const(Const::None), Value::Tile(_)) => true,
        (Value::Tile(_), Value::Tuple(_) | Value::BlockPointer(_) | Value::Descriptor(_)) => true,
        _ => false,
    }
}

/// Joins two paths of which nobody knows which is taken: a name of only one of them may be bound.
fn join_uncertain<'a>(mut names: Names<'a>, other: Names<'a>) -> Names<'a> {
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
