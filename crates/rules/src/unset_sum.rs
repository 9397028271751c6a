//! H017: a new tensor without values that a kernel reads or adds to.

use model::analysis::types::access::{AccessKind, MemoryAccess};
use model::host::TensorOrigin;
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::index;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H017",
        name: "unset-sum",
        severity: Severity::Warning,
        summary: "a tensor from `torch.empty` that a kernel adds to, or reads, before anything has set it",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds tensors made by `torch.empty` and its kin that nothing has written when a kernel is launched which only reads them, or only
adds to them with `tl.atomic_add`.

## Why is this bad?
What was in the memory before is in the result. Fresh memory is often zero, so tests pass, and values from earlier tensors
come back later.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out, tl.sum(value, axis=0))


def run(x):
    n = x.numel()
    out = torch.empty(1, device=x.device, dtype=torch.float32)
    #     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    total[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out, tl.sum(value, axis=0))


def run(x):
    n = x.numel()
    out = torch.zeros(1, device=x.device, dtype=torch.float32)
    total[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
```

## When it is silent
When the kernel also stores to the tensor, when it computes an address that is not followed, when another function got the tensor before,
and when the kernel is tuned with `reset_to_zero` or a hook.

## Fix
Replaces `empty` by `zeros`.

## Sources
[Triton-distributed#184](https://github.com/ByteDance-Seed/Triton-distributed/issues/184).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    if !context.file_mentions(&["empty"]) {
        return;
    }
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for param in &known.kernel.params {
            let Some(tensor) = known.tensor(&param.name) else { continue };
            let is_unset = tensor.origin == TensorOrigin::Unset && known.passed.unset.contains(&tensor.storage);
            let (Some(made), true) = (tensor.made, is_unset) else { continue };
            if seen.contains(&made) || is_prepared(context, &known) {
                continue;
            }
            let Some(access) = first_use(context, &known, &param.name) else { continue };
            if context.is_for_other_compiler() {
                return;
            }
            seen.push(made);
            findings.push(report(context, &known, tensor.label(), made, access));
        }
    }
}

/// Whether the tuner may set the tensor before each launch.
fn is_prepared(context: &RuleContext<'_>, known: &AnalysedLaunch<'_, '_>) -> bool {
    known.kernel.decorators.iter().any(|decorator| {
        let text = context.source.slice(decorator.expr.span);
        ["reset_to_zero", "restore_value", "hook"].iter().any(|word| text.contains(word))
    }) || known.launch.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name.contains("hook")))
}

/// An access that needs values, where the kernel certainly stores none.
fn first_use<'c>(context: &RuleContext<'_>, known: &AnalysedLaunch<'c, '_>, param: &str) -> Option<&'c MemoryAccess> {
    let accesses = &known.facts.accesses;
    // An access whose base is not followed may store to this tensor, and so may a function that gets it.
    let is_followed = accesses.iter().all(|access| index(access).is_some_and(|index| index.base.is_some()));
    if !is_followed || is_handed_on(context, known, param) {
        return None;
    }
    let own = || accesses.iter().filter(|access| index(access).is_some_and(|it| it.base.as_deref() == Some(param)));
    let sets = |access: &MemoryAccess| {
        access.kind == AccessKind::Store
            || access.kind == AccessKind::Atomic && matches!(access.function.as_str(), "atomic_xchg" | "atomic_cas")
    };
    if own().any(sets) {
        return None;
    }
    own().find(|access| !access.is_uncertain)
}

/// Whether the kernel uses the parameter anywhere except in sums that are addresses.
fn is_handed_on(context: &RuleContext<'_>, known: &AnalysedLaunch<'_, '_>, param: &str) -> bool {
    let mut handed = false;
    model::kernel::ast::walk_expressions(&known.kernel.body, &mut |expr| {
        if let Some(call) = expr.as_call()
            && context.module.language_member(known.kernel, &call.func).is_none()
        {
            handed |= call.args.iter().any(|arg| arg.value.mentions(param));
        }
    });
    handed
}

fn report(
    context: &RuleContext<'_>,
    known: &AnalysedLaunch<'_, '_>,
    tensor: &str,
    made: Span,
    access: &MemoryAccess,
) -> Diagnostic {
    let effect = if access.kind == AccessKind::Atomic { "only adds to it" } else { "only reads it" };
    let message = format!(
        "`{tensor}` has no values yet, and `{}` {effect}: what was in the memory before is in the result",
        known.kernel.name
    );
    let found = Diagnostic::new(&RULE.declaration, made, message).with_related(access.span, "here");
    let text = context.source.slice(made);
    match text.find("empty").filter(|_| access.kind == AccessKind::Atomic && !text.contains("empty_strided")) {
        Some(at) => {
            let span = Span::new(made.start + at, made.start + at + "empty".len());
            found.with_fix("Make it with `zeros`".to_owned(), vec![super::Edit { span, text: "zeros".to_owned() }])
        }
        None => found,
    }
}
