//! The request `textDocument/hover`: texts for a rule's code, a member of `triton.language`, or a kernel.

use std::fmt::Write as _;

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use ide::{describe, resources, types};
use model::analysis::resources::Resources;
use model::api::{Lookup, Member, TritonTarget};
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::kernel::{Kernel, Module, QualifiedName};
use model::syntax::{Encoding, Span};
use rules::Rule;
use rules::learned::LearnedRules;

use crate::server::owner::Owner;
use crate::server::suppression;
use crate::server::unit::Unit;

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, params: lsp::HoverParams) -> Result<Option<lsp::Hover>> {
    Ok(hover(owner, &params.text_document_position_params))
}

fn hover(owner: &mut Owner, at: &lsp::TextDocumentPositionParams) -> Option<lsp::Hover> {
    owner.checked(&at.text_document.uri)?;
    let (unit, offset) = owner.place(at)?;
    let (text, span) = describe_at(&unit, offset, owner.resolved(&unit).target, &owner.memory.rules)?;
    let (_, range) = unit.locate(span, owner.encoding)?;
    Some(lsp::Hover { contents: contents(text, owner.capabilities.markdown), range: Some(range) })
}

/// The hover at byte `offset`, with the span that it describes.
fn describe_at(unit: &Unit, offset: usize, target: TritonTarget, memory: &LearnedRules) -> Option<(String, Span)> {
    if let Some((code, span)) = suppression::code_at(&unit.source, offset) {
        return Some((page_of(code, memory)?, span));
    }
    let known = kernel_at(unit, offset)
        .or_else(|| imported_at(&unit.module, offset))
        .or_else(|| member_at(unit, offset, target));
    let typed = types::describe_at(&unit.module, unit.source.text(), target, offset);
    let mut findings: Vec<_> = unit.findings().iter().filter(|finding| finding.span.touches(offset)).collect();
    findings.dedup_by_key(|finding| finding.code);
    let span = known.as_ref().or(typed.as_ref()).map(|(_, span)| *span).or_else(|| Some(findings.first()?.span))?;
    let pages = findings.iter().filter_map(|finding| page_of(finding.code, memory));
    let sections: Vec<String> = known.into_iter().chain(typed).map(|(text, _)| text).chain(pages).collect();
    Some((sections.join("\n\n---\n\n"), span))
}

/// The contents of a hover, as Markdown where the client renders it.
fn contents(text: String, is_markdown: bool) -> lsp::Contents {
    let kind = if is_markdown { lsp::MarkupKind::Markdown } else { lsp::MarkupKind::PlainText };
    lsp::Contents::MarkupContent(lsp::MarkupContent { kind, value: text })
}

/// The page of the rule with this code, built-in or learned.
fn page_of(code: &str, memory: &LearnedRules) -> Option<String> {
    rules::find(code).map(page).or_else(|| Some(memory.find(code)?.page()))
}

/// The text of a rule's page, with its web address.
fn page(rule: &Rule) -> String {
    let url = rule.declaration.url();
    format!(
        "{}

[{url}]({url})",
        rule.declaration.page().trim_end()
    )
}

/// The kernel whose name is at byte `offset`: where it is defined, launched or called.
fn kernel_at(unit: &Unit, offset: usize) -> Option<(String, Span)> {
    let module = &unit.module;
    let defined = module.kernels.iter().find(|kernel| kernel.name_span.touches(offset));
    if let Some(kernel) = defined {
        return Some((about_kernel(kernel, unit), kernel.name_span));
    }
    let name = innermost(module, offset, &mut |expr| matches!(&expr.kind, ExprKind::Name(_)))?;
    let kernel = module.kernel(name.0.as_name()?)?;
    let hidden = name.1.is_some_and(|inside| inside.locals.contains(&kernel.name));
    (!hidden).then(|| (about_kernel(kernel, unit), name.0.span))
}

/// The kernel of another file whose name is at byte `offset`.
fn imported_at(module: &Module, offset: usize) -> Option<(String, Span)> {
    let (expr, inside) = innermost(module, offset, &mut is_path(offset))?;
    let (file, name) = module.imported(inside, expr)?;
    let params = describe::source_params(file.kernel(name)?, &file.text);
    let file = file.path.file_name()?.to_string_lossy();
    Some((format!("```python\n@triton.jit\ndef {name}({params})\n```\n\nTriton function of `{file}`"), expr.span))
}

/// The member of a Triton module whose name is at byte `offset`.
fn member_at(unit: &Unit, offset: usize, target: TritonTarget) -> Option<(String, Span)> {
    let module = &unit.module;
    let (expr, kernel) = innermost(module, offset, &mut is_path(offset))?;
    let QualifiedName { path, .. } = match kernel {
        Some(kernel) => module.resolve_in(kernel, expr)?,
        None => module.imports.resolve(expr)?,
    };
    let Lookup::Found(member) = target.lookup(&path) else { return None };
    Some((signature(&path, member, target), expr.span))
}

/// Whether an expression is a name, or an attribute whose name is at byte `offset`.
fn is_path(offset: usize) -> impl Fn(&Expr) -> bool {
    move |expr| match &expr.kind {
        ExprKind::Name(_) => true,
        ExprKind::Attribute { name_span, .. } => name_span.touches(offset),
        _ => false,
    }
}

/// The innermost expression around byte `offset` that is `wanted`, and the kernel that contains it.
fn innermost<'a>(
    module: &'a Module,
    offset: usize,
    wanted: &mut dyn FnMut(&Expr) -> bool,
) -> Option<(&'a Expr, Option<&'a Kernel>)> {
    let mut found: Option<(&'a Expr, Option<&'a Kernel>)> = None;
    let mut look = |expr: &'a Expr, kernel: Option<&'a Kernel>| {
        if expr.span.touches(offset) && wanted(expr) {
            found = Some((expr, kernel));
        }
    };
    for kernel in module.kernels.iter().filter(|kernel| kernel.span.touches(offset)) {
        let heads = kernel
            .decorators
            .iter()
            .map(|decorator| &decorator.expr)
            .chain(kernel.params.iter().flat_map(|param| param.annotation.iter().chain(&param.default)));
        heads.for_each(|expr| expr.walk(&mut |expr| look(expr, None)));
        walk_expressions(&kernel.body, &mut |expr| look(expr, Some(kernel)));
    }
    for host in module.hosts.iter().filter(|host| host.span.touches(offset)) {
        walk_expressions(&host.body, &mut |expr| look(expr, None));
    }
    for launch in module.launches.iter().filter(|launch| launch.span.touches(offset)) {
        let arguments = launch.args.iter().map(|arg| &arg.value);
        [&launch.target, &launch.grid]
            .into_iter()
            .chain(arguments)
            .for_each(|expr| expr.walk(&mut |expr| look(expr, None)));
    }
    for global in module.globals.iter().filter(|global| global.span.touches(offset)) {
        global.value.walk(&mut |expr| look(expr, None));
    }
    found
}

fn signature(path: &str, member: &Member, target: TritonTarget) -> String {
    let (code, what) = (describe::signature(path, member), describe::kind(member));
    format!("```python\n{code}\n```\n\n{what} · {}", describe::version(target))
}

fn about_kernel(kernel: &Kernel, unit: &Unit) -> String {
    let params = |constexpr: bool| {
        let names =
            kernel.params.iter().filter(|param| param.constexpr == constexpr).map(|param| format!("`{}`", param.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let mut out = format!(
        "```python\n@triton.jit\ndef {}({})\n```\n",
        kernel.name,
        describe::source_params(kernel, unit.source.text())
    );
    for (title, names) in [("Runtime parameters", params(false)), ("Constexpr parameters", params(true))] {
        if !names.is_empty() {
            let _ = write!(out, "\n- {title}: {names}");
        }
    }
    if let Some(autotune) = &kernel.autotune {
        let configs = match &autotune.configs {
            Some(configs) => count(configs.len(), "configuration"),
            None => "configurations made at run time".to_owned(),
        };
        let key = autotune.key.as_ref().map_or_else(String::new, |key| format!(", key `{}`", key.join("`, `")));
        let _ = write!(out, "\n- Autotuned: {configs}{key}");
    }
    if let Some(names) = kernel.heuristics.as_ref().filter(|names| !names.is_empty()) {
        let _ = write!(out, "\n- Set by heuristics: `{}`", names.join("`, `"));
    }
    let lines = unit.module.launches_of(&kernel.name).filter_map(|launch| {
        let (_, range) = unit.locate(launch.span, Encoding::Utf8)?;
        Some((range.start.line + 1).to_string())
    });
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        let place = if unit.is_notebook { "in this notebook" } else { "in this file" };
        let _ = write!(out, "\n- Launched {} {place}: line {}", times(lines.len()), lines.join(", "));
    }
    if let Some(resources) = Resources::of(kernel) {
        let _ = write!(out, "\n\n{}", resources::table(&resources));
    }
    out
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}
