//! H013: a function changes a global that kernels are compiled with.

use model::kernel::ast::{StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity, scope};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H013",
        name: "changed-global",
        severity: Severity::Warning,
        summary: "a function that changes a global which a kernel is compiled with",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds functions that assign, under `global`, to a `tl.constexpr` of the module that a kernel of the same file reads.

## Why is this bad?
The value is compiled into the kernel. When it has changed since, the next launch raises
`RuntimeError: Global variable … has changed since we compiled this kernel`.

## Bad
```python
import triton
import triton.language as tl

SCALE = tl.constexpr(2.0)


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, SCALE * tl.load(x + offsets, mask=mask), mask=mask)


def set_scale(value):
    global SCALE
    SCALE = tl.constexpr(value)
  # ^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, factor * tl.load(x + offsets, mask=mask), mask=mask)
```

## When it is silent
About globals that are not `tl.constexpr`: Triton refuses most of those in kernels anyway.

## Sources
`JITFunction.run` in `triton/runtime/jit.py`, read in nine versions from 3.1.0 to 3.9.0.
[triton#7322](https://github.com/triton-lang/triton/issues/7322)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let (module, text) = (context.module, context.source.text());
    if !text.contains("global ") {
        return;
    }
    for global in &module.globals {
        let is_constexpr = global.value.as_call().is_some_and(|call| {
            module.imports.resolve(&call.func).is_some_and(|found| found.path == "triton.language.constexpr")
        });
        if !is_constexpr {
            continue;
        }
        let declared = scope::places_of(context.source, &global.name).filter(|at| {
            let line = text[..*at].rsplit('\n').next().unwrap_or_default();
            line.trim_start().starts_with("global ")
        });
        let declared: Vec<usize> = declared.collect();
        let reader = || module.kernels.iter().find(|kernel| reads(kernel, &global.name));
        let Some(kernel) = (if declared.is_empty() { None } else { reader() }) else { continue };
        for at in declared {
            findings.extend(assigned(context, at, &global.name).map(|span| {
                let message = format!(
                    "`{}` is compiled with `{}`: the next launch after this change raises a `RuntimeError`",
                    kernel.name, global.name
                );
                Diagnostic::new(&RULE.declaration, span, message).with_related(kernel.name_span, "the kernel")
            }));
        }
    }
}

fn reads(kernel: &Kernel, name: &str) -> bool {
    let mut found = false;
    if !kernel.locals.contains(name) {
        walk_expressions(&kernel.body, &mut |expr| found |= expr.as_name() == Some(name));
    }
    found
}

/// Where the function around `at` first assigns to `name`.
fn assigned(context: &RuleContext<'_>, at: usize, name: &str) -> Option<Span> {
    let function = Module::function_around(context.source, at)?;
    let mut found = None;
    walk_statements(&function.body, &mut |stmt| {
        let target = match &stmt.kind {
            StmtKind::Assign { targets, value: Some(_), .. } => {
                targets.iter().find(|target| target.as_name() == Some(name))
            }
            StmtKind::AugAssign { target, .. } => Some(target).filter(|target| target.as_name() == Some(name)),
            _ => None,
        };
        found = found.or(target.map(|target| target.span));
    });
    found
}
