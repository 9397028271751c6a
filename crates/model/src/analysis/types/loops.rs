//! Abstract interpretation of loops: unrolled loops and run-time loops.

use super::branches::{NameValues, certainly_differ, join_uncertain};
use super::dtype::Dtype;
use super::engine::{Engine, Frame};
use super::statements::{block_span, bound};
use super::value::{AbstractValue, Const, ProblemKind, RuntimeValue};
use crate::kernel::ast::{Call, Expr, Stmt};
use crate::syntax::Span;

/// Unrolled loops with up to this many iterations are run iteration by iteration.
const MAX_UNROLLED: i128 = 128;

impl<'a> Engine<'a> {
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
            self.problem(
                ProblemKind::LoopBounds,
                at,
                "a kernel can only loop over `range`, `tl.range` and `tl.static_range`",
            );
            return self.run_loop(at, Some((target, AbstractValue::Unknown)), None, body, frame);
        };
        let function = self.eval(&call.func, frame);
        let Some((is_static, bounds)) = self.bounds(at, &function, call, frame) else {
            self.uncertain += 1;
            self.run_loop(at, Some((target, AbstractValue::Unknown)), None, body, frame);
            self.uncertain -= 1;
            return;
        };
        if target.as_name().is_none() {
            self.problem(ProblemKind::LoopBounds, at, "the loop variable must be one name");
        }
        if is_static {
            return self.static_loop(at, &bounds, target, body, frame);
        }
        if !orelse.is_empty() {
            self.problem(ProblemKind::Syntax, at, "a loop in a kernel cannot have an `else`");
        }
        let counter = self.counter(at, &bounds);
        let counter = self.known_counter(at, &bounds, counter);
        self.run_loop(at, Some((target, counter)), None, body, frame);
    }

    /// Start, end and step of a loop, and whether it is unrolled. `None` when the iterable is not known.
    fn bounds(
        &mut self,
        at: Span,
        function: &AbstractValue<'a>,
        call: &'a Call,
        frame: &mut Frame<'a>,
    ) -> Option<(bool, [AbstractValue<'a>; 3])> {
        let path = match function {
            AbstractValue::Builtin("range") => "range",
            AbstractValue::Member(path) => match path.as_ref() {
                "triton.language.range" => "tl.range",
                "triton.language.static_range" => "tl.static_range",
                _ => "",
            },
            AbstractValue::Builtin(_)
            | AbstractValue::Kernel(_)
            | AbstractValue::File(_)
            | AbstractValue::Method(..) => "",
            _ => {
                call.args.iter().for_each(|arg| drop(self.eval(&arg.value, frame)));
                return None;
            }
        };
        if path.is_empty() {
            call.args.iter().for_each(|arg| drop(self.eval(&arg.value, frame)));
            self.problem(
                ProblemKind::LoopBounds,
                at,
                "a kernel can only loop over `range`, `tl.range` and `tl.static_range`",
            );
            return None;
        }
        if path != "range" {
            self.check_arguments(at, &format!("triton.language.{}", &path[3..]), call);
        }
        let values: Vec<AbstractValue<'a>> = call.args.iter().map(|arg| self.eval(&arg.value, frame)).collect();
        if call.has_star() {
            return None;
        }
        if path == "range" && call.args.iter().all(|arg| arg.keyword.is_some()) && !call.args.is_empty() {
            self.problem(ProblemKind::LoopBounds, at, "the bounds of a loop must be passed by position");
            return None;
        }
        let named = |name: &str| {
            let at = call.args.iter().position(|arg| arg.keyword.as_ref().is_some_and(|(known, _)| known == name))?;
            values.get(at).cloned()
        };
        let plain: Vec<&AbstractValue<'a>> =
            values.iter().zip(&call.args).filter(|(_, arg)| arg.keyword.is_none()).map(|(value, _)| value).collect();
        let first = plain.first().copied().cloned().or_else(|| named("arg1"));
        let second = plain.get(1).copied().cloned().or_else(|| named("arg2"));
        let step = plain.get(2).copied().cloned().or_else(|| named("step")).unwrap_or_else(|| AbstractValue::int(1));
        let (start, end) = match second {
            Some(second) if second.is_none() != Some(true) => (first?, second),
            _ => (AbstractValue::int(0), first?),
        };
        let bounds = [start, end, step];
        if path == "tl.static_range" {
            let refused = |bound: &&AbstractValue<'a>| {
                bound.is_runtime()
                    || matches!(bound, AbstractValue::Tuple(_) | AbstractValue::Const(Const::Float(_) | Const::Str(_)))
            };
            if let Some(bound) = bounds.iter().find(refused) {
                let why = if bound.is_runtime() { "a run-time value; use `range` or `tl.range`" } else { "no integer" };
                let message = format!("`tl.static_range` is unrolled while compiling, and `{bound}` is {why}");
                self.problem(ProblemKind::LoopBounds, at, message);
            }
        }
        Some((path == "tl.static_range", bounds))
    }

    /// The variable of a run-time loop.
    fn counter(&mut self, at: Span, bounds: &[AbstractValue<'a>; 3]) -> AbstractValue<'a> {
        let mut number: Option<Dtype> = None;
        for bound in bounds {
            if let AbstractValue::Tile(tile) = bound
                && tile.is_block()
            {
                self.problem(ProblemKind::LoopBounds, at, format!("a bound of a loop must be a scalar, not `{tile}`"));
                return AbstractValue::Unknown;
            }
            let is_pointer = bound.tile().is_some_and(|tile| tile.element.is_pointer());
            match Self::number_of(bound) {
                Some(of_bound) if of_bound.is_int() => {
                    number = Some(number.map_or(of_bound, |number| number.promoted(of_bound)));
                }
                Some(_) => {
                    self.problem(
                        ProblemKind::LoopBounds,
                        at,
                        format!("a bound of a loop must be an integer, not `{bound}`"),
                    );
                    return AbstractValue::Unknown;
                }
                None if is_pointer => {
                    self.problem(ProblemKind::LoopBounds, at, "a bound of a loop must be an integer, not a pointer");
                    return AbstractValue::Unknown;
                }
                None => {
                    return AbstractValue::Tile(RuntimeValue::new(
                        super::LaneType::Unknown,
                        Some(super::shape::Shape::default()),
                    ));
                }
            }
        }
        number.map_or(AbstractValue::Unknown, AbstractValue::scalar)
    }

    fn static_loop(
        &mut self,
        at: Span,
        bounds: &[AbstractValue<'a>; 3],
        target: &'a Expr,
        body: &'a [Stmt],
        frame: &mut Frame<'a>,
    ) {
        let number = |value: &AbstractValue<'a>| value.constant().and_then(Const::int);
        let (start, end, step) = (number(&bounds[0]), number(&bounds[1]), number(&bounds[2]));
        let (Some(start), Some(end), Some(step)) = (start, end, step) else {
            return self.rounds_unknown(target, body, frame);
        };
        if step == 0 {
            return self.problem(ProblemKind::LoopBounds, at, "the step of a loop cannot be 0");
        }
        if (step > 0 && start >= end) || (step < 0 && start <= end) {
            return self.prune(block_span(body));
        }
        let mut round = start;
        while (step > 0 && round < end) || (step < 0 && round > end) {
            if (round - start).abs() / step.abs() >= MAX_UNROLLED || self.budget == 0 {
                return self.rounds_unknown(target, body, frame);
            }
            if let Some(name) = target.as_name() {
                frame.stale.remove(name);
                frame.names.insert(name, AbstractValue::int(round));
            }
            self.body(body, frame);
            round += step;
        }
    }

    /// Runs an unrolled loop whose number of iterations is not known: two iterations represent all of them.
    fn rounds_unknown(&mut self, target: &'a Expr, body: &'a [Stmt], frame: &mut Frame<'a>) {
        self.uncertain += 1;
        for _ in 0..2 {
            let before = frame.names.clone();
            if let Some(name) = target.as_name() {
                frame.stale.remove(name);
                frame.names.insert(name, AbstractValue::Const(Const::Unknown));
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
            self.problem(ProblemKind::Syntax, at, "a loop in a kernel cannot have an `else`");
        }
        self.run_loop(at, None, Some(test), body, frame);
    }

    /// Runs a run-time loop. A variable that its body changes must keep its type.
    fn run_loop(
        &mut self,
        at: Span,
        counter: Option<(&'a Expr, AbstractValue<'a>)>,
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
            if let AbstractValue::Const(value) = &condition
                && value.truth().is_some()
                && self.uncertain == 0
            {
                self.problem(ProblemKind::Condition, test.span, "the condition of `while` must be a run-time value");
            }
            if matches!(condition, AbstractValue::Tile(_)) {
                self.decide(&condition, test.span);
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
        before: NameValues<'a>,
        after: &NameValues<'a>,
        body: &'a [Stmt],
    ) -> NameValues<'a> {
        let bound = bound(body);
        let mut clashes = Vec::new();
        let joined = before.into_iter().map(|(name, old)| {
            let Some(new) = after.get(name).filter(|_| Some(name) != counter) else { return (name, old) };
            let place = bound.get(name).copied();
            match (&old, new) {
                (AbstractValue::Const(_), AbstractValue::Tile(_)) if place.is_some() => {
                    clashes.push((
                        place,
                        name,
                        format!("`{name}` is a compile-time value before the loop and cannot be assigned in it"),
                    ));
                    (name, AbstractValue::Unknown)
                }
                _ if certainly_differ(&old, new) => {
                    clashes.push((
                        place,
                        name,
                        format!(
                            "`{name}` is `{old}` before the loop and `{new}` after an iteration; it must keep its type"
                        ),
                    ));
                    (name, old.either(new))
                }
                // The body starts with the value before the loop, so a known type stays.
                (AbstractValue::Tile(tile), AbstractValue::Tile(_)) if tile.is_known() => (name, old),
                _ => (name, old.either(new)),
            }
        });
        let joined: NameValues<'a> = joined.collect();
        clashes.sort_unstable_by_key(|(place, name, _)| (*place, *name));
        for (place, _, message) in clashes {
            let related = place.map(|place| (place, "it is assigned here".to_owned())).into_iter().collect();
            self.problem_with(ProblemKind::LoopCarried, at, message, related);
        }
        joined
    }
}
