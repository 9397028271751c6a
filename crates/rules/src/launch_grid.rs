//! H004: a grid that is invalid for every launch.

use model::analysis::host::{HostNames, Hosts, LocalBinding};
use model::kernel::Launch;
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity, scope};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H004",
        name: "launch-grid",
        severity: Severity::Warning,
        summary: "a grid that is not a tuple, is empty or zero, has too many dimensions or is too large",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("launch_grid.md"),
    },
    check,
};

/// The maximum number of programs along the second and third dimension.
const MOST: i128 = 65535;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut hosts = Hosts::new(context.module);
    for launch in &context.module.launches {
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| context.module.kernel(name)) else { continue };
        if launch.has_error || kernel.nested {
            continue;
        }
        let names = hosts.around(launch);
        let Some(found) = look(context, launch, &names) else { continue };
        // The name may refer to something else that is subscripted and called.
        let hidden = || scope::is_hidden(context.source, kernel, &scope::scopes_of(context.source, launch.span));
        if !context.is_for_other_compiler() && scope::is_bound_once(context.source, kernel) && !hidden() {
            findings.push(found);
        }
    }
}

fn look<'a>(context: &RuleContext<'a>, launch: &'a Launch, names: &HostNames<'a>) -> Option<Diagnostic> {
    let grid = names.resolve(&launch.grid);
    let grid = match &grid.kind {
        ExprKind::Lambda { body, .. } => body.as_ref(),
        _ => grid,
    };
    // `kernel[n,]` is a tuple too.
    let rest = &context.source.text()[launch.grid.span.end..launch.args_span.start];
    if rest.contains(',') {
        return None;
    }
    match &grid.kind {
        ExprKind::Tuple(items) => dimensions(grid, items, names),
        _ => number(grid, names, 0).then(|| {
            let report = Diagnostic::new(
                &RULE.declaration,
                grid.span,
                "the grid must be a tuple or a function that returns one; for this number the launch raises a `TypeError`",
            );
            let text = &context.source.text()[grid.span.start..grid.span.end];
            let shared = grid.span != launch.grid.span && !matches!(launch.grid.kind, ExprKind::Lambda { .. });
            if shared {
                let at = launch.grid.span;
                let name = &context.source.text()[at.start..at.end];
                let edit = Edit { span: at, text: format!("({name},)") };
                return report.with_related(at, "the launch").with_fix("Make the grid a tuple", vec![edit]);
            }
            let bare = parenthesized(context, grid.span);
            report.with_fix("Make the grid a tuple", vec![Edit { span: bare, text: format!("({text},)") }])
        }),
    }
}

/// The span of an expression with the parentheses directly around it.
fn parenthesized(context: &RuleContext<'_>, span: Span) -> Span {
    let text = context.source.text();
    let (before, after) = (text[..span.start].trim_end(), text[span.end..].trim_start());
    if before.ends_with('(') && after.starts_with(')') {
        Span::new(before.len() - 1, text.len() - after.len() + 1)
    } else {
        span
    }
}

fn dimensions<'a>(grid: &'a Expr, items: &'a [Expr], names: &HostNames<'a>) -> Option<Diagnostic> {
    if items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_))) {
        return None;
    }
    if items.is_empty() {
        return Some(Diagnostic::new(&RULE.declaration, grid.span, "the grid has no dimension: the launch fails"));
    }
    if let [_, _, _, more @ ..] = items
        && let Some((first, last)) = more.first().zip(more.last())
        && more.iter().any(|item| names.integer(item) != Some(1))
    {
        let span = Span::new(first.span.start, last.span.end);
        let message = "a grid has three dimensions at most: the launch ignores what follows without a word";
        return Some(Diagnostic::new(&RULE.declaration, span, message));
    }
    items.iter().enumerate().find_map(|(at, item)| {
        let programs = names.integer(item)?;
        let message = match at {
            _ if programs == 0 => "with no program along this dimension the launch silently does nothing".to_owned(),
            1 | 2 if programs > MOST => format!(
                "{programs} programs along dimension {at}: CUDA takes {MOST} at most along the second and third, and the \
                 launch fails; put the largest first"
            ),
            _ => return None,
        };
        Some(Diagnostic::new(&RULE.declaration, item.span, message))
    })
}

/// Whether an expression is the sizes of a tensor.
fn is_of_sizes(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Attribute { name, .. } => name == "shape",
        ExprKind::Call(call) => {
            matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "size") && call.args.is_empty()
        }
        _ => false,
    }
}

/// Whether an expression is certainly a number.
fn number<'a>(expr: &'a Expr, names: &HostNames<'a>, depth: usize) -> bool {
    match &expr.kind {
        // `n = n + 1` is its own value.
        _ if depth > 8 => false,
        ExprKind::Int(_) => true,
        // `rows, columns = x.shape`
        ExprKind::Name(name) => match names.binding(name) {
            Some(LocalBinding::Item(value, _)) => is_of_sizes(value),
            _ => false,
        },
        ExprKind::Binary { op, left, right } => {
            matches!(op.as_str(), "+" | "-" | "*" | "//")
                && number(names.resolve(left), names, depth + 1)
                && number(names.resolve(right), names, depth + 1)
        }
        ExprKind::Call(call) => {
            let method = |name| matches!(&call.func.kind, ExprKind::Attribute { name: of, .. } if of == name);
            names.is_cdiv(call) || (method("numel") && call.args.is_empty()) || call.func.as_name() == Some("len")
        }
        ExprKind::Subscript { value, index } => {
            let shape = matches!(&value.kind, ExprKind::Attribute { name, .. } if name == "shape");
            shape && index.len() == 1 && index[0].as_int().is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Selection, check};
    use model::api::TritonTarget;
    use model::kernel::Module;
    use model::syntax::Source;

    #[test]
    fn a_self_referential_grid_has_no_value() {
        let text = "import triton\n@triton.jit\ndef k(x):\n    pass\ndef run(x):\n    n = n + 1\n    k[n](x)\n    m = m\n    k[m](x)\n";
        let source = Source::parse(text);
        let module = Module::build(&source);
        let context = RuleContext::new(&source, &module, TritonTarget::newest());
        let selection = Selection { select: vec!["H004".to_owned()], ignore: Vec::new() };
        assert_eq!(check(&context, &selection), []);
    }
}
