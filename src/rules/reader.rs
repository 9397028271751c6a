//! What the rules that look for formulas share: reading an expression through names, casts and added axes.

use crate::analysis::definitions::Definitions;
use crate::kernel::ast::{Call, Expr, ExprKind};
use crate::kernel::{Kernel, Module};

/// How deep an expression is followed.
pub(super) const MAX_DEPTH: usize = 24;

/// Reads the expressions of one kernel.
pub(super) struct Reader<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) definitions: Definitions<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(module: &'a Module, kernel: &'a Kernel) -> Self {
        Self { module, kernel, definitions: Definitions::of(kernel) }
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

    /// What an expression is behind names, casts and added axes.
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

    /// Whether some part of an expression, or of what its names stand for, satisfies `wanted`.
    pub(super) fn contains(&self, expr: &'a Expr, wanted: &dyn Fn(&'a Expr) -> bool) -> bool {
        self.contains_within(expr, wanted, MAX_DEPTH)
    }

    fn contains_within(&self, expr: &'a Expr, wanted: &dyn Fn(&'a Expr) -> bool, depth: usize) -> bool {
        let mut found = false;
        let mut names = Vec::new();
        expr.walk(&mut |part| {
            found |= wanted(part);
            names.extend(part.as_name());
        });
        names.dedup();
        found
            || depth > 0
                && names.into_iter().filter_map(|name| self.definitions.only(name)).any(|value| {
                    !value.span.contains(expr.span) && self.contains_within(value, wanted, depth.saturating_sub(4))
                })
    }
}

/// `-float("inf")`, `float("-inf")`, and the same without a sign.
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
