//! H007: a kernel called without a grid.

use std::collections::HashMap;

use tree_sitter::Node;

use model::kernel::{Decorator, Kernel};
use model::syntax::{Span, field, node_span};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity, scope};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H007",
        name: "plain-call",
        severity: Severity::Warning,
        summary: "a kernel that Python code calls without a grid",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `kernel(…)` in Python code, where a launch is `kernel[grid](…)`.

## Why is this bad?
The call raises `RuntimeError: Cannot call @triton.jit'd outside of the scope of a kernel`, or a `TypeError` for a kernel
under `@triton.autotune` or `@triton.heuristics`.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, 0.0, mask=offsets < n)


def zero(out):
    fill(out, out.numel(), BLOCK=1024)
  # ^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, 0.0, mask=offsets < n)


def zero(out):
    n = out.numel()
    fill[(triton.cdiv(n, 1024),)](out, n, BLOCK=1024)
```

## When it is silent
About kernels with further decorators, which may make them callable, and inside functions that have a decorator, use
`triton.language` or are handed on: they may be compiled themselves.

## Sources
`JITFunction.__call__` in `triton/runtime/jit.py`, read in nine versions from 3.1.0 to 3.9.0.
[triton#5704](https://github.com/triton-lang/triton/issues/5704)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let is_direct = |decorator: &Decorator| {
        let called = decorator.expr.as_call().map_or(&decorator.expr, |call| &call.func);
        context.module.imports.resolve(called).is_some_and(|found| found.direct)
    };
    let kernels: HashMap<&str, &Kernel> = context
        .module
        .kernels
        .iter()
        .filter(|kernel| kernel.plain && !kernel.nested && !kernel.has_error && kernel.decorators.iter().all(is_direct))
        .map(|kernel| (kernel.name.as_str(), kernel))
        .collect();
    let text = context.source.text();
    if kernels.is_empty() {
        return;
    }
    for open in memchr::memchr_iter(b'(', text.as_bytes()) {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let start =
            text[..open].rfind(|c| !word(c)).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let Some(kernel) = kernels.get(&text[start..open]) else { continue };
        let Some(node) = context.source.node_at(Span::new(start, open)) else { continue };
        let is_called = node.kind() == "identifier"
            && node.parent().is_some_and(|call| call.kind() == "call" && field(call, "function") == Some(node));
        if !is_called || !is_python(context, node) || context.module.kernel(&kernel.name).is_none() {
            continue;
        }
        // Near a syntax error, a decorator may be separate from its function.
        let scopes = scope::scopes_of(context.source, node_span(node));
        if !context.source.has_error()
            && scope::is_bound_once(context.source, kernel)
            && !scope::is_hidden(context.source, kernel, &scopes)
        {
            let name = &kernel.name;
            let message = format!(
                "`{name}` is a kernel: Python code launches it with a grid, `{name}[grid](…)`; this call fails"
            );
            findings.push(
                Diagnostic::new(&RULE.declaration, node_span(node), message)
                    .with_related(kernel.name_span, "the kernel"),
            );
        }
    }
}

/// Whether Python itself runs the code here: no function around it has a decorator, mentions `triton.language` or is
/// passed on, such as to `triton.jit`.
fn is_python(context: &RuleContext<'_>, node: Node<'_>) -> bool {
    let text = context.source.text();
    let languages = context.module.imports.aliases_of("triton.language");
    let mut around =
        std::iter::successors(node.parent(), Node::parent).filter(|node| node.kind() == "function_definition");
    around.all(|function| {
        let decorated = function.parent().is_some_and(|parent| parent.kind() == "decorated_definition");
        let own = context.source.slice(node_span(function));
        let is_kernel = languages.iter().any(|language| own.contains(&format!("{language}.")));
        let name = field(function, "name").map(|name| context.source.slice(node_span(name)));
        let only_called = |name| {
            scope::places_of(context.source, name).all(|at| {
                let after = &text[at + name.len()..];
                after.trim_start().starts_with('(') || text[..at].ends_with('.') || after.starts_with('.')
            })
        };
        !decorated && !is_kernel && name.is_some_and(only_called)
    })
}
