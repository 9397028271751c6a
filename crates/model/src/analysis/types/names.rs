//! The values of names that are not local to a kernel.

use std::sync::Arc;

use super::constant_folding;
use super::dtype::Dtype;
use super::engine::{Engine, Frame};
use super::value::{AbstractValue, Const, LaneType, ProblemKind};
use crate::api::{Lookup, MemberKind};
use crate::kernel::ast::{Expr, ExprKind};
use crate::kernel::{Global, GlobalBinding};
use crate::syntax::Span;

/// Builtins of Python that kernels may use, each with the minor release of Triton 3 that introduced it.
const BUILTINS: &[(&str, u32)] = &[
    ("len", 0),
    ("list", 0),
    ("range", 0),
    ("float", 0),
    ("int", 0),
    ("isinstance", 0),
    ("getattr", 0),
    ("hasattr", 4),
    ("print", 0),
    ("min", 0),
    ("max", 0),
];

/// Builtins of Python that kernels cannot use.
const FORBIDDEN: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "bytes",
    "callable",
    "chr",
    "complex",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "filter",
    "format",
    "frozenset",
    "globals",
    "hash",
    "hex",
    "id",
    "input",
    "issubclass",
    "iter",
    "locals",
    "map",
    "next",
    "object",
    "open",
    "ord",
    "pow",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Whether `name` is a builtin of Python, whether or not kernels can use it.
#[must_use]
pub fn is_of_python(name: &str) -> bool {
    BUILTINS.iter().any(|(known, _)| *known == name) || FORBIDDEN.contains(&name)
}

/// The replacement for a builtin of Python in kernels, for messages.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "abs" => "`tl.abs`",
        "sum" => "`tl.sum`",
        "any" | "all" => "`tl.max` or `tl.min` of the condition as an integer",
        "bool" | "str" => "`.to(…)` for run-time values",
        "round" => "`tl.extra.libdevice.rint`",
        "pow" => "`tl.extra.libdevice.pow`",
        "sorted" => "`tl.sort`",
        "enumerate" | "zip" | "map" | "filter" | "reversed" => "`range` or `tl.static_range`",
        _ => return None,
    })
}

impl<'a> Engine<'a> {
    /// The value of a name that is not local.
    pub(super) fn global_name(&mut self, name: &'a str, span: Span, frame: &Frame<'a>) -> AbstractValue<'a> {
        if frame.kernel.nested || frame.is_opaque {
            return self.member_named(name).unwrap_or(AbstractValue::Unknown);
        }
        self.top_level_name(name, span)
    }

    /// The value that the top level of the file binds to a name.
    pub(super) fn top_level_name(&mut self, name: &'a str, span: Span) -> AbstractValue<'a> {
        if self.module.kernels.iter().any(|kernel| kernel.name == name) {
            return self.kernel_named(name);
        }
        if self.module.uncertain.contains(name) {
            return AbstractValue::Unknown;
        }
        if let Some(member) = self.member_named(name) {
            return member;
        }
        match self.module.bindings.get(name) {
            Some(GlobalBinding::Assigned) => self.global_value(name, span),
            Some(GlobalBinding::Function) => {
                self.problem(
                    ProblemKind::Global,
                    span,
                    format!(
                        "`{name}` is a plain Python function, which kernels cannot use; decorate it with `@triton.jit`"
                    ),
                );
                AbstractValue::Unknown
            }
            Some(GlobalBinding::Class) if self.is_tuple_class(name) => {
                if self.since(3) == Some(false) {
                    self.problem(
                        ProblemKind::Global,
                        span,
                        format!("kernels cannot use the named tuple `{name}` before Triton 3.3"),
                    );
                }
                AbstractValue::Unknown
            }
            Some(GlobalBinding::Class) => {
                self.problem(
                    ProblemKind::Global,
                    span,
                    format!("`{name}` is a class, which kernels cannot use; pass what is needed of it as a `tl.constexpr` parameter"),
                );
                AbstractValue::Unknown
            }
            Some(GlobalBinding::Import(path)) => match path.split('.').next() {
                Some("math") if path != "math" => {
                    let message = format!(
                        "kernels cannot use `{name}` when it is imported by name; write `import math` and `math.{name}`"
                    );
                    self.problem(ProblemKind::Global, span, message);
                    AbstractValue::Unknown
                }
                // Private modules of torch have kernels, too: Inductor's helpers are under `@triton.jit`.
                Some("math" | "numpy" | "torch" | "operator" | "functools") if !path.contains("._") => {
                    AbstractValue::Member(Arc::from(path.as_str()))
                }
                _ => self.imported(name, span),
            },
            Some(GlobalBinding::Other) => AbstractValue::Unknown,
            None => self.builtin(name, span),
        }
    }

    /// Whether a class of the file is a named tuple or is made for kernels, judged by its head.
    fn is_tuple_class(&self, name: &str) -> bool {
        let head = format!("class {name}");
        self.text.match_indices(&head).any(|(at, _)| {
            let rest = &self.text[at + head.len()..];
            let bases = rest.split(':').next().unwrap_or("");
            bases.contains("uple") || bases.contains("tl.")
        })
    }

    fn member_named(&self, name: &'a str) -> Option<AbstractValue<'a>> {
        let expr = Expr { span: Span::new(0, 0), kind: ExprKind::Name(name.to_owned()) };
        let resolved = self.module.imports.resolve(&expr)?;
        if !resolved.direct {
            return Some(self.member(&resolved.path, false));
        }
        Some(self.member(&resolved.path, true))
    }

    /// The value of a member of Triton; dtypes are compile-time values.
    pub(super) fn member(&self, path: &str, direct: bool) -> AbstractValue<'a> {
        // Members may be written with the submodule of the package that defines them.
        let inner = ["core.", "standard.", "math.", "random."].iter().find_map(|part| {
            let name = path.strip_prefix("triton.language.")?.strip_prefix(part)?;
            let plain = format!("triton.language.{name}");
            matches!(self.target.lookup(&plain), Lookup::Found(_)).then_some(plain)
        });
        if let Some(plain) = inner {
            return self.member(&plain, direct);
        }
        if let Some(name) = path.strip_prefix("triton.language.") {
            if let Some(number) = Dtype::of_member(name) {
                return AbstractValue::Const(Const::Type(LaneType::Number(number)));
            }
            if !name.contains('.') && !direct && matches!(self.target.lookup(path), Lookup::Absent) {
                return AbstractValue::Unknown;
            }
            if matches!(self.target.lookup(path), Lookup::Found(member) if member.kind == MemberKind::Value) {
                return if name == "TRITON_MAX_TENSOR_NUMEL" {
                    AbstractValue::int(1 << 20)
                } else {
                    AbstractValue::Unknown
                };
            }
        }
        AbstractValue::Member(Arc::from(path))
    }

    fn builtin(&mut self, name: &'a str, span: Span) -> AbstractValue<'a> {
        if let Some((known, since)) = BUILTINS.iter().find(|(known, _)| *known == name) {
            if self.since(*since) == Some(false) {
                self.not_defined(name, span);
                return AbstractValue::Unknown;
            }
            return AbstractValue::Builtin(known);
        }
        if self.module.has_star_import {
            return AbstractValue::Unknown;
        }
        if FORBIDDEN.contains(&name) {
            let instead = instead(name).map_or(String::new(), |instead| format!("; use {instead}"));
            self.problem(
                ProblemKind::UndefinedName,
                span,
                format!("Python's `{name}` does not exist in kernels{instead}"),
            );
        } else if !name.starts_with("__") {
            self.not_defined(name, span);
        }
        AbstractValue::Unknown
    }

    pub(super) fn not_defined(&mut self, name: &str, span: Span) {
        self.problem(ProblemKind::UndefinedName, span, format!("`{name}` is not defined here"));
    }

    fn global_value(&mut self, name: &'a str, span: Span) -> AbstractValue<'a> {
        let mut of_name = self.module.globals.iter().filter(|global| global.name == name);
        let (Some(global), None) = (of_name.next(), of_name.next()) else { return AbstractValue::Unknown };
        if self.is_constexpr_call(&global.value) {
            let inner = global.value.as_call().and_then(|call| call.args.first());
            return AbstractValue::Const(
                inner.and_then(|arg| self.global_literal(&arg.value, 0)).unwrap_or(Const::Unknown),
            );
        }
        if let Some(value) = self.dtype_of(&global.value) {
            return value;
        }
        let Some(value) = self.global_literal(&global.value, 0) else { return AbstractValue::Unknown };
        let accepted = if global.is_constexpr {
            self.since(3).map(|since| !since)
        } else if value == Const::None {
            self.since(3)
        } else {
            Some(false)
        };
        if accepted == Some(false) && !self.text.contains("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS") {
            self.refuse_global(name, span, global);
        }
        AbstractValue::Const(value)
    }

    fn refuse_global(&mut self, name: &str, span: Span, global: &Global) {
        self.refused += 1;
        let message = if global.is_constexpr {
            format!("the annotation does not make `{name}` a compile-time value; write `{name} = tl.constexpr(…)`")
        } else {
            format!("kernels can only use globals that are made with `tl.constexpr(…)`, and `{name}` is not")
        };
        self.problem_with(ProblemKind::Global, span, message, vec![(global.span, format!("`{name}` is defined here"))]);
    }

    fn is_constexpr_call(&self, value: &Expr) -> bool {
        let resolved = value.as_call().and_then(|call| self.module.imports.resolve(&call.func));
        resolved.is_some_and(|found| {
            found.path == "triton.language.constexpr" || found.path == "triton.language.core.constexpr"
        })
    }

    fn dtype_of(&self, value: &Expr) -> Option<AbstractValue<'a>> {
        let path = self.module.imports.resolve(value)?.path;
        let number = Dtype::of_member(path.strip_prefix("triton.language.")?)?;
        Some(AbstractValue::Const(Const::Type(LaneType::Number(number))))
    }

    /// Whether a call of a number type of numpy gives a number of numpy.
    fn is_of_numpy(&self, function: &Expr) -> bool {
        let Some([module, kind]) = function.dotted().and_then(|path| <[&str; 2]>::try_from(path).ok()) else {
            return false;
        };
        let is_kind = ["float", "int", "uint"].iter().any(|prefix| kind.starts_with(prefix));
        is_kind && matches!(self.module.bindings.get(module), Some(GlobalBinding::Import(path)) if path == "numpy")
    }

    /// The value of a global that is a literal; `None` when the value is not known.
    fn global_literal(&self, value: &Expr, depth: u32) -> Option<Const> {
        match &value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::None => {
                constant_folding::literal(value)
            }
            ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Dict { .. } | ExprKind::Lambda { .. } => {
                Some(Const::Object)
            }
            ExprKind::Unary { op, operand } => constant_folding::unary(op, &self.global_literal(operand, depth)?),
            ExprKind::Binary { op, left, right } if depth < 20 => constant_folding::binary(
                op,
                &self.global_literal(left, depth + 1)?,
                &self.global_literal(right, depth + 1)?,
            ),
            ExprKind::Call(call) if self.is_of_numpy(&call.func) => Some(Const::Object),
            ExprKind::Call(call) => {
                let of_python = call.func.as_name().filter(|name| !self.module.bindings.contains_key(*name))?;
                let [arg] = call.args.as_slice() else { return None };
                let inner = self.global_literal(&arg.value, depth + 1)?;
                match (of_python, &inner) {
                    ("float", Const::Str(_) | Const::Int(_) | Const::Float(_)) => {
                        Some(super::builtins::to_float(&inner))
                    }
                    ("int", Const::Int(_) | Const::Float(_)) => Some(super::builtins::to_int(&inner)),
                    _ => None,
                }
            }
            _ => self.dtype_of(value).and_then(|value| value.constant().cloned()),
        }
    }
}
