//! L008 `unknown-attribute`: an attribute or method that a value in a kernel does not have.

use model::analysis::types::{Problem, ProblemKind};
use model::api::Lookup;
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L008",
        name: "unknown-attribute",
        severity: Severity::Error,
        summary: "an attribute or method that a value in a kernel does not have",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("unknown_attribute.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Attribute], fix, findings);
}

/// Methods of torch that cast, and the corresponding dtypes of Triton.
const CASTS: &[(&str, &str)] = &[
    ("float", "float32"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("double", "float64"),
    ("int", "int32"),
    ("long", "int64"),
];

/// Methods of torch that a kernel does not need, because its values are immutable.
const NOTHING: &[&str] = &["clone", "contiguous", "detach"];

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    function_for_method(context, problem.span).or_else(|| {
        let is_callee = |expr: &Expr| expr.as_call().is_some_and(|call| call.func.span == problem.span);
        let (kernel, expr) = fix_edits::find(context, is_callee)?;
        let call = expr.as_call()?;
        let ExprKind::Attribute { name, name_span, .. } = &call.func.kind else { return None };
        if name == "astype" && fix_edits::only_argument(call).is_some() {
            return Some(fix_edits::replace("Use `.to(…)`", *name_span, "to"));
        }
        if !call.args.is_empty() {
            return None;
        }
        if NOTHING.contains(&name.as_str()) {
            let dot = context.source.text()[..name_span.start].rfind('.')?;
            return Some(fix_edits::replace(format!("Remove `.{name}()`"), Span::new(dot, expr.span.end), ""));
        }
        let (_, dtype) = CASTS.iter().find(|(known, _)| known == name)?;
        let cast = format!("to({})", context.module.language_name(kernel, dtype)?);
        Some(fix_edits::replace(format!("Use `.{cast}`"), Span::new(name_span.start, expr.span.end), cast))
    })
}

/// `x.sum(axis=0)` → `tl.sum(x, axis=0)`, where the method is newer than the function.
fn function_for_method(context: &RuleContext<'_>, span: Span) -> Option<Fix> {
    let (kernel, call) = fix_edits::call_at(context, span)?;
    let ExprKind::Attribute { name, name_span, .. } = &call.func.kind else { return None };
    let path = format!("triton.language.{name}");
    let function = context.module.language_name(kernel, name)?;
    let receiver = context.source.text()[span.start..name_span.start].trim_end().strip_suffix('.')?.trim_end();
    let arguments = context.source.slice(call.args_span).strip_prefix('(')?;
    let separator = if call.args.is_empty() { "" } else { ", " };
    let fixed = format!("{function}({receiver}{separator}{arguments}");
    let is_certain = matches!(context.target.lookup(&path), Lookup::Found(_)) && fix_edits::is_plain(receiver);
    is_certain.then(|| fix_edits::replace(format!("Use `{function}(…)`"), span, fixed))
}
