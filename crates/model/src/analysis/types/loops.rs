//! Abstract interpretation of loops: unrolled loops and run-time loops.

use super::control::{Names, certainly_differ, join_uncertain};
use super::dtype::Number;
use super::engine::{Engine, Frame};
use super::statements::{block_span, bound};
use super::value::{Const, Kind, Tile, Value};
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

    /// Start, end and step of a loop, and whether it is unrolled. `None` when the iterable is not known.
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
            Value::Builtin(_) | Value::Kernel(_) | Value::File(_) | Value::Method(..) => "",
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
        if path == "range" && call.args.iter().all(|arg| arg.keyword.is_some()) && !call.args.is_empty() {
            self.problem(Kind::LoopBounds, at, "the bounds of a loop must be passed by position");
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
            let refused = |bound: &&Value<'a>| {
                bound.is_runtime() || matches!(bound, Value::Tuple(_) | Value::Const(Const::Float(_) | Const::Str(_)))
            };
            if let Some(bound) = bounds.iter().find(refused) {
                let why = if bound.is_runtime() { "a run-time value; use `range` or `tl.range`" } else { "no integer" };
                let message = format!("`tl.static_range` is unrolled while compiling, and `{bound}` is {why}");
                self.problem(Kind::LoopBounds, at, message);
            }
        }
        Some((path == "tl.static_range", bounds))
    }

    /// The variable of a run-time loop.
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
                frame.names.insert(name, Value::int(round));
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

    /// Runs a run-time loop. A variable that its body changes must keep its type.
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
            if matches!(condition, Value::Tile(_)) {
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
                // The body starts with the value before the loop, so a known type stays.
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
}
