//! H003: names that `@triton.autotune` or `@triton.heuristics` cannot find.

use model::analysis::launches::{ArgumentSource, passed};
use model::analysis::tuning::{NameList, Tuner, kind};
use model::kernel::Kernel;
use model::kernel::ast::{Expr, ExprKind};

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H003",
        name: "tuner-names",
        severity: Severity::Warning,
        summary: "a name that `@triton.autotune` or `@triton.heuristics` cannot find",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("tuner_names.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for kernel in context.module.kernels.iter().filter(|kernel| !kernel.has_error && kernel.autotune.is_some()) {
        let Some(tuner) = Tuner::of(context.module, kernel) else { continue };
        if kernel.params.iter().any(|param| param.variadic) {
            continue;
        }
        for argument in ["key", "reset_to_zero", "restore_value"] {
            let NameList::Listed(names) = tuner.names(argument) else { continue };
            for (name, span) in names.iter().filter(|(name, _)| kernel.param(name).is_none()) {
                findings.push(unknown(kernel, argument, name, *span));
            }
            if argument == "key" {
                findings.extend(names.iter().filter_map(|(name, span)| tuned(context, kernel, &tuner, name, *span)));
            }
        }
        findings.extend(too_late(context, kernel, &tuner));
        findings.extend(too_early(kernel, &tuner));
    }
}

fn unknown(kernel: &Kernel, argument: &str, name: &str, span: model::syntax::Span) -> Diagnostic {
    let effect = match argument {
        "key" => "it is omitted from the key, and is an error from Triton 3.9 on",
        _ => "the launch fails with a `KeyError`, from Triton 3.9 on the import",
    };
    let message = format!("`{}` has no parameter `{name}`: in `{argument}` {effect}", kernel.name);
    let diagnostic =
        Diagnostic::new(&RULE.declaration, span, message).with_related(kernel.name_span, "the kernel's parameters");
    let limit = if name.len() > 4 { 2 } else { 1 };
    let mut close = kernel
        .params
        .iter()
        .filter(|param| strsim::osa_distance(&param.name.to_lowercase(), &name.to_lowercase()) <= limit);
    match (close.next(), close.next()) {
        (Some(param), None) => diagnostic.with_fix(
            format!("Replace `{name}` by `{}`", param.name),
            vec![Edit { span, text: format!("\"{}\"", param.name) }],
        ),
        _ => diagnostic,
    }
}

/// A name in `key` that the configurations set, and that no launch passes: it has no value when the key is computed.
fn tuned(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    tuner: &Tuner<'_>,
    name: &str,
    span: model::syntax::Span,
) -> Option<Diagnostic> {
    let given = |launch| !matches!(passed(launch, kernel, name), ArgumentSource::Omitted);
    let is_passed = context.module.launches_of(&kernel.name).any(given);
    (tuner.sets(name) && tuner.at_least > 0 && !is_passed).then(|| {
        let message =
            format!("the configurations set `{name}`, so it has no value when the key is computed: leave it out");
        let mut found = Diagnostic::new(&RULE.declaration, span, message).with_related(kernel.name_span, "the kernel");
        // Triton 3.2 and later leave it out themselves.
        found.severity = Severity::Hint;
        found
    })
}

/// Names in `key` that a heuristic below the autotuner sets: it runs after the key is computed.
fn too_late(context: &RuleContext<'_>, kernel: &Kernel, tuner: &Tuner<'_>) -> Vec<Diagnostic> {
    let NameList::Listed(names) = tuner.names("key") else { return Vec::new() };
    let mut found = Vec::new();
    for (heuristic, _, at) in heuristics(kernel).filter(|(.., at)| *at > tuner.place) {
        let Some((name, span)) = names.iter().find(|(name, _)| *name == heuristic) else { continue };
        let given = |launch| !matches!(passed(launch, kernel, name), ArgumentSource::Omitted);
        if context.module.launches_of(&kernel.name).any(given) {
            continue;
        }
        let message = format!(
            "`{name}` is not set yet when the key is computed: the heuristic below the tuner sets it later, so it is omitted from the key"
        );
        let place = kernel.decorators[at].expr.span;
        found.push(Diagnostic::new(&RULE.declaration, *span, message).with_related(place, "the heuristic"));
    }
    found
}

/// Heuristics above the autotuner that read a parameter which it sets: they run before it.
fn too_early(kernel: &Kernel, tuner: &Tuner<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (_, function, _) in heuristics(kernel).filter(|(.., at)| *at < tuner.place) {
        let ExprKind::Lambda { params, body } = &function.kind else { continue };
        let [args] = params.as_slice() else { continue };
        body.walk(&mut |inner| {
            let ExprKind::Subscript { value, index } = &inner.kind else { return };
            let ([Expr { kind: ExprKind::Str(name), .. }], Some(subject)) = (index.as_slice(), value.as_name()) else {
                return;
            };
            if subject == args && tuner.sets(name) && tuner.at_least > 0 {
                let message = format!(
                    "`{name}` is not set yet when this runs: decorators run from the top, and `@triton.autotune` is \
                     below, so the launch fails with a `KeyError`"
                );
                let tuned = kernel.decorators[tuner.place].expr.span;
                found.push(Diagnostic::new(&RULE.declaration, inner.span, message).with_related(tuned, "sets it"));
            }
        });
    }
    found
}

/// The name, function and index among the decorators of each heuristic in the source.
fn heuristics(kernel: &Kernel) -> impl Iterator<Item = (&str, &Expr, usize)> {
    let places = kernel.decorators.iter().enumerate().filter(|(_, decorator)| kind(decorator) == Some("heuristics"));
    places.flat_map(|(at, decorator)| {
        let items = decorator.expr.as_call().and_then(|call| call.argument("values", Some(0)));
        let items = match items.map(|values| &values.kind) {
            Some(ExprKind::Dict { items, .. }) => items.as_slice(),
            _ => &[],
        };
        items.iter().filter_map(move |(key, value)| match &key.kind {
            ExprKind::Str(name) => Some((name.as_str(), value, at)),
            _ => None,
        })
    })
}
