//! H021: a gradient that is addressed as if its strides were known.

use model::host::{HostNumber, TensorOrigin};
use model::syntax::Span;

use super::memory_accesses::row_steps;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H021",
        name: "expanded-gradient",
        severity: Severity::Warning,
        summary: "an incoming gradient whose rows a kernel steps through by a fixed number",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches in the `backward` of a `torch.autograd.Function` that pass an incoming gradient, and a number for the stride by which the
kernel steps through it.

## Why is this bad?
Autograd hands on gradients of any layout. The gradient of `loss.sum()` is one element that is expanded: all its strides
are 0. With a stride of 1 the kernel reads behind it.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, grad, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    factor = tl.load(grad + row * stride)
    offsets = row * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(x + offsets, factor * tl.load(x + offsets, mask=mask), mask=mask)


class Loss(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        rows, n = x.shape
        scale[(rows,)](x, grad, 1, n, BLOCK=triton.next_power_of_2(n))
        #                       ^
        return x
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, grad, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    factor = tl.load(grad + row * stride)
    offsets = row * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(x + offsets, factor * tl.load(x + offsets, mask=mask), mask=mask)


class Loss(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        rows, n = x.shape
        scale[(rows,)](x, grad, grad.stride(0), n, BLOCK=triton.next_power_of_2(n))
        return x
```

## When it is silent
When the gradient was made contiguous, and when the stride may be 0 and nothing else.

## Sources
[TransformerEngine#623](https://github.com/ROCm/TransformerEngine/pull/623).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    if !context.file_mentions(&["def backward"]) {
        return;
    }
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for param in &known.kernel.params {
            let Some(tensor) = known.tensor(&param.name).filter(|tensor| tensor.origin == TensorOrigin::Gradient)
            else {
                continue;
            };
            if tensor.is_contiguous() {
                continue;
            }
            for step in row_steps(known.facts, &param.name).unwrap_or_default() {
                let number = known.number(step);
                let is_fixed = number.values().is_some_and(|values| values.iter().any(|value| *value != 0));
                let Some(argument) = known.argument(step).filter(|_| is_fixed) else { continue };
                let is_known = seen.contains(&argument.span) || number == HostNumber::Known(0);
                if is_known || context.is_for_other_compiler() {
                    continue;
                }
                seen.push(argument.span);
                let message = format!(
                    "`{0}` comes from autograd and may have any strides: the gradient of a sum is expanded, with stride 0. Pass \
                     `{0}.stride(0)`, or make it contiguous",
                    tensor.label()
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, argument.span, message)
                        .with_related(param.name_span, "the kernel steps through it by this number"),
                );
            }
        }
    }
}
