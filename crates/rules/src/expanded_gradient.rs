//! H021: a gradient that is addressed as if its strides were known.

use model::analysis::launches::{ArgumentSource, passed};
use model::host::{HostNumber, HostTensor, TensorOrigin};
use model::kernel::Param;
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::{index, is_certain, lanes_in, row_steps};
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H021",
        name: "expanded-gradient",
        severity: Severity::Warning,
        summary: "an incoming gradient whose rows a kernel steps through by a fixed number",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds launches in the `backward` of a `torch.autograd.Function` that pass an incoming gradient, and a number for the stride by which the
kernel steps through it, or none of its strides.

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

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(grad, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, 2 * tl.load(grad + offsets, mask=mask), mask=mask)


class Double(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        result = torch.empty(grad.shape, dtype=grad.dtype, device=grad.device)
        n = grad.numel()
        double[(triton.cdiv(n, 1024),)](grad, result, n, BLOCK=1024)
        #                               ^^^^
        return result
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
When the gradient was made contiguous, also by a decorator (`@contiguous`), when the stride may be 0 and nothing else, and when the kernel
reads only its first element.

## Fix
Passes `do.contiguous()`, where the kernel gets none of its strides.

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
    let handed_on = handed_on(context);
    for known in context.launches() {
        for param in &known.kernel.params {
            let Some(tensor) = known.tensor(&param.name).filter(|tensor| !tensor.is_contiguous()) else { continue };
            let is_handed_on = || {
                let host = known.launch.host.and_then(|host| known.module.hosts.get(host));
                let is_given =
                    |name: &str| tensor.name.as_deref() == Some(name) && tensor.origin == TensorOrigin::Given;
                host.is_some_and(|host| handed_on.iter().any(|(of, name)| *of == host.span && is_given(name)))
            };
            if tensor.origin != TensorOrigin::Gradient && !is_handed_on() || is_decorated(context, &known) {
                continue;
            }
            let found = by_fixed_steps(&known, tensor, param);
            let found = if found.is_empty() { Vec::from_iter(without_strides(&known, tensor, param)) } else { found };
            for finding in found {
                if !seen.contains(&finding.span) && !context.is_for_other_compiler() {
                    seen.push(finding.span);
                    findings.push(finding);
                }
            }
        }
    }
}

/// The parameters of functions that get a gradient from a `backward`: the span of the function, and the name.
fn handed_on<'c>(context: &'c RuleContext<'_>) -> Vec<(Span, &'c str)> {
    let mut found = Vec::new();
    for run in context.runs() {
        for call in &run.calls {
            let mut named = context.module.hosts.iter().filter(|host| host.qualname == call.name);
            let (Some(host), None) = (named.next(), named.next()) else { continue };
            for ((value, _), param) in call.args.iter().zip(&host.params) {
                let gradient = value.tensor().map(|id| run.tensor(id));
                let is_any = gradient.is_some_and(|it| it.origin == TensorOrigin::Gradient && !it.is_contiguous());
                found.extend(is_any.then_some((host.span, param.as_str())));
            }
        }
    }
    found
}

/// The fixed numbers by which the kernel steps through a gradient.
fn by_fixed_steps(known: &AnalysedLaunch<'_, '_>, tensor: &HostTensor, param: &Param) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for step in row_steps(known.facts, &param.name).unwrap_or_default() {
        let number = known.number(step);
        let is_fixed = number.values().is_some_and(|values| values.iter().any(|value| *value != 0));
        let Some(argument) = known.argument(step).filter(|_| is_fixed && number != HostNumber::Known(0)) else {
            continue;
        };
        let message = format!(
            "`{0}` comes from autograd and may have any strides: the gradient of a sum is expanded, with stride 0. Pass \
             `{0}.stride(0)`, or make it contiguous",
            tensor.label()
        );
        found.push(
            Diagnostic::new(&RULE.declaration, argument.span, message)
                .with_related(param.name_span, "the kernel steps through it by this number"),
        );
    }
    found
}

/// A gradient of which the launch passes no stride, although the kernel reads more than its first element.
fn without_strides(known: &AnalysedLaunch<'_, '_>, tensor: &HostTensor, param: &Param) -> Option<Diagnostic> {
    let stride = format!("{}.stride(", tensor.label());
    let has_strides = known.kernel.params.iter().any(|other| {
        let is_unknown = passed(known.launch, known.kernel, &other.name) == ArgumentSource::Unknown;
        is_unknown || known.number(&other.name).to_string().contains(&stride)
    });
    let read = known.facts.accesses.iter().find(|access| {
        let about = index(access).filter(|index| index.base.as_deref() == Some(param.name.as_str()));
        is_certain(access) && about.is_some_and(|index| !lanes_in(index).is_empty())
    })?;
    let argument = known.argument(&param.name)?;
    if has_strides {
        return None;
    }
    let message = format!(
        "`{0}` comes from autograd and may have any strides: the gradient of a sum is expanded, with stride 0. The kernel gets none of its \
         strides, so make it contiguous",
        tensor.label()
    );
    let found = Diagnostic::new(&RULE.declaration, argument.span, message)
        .with_related(read.span, "the kernel reads it as if it was contiguous");
    Some(match argument.as_name() {
        Some(name) => found.with_fix(
            format!("Pass `{name}.contiguous()`"),
            vec![Edit { span: argument.span, text: format!("{name}.contiguous()") }],
        ),
        None => found,
    })
}

/// Whether a decorator of the function may change its arguments: `@contiguous`.
fn is_decorated(context: &RuleContext<'_>, known: &AnalysedLaunch<'_, '_>) -> bool {
    const PLAIN: [&str; 3] = ["staticmethod", "once_differentiable", "custom_bwd"];
    let Some(host) = known.launch.host.and_then(|host| known.module.hosts.get(host)) else { return true };
    let before = context.source.text()[..host.span.start].lines().rev().map(str::trim);
    let lines = before.skip_while(|line| line.is_empty()).take_while(|line| line.starts_with('@'));
    lines.into_iter().any(|line| !PLAIN.iter().any(|plain| line.contains(plain)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    const KERNEL: &str = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef k(grad, x, n, s, BLOCK: tl.constexpr):\n    \
                          i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + i, tl.load(grad + i * s, mask=i < n), mask=i < n)\n\n\
                          @triton.jit\ndef first(grad, x, n, s, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    \
                          tl.store(x + i, tl.load(grad), mask=i < n)\n\n";

    /// How many arguments are found in a `backward` with this decorator and body.
    fn found(decorator: &str, body: &str) -> usize {
        let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
        let text = format!(
            "{KERNEL}class F(torch.autograd.Function):\n    @staticmethod\n{decorator}    def backward(ctx, grad):\n        \
             x = torch.empty(64)\n{body}"
        );
        messages(&text, "H021").len()
    }

    #[test]
    fn gradients_without_their_strides_are_found() {
        assert_eq!(found("", "k[(1,)](grad, x, 64, x.stride(0), BLOCK=64)"), 1);
        assert_eq!(found("    @once_differentiable\n", "k[(1,)](grad, x, 64, n, BLOCK=64)"), 1);
    }

    #[test]
    fn gradients_with_known_strides_are_not_flagged() {
        for body in [
            "k[(1,)](grad, x, 64, grad.stride(0), BLOCK=64)",
            "k[(1,)](grad.contiguous(), x, 64, 1, BLOCK=64)",
            "grad = grad.contiguous()\nk[(1,)](grad, x, 64, 1, BLOCK=64)",
            "first[(1,)](grad, x, 64, 1, BLOCK=64)",
            "k[(1,)](grad, x, *sizes, BLOCK=64)",
        ] {
            assert_eq!(found("", body), 0, "{body}");
        }
        assert_eq!(found("    @contiguous\n", "k[(1,)](grad, x, 64, x.stride(0), BLOCK=64)"), 0);
    }
}
