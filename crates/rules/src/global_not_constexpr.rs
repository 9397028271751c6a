//! L007 `global-not-constexpr`: a global that kernels cannot use because it is not a `tl.constexpr`.

use tree_sitter::Node;

use model::analysis::types::{Problem, ProblemKind};
use model::kernel::Global;
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::context::RuleContext;
use super::declaration::{Declaration, Severity};
use super::diagnostic::Fix;
use super::findings::Findings;
use super::rule::Rule;
use super::{fix_edits, language, undecorated_helper};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L007",
        name: "global-not-constexpr",
        severity: Severity::Error,
        summary: "a global of the file that kernels cannot use, since it is not a `tl.constexpr`",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("global_not_constexpr.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for problem in language::problems(context, &[ProblemKind::Global]) {
        // H006 covers helpers that lack their decorator.
        let is_function = context.module.functions.iter().any(|it| it.name == context.source.slice(problem.span));
        if !(is_function && undecorated_helper::is_found_at(context, problem.span)) {
            let mut diagnostic = language::diagnostic(&RULE.declaration, problem);
            diagnostic.fix = fix(context, problem);
            findings.push(diagnostic);
        }
    }
}

/// `X = 4` → `X = tl.constexpr(4)`, where only kernels use the name: host code that works with a number may not work
/// with a `tl.constexpr`, such as `range(X)`.
fn fix(context: &RuleContext<'_>, problem: &Problem) -> Option<Fix> {
    let (module, text) = (context.module, context.source.text());
    let name = context.source.slice(problem.span);
    let mut of_name = module.globals.iter().filter(|global| global.name == name);
    let (Some(global), None) = (of_name.next(), of_name.next()) else { return None };
    if module.uncertain.contains(name) || !is_number(&global.value) || is_used_by_host(context, name, global.span) {
        return None;
    }
    let alias =
        module.imports.aliases_of("triton.language").into_iter().find(|alias| is_imported(context, alias, global))?;
    let (_, value) = text[global.span.start..global.span.end].split_once('=')?;
    let value = value.trim();
    let fixed = format!("{name} = {alias}.constexpr({value})");
    let fits = fix_edits::is_plain(value) && !value.starts_with('=');
    fits.then(|| fix_edits::replace(format!("Define `{fixed}`"), global.span, fixed))
}

fn is_number(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) => true,
        ExprKind::Unary { operand, .. } => is_number(operand),
        ExprKind::Binary { left, right, .. } => is_number(left) && is_number(right),
        _ => false,
    }
}

/// Whether the name occurs outside of kernels and of its definition, be it in a string.
fn is_used_by_host(context: &RuleContext<'_>, name: &str, definition: Span) -> bool {
    let bodies = context.module.kernels.iter().filter_map(|kernel| {
        let first = kernel.body.first()?;
        Some(Span::new(first.span.start, kernel.def_span.end))
    });
    let inside: Vec<Span> = bodies.chain([definition]).collect();
    let text = context.source.text();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        let span = Span::new(at, at + name.len());
        !is_word(text[..at].chars().next_back())
            && !is_word(text[span.end..].chars().next())
            && !inside.iter().any(|place| place.contains(span))
    })
}

fn statements(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..root.named_child_count()).filter_map(move |at| root.named_child(at as u32))
}

/// Whether the top level imports the alias above the definition.
fn is_imported(context: &RuleContext<'_>, alias: &str, global: &Global) -> bool {
    context
        .source
        .roots()
        .take_while(|root| root.start_byte() < global.span.start)
        .flat_map(statements)
        .take_while(|node| node.start_byte() < global.span.start)
        .filter(|node| node.kind().starts_with("import_"))
        .any(|node| {
            let import = &context.source.text()[node.byte_range()];
            import.contains("triton")
                && import.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == alias)
        })
}
