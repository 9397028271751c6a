//! Helpers of the rules that match formulas: they look through names, casts and added axes of expressions.

use std::sync::Arc;

use rustc_hash::FxHashSet as HashSet;

use model::analysis::definitions::Definitions;
use model::kernel::ast::{Call, Expr, ExprKind};
use model::kernel::{Kernel, Module};

use super::context::SpanValues;
use super::{Diagnostic, Rule, RuleContext};

/// The number of findings per kernel after which a rule stops where each finding costs a walk over the whole kernel.
pub(super) const MAX_FOUND: usize = 64;
/// The depth to which an expression is followed.
pub(super) const MAX_DEPTH: usize = 24;

/// The findings of `find` in each kernel whose text passes the cheap test `may_be`, one per span, in source order.
/// Files for other compilers are skipped. See [`RuleContext::in_kernels`].
pub(super) fn find<'a>(
    context: &RuleContext<'a>,
    rule: &Rule,
    may_be: &dyn Fn(&str) -> bool,
    find: impl Fn(&FormulaReader<'a>) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut found = context.in_kernels(rule, |kernel| {
        let may_be = !kernel.has_error && may_be(context.source.slice(kernel.def_span));
        if may_be { find(&FormulaReader::new(context.module, kernel)) } else { Vec::new() }
    });
    found.sort_by_key(|diagnostic| diagnostic.span);
    found.dedup_by_key(|diagnostic| diagnostic.span);
    if !found.is_empty() && context.is_for_other_compiler() {
        found.clear();
    }
    found
}

/// Reads the expressions of one kernel.
pub(super) struct FormulaReader<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) definitions: Definitions<'a>,
}

impl<'a> FormulaReader<'a> {
    pub(super) fn new(module: &'a Module, kernel: &'a Kernel) -> Self {
        Self { module, kernel, definitions: Definitions::of(kernel) }
    }

    /// The certain values of the kernel's expressions, by span; `None` for a kernel of another file.
    pub(super) fn values(&self, context: &RuleContext<'_>) -> Option<Arc<SpanValues>> {
        let at = self.module.kernels.iter().position(|kernel| kernel.span == self.kernel.span)?;
        Some(context.values(at))
    }

    /// The name of the function of `triton.language` that is called, without `math.`.
    pub(super) fn member(&self, call: &Call) -> Option<String> {
        let name = self.module.language_member(self.kernel, &call.func)?;
        Some(name.strip_prefix("math.").map(str::to_owned).unwrap_or(name))
    }

    /// The call of a function of `triton.language` of one of these names.
    pub(super) fn call_of(&self, expr: &'a Expr, names: &[&str]) -> Option<&'a Call> {
        let call = expr.as_call()?;
        names.contains(&self.member(call)?.as_str()).then_some(call)
    }

    /// The expression behind names, casts and added axes.
    pub(super) fn uncast(&self, expr: &'a Expr) -> &'a Expr {
        let mut found = self.definitions.behind(expr);
        for _ in 0..MAX_DEPTH {
            let inner = match &found.kind {
                ExprKind::Call(call) => match &call.func.kind {
                    ExprKind::Attribute { value, name, .. }
                        if (name == "to" || name == "cast")
                            && self.module.resolve_in(self.kernel, &call.func).is_none() =>
                    {
                        value
                    }
                    _ => break,
                },
                ExprKind::Subscript { value, .. } => value,
                _ => break,
            };
            found = self.definitions.behind(inner);
        }
        found
    }

    /// Calls `visit` on each part of an expression and of the values of its names. Each name is followed once.
    pub(super) fn walk_through(&self, expr: &'a Expr, seen: &mut HashSet<&'a str>, visit: &mut dyn FnMut(&'a Expr)) {
        let mut waiting = vec![expr];
        while let Some(expr) = waiting.pop() {
            expr.walk(&mut |part| {
                visit(part);
                if let Some(name) = part.as_name()
                    && seen.insert(name)
                {
                    waiting.extend(self.definitions.only(name));
                }
            });
        }
    }

    /// Whether some part of an expression, or of the values of its names, satisfies `wanted`.
    pub(super) fn contains(&self, expr: &'a Expr, wanted: &dyn Fn(&'a Expr) -> bool) -> bool {
        let mut found = false;
        self.walk_through(expr, &mut HashSet::default(), &mut |part| found |= wanted(part));
        found
    }
}

/// Whether an expression is an infinity: `-float("inf")`, `float("-inf")`, or the same without a sign.
pub(super) fn is_infinite(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Unary { op, operand } => op == "-" && is_infinite(operand),
        ExprKind::Call(call) => {
            let infinity = |text: &str| matches!(text.trim_start_matches(['-', '+']), "inf" | "Inf" | "infinity");
            call.func.as_name() == Some("float")
                && call.args.first().is_some_and(|arg| matches!(&arg.value.kind, ExprKind::Str(text) if infinity(text)))
        }
        _ => false,
    }
}
