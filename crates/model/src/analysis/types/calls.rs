//! Calls of functions of Triton, helpers of the file, methods and builtins of Python.

use super::arguments::EvaluatedCall;
use super::engine::{Engine, Frame, KernelRef};
use super::functions;
use super::imported_files;
use super::value::{AbstractValue, Const, JitFunction, ProblemKind};
use crate::api::{Lookup, MemberKind, MemberParameter};
use crate::kernel::Kernel;
use crate::kernel::ast::{Call, Expr, ExprKind};
use crate::syntax::Span;

/// Maximum depth of nested calls of helpers.
const MAX_CALLS: usize = 12;

impl<'a> Engine<'a> {
    pub(super) fn call(&mut self, expr: &'a Expr, call: &'a Call, frame: &mut Frame<'a>) -> AbstractValue<'a> {
        let function = self.eval(&call.func, frame);
        self.launch_inside(expr, call);
        let mut is_open = false;
        let mut values = Vec::with_capacity(call.args.len());
        // Triton looks at the message of an assertion only when it fails.
        let is_assertion = matches!(&function, AbstractValue::Member(path) if path.ends_with(".static_assert"));
        for (at, arg) in call.args.iter().enumerate() {
            if is_assertion && at > 0 {
                values.push(AbstractValue::Unknown);
            } else if let ExprKind::Starred(inner) = &arg.value.kind {
                self.eval(inner, frame);
                is_open = true;
                if self.since(3) == Some(false) {
                    self.problem(ProblemKind::Syntax, arg.value.span, "`*` in a call in a kernel needs Triton 3.3");
                }
                values.push(AbstractValue::Unknown);
            } else {
                values.push(self.eval(&arg.value, frame));
            }
        }
        if is_open {
            return AbstractValue::Unknown;
        }
        let mut given = EvaluatedCall { receiver: None, call, values: &values };
        match function {
            AbstractValue::Member(path) => self.member_call(expr, &path, &given),
            AbstractValue::Kernel(callee) => self.helper_call(expr.span, callee, &given, frame),
            AbstractValue::Method(receiver, name) => {
                given.receiver = Some((*receiver).clone());
                self.method_call(expr, name, &given)
            }
            AbstractValue::Builtin(name) => self.builtin_call(expr, name, &values),
            AbstractValue::Tile(_)
            | AbstractValue::Tuple(_)
            | AbstractValue::Const(Const::Int(_) | Const::Bool(_) | Const::Float(_) | Const::Str(_) | Const::None) => {
                let text = &self.text[call.func.span.start..call.func.span.end];
                let message =
                    format!("`{}` is a value (`{function}`) and cannot be called", text.lines().next().unwrap_or(""));
                self.problem(ProblemKind::Attribute, expr.span, message);
                AbstractValue::Unknown
            }
            AbstractValue::Const(Const::Type(_)) if matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "type") =>
            {
                self.problem(ProblemKind::Attribute, expr.span, "`type` is an attribute; use `.to(…)` to convert");
                AbstractValue::Unknown
            }
            _ => AbstractValue::Unknown,
        }
    }

    /// A launch inside a kernel: `helper[grid](…)`.
    fn launch_inside(&mut self, expr: &Expr, call: &Call) {
        if let ExprKind::Subscript { value, .. } = &call.func.kind
            && let Some(name) = value.as_name()
            && self.module.kernels.iter().any(|kernel| kernel.name == name && !kernel.nested)
        {
            self.problem(
                ProblemKind::Nesting,
                expr.span,
                format!("a kernel cannot launch a kernel; call `{name}(…)` without a grid"),
            );
        }
    }

    fn member_call(&mut self, expr: &Expr, path: &str, given: &EvaluatedCall<'a, '_>) -> AbstractValue<'a> {
        let Some(name) = path.strip_prefix("triton.language.") else {
            return self.host_call(expr.span, path, given);
        };
        if let Some((_, function)) = name.rsplit_once("libdevice.") {
            return self.libdevice(expr.span, function, given.values);
        }
        let name = ["math.", "core.", "standard.", "random."]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        let Some(bound) = self.bind_member(expr.span, path, given) else { return AbstractValue::Unknown };
        functions::apply(self, expr.span, name, bound)
    }

    /// A call of a function of the host.
    fn host_call(&mut self, span: Span, path: &str, given: &EvaluatedCall<'a, '_>) -> AbstractValue<'a> {
        let is_float = |value: &AbstractValue<'a>| matches!(value, AbstractValue::Const(Const::Float(_)));
        let is_of_numpy = path.starts_with("numpy.float") || path.starts_with("numpy.int");
        let is_wrapped = path.starts_with("math.") && self.since(6) == Some(false);
        if (is_of_numpy || is_wrapped) && given.values.iter().any(is_float) {
            let message = format!("`{path}` does not take a compile-time float of a kernel; compute it outside");
            self.problem(ProblemKind::Argument, span, message);
            return AbstractValue::Unknown;
        }
        let of_host = ["math.", "numpy.", "torch."].iter().any(|module| path.starts_with(module));
        let is_operator = path.starts_with("operator.");
        let is_host = of_host || is_operator || matches!(path, "triton.cdiv" | "triton.next_power_of_2");
        let Some(run_time) = given.values.iter().find(|value| value.is_runtime()).filter(|_| is_host) else {
            return AbstractValue::Const(Const::Unknown);
        };
        let instead = if path == "triton.cdiv" { "; use `tl.cdiv`" } else { "" };
        let message = format!("`{path}` runs on the host and does not take the run-time value `{run_time}`{instead}");
        self.problem(ProblemKind::Argument, span, message);
        AbstractValue::Unknown
    }

    fn method_call(&mut self, expr: &Expr, name: &str, given: &EvaluatedCall<'a, '_>) -> AbstractValue<'a> {
        match given.receiver.as_ref() {
            Some(AbstractValue::Const(Const::Type(element))) => {
                AbstractValue::Const(Self::type_question(*element, name))
            }
            Some(AbstractValue::Tile(_)) => {
                if let ("item", Some(AbstractValue::Tile(tile))) = (name, &given.receiver)
                    && tile
                        .shape
                        .as_ref()
                        .and_then(|shape| super::shape::lanes(shape).known())
                        .is_some_and(|lanes| lanes > 1)
                {
                    let message = format!("`.item()` is for a single lane, and this is `{tile}`; reduce it first");
                    self.problem(ProblemKind::ShapeChange, expr.span, message);
                    return AbstractValue::Unknown;
                }
                let path = format!("triton.language.tensor.{name}");
                let Lookup::Found(member) = self.target.lookup(&path) else { return AbstractValue::Unknown };
                if member.kind == MemberKind::Value {
                    return AbstractValue::Unknown;
                }
                if member.kind == MemberKind::Jit && self.since(4) == Some(false) {
                    let message = format!("`.{name}()` needs Triton 3.4; use `tl.{name}`");
                    self.problem(ProblemKind::Attribute, expr.span, message);
                    return AbstractValue::Unknown;
                }
                let name = if name == "to" { "cast" } else { name };
                let full = format!("triton.language.{name}");
                let plain = EvaluatedCall { receiver: None, ..*given };
                if self.bind_member(expr.span, &path, &plain).is_none() {
                    return AbstractValue::Unknown;
                }
                let known = if matches!(self.target.lookup(&full), Lookup::Found(_)) {
                    full
                } else {
                    format!("triton.language.math.{name}")
                };
                let Some(bound) = self.bind_member(expr.span, &known, given) else { return AbstractValue::Unknown };
                functions::apply(self, expr.span, name, bound)
            }
            Some(AbstractValue::Descriptor(tile)) if matches!(name, "load" | "gather") => {
                if name == "load" {
                    super::block_pointers::check_access(self, expr.span, tile, name, given.call, given.values);
                }
                functions::descriptor_load(name, tile, given.values)
            }
            Some(AbstractValue::Descriptor(_)) if matches!(name, "store" | "scatter") => AbstractValue::none(),
            _ => AbstractValue::Unknown,
        }
    }

    pub(super) fn helper_call(
        &mut self,
        span: Span,
        callee: JitFunction,
        given: &EvaluatedCall<'a, '_>,
        frame: &Frame<'a>,
    ) -> AbstractValue<'a> {
        if callee.is_one_of_several {
            return self.call_of_several(span, callee, given, frame);
        }
        let (module, text) = self.home(callee.file);
        let Some(kernel) = module.kernels.get(callee.index) else { return AbstractValue::Unknown };
        let variadic = kernel.params.iter().find(|param| param.variadic);
        if let Some(param) = variadic {
            let is_dict = text[param.span.start..].starts_with("**");
            let (since_3, since_7) = (self.since(3), self.since(7));
            if is_dict && since_3 == Some(true) && since_7 == Some(false) {
                let message = format!("`{}` takes `**{}`, which needs Triton 3.7", kernel.name, param.name);
                self.problem(ProblemKind::Keyword, span, message);
            }
            if is_dict || self.since(8) != Some(false) {
                return AbstractValue::Unknown;
            }
        }
        let params: Vec<MemberParameter> = kernel
            .params
            .iter()
            .map(|param| MemberParameter {
                name: if param.variadic { format!("*{}", param.name) } else { param.name.clone() },
                default: param.default.as_ref().map(|default| text[default.span.start..default.span.end].to_owned()),
            })
            .collect();
        let Some(bound) = self.bind_kernel(span, &kernel.name, &params, given) else { return AbstractValue::Unknown };
        if !kernel.plain || kernel.autotune.is_some() {
            return AbstractValue::Unknown;
        }
        let arguments: Vec<AbstractValue<'a>> = kernel
            .params
            .iter()
            .map(|param| match (bound.get(&param.name), &param.default) {
                (Some(AbstractValue::Tuple(_)), _) if self.since(3) == Some(false) => {
                    AbstractValue::Const(Const::Object)
                }
                (Some(value), _) => value.clone(),
                (None, Some(default)) => {
                    super::signature::literal(default).map_or(AbstractValue::Unknown, AbstractValue::Const)
                }
                (None, None) => AbstractValue::Unknown,
            })
            .collect();
        let is_function =
            |value: &&AbstractValue<'a>| matches!(value, AbstractValue::Member(path) if self.is_builtin(path));
        if arguments.iter().any(|value| is_function(&value))
            && self.since(3) == Some(true)
            && self.since(7) == Some(false)
        {
            let message =
                "functions of Triton's cannot be passed to a function before Triton 3.7; wrap it in one of yours";
            self.problem(ProblemKind::Argument, span, message);
            return AbstractValue::Unknown;
        }
        if self.running.contains(&(callee.file, callee.index)) {
            // With other constants the recursion may end; with the same ones it never does.
            let is_open =
                arguments.iter().any(|value| matches!(value, AbstractValue::Const(Const::Unknown | Const::Symbol(_))));
            let is_same = !self.calls.iter().any(|(of, _)| *of == (callee.file, callee.index))
                || self.calls.iter().any(|(of, with)| {
                    *of == (callee.file, callee.index) && with.iter().zip(&arguments).all(|(a, b)| a.same_type(b))
                });
            if is_same && (frame.regions > 0 || self.uncertain == 0) {
                let message = format!("`{}` calls itself, and functions of a kernel cannot", kernel.name);
                self.problem(ProblemKind::Nesting, span, message);
            }
            if is_same || is_open {
                return AbstractValue::Unknown;
            }
        }
        let is_noinline = kernel.decorators.iter().filter_map(|decorator| decorator.expr.as_call()).any(|call| {
            call.args.iter().any(|arg| {
                arg.keyword.as_ref().is_some_and(|(name, _)| name == "noinline")
                    && arg.value.kind == ExprKind::Bool(true)
            })
        });
        if is_noinline && let Some(tile) = arguments.iter().filter_map(AbstractValue::tile).find(|tile| tile.is_block())
        {
            let message =
                format!("`{}` is `noinline`, which takes scalars only, and this passes `{tile}`", kernel.name);
            self.problem(ProblemKind::Argument, span, message);
            return AbstractValue::Unknown;
        }
        self.run_helper(callee, kernel, arguments)
    }

    /// Runs a helper with `arguments`. The result for the same arguments is taken from a cache.
    pub(super) fn run_helper(
        &mut self,
        callee: JitFunction,
        kernel: &'a Kernel,
        arguments: Vec<AbstractValue<'a>>,
    ) -> AbstractValue<'a> {
        let place = (callee.file, callee.index);
        let known = self.results.get(&place).and_then(|known| known.iter().find(|(of, _)| *of == arguments));
        if let Some((_, result)) = known {
            return result.clone();
        }
        if self.running.len() >= MAX_CALLS || !self.step() {
            return AbstractValue::Unknown;
        }
        let mut result = self.in_file(callee.file, |engine| engine.run_body(place, kernel, &arguments));
        if callee.file.is_some() {
            result = imported_files::without_places(&result);
        } else if self.silent > 0 {
            // Nothing was recorded, so the helper must run again when that is needed.
            return result;
        }
        self.results.entry(place).or_default().push((arguments, result.clone()));
        result
    }

    fn run_body(&mut self, place: KernelRef, kernel: &'a Kernel, arguments: &[AbstractValue<'a>]) -> AbstractValue<'a> {
        let mut inner = Frame::new(kernel, false);
        let hidden = self.positional_only(kernel);
        for (param, value) in kernel.params.iter().zip(arguments).skip(hidden).filter(|(param, _)| !param.variadic) {
            inner.names.insert(&param.name, value.clone());
        }
        if self.silent == 0 {
            self.facts.coverage.functions.insert(kernel.def_span);
        }
        let has_left = self.has_left;
        self.running.push(place);
        self.calls.push((place, arguments.to_vec()));
        self.body(&kernel.body, &mut inner);
        self.calls.pop();
        self.running.pop();
        // A program that returns from the helper continues in its caller.
        self.has_left = has_left;
        match inner.returned {
            Some(value) => value,
            None if inner.is_opaque => AbstractValue::Unknown,
            None => AbstractValue::none(),
        }
    }

    /// The number of parameters before a `/`, which the front end does not bind.
    pub(super) fn positional_only(&self, kernel: &Kernel) -> usize {
        let ends = kernel.params.iter().map(|param| param.span.end);
        let body = kernel.body.first().map_or(kernel.def_span.end, |stmt| stmt.span.start);
        let starts = kernel.params.iter().skip(1).map(|param| param.span.start).chain([body]);
        let has_slash = |(end, start): (usize, usize)| {
            let between = self.text.get(end..start).unwrap_or("").trim_start();
            between.strip_prefix(',').is_some_and(|rest| rest.trim_start().starts_with('/'))
        };
        ends.zip(starts).position(has_slash).map_or(0, |at| at + 1)
    }

    /// Evaluates decorators and defaults.
    pub(super) fn header(&mut self, kernel: &'a Kernel) {
        let has_rest =
            kernel.params.iter().any(|param| param.variadic && !self.text[param.span.start..].starts_with("**"));
        if has_rest && self.facts.coverage.signed && self.since(3) == Some(true) && self.since(5) == Some(false) {
            let at = self.first_line(kernel.def_span);
            self.problem(ProblemKind::Keyword, at, "a kernel cannot have `*` parameters in Triton 3.3 and 3.4");
        }
        let calls = kernel.decorators.iter().filter(|decorator| decorator.path.as_deref() == Some("triton.jit"));
        for call in calls.filter_map(|decorator| decorator.expr.as_call()) {
            self.check_arguments(call.func.span, "triton.jit", call);
        }
    }
}
