//! H026: results that are written to a copy.

use model::analysis::types::access::AccessKind;
use model::host::TensorOrigin;
use model::kernel::HostFunction;
use model::kernel::ast::{StmtKind, walk_statements};
use model::syntax::Span;

use super::memory_accesses::index;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H026",
        name: "lost-copy",
        severity: Severity::Warning,
        summary: "a kernel writes to `y.flatten()` or `y.reshape(…)` of a tensor that may have gaps, and `y` is returned",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches that pass `y.flatten()` or `y.reshape(…)` to a kernel that writes to it, where `y` is new, may not be contiguous, and is returned.

## Why is this bad?
`flatten` and `reshape` copy a tensor that has no such view. `torch.empty_like` keeps the layout of its argument, so that a transposed input gives an output
whose copy is filled: what is returned was never written. `view` fails instead.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x.flatten(), y.flatten(), n, BLOCK=1024)
    #                                            ^^^^^^^^^^^
    return y
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x.flatten(), y.flatten(), n, BLOCK=1024)
    return y
```

## Sources
[FlagGems#4831](https://github.com/flagos-ai/FlagGems/issues/4831).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    if !context.file_mentions(&["flatten(", "reshape("]) {
        return;
    }
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for param in &known.kernel.params {
            let Some(tensor) = known.tensor(&param.name) else { continue };
            let Some(original) = tensor.copied_from.map(|id| known.run.tensor(id)) else { continue };
            let Some(name) = original.name.as_deref().filter(|_| original.origin == TensorOrigin::Unset) else {
                continue;
            };
            let is_written = known.facts.accesses.iter().any(|access| {
                access.kind == AccessKind::Store
                    && index(access).is_some_and(|index| index.base.as_deref() == Some(param.name.as_str()))
            });
            let host = known.launch.host.and_then(|host| context.module.hosts.get(host));
            let Some(argument) = known.argument(&param.name).filter(|argument| !seen.contains(&argument.span)) else {
                continue;
            };
            if !is_written || !host.is_some_and(|host| is_returned(host, name)) || context.is_for_other_compiler() {
                continue;
            }
            seen.push(argument.span);
            let label = original.label();
            let message = format!(
                "this is a copy where `{label}` is not contiguous: the kernel fills the copy, and `{label}` is returned as it was made; \
                 make it contiguous, or use `view`"
            );
            let found = Diagnostic::new(&RULE.declaration, argument.span, message);
            findings.push(match original.made {
                Some(made) => found.with_related(made, "this keeps the layout of its argument"),
                None => found,
            });
        }
    }
}

fn is_returned(host: &HostFunction, name: &str) -> bool {
    let mut found = false;
    walk_statements(&host.body, &mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Return(Some(value)) if value.mentions(name));
    });
    found
}
