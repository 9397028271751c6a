//! Abstract interpretation of statements.

use rustc_hash::FxHashMap as HashMap;

use super::engine::{Engine, Frame, Trace};
use super::value::{AbstractValue, Const, LaneType, ProblemKind, RuntimeValue};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use crate::syntax::Span;

impl<'a> Engine<'a> {
    /// Runs statements up to a `return`: Triton compiles nothing after it.
    pub(super) fn body(&mut self, body: &'a [Stmt], frame: &mut Frame<'a>) {
        self.enter(block_span(body));
        for (at, stmt) in body.iter().enumerate() {
            if !self.step() {
                return;
            }
            self.statement(stmt, frame);
            if matches!(stmt.kind, StmtKind::Return(_)) {
                let rest = &body[at + 1..];
                if !rest.is_empty() {
                    self.prune(block_span(rest));
                }
                return;
            }
        }
    }

    fn statement(&mut self, stmt: &'a Stmt, frame: &mut Frame<'a>) {
        match &stmt.kind {
            StmtKind::Assign { targets, annotation, value } => {
                self.assignment(stmt, targets, annotation.as_ref(), value.as_ref(), frame);
            }
            StmtKind::AugAssign { target, op, value } => {
                let left = self.eval(target, frame);
                let right = self.eval(value, frame);
                // The front end reads it as a binary operation with the span of the statement.
                let sum = self.binary(stmt.span, op, &left, &right);
                let sum = self.stored(sum, stmt.span);
                self.assign(target, sum, stmt.span, frame);
            }
            StmtKind::Expr(expr) => drop(self.eval(expr, frame)),
            StmtKind::If { branches, orelse } => self.branches(stmt, branches, orelse, frame),
            StmtKind::For { target, iter, body, orelse } => self.for_loop(stmt, target, iter, body, orelse, frame),
            StmtKind::While { test, body, orelse } => self.while_loop(stmt, test, body, orelse, frame),
            StmtKind::Return(value) => self.give_back(stmt, value.as_ref(), frame),
            StmtKind::Assert(parts) => {
                if matches!(parts.first(), Some(Expr { kind: ExprKind::Tuple(_), .. })) && self.since(2) == Some(true) {
                    self.problem(
                        ProblemKind::Condition,
                        stmt.span,
                        "a tuple cannot be a condition; remove the parentheses",
                    );
                }
                parts.iter().for_each(|part| drop(self.eval(part, frame)));
            }
            StmtKind::Pass | StmtKind::Break | StmtKind::Continue => {}
            StmtKind::Raise
            | StmtKind::Import
            | StmtKind::Definition { .. }
            | StmtKind::Block(_)
            | StmtKind::Other(_) => {
                self.unsupported_statement(stmt, frame);
            }
        }
    }

    /// Reports a statement that Triton does not support.
    fn unsupported_statement(&mut self, stmt: &'a Stmt, frame: &mut Frame<'a>) {
        let word = self.text[stmt.span.start..].split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        let message = match word {
            "raise" => "a kernel cannot raise; use `tl.static_assert` or `tl.device_assert`",
            "import" | "from" => "a kernel cannot import; do it at the top of the file",
            "try" => "a kernel has no `try`",
            "match" => "a kernel has no `match`; use `if` and `elif`",
            "def" | "async" => {
                "a function cannot be defined inside a kernel; move it to the top level, under `@triton.jit`"
            }
            "class" => "a class cannot be defined inside a kernel",
            "del" => "a kernel has no `del`",
            "global" | "nonlocal" => "a kernel cannot change names outside it",
            _ => "",
        };
        if let (StmtKind::Block(bodies), "with") = (&stmt.kind, word) {
            if let Some((items, rest)) = bodies.split_first() {
                self.body(items, frame);
                // Context managers belong to dialects, which may accept more in the body than Triton does.
                self.silent += 1;
                rest.iter().for_each(|body| self.body(body, frame));
                self.silent -= 1;
            }
            frame.is_opaque = true;
            return;
        }
        let is_decorated = matches!(stmt.kind, StmtKind::Definition { .. }) && message.is_empty();
        // The statement may be in a branch that is never compiled.
        if self.uncertain == 0 && !frame.is_opaque {
            if is_decorated {
                self.problem(
                    ProblemKind::Syntax,
                    self.first_line(stmt.span),
                    "a function cannot be defined inside a kernel",
                );
            } else if !message.is_empty() {
                self.problem(ProblemKind::Syntax, self.first_line(stmt.span), message);
            }
        }
        let names: Vec<&'a str> = frame.kernel.locals.iter().map(String::as_str).collect();
        frame.is_opaque = true;
        names.into_iter().for_each(|name| drop(frame.names.insert(name, AbstractValue::Unknown)));
    }

    /// The first line of a span.
    pub(super) fn first_line(&self, span: Span) -> Span {
        let text = &self.text[span.start..span.end];
        let end = text.find('\n').map_or(text.len(), |end| text[..end].trim_end().len());
        Span::new(span.start, span.start + end)
    }

    fn assignment(
        &mut self,
        stmt: &'a Stmt,
        targets: &'a [Expr],
        annotation: Option<&'a Expr>,
        value: Option<&'a Expr>,
        frame: &mut Frame<'a>,
    ) {
        let is_constexpr = annotation.is_some_and(|annotation| self.is_constexpr_annotation(annotation, frame));
        let result = value.map(|value| self.eval(value, frame));
        if let (true, [target]) = (is_constexpr, targets)
            && let Some(name) = target.as_name()
        {
            return self.constant_assignment(stmt, name, result, frame);
        }
        if annotation.is_some() && self.since(2) == Some(false) {
            self.problem(
                ProblemKind::Syntax,
                stmt.span,
                "before Triton 3.2 a name can only be annotated with `tl.constexpr`",
            );
        }
        let Some(result) = result else {
            // Without a value, the name is bound to `None`.
            targets.iter().for_each(|target| self.assign(target, AbstractValue::none(), stmt.span, frame));
            return;
        };
        if value.is_some_and(is_text) {
            let message = "a local name cannot hold a string; annotate it with `: tl.constexpr`";
            self.problem(ProblemKind::Conversion, stmt.span, message);
        }
        if targets.len() > 1 {
            self.problem(ProblemKind::Syntax, stmt.span, "a kernel cannot assign to several targets at once");
        }
        if matches!(&result, AbstractValue::Builtin("list()")) {
            self.problem(ProblemKind::Conversion, stmt.span, "a kernel has no lists; write a tuple");
        }
        let result = self.stored(result, stmt.span);
        for target in targets {
            self.assign(target, result.clone(), stmt.span, frame);
        }
    }

    fn is_constexpr_annotation(&self, annotation: &Expr, frame: &Frame<'a>) -> bool {
        let member = self.module.language_member(frame.kernel, annotation);
        member.as_deref() == Some("constexpr")
            || annotation.dotted().is_some_and(|path| path.last() == Some(&"constexpr"))
    }

    /// `name: tl.constexpr = value`
    fn constant_assignment(
        &mut self,
        stmt: &Stmt,
        name: &'a str,
        value: Option<AbstractValue<'a>>,
        frame: &mut Frame<'a>,
    ) {
        if frame.names.get(name).is_some_and(|known| *known != AbstractValue::Unknown) && self.uncertain == 0 {
            let message = format!("`{name}` has a value already, and a `tl.constexpr` cannot be assigned twice");
            self.problem(ProblemKind::Syntax, stmt.span, message);
        }
        let value = match value {
            None => AbstractValue::none(),
            Some(value @ (AbstractValue::Const(_) | AbstractValue::Tuple(_) | AbstractValue::Tile(_))) => value,
            Some(_) => AbstractValue::Unknown,
        };
        frame.names.insert(name, value);
    }

    /// The value after an assignment: constants become run-time values.
    pub(super) fn stored(&mut self, value: AbstractValue<'a>, span: Span) -> AbstractValue<'a> {
        match value {
            AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => match Self::number_of(&value) {
                Some(number) => {
                    let poly = value.constant().and_then(super::index::Poly::of_constant);
                    let about = poly.map_or(super::index::LaneFact::Nothing, super::index::LaneFact::scalar);
                    AbstractValue::Tile(RuntimeValue::scalar(number).knowing(about))
                }
                None => {
                    self.problem(ProblemKind::Overflow, span, format!("`{value}` does not fit into 64 bits"));
                    AbstractValue::Unknown
                }
            },
            AbstractValue::Const(Const::Str(text)) => {
                let message =
                    format!("a local name cannot hold the string '{text}'; annotate it with `: tl.constexpr`");
                self.problem(ProblemKind::Conversion, span, message);
                AbstractValue::Unknown
            }
            // A parameter may have any type, but a product of parameters is a number.
            AbstractValue::Const(Const::Symbol(symbol)) if symbol.names.len() > 1 || symbol.factor != 1 => {
                AbstractValue::Tile(RuntimeValue::new(LaneType::Unknown, Some(super::shape::Shape::default())))
            }
            AbstractValue::Const(Const::Symbol(_) | Const::Unknown | Const::Object) => AbstractValue::Unknown,
            AbstractValue::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.stored(part.clone(), span)).collect();
                AbstractValue::tuple(parts)
            }
            AbstractValue::Member(ref path) if self.is_function(path) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                let message = format!("a local name cannot hold the function or module `{name}`; use it directly");
                self.problem(ProblemKind::Conversion, span, message);
                AbstractValue::Unknown
            }
            AbstractValue::Method(ref receiver, name) if receiver.is_runtime() => {
                self.problem(
                    ProblemKind::Conversion,
                    span,
                    format!("a local name cannot hold the method `{name}`; call it"),
                );
                AbstractValue::Unknown
            }
            AbstractValue::Builtin("tl.range()") if self.since(5) == Some(false) => {
                self.problem(ProblemKind::Conversion, span, "`tl.range` can only be used in the head of a `for` loop");
                AbstractValue::Unknown
            }
            AbstractValue::Builtin("range()") => {
                self.problem(ProblemKind::Conversion, span, "`range` can only be used in the head of a `for` loop");
                AbstractValue::Unknown
            }
            value => value,
        }
    }

    /// Binds the names in a target.
    pub(super) fn assign(&mut self, target: &'a Expr, value: AbstractValue<'a>, span: Span, frame: &mut Frame<'a>) {
        match &target.kind {
            ExprKind::Name(name) => {
                // Before 3.3 a name is bound to the first item of a tuple.
                let value = match (&value, self.since(3)) {
                    (AbstractValue::Tuple(parts), Some(false)) => {
                        parts.first().cloned().unwrap_or(AbstractValue::Unknown)
                    }
                    (AbstractValue::Tuple(_), None) => AbstractValue::Unknown,
                    _ => value,
                };
                if self.trace != Trace::No && self.silent == 0 {
                    self.facts.types.push((target.span, value.detached()));
                }
                self.record_mask(name, target.span, &value);
                frame.stale.remove(name.as_str());
                frame.names.insert(name, value);
            }
            ExprKind::Tuple(parts) => {
                let is_nested = parts.iter().any(|part| matches!(part.kind, ExprKind::Tuple(_)));
                if is_nested && self.since(4) == Some(false) {
                    self.problem(ProblemKind::Unpacking, span, "tuples cannot be unpacked in depth before Triton 3.4");
                }
                self.unpack(parts, &value, span, frame);
            }
            ExprKind::List(parts) => {
                if self.since(3) == Some(true) {
                    self.problem(ProblemKind::Unpacking, span, "a kernel cannot unpack into a list; write a tuple");
                }
                self.unpack(parts, &value, span, frame);
            }
            ExprKind::Subscript { .. } => {
                // 3.3 and 3.4 ignore assignments to items of a tuple.
                let is_tuple = match &target.kind {
                    ExprKind::Subscript { value, .. } => value
                        .as_name()
                        .and_then(|name| frame.names.get(name))
                        .is_none_or(|value| value.tile().is_none()),
                    _ => false,
                };
                if !is_tuple || self.since(3) == Some(false) || self.since(5) == Some(true) {
                    let message = "a value cannot be assigned to in part; use `tl.where`, or `tl.store` for memory";
                    self.problem(ProblemKind::Subscript, span, message);
                }
            }
            ExprKind::Attribute { .. } if self.since(4) == Some(false) || self.since(5) == Some(true) => {
                self.problem(ProblemKind::Attribute, span, "a kernel cannot assign to attributes");
            }
            ExprKind::Starred(inner) => self.assign(inner, AbstractValue::Unknown, span, frame),
            _ => {}
        }
    }

    fn unpack(&mut self, targets: &'a [Expr], value: &AbstractValue<'a>, span: Span, frame: &mut Frame<'a>) {
        let starred = targets.iter().any(|target| matches!(target.kind, ExprKind::Starred(_)));
        if starred {
            self.problem(ProblemKind::Unpacking, span, "a kernel cannot unpack with `*`; name each part");
        }
        if self.since(3) == Some(false) && !starred {
            return self.zip(targets, value, span, frame);
        }
        let parts = match value {
            AbstractValue::Tuple(parts) if !starred => {
                let few = parts.len() < targets.len();
                if few && self.since(3) == Some(true) || parts.len() > targets.len() && self.since(9) == Some(true) {
                    let message = format!("{} names for {} values", targets.len(), parts.len());
                    self.problem(ProblemKind::Unpacking, span, message);
                }
                Some(parts)
            }
            AbstractValue::Tile(_)
            | AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::None)
                if self.since(3) == Some(true) =>
            {
                let message = format!("{} names for one value (`{value}`)", targets.len());
                self.problem(ProblemKind::Unpacking, span, message);
                None
            }
            _ => None,
        };
        for (at, target) in targets.iter().enumerate() {
            let part = parts.and_then(|parts| parts.get(at)).cloned().unwrap_or(AbstractValue::Unknown);
            self.assign(target, part, span, frame);
        }
    }

    /// Up to 3.2 names are paired with values, and surplus items on either side are ignored.
    fn zip(&mut self, targets: &'a [Expr], value: &AbstractValue<'a>, span: Span, frame: &mut Frame<'a>) {
        let parts: &[AbstractValue<'a>] = match value {
            AbstractValue::Tuple(parts) => parts,
            AbstractValue::Tile(_)
            | AbstractValue::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::None) => {
                std::slice::from_ref(value)
            }
            _ => &[],
        };
        for (at, target) in targets.iter().enumerate() {
            match parts.get(at) {
                Some(part) => self.assign(target, part.clone(), span, frame),
                None if parts.is_empty() => self.assign(target, AbstractValue::Unknown, span, frame),
                None => {}
            }
        }
    }
}

/// Whether an expression is a formatted string.
fn is_text(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::FString(_) => true,
        ExprKind::Binary { op, left, .. } => op == "%" && matches!(left.kind, ExprKind::Str(_)),
        _ => false,
    }
}

/// The span from the first statement to the last.
pub(super) fn block_span(body: &[Stmt]) -> Span {
    let start = body.first().map_or(0, |stmt| stmt.span.start);
    Span::new(start, body.last().map_or(start, |stmt| stmt.span.end))
}

/// Whether a `return` occurs among the statements, at any depth.
pub(super) fn returns(body: &[Stmt]) -> bool {
    let mut found = false;
    walk_statements(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Return(_)));
    found
}

/// The names that statements may bind, each with a span.
pub(super) fn bound(body: &[Stmt]) -> HashMap<&str, Span> {
    fn targets<'a>(target: &'a Expr, names: &mut HashMap<&'a str, Span>) {
        match &target.kind {
            ExprKind::Name(name) => drop(names.insert(name, target.span)),
            ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().for_each(|part| targets(part, names)),
            ExprKind::Starred(inner) => targets(inner, names),
            _ => {}
        }
    }
    let mut names = HashMap::default();
    walk_statements(body, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Assign { targets: list, .. } => list.iter().for_each(|target| targets(target, &mut names)),
            StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => targets(target, &mut names),
            _ => {}
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                if let ExprKind::Named { name, .. } = &expr.kind {
                    names.insert(name, expr.span);
                }
            });
        }
    });
    names
}
