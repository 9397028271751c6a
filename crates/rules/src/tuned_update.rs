//! H002: an autotuned kernel that updates a tensor in place.

use model::analysis::in_place_updates::{Update, updates};
use model::analysis::tuning::{NameList, Tuner, is_always};
use model::kernel::Kernel;
use model::kernel::ast::{ExprKind, StmtKind, walk_statements};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H002",
        name: "tuned-update",
        severity: Severity::Warning,
        summary: "an autotuned kernel that updates a tensor that is not restored between the runs",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("tuned_update.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for kernel in context.module.kernels.iter().filter(|kernel| !kernel.has_error && kernel.autotune.is_some()) {
        let Some(tuner) = Tuner::of(context.module, kernel) else { continue };
        if let Some(finding) = shadowed(&tuner) {
            findings.push(finding);
        } else if tuner.at_least > 1 && !tuner.may_have_hook() {
            findings.extend(unrestored(context, kernel, &tuner));
        }
    }
}

/// The finding for a custom `pre_hook`: it replaces the hooks that implement `reset_to_zero` and `restore_value`.
fn shadowed(tuner: &Tuner<'_>) -> Option<Diagnostic> {
    let hook = tuner.call.argument("pre_hook", Some(5)).filter(|hook| hook.kind != ExprKind::None)?;
    let (name, (_, span)) =
        ["reset_to_zero", "restore_value"].into_iter().find_map(|name| match tuner.names(name) {
            NameList::Listed(names) => Some((name, *names.first()?)),
            NameList::Absent | NameList::Unknown => None,
        })?;
    let message = format!("`{name}` has no effect together with `pre_hook`, which replaces the hook that would do it");
    Some(Diagnostic::new(&RULE.declaration, span, message).with_related(hook.span, "the hook"))
}

fn unrestored(context: &RuleContext<'_>, kernel: &Kernel, tuner: &Tuner<'_>) -> Vec<Diagnostic> {
    let mut named = Vec::new();
    for argument in ["reset_to_zero", "restore_value"] {
        match tuner.names(argument) {
            NameList::Absent => {}
            NameList::Listed(names) => named.extend(names.into_iter().map(|(name, _)| name)),
            NameList::Unknown => return Vec::new(),
        }
    }
    let found = updates(context.module, kernel).into_iter().filter(|update| !named.contains(&update.param));
    let found = found.filter(|update| !is_left_out(context, kernel, update.span));
    report(tuner, &found.collect::<Vec<_>>()).into_iter().collect()
}

/// Whether a place is in a branch for parts of a sum (`SPLIT_K > 1`) where all configurations leave it in one part.
fn is_left_out(context: &RuleContext<'_>, kernel: &Kernel, at: Span) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::If { branches, .. } = &stmt.kind
            && stmt.span.contains(at)
        {
            let tested = branches.iter().filter_map(|(test, _)| match &test.kind {
                ExprKind::Compare { left, rest } => {
                    let is_one = matches!(rest.as_slice(), [(_, right)] if right.as_int() == Some(1));
                    left.as_name().filter(|_| is_one)
                }
                _ => None,
            });
            found |= tested.into_iter().any(|name| is_always(context.source.text(), name, 1));
        }
    });
    found
}

/// The finding, at the tuner, which lacks the names.
fn report(tuner: &Tuner<'_>, updates: &[Update<'_>]) -> Option<Diagnostic> {
    let (first, more) = updates.split_first()?;
    let list = updates.iter().map(|update| format!("`{}`", update.param)).collect::<Vec<_>>().join(" and ");
    let how = match (more, first.load) {
        ([], Some(_)) => "is read and written back changed",
        ([], None) => "is added to",
        _ => "are read and written back changed, or added to",
    };
    let (tensor, names) = if more.is_empty() { ("tensor", "it") } else { ("tensors", "them") };
    let message = format!(
        "{list} {how}, and the tuner runs the kernel many times on the same {tensor}: the first result is wrong unless `restore_value` or \
         `reset_to_zero` names {names}"
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, tuner.call.func.span, message);
    for update in updates {
        diagnostic = diagnostic.with_related(update.span, format!("`{}` is changed here", update.param));
    }
    let params: Vec<&str> = updates.iter().map(|update| update.param).collect();
    Some(match restore(tuner, &params) {
        Some(edit) => diagnostic.with_fix(format!("Restore {list} between the runs"), vec![edit]),
        None => diagnostic,
    })
}

/// The edit that adds tensors to `restore_value`.
fn restore(tuner: &Tuner<'_>, params: &[&str]) -> Option<Edit> {
    let insert = |at: usize, text: String| Some(Edit { span: Span::new(at, at), text });
    let names = params.iter().map(|param| format!("\"{param}\"")).collect::<Vec<_>>().join(", ");
    match tuner.call.argument("restore_value", Some(4)) {
        None => insert(tuner.call.args.last()?.span.end, format!(", restore_value=[{names}]")),
        Some(list) => match &list.kind {
            ExprKind::None => Some(Edit { span: list.span, text: format!("[{names}]") }),
            ExprKind::List(items) => insert(items.last()?.span.end, format!(", {names}")),
            _ => None,
        },
    }
}
