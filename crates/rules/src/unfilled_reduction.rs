//! M001: a masked load without `other` whose undefined lanes reach a reduction.

use rustc_hash::FxHashSet as HashSet;

use model::analysis::interpret::{UndefinedReduction, undefined_reductions};
use model::analysis::launches::promises_full_tiles;
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use model::syntax::Span;

use super::formula_reader::FormulaReader;
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M001",
        name: "unfilled-reduction",
        severity: Severity::Warning,
        summary: "a masked load without `other` whose undefined lanes reach a reduction",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unfilled_reduction.md"),
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
    let reduces = |kernel: &&Kernel| context.mentions(kernel, &["sum", "max", "min", "reduce", "dot"]);
    if !all.iter().any(reduces) || !all.iter().any(|kernel| has_unfilled_load(context, kernel)) {
        return Vec::new();
    }
    let found = undefined_reductions(context.module, kernel);
    if found.is_empty() || promises_full_tiles(context.module, kernel) {
        return Vec::new();
    }
    let reader = FormulaReader::new(context.module, kernel);
    let scanned = reader.scanned();
    let found = found.iter().filter(|found| !reader.is_part_of_scan(found, &scanned));
    found.filter_map(|found| report(context, found)).collect()
}

/// A cheap test that rules out most kernels before the analysis.
fn has_unfilled_load(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
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

impl<'a> FormulaReader<'a> {
    /// The names that are passed to a scan.
    fn scanned(&self) -> HashSet<&'a str> {
        let mut found = HashSet::default();
        walk_expressions(&self.kernel.body, &mut |expr| {
            let scan = self.call_of(expr, &["cumsum", "associative_scan"]);
            found.extend(scan.and_then(|call| call.args.first()?.value.as_name()));
        });
        found
    }

    /// Whether the sum belongs to a part of a scan that several programs share. Only the last program has masked lanes,
    /// and no part follows it.
    fn is_part_of_scan(&self, found: &UndefinedReduction<'a>, scanned: &HashSet<&'a str>) -> bool {
        let summed = found.reduction.as_call().and_then(|call| call.args.first()?.value.as_name());
        let mask = found.load.as_call().and_then(|call| call.argument("mask", Some(1)));
        let is_program = |expr: &'a Expr| {
            expr.as_call()
                .is_some_and(|call| matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "program_id"))
        };
        summed.is_some_and(|name| scanned.contains(name)) && mask.is_some_and(|mask| self.contains(mask, &is_program))
    }
}

fn report(context: &RuleContext<'_>, found: &UndefinedReduction<'_>) -> Option<Diagnostic> {
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
        context.line_of(found.reduction.span),
    );
    let diagnostic = Diagnostic::new(&RULE.declaration, found.load.span, message)
        .with_related(found.reduction.span, "the undefined lanes are reduced here")
        .with_related(found.mask.unwrap_or(mask.span), "the mask");
    Some(match fill(call).filter(|_| found.zero_is_neutral) {
        Some(edit) => diagnostic.with_fix("Pass `other=0`", vec![edit]),
        None => diagnostic,
    })
}

/// The edit that fills masked lanes with zero.
fn fill(call: &Call) -> Option<Edit> {
    if let Some(other) = call.argument("other", Some(2)) {
        return Some(Edit { span: other.span, text: "0".to_owned() });
    }
    let end = call.args.last()?.span.end;
    Some(Edit { span: Span::new(end, end), text: ", other=0".to_owned() })
}
