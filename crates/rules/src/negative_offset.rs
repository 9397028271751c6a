//! M005: an access before the start of its tensor.

use model::analysis::launches::{ArgumentSource, passed};
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{Mask, MemoryAccess};
use model::analysis::types::index::IndexComparison;
use model::kernel::ast::{ExprKind, walk_expressions};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::memory_accesses::{at_first, call_at, index, is_certain, kernel_around, report, upper_bound, verb};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M005",
        name: "negative-offset",
        severity: Severity::Warning,
        summary: "an access whose first lane of the first program certainly lies in front of the tensor",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds accesses whose offset from a parameter is negative in the first program, in the first lane and the first iteration of the
loops around, and that no mask keeps from it.

## Why is this bad?
The access reads or writes in front of the tensor: memory that belongs to something else, or is not allocated. `tl.where` does not help: both of its
sides are evaluated before it chooses.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def differences(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    here = tl.load(x + offsets, mask=mask)
    before = tl.where(offsets > 0, tl.load(x + offsets - 1, mask=mask), 0.0)
    #                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, here - before, mask=mask)


def run(x, y):
    n = x.numel()
    differences[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

The first offset is 0, so this mask lets it through:

```python
import triton
import triton.language as tl


@triton.jit
def differences(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x + offsets - 1, mask=(offsets >= 0) & (offsets < n), other=0.0)
    #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, before, mask=offsets < n)


def run(x, y):
    n = x.numel()
    differences[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def differences(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    here = tl.load(x + offsets, mask=mask)
    before = tl.load(x + offsets - 1, mask=mask & (offsets > 0), other=0.0)
    tl.store(y + offsets, here - before, mask=mask)


def run(x, y):
    n = x.numel()
    differences[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it is silent
When a branch or an early `return` is before the access, when a part of the mask is not followed, and when a launch passes a
part of a tensor (`x[1:]`).

## Sources
[vllm-ascend#16275](https://github.com/vllm-project/vllm-ascend/issues/16275),
[vllm-ascend#14902](https://github.com/vllm-project/vllm-ascend/issues/14902).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    report(
        context,
        findings,
        |kernel, facts, access| {
            if is_certain(access) { look(context, kernel, facts, access) } else { None }
        },
    );
}

fn look(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    access: &MemoryAccess,
) -> Option<Diagnostic> {
    let index = index(access)?;
    let base = index.base.as_deref()?;
    let offset = at_first(facts, &index.poly).filter(|offset| *offset < 0)?;
    let runs = access.loops.iter().all(|id| facts.loops.get(*id as usize).is_some_and(|around| around.start.is_some()));
    if !runs || !is_let_through(facts, access) || is_passed_in_part(context.module, kernel, base) {
        return None;
    }
    let chosen = chosen_at(context, access.span);
    let advice = match (&access.mask, chosen) {
        (_, Some(_)) => "`tl.where` evaluates both sides, so it does not keep it from that; mask the access itself",
        (Mask::None, _) => "give it a mask",
        _ => "its mask lets that through",
    };
    let message = format!(
        "in the first program this {} `{base}` at offset {offset}, in front of the tensor: {advice}",
        verb(access)
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, access.span, message);
    if let Some(span) = chosen {
        diagnostic = diagnostic.with_related(span, "chosen here, after both sides are evaluated");
    }
    if let Some(mask) = call_at(context, access.span).and_then(|call| call.argument("mask", None)) {
        diagnostic = diagnostic.with_related(mask.span, "the mask");
    }
    Some(diagnostic)
}

/// Whether the mask certainly holds in the first lane of the first program. Sizes are assumed to be positive.
fn is_let_through(facts: &KernelAnalysis, access: &MemoryAccess) -> bool {
    let holds = |condition: &IndexComparison| {
        let (left, right) = (at_first(facts, &condition.left), at_first(facts, &condition.right));
        match (left, right) {
            (Some(left), Some(right)) => match condition.op.as_ref() {
                "<" => left < right,
                "<=" => left <= right,
                ">" => left > right,
                ">=" => left >= right,
                "==" => left == right,
                _ => left != right,
            },
            _ => upper_bound(condition).is_some_and(|(low, high)| {
                high.as_param().is_some() && at_first(facts, low).is_some_and(|low| low <= 0)
            }),
        }
    };
    match &access.mask {
        Mask::None => true,
        Mask::Unknown => false,
        Mask::Tile(tile) => {
            tile.about.guard().is_some_and(|guard| !guard.is_partial && guard.conditions.iter().all(holds))
        }
    }
}

/// Whether a launch passes a pointer that may point into the middle of a tensor.
fn is_passed_in_part(module: &Module, kernel: &Kernel, name: &str) -> bool {
    module.launches_of(&kernel.name).any(|launch| match passed(launch, kernel, name) {
        ArgumentSource::Argument(value) => !matches!(value.kind, ExprKind::Name(_) | ExprKind::Attribute { .. }),
        _ => false,
    })
}

/// The `tl.where` around a call.
fn chosen_at(context: &RuleContext<'_>, span: Span) -> Option<Span> {
    let kernel = kernel_around(context, span)?;
    let mut found = None;
    walk_expressions(&kernel.body, &mut |expr| {
        if expr.span.start <= span.start
            && span.end <= expr.span.end
            && let Some(call) = expr.as_call()
            && context.module.language_member(kernel, &call.func).as_deref() == Some("where")
        {
            found = Some(call.func.span);
        }
    });
    found
}
