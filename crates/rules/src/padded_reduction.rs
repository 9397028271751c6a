//! M020: padding that is no longer neutral when it reaches a reduction.

use model::analysis::fills::Content;
use model::analysis::interpret::{PaddedReduction, lanes_that_count};
use model::analysis::launches::promises_full_tiles;
use model::kernel::Kernel;
use model::kernel::ast::{ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::formula_reader::MAX_FOUND;
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M020",
        name: "padded-reduction",
        severity: Severity::Warning,
        summary: "padding of a masked load that is no longer neutral when it is reduced",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("padded_reduction.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let found = context.in_kernels(&RULE, |kernel| found(context, kernel));
    if !found.is_empty() && !context.is_for_other_compiler() {
        findings.extend(found);
    }
}

fn found<'a>(context: &RuleContext<'a>, kernel: &'a Kernel) -> Vec<Diagnostic> {
    if kernel.has_error {
        return Vec::new();
    }
    let all = context.with_helpers(kernel);
    let reduces = |kernel: &&Kernel| context.mentions(kernel, &["sum", "max", "min"]);
    if !all.iter().any(reduces) || !all.iter().any(|kernel| has_filled_load(context, kernel)) {
        return Vec::new();
    }
    let found = lanes_that_count(context.module, kernel).padded;
    if found.is_empty() || promises_full_tiles(context.module, kernel) {
        return Vec::new();
    }
    found.iter().take(MAX_FOUND).filter_map(|found| report(context, kernel, found)).collect()
}

/// A cheap test that rules out most kernels before the analysis.
fn has_filled_load(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        found = found
            || expr.as_call().is_some_and(|call| {
                call.argument("mask", Some(1)).is_some()
                    && call.argument("other", Some(2)).is_some_and(|other| other.kind != ExprKind::None)
                    && context.module.language_member(kernel, &call.func).as_deref() == Some("load")
            });
    });
    found
}

fn report(context: &RuleContext<'_>, kernel: &Kernel, found: &PaddedReduction<'_>) -> Option<Diagnostic> {
    let fill = &found.fill;
    let held = match fill.content {
        Content::Number(number) => format!("hold {number}"),
        Content::Other { .. } => "hold a number that is not neutral".to_owned(),
    };
    let (effect, neutral) = match found.name {
        "sum" => ("adds them up", "0"),
        "max" | "argmax" => ("compares them", "-float(\"inf\")"),
        _ => ("compares them", "float(\"inf\")"),
    };
    let load = context.line_of(fill.load.span);
    let message = format!(
        "lanes that the mask of the load on line {load} turns off {held} here, and `{}` {effect}; put {neutral} there with `tl.where` before",
        found.name,
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, found.reduction.span, message)
        .with_related(fill.load.span, "the mask turns lanes off here");
    if let Some(changed) = fill.changed {
        diagnostic = diagnostic.with_related(changed, "here the padding changes");
    }
    diagnostic.fix = fix(context, kernel, found);
    Some(diagnostic)
}

/// Replaces the padding by zero, where the mask of the load still has its value.
fn fix(context: &RuleContext<'_>, kernel: &Kernel, found: &PaddedReduction<'_>) -> Option<Fix> {
    let mask = found.fill.mask.as_name().filter(|_| found.name == "sum" && !found.fill.is_moved)?;
    let call = found.reduction.as_call()?;
    // A method reduces its receiver, which this fix does not handle.
    context.module.language_member(kernel, &call.func)?;
    let value = call.args.first().filter(|arg| arg.keyword.is_none())?.value.span;
    if !holds_at(kernel, mask, found.fill.load.span, found.reduction.span) {
        return None;
    }
    let choose = context.module.language_name(kernel, "where")?;
    let edits = vec![
        Edit { span: Span::new(value.start, value.start), text: format!("{choose}({mask}, ") },
        Edit { span: Span::new(value.end, value.end), text: ", 0)".to_owned() },
    ];
    Some(Fix { title: "Leave the padding out with `tl.where`".to_owned(), edits })
}

/// Whether `mask` is bound once, and has the same value at the reduction as at the load.
fn holds_at(kernel: &Kernel, mask: &str, load: Span, reduction: Span) -> bool {
    let (mut bound, mut same_loops) = (0, true);
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => {
            for target in targets {
                target.walk(&mut |expr| bound += usize::from(expr.as_name() == Some(mask)));
            }
        }
        StmtKind::AugAssign { target, .. } => bound += 2 * usize::from(target.as_name() == Some(mask)),
        StmtKind::For { .. } | StmtKind::While { .. } => {
            same_loops &= !stmt.span.contains(load) || stmt.span.contains(reduction);
        }
        _ => {}
    });
    bound == 1 && same_loops && kernel.param(mask).is_none()
}

#[cfg(test)]
mod tests {
    use model::api::TritonTarget;
    use model::kernel::Module;
    use model::syntax::Source;

    use crate::{RuleContext, Selection, check};

    /// Whether the finding in a kernel with these statements between the load and the sum has a fix.
    fn has_fix(between: &str) -> bool {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, n, BLOCK: tl.constexpr):\n    \
             cols = tl.arange(0, BLOCK)\n    mask = cols < n\n    v = tl.load(x + cols, mask=mask, other=0.0)\n    \
             mean = tl.sum(v, axis=0) / n\n    d = v - mean\n{between}    tl.store(y, tl.sum(d * d, axis=0))\n\n\
             def run(x, y, n):\n    k[(1,)](x, y, n, BLOCK=1024)\n"
        );
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let context = RuleContext::new(&source, &module, TritonTarget::newest());
        let selection = Selection { select: vec!["M020".to_owned()], ignore: Vec::new() };
        let found = check(&context, &selection);
        assert_eq!(found.len(), 1, "{text}");
        found[0].fix.is_some()
    }

    #[test]
    fn the_fix_uses_the_mask_only_if_it_is_unchanged_since_the_load() {
        assert!(has_fix(""));
        assert!(!has_fix("    mask &= cols > 0\n"));
        assert!(!has_fix("    mask = cols > 0\n"));
    }
}
