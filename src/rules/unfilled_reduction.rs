//! M001: undefined lanes of a masked load reach a reduction.

use super::reader::Reader;
use super::{Context, Declaration, Diagnostic, Edit, Findings, Rule, Severity};
use crate::analysis::interpret::{UndefinedReduction, undefined_reductions};
use crate::analysis::launches::promises_full_tiles;
use crate::kernel::Kernel;
use crate::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use crate::syntax::Span;

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M001",
        name: "unfilled-reduction",
        severity: Severity::Warning,
        summary: "a masked load without `other` whose undefined lanes reach a reduction",
        since: "0.1.0",
        fixable: true,
        doc: include_str!("unfilled_reduction.md"),
    },
    check,
};

fn check(context: &Context<'_>, findings: &mut Findings<'_>) {
    for kernel in context.module.kernels.iter().filter(|kernel| !kernel.has_error) {
        if has_unfilled_load(context, kernel) {
            let found = undefined_reductions(context.module, kernel);
            if !found.is_empty() && !context.is_for_other_compiler() && !promises_full_tiles(context.module, kernel) {
                let reader = Reader::new(context.module, kernel);
                let found = found.iter().filter(|found| !reader.is_part_of_scan(found));
                findings.extend(found.filter_map(|found| report(context, found)));
            }
        }
    }
}

/// A quick look that spares most kernels the analysis.
fn has_unfilled_load(context: &Context<'_>, kernel: &Kernel) -> bool {
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        found = found
            || expr.as_call().is_some_and(|call| {
                call.argument("mask", Some(1)).is_some()
                    && call.argument("other", Some(2)).is_none_or(|other| other.kind == ExprKind::None)
                    && context.module.language_member(kernel, &call.func).as_deref() == Some("load")
            });
    });
    found
}

impl<'a> Reader<'a> {
    /// Whether the sum is that of one part of a scan which the programs share: only the last program has lanes turned off,
    /// and what comes behind its part is nothing.
    fn is_part_of_scan(&self, found: &UndefinedReduction<'a>) -> bool {
        let summed = |expr: &'a Expr| expr.as_call()?.args.first()?.value.as_name();
        let (Some(name), Some(mask)) =
            (summed(found.reduction), found.load.as_call().and_then(|call| call.argument("mask", Some(1))))
        else {
            return false;
        };
        let mut is_scanned = false;
        walk_expressions(&self.kernel.body, &mut |expr| {
            is_scanned |= self.call_of(expr, &["cumsum", "associative_scan"]).is_some() && summed(expr) == Some(name);
        });
        let is_program = |expr: &'a Expr| {
            expr.as_call().is_some_and(|call| {
                matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "program_id")
            })
        };
        is_scanned && self.contains(mask, &is_program)
    }
}

fn report(context: &Context<'_>, found: &UndefinedReduction<'_>) -> Option<Diagnostic> {
    let call = found.load.as_call()?;
    let mask = call.argument("mask", Some(1))?;
    let effect = match found.name {
        "sum" => "adds them up",
        "max" | "min" | "argmax" | "argmin" => "compares them",
        "dot" => "adds up their products",
        _ => "takes them in",
    };
    let neutral = match (found.zero_is_neutral, found.as_loaded, found.name) {
        (true, ..) => "pass `other=0`",
        (_, true, "max" | "argmax") => "pass an `other` that is never the largest, such as `-float(\"inf\")`",
        (_, true, "min" | "argmin") => "pass an `other` that is never the smallest, such as `float(\"inf\")`",
        _ => "give them a neutral value with `tl.where` before",
    };
    let message = format!(
        "lanes that the mask turns off are undefined without `other`, and the `{}` on line {} {effect}; {neutral}",
        found.name,
        context.source.lines().line_of(found.reduction.span.start) + 1,
    );
    let diagnostic = Diagnostic::new(&RULE.declaration, found.load.span, message)
        .with_related(found.reduction.span, "the undefined lanes are reduced here")
        .with_related(found.mask.unwrap_or(mask.span), "the mask");
    Some(match fill(call).filter(|_| found.zero_is_neutral) {
        Some(edit) => diagnostic.with_fix("Pass `other=0`", vec![edit]),
        None => diagnostic,
    })
}

/// Puts a zero into the lanes that the mask turns off.
fn fill(call: &Call) -> Option<Edit> {
    if let Some(other) = call.argument("other", Some(2)) {
        return Some(Edit { span: other.span, text: "0".to_owned() });
    }
    let end = call.args.last()?.span.end;
    Some(Edit { span: Span::new(end, end), text: ", other=0".to_owned() })
}
