//! H040: a method call on an integer parameter, which does not compile when 1 is passed.

use model::analysis::launches::{ArgumentSource, certainly_launched, passed};
use model::analysis::types::AbstractValue;
use model::analysis::types::access::pointers;
use model::host::{HostNumber, HostOperator};
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module, Param};
use model::syntax::Span;

use super::formula_reader::MAX_FOUND;
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H040",
        name: "unit-argument",
        severity: Severity::Warning,
        summary: "`.to` of an integer parameter, which does not compile when 1 is passed",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unit_argument.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let found = context.in_kernels(&RULE, |kernel| found(context, kernel));
    if !found.is_empty() && !context.is_for_other_compiler() {
        findings.extend(found);
    }
}

fn found(context: &RuleContext<'_>, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if !kernel.has_error {
        walk_expressions(&kernel.body, &mut |expr| {
            if found.len() < MAX_FOUND {
                found.extend(cast_of_param(context.module, kernel, expr));
            }
        });
    }
    if found.is_empty() || !certainly_launched(context.module, kernel) {
        return Vec::new();
    }
    let addresses = pointers(context.module, kernel);
    found.retain(|cast| {
        let name = cast.param.name.as_str();
        !addresses.contains(name)
            && !is_address(context, kernel, cast)
            && may_be_one(context.module, kernel, cast)
            && context.launches_of(kernel).any(|known| {
                can_be_one(&known.number(name)) || is_stride(&known.number(name)) && steps_lanes(context, kernel, cast)
            })
    });
    found.iter().map(|cast| report(context, kernel, cast)).collect()
}

/// `param.to(tl.int64)`
struct Cast<'a> {
    param: &'a Param,
    span: Span,
    dtype: &'a Expr,
}

fn cast_of_param<'a>(module: &Module, kernel: &'a Kernel, expr: &'a Expr) -> Option<Cast<'a>> {
    let call = expr.as_call()?;
    let ExprKind::Attribute { value, name, .. } = &call.func.kind else { return None };
    let param = kernel.param(value.as_name()?)?;
    let [dtype] = call.args.as_slice() else { return None };
    let member = module.language_member(kernel, &dtype.value)?;
    // Floats are not specialized, and only integers are cast to integers.
    let is_integer = member.starts_with("int") || member.starts_with("uint");
    let is_plain = param.annotation.is_none() && !param.variadic && !param.constexpr;
    (name == "to" && is_integer && is_plain).then_some(Cast { param, span: expr.span, dtype: &dtype.value })
}

/// Whether a launch may pass 1 for the parameter, and the cast applies to the passed value.
fn may_be_one(module: &Module, kernel: &Kernel, cast: &Cast<'_>) -> bool {
    let name = &cast.param.name;
    let is_set = kernel.heuristics.as_ref().is_none_or(|names| names.contains(name))
        || kernel.autotune.as_ref().is_some_and(|autotune| {
            autotune
                .configs
                .as_ref()
                .is_none_or(|configs| configs.iter().any(|config| config.meta.iter().any(|(meta, _)| meta == name)))
        });
    let mut is_bound = false;
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        // `n = n.to(tl.int64)` itself still applies to the passed value.
        StmtKind::Assign { targets, .. } if stmt.span.start < cast.span.start && !stmt.span.contains(cast.span) => {
            targets
                .iter()
                .for_each(|target| target.walk(&mut |expr| is_bound |= expr.as_name() == Some(name.as_str())));
        }
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => {
            is_bound |= target.as_name() == Some(name.as_str());
        }
        _ => {}
    });
    let never = |value: &Expr| match &value.kind {
        ExprKind::Float(_) | ExprKind::None | ExprKind::Str(_) => true,
        _ => value.as_int().is_some_and(|value| value != 1),
    };
    let values: Vec<_> = module.launches_of(&kernel.name).map(|launch| passed(launch, kernel, name)).collect();
    let is_passed = values.iter().any(|value| matches!(value, ArgumentSource::Argument(_)));
    let all_others = !values.is_empty()
        && values.iter().all(|value| matches!(value, ArgumentSource::Argument(value) if never(value)));
    (is_passed || !is_set) && !is_bound && !all_others && is_specialized(kernel, name)
}

/// Whether a number of the host is 1 for sizes that occur: no product of sizes, and no distance between rows.
fn can_be_one(number: &HostNumber) -> bool {
    match number {
        HostNumber::Known(number) => *number == 1,
        HostNumber::Given(_) => !is_stride(number),
        HostNumber::Operation(operation) => operation.op != HostOperator::Python("*"),
        HostNumber::Either(all) => all.iter().any(can_be_one),
        HostNumber::Unknown | HostNumber::Opaque(_) => false,
    }
}

/// Whether a number of the host is a stride, by its name.
fn is_stride(number: &HostNumber) -> bool {
    matches!(number, HostNumber::Given(name) if name.contains("stride"))
}

/// Whether the kernel multiplies lanes with the parameter: along the axis of a tensor whose stride is 1 in most of them.
fn steps_lanes(context: &RuleContext<'_>, kernel: &Kernel, cast: &Cast<'_>) -> bool {
    let Some(at) = context.module.kernels.iter().position(|other| other.span == kernel.span) else { return false };
    let values = context.values(at);
    let is_tile = |expr: &Expr| matches!(values.get(&expr.span), Some(AbstractValue::Tile(tile)) if tile.shape.as_ref().is_none_or(|shape| !shape.is_empty()));
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        if let ExprKind::Binary { op, left, right } = &expr.kind
            && op == "*"
        {
            found |= left.span == cast.span && is_tile(right) || right.span == cast.span && is_tile(left);
        }
    });
    found
}

/// Whether the statement makes a pointer of the number.
fn is_address(context: &RuleContext<'_>, kernel: &Kernel, cast: &Cast<'_>) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| {
        let is_around = stmt.bodies().is_empty() && stmt.span.contains(cast.span);
        found |= is_around && context.source.slice(stmt.span).contains("pointer_type");
    });
    found
}

/// Whether `@triton.jit` specializes the parameter, that is, no option excludes it.
pub(super) fn is_specialized(kernel: &Kernel, name: &str) -> bool {
    kernel.decorators.iter().all(|decorator| {
        let Some(call) = decorator.expr.as_call() else { return true };
        let jit = decorator.path.as_deref() == Some("triton.jit");
        !jit || (!call.has_star() && call.argument("do_not_specialize", None).is_none_or(|list| leaves_out(list, name)))
    })
}

/// Whether a list in the source does not contain the parameter.
fn leaves_out(list: &Expr, name: &str) -> bool {
    match &list.kind {
        ExprKind::List(parts) | ExprKind::Tuple(parts) => {
            parts.iter().all(|part| matches!(&part.kind, ExprKind::Str(text) if text != name))
        }
        _ => false,
    }
}

fn report(context: &RuleContext<'_>, kernel: &Kernel, cast: &Cast<'_>) -> Diagnostic {
    let name = &cast.param.name;
    let function = context.module.language_name(kernel, "cast").unwrap_or_else(|| "tl.cast".to_owned());
    let replacement = format!("{function}({name}, {})", context.source.slice(cast.dtype.span));
    let message = format!(
        "when 1 is passed for `{name}` it becomes a compile-time constant, which has no `.to`, and the kernel does not compile; write `{replacement}`"
    );
    Diagnostic::new(&RULE.declaration, cast.span, message)
        .with_related(cast.param.name_span, "an integer parameter is specialized for 1")
        .with_fix(format!("Write `{replacement}`"), vec![Edit { span: cast.span, text: replacement }])
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// The findings in a kernel with these decorators and parameters, launched so.
    fn found(decorators: &str, params: &str, body: &str, launch: &str) -> usize {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n{decorators}\ndef k({params}):\n    {body}\n    tl.store(x, s)\n\n\ndef run(x, n):\n    {launch}\n"
        );
        messages(&text, "H040").len()
    }

    #[test]
    fn casts_of_integers_that_may_be_one_are_found() {
        let (jit, cast, launch) = ("@triton.jit", "s = n.to(tl.int64)", "k[(1,)](x, n)");
        assert_eq!(found(jit, "x, n", cast, launch), 1);
        assert_eq!(found(jit, "x, n", "n = n.to(tl.int64); s = n", launch), 1);
        assert_eq!(found("@other\n@triton.jit", "x, n", cast, launch), 1);
        assert_eq!(found("@triton.jit(do_not_specialize=['x'])", "x, n", cast, launch), 1);
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, 1)"), 1);
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, triton.cdiv(n, 64))"), 1);
        let stride = "s = tl.load(x + tl.arange(0, 16) * n.to(tl.int64))";
        assert_eq!(found(jit, "x, n", stride, "k[(1,)](x, x.stride(0))"), 1, "from lane to lane");
    }

    #[test]
    fn integers_that_are_never_one_or_never_cast_are_not_flagged() {
        let (jit, cast, launch) = ("@triton.jit", "s = n.to(tl.int64)", "k[(1,)](x, n)");
        assert_eq!(found(jit, "x, n: tl.constexpr", cast, launch), 0);
        assert_eq!(found(jit, "x, n: int", cast, launch), 0);
        assert_eq!(found(jit, "x, n", "s = n.to(tl.float32)", launch), 0, "it may be a float");
        assert_eq!(found(jit, "x, n", "m = n; s = m.to(tl.int64)", launch), 0);
        assert_eq!(found(jit, "x, n", "n = n + tl.program_id(0); s = n.to(tl.int64)", launch), 0);
        assert_eq!(found(jit, "x, n", "s = tl.load(n) + n.to(tl.int64)", launch), 0, "a pointer");
        assert_eq!(found(jit, "x, n", cast, "pass"), 0, "nothing launches it");
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, 4)"), 0);
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, n * 64)"), 0, "a product of sizes");
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, x.stride(0))"), 0, "the distance between rows");
        assert_eq!(found(jit, "x, n", cast, "k[(1,)](x, count(x))"), 0, "not known");
        assert_eq!(
            found(jit, "x, n", "s = tl.load(n.to(tl.int64).to(tl.pointer_type(tl.int8)))", launch),
            0,
            "an address"
        );
        assert_eq!(found("@triton.jit(do_not_specialize=['n'])", "x, n", cast, launch), 0);
        assert_eq!(found("@triton.jit(do_not_specialize=NAMES)", "x, n", cast, launch), 0);
    }
}
