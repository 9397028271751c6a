//! L010 `invalid-argument`: an argument of a type or value that the function does not accept.

use model::analysis::types::{Problem, ProblemKind};

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L010",
        name: "invalid-argument",
        severity: Severity::Error,
        summary: "an argument of a type or value that the function does not accept",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("invalid_argument.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Argument], fix, findings);
}

fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (kernel, call) = fix_edits::call_at(context, problem.span)?;
    let language_name = |name: &str| context.module.language_name(kernel, name);
    if context.module.resolve_in(kernel, &call.func).is_some_and(|found| found.path == "triton.cdiv") {
        let cdiv = language_name("cdiv")?;
        return Some(fix_edits::replace(format!("Use `{cdiv}`"), call.func.span, cdiv));
    }
    // A type of Python is passed in place of a dtype.
    let of_python = call.args.iter().find_map(|arg| match arg.value.as_name() {
        Some("float") => Some((arg, "float32")),
        Some("int") => Some((arg, "int32")),
        _ => None,
    });
    if let Some((arg, dtype)) = of_python {
        let dtype = language_name(dtype)?;
        return Some(fix_edits::replace(format!("Use `{dtype}`"), arg.value.span, dtype));
    }
    // The function takes only 32-bit floats.
    let argument =
        fix_edits::only_argument(call).filter(|_| problem.message.contains("cast with `.to(tl.float32)`"))?;
    let cast = format!("{}.to({})", fix_edits::operand(context, argument), language_name("float32")?);
    Some(fix_edits::replace("Cast to `float32`", argument.span, cast))
}
