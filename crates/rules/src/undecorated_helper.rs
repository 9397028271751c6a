//! H006: a kernel that calls a function without `@triton.jit`.

use std::collections::{HashMap, HashSet};

use model::analysis::flow::live;
use model::kernel::ast::Expr;
use model::kernel::{Kernel, PlainFunction};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity, scope};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H006",
        name: "undecorated-helper",
        severity: Severity::Error,
        summary: "a kernel that calls a function without `@triton.jit`",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds calls in kernels of a function that the same file defines without a decorator.

## Why is this bad?
Triton compiles what a kernel calls only when it is under `@triton.jit` (or `@triton.constexpr_function`, which it runs at
compile time). A plain function is refused: `Unsupported function referenced`, `Cannot access global variable`, or
`Decorate it with @triton.jit to fix this`, depending on the version.

## Bad
```python
import triton
import triton.language as tl


def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.70710678))


@triton.jit
def forward(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, gelu(tl.load(x + offsets, mask=mask)), mask=mask)
    #                     ^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.70710678))


@triton.jit
def forward(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, gelu(tl.load(x + offsets, mask=mask)), mask=mask)
```

## When it is silent
About functions that other code uses too or that the file wraps later, and about those with any decorator.

## Fix
Puts `@triton.jit` above the function.

## Sources
Re-executed on nine versions from 3.1.0 to 3.9.0, which all refuse it.
[ComfyUI-KJNodes#714](https://github.com/kijai/ComfyUI-KJNodes/issues/714)
"#,
    },
    check,
};

/// Names that Triton resolves itself, whatever the file binds them to.
const BUILTIN: [&str; 12] =
    ["bool", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "print", "range"];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(found(context));
}

/// Whether this rule reports the name at `span`.
pub(super) fn is_found_at(context: &RuleContext<'_>, span: Span) -> bool {
    found(context).iter().any(|known| known.span == span)
}

fn found(context: &RuleContext<'_>) -> Vec<Diagnostic> {
    let module = context.module;
    let mut findings = Vec::new();
    if module.functions.is_empty() {
        return findings;
    }
    let mut certain: HashMap<&str, bool> = HashMap::new();
    for kernel in
        module.kernels.iter().filter(|kernel| !kernel.has_error && !kernel.nested && is_triton(context, kernel))
    {
        let mut called: Vec<&Expr> = Vec::new();
        live(&kernel.body, &mut |stmt| {
            for expr in stmt.exprs() {
                expr.walk(&mut |inner| called.extend(inner.as_call().map(|call| &call.func)));
            }
        });
        for func in called {
            let Some(name) = func.as_name().filter(|name| !kernel.locals.contains(*name) && !BUILTIN.contains(name))
            else {
                continue;
            };
            let Some(function) = module.function(name) else { continue };
            let is_certain = || is_only_called(context, function) && scope::name_is_bound_once(context.source, name);
            if *certain.entry(name).or_insert_with(is_certain) {
                findings.push(report(context, func, function));
            }
        }
    }
    findings
}

/// Whether Triton itself compiles the kernel: the `triton.jit` of another module may use another compiler.
fn is_triton(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    kernel.decorators.iter().any(|decorator| {
        let called = decorator.expr.as_call().map_or(&decorator.expr, |call| &call.func);
        context.module.imports.resolve(called).is_some_and(|found| found.direct && found.path.ends_with("jit"))
    })
}

/// Whether all uses of the function are calls in kernels or in functions of the same kind.
fn is_only_called(context: &RuleContext<'_>, function: &PlainFunction) -> bool {
    let module = context.module;
    let compiled: HashSet<&str> = module.called_in_kernels().iter().map(String::as_str).collect();
    let text = context.source.text();
    scope::places_of(context.source, &function.name).all(|at| {
        let inside = |span: Span| span.start <= at && at < span.end;
        at == function.name_span.start
            || (text[at + function.name.len()..].starts_with('(')
                && (module.kernels.iter().any(|kernel| inside(kernel.span))
                    || module
                        .functions
                        .iter()
                        .any(|other| inside(other.span) && compiled.contains(other.name.as_str()))))
    })
}

fn report(context: &RuleContext<'_>, func: &Expr, function: &PlainFunction) -> Diagnostic {
    let name = &function.name;
    let message =
        format!("`{name}` is called in a kernel, but is not under `@triton.jit`: Triton refuses to compile it");
    let found = Diagnostic::new(&RULE.declaration, func.span, message).with_related(function.name_span, "defined here");
    let imports = &context.module.imports;
    let jit = match imports.aliases_of("triton").first() {
        Some(triton) => format!("@{triton}.jit\n"),
        None => match imports.aliases_of("triton.jit").first() {
            Some(jit) => format!("@{jit}\n"),
            None => return found,
        },
    };
    let at = function.span.start;
    found
        .with_fix(format!("Put `{}` above `{name}`", jit.trim_end()), vec![Edit { span: Span::new(at, at), text: jit }])
}
