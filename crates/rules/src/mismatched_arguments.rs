//! L009 `mismatched-arguments`: arguments that a function does not take, or a missing one.

use model::analysis::types::{Problem, ProblemKind};
use model::api::{Lookup, MemberParameter, nearest};
use model::kernel::Kernel;
use model::kernel::ast::{Call, ExprKind};

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L009",
        name: "mismatched-arguments",
        severity: Severity::Error,
        summary: "arguments that a function does not take, or one that it lacks",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("mismatched_arguments.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    language::report_with(context, &RULE.declaration, &[ProblemKind::Keyword], fix, findings);
}

/// The fix that replaces a misspelled keyword by the name of a parameter.
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (kernel, call) = fix_edits::call_at(context, problem.span)?;
    let params = parameters(context, kernel, call)?;
    let names: Vec<&str> = params.iter().map(String::as_str).collect();
    let free: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !call.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name)))
        .collect();
    let mut unknown =
        call.args.iter().filter_map(|arg| arg.keyword.as_ref()).filter(|(word, _)| !names.contains(&word.as_str()));
    let (word, span) = unknown.next()?;
    let near = nearest(word, &free)?;
    Some(fix_edits::replace(format!("Replace `{word}` by `{near}`"), *span, near))
}

/// The names of the parameters that can be passed by keyword.
fn parameters(context: &RuleContext<'_>, kernel: &Kernel, call: &Call) -> Option<Vec<String>> {
    let plain = |params: &[MemberParameter]| {
        params.iter().map(|param| param.name.clone()).filter(|name| !name.starts_with('*')).collect::<Vec<_>>()
    };
    if let Some(helper) = call.func.as_name().and_then(|name| context.module.kernel(name)) {
        return Some(helper.params.iter().map(|param| param.name.clone()).collect());
    }
    let resolved = context.module.resolve_in(kernel, &call.func);
    let path = match (resolved, &call.func.kind) {
        (Some(resolved), _) => resolved.path,
        (None, ExprKind::Attribute { name, .. }) => format!("triton.language.tensor.{name}"),
        _ => return None,
    };
    match context.target.lookup(&path) {
        Lookup::Found(member) => Some(plain(&member.params)),
        _ => None,
    }
}
