//! Helpers for fixes: they find the code at a span and build edits of its text.

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, walk_expressions, walk_statements};
use model::syntax::Span;

use super::context::RuleContext;
use super::diagnostic::{Edit, Fix};

/// The outermost expression of a kernel that `wanted` accepts, with its kernel.
pub(super) fn find<'a>(context: &RuleContext<'a>, wanted: impl Fn(&Expr) -> bool) -> Option<(&'a Kernel, &'a Expr)> {
    context.module.kernels.iter().find_map(|kernel| {
        let mut found = None;
        walk_expressions(&kernel.body, &mut |expr| {
            if found.is_none() && wanted(expr) {
                found = Some(expr);
            }
        });
        found.map(|expr| (kernel, expr))
    })
}

/// The call with exactly this span, with its kernel.
pub(super) fn call_at<'a>(context: &RuleContext<'a>, span: Span) -> Option<(&'a Kernel, &'a Call)> {
    let (kernel, expr) = find(context, |expr| expr.span == span && expr.as_call().is_some())?;
    Some((kernel, expr.as_call()?))
}

/// The statement with exactly this span, with its kernel.
pub(super) fn statement_at<'a>(context: &RuleContext<'a>, span: Span) -> Option<(&'a Kernel, &'a Stmt)> {
    context.module.kernels.iter().find_map(|kernel| {
        let mut found = None;
        walk_statements(&kernel.body, &mut |stmt| {
            if stmt.span == span {
                found = Some(stmt);
            }
        });
        found.map(|stmt| (kernel, stmt))
    })
}

/// The only argument of a call, where it is positional.
pub(super) fn only_argument(call: &Call) -> Option<&Expr> {
    let [arg] = call.args.as_slice() else { return None };
    let plain = arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_));
    plain.then_some(&arg.value)
}

/// The text of an expression, in parentheses unless it is a name, attribute, call or subscript.
pub(super) fn operand(context: &RuleContext<'_>, expr: &Expr) -> String {
    let text = context.source.slice(expr.span);
    match expr.kind {
        ExprKind::Name(_) | ExprKind::Attribute { .. } | ExprKind::Call(_) | ExprKind::Subscript { .. } => {
            text.to_owned()
        }
        _ => format!("({text})"),
    }
}

/// Whether the text contains no comment, line break or backslash, which a change might lose.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['#', '\n', '\\'])
}

/// A fix that replaces one span by a text.
pub(super) fn replace(title: impl Into<String>, span: Span, text: impl Into<String>) -> Fix {
    Fix { title: title.into(), edits: vec![Edit { span, text: text.into() }] }
}

/// The edits that replace the square brackets of a list of several elements by parentheses.
pub(super) fn tuple_for_list(context: &RuleContext<'_>, list: &Expr) -> Option<Vec<Edit>> {
    let ExprKind::List(parts) = &list.kind else { return None };
    let text = context.source.slice(list.span);
    let (start, end) = (list.span.start, list.span.end);
    let is_list = parts.len() > 1 && text.starts_with('[') && text.ends_with(']');
    let edit = |at: usize, text: &str| Edit { span: Span::new(at, at + 1), text: text.to_owned() };
    is_list.then(|| vec![edit(start, "("), edit(end - 1, ")")])
}
