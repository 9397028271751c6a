//! H022: a slice of columns for a kernel that takes the width as the distance of rows.

use model::host::{HostCall, HostNumber, HostRun, HostTensor, Layout};
use model::kernel::{HostFunction, Module};
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::row_steps;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H022",
        name: "sliced-rows",
        severity: Severity::Warning,
        summary: "a slice of columns for a kernel that steps from row to row by the width of the tensor",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds tensors like `x[:, :n]` that reach a launch, also through a function of the file, whose kernel steps from row to row by
`x.shape[1]`.

## Why is this bad?
The rows of a slice are as far apart as those of the whole tensor. All rows but the first are read and written in the wrong place.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    tl.store(x + row * n + columns, 2 * tl.load(x + row * n + columns, mask=mask), mask=mask)


def run(x):
    rows, n = x.shape
    double[(rows,)](x, n, BLOCK=triton.next_power_of_2(n))
    return x


def sample(hidden, weight, vocabulary):
    logits = hidden @ weight
    logits = logits[:, :vocabulary]
    return run(logits)
    #          ^^^^^^
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    tl.store(x + row * stride + columns, 2 * tl.load(x + row * stride + columns, mask=mask), mask=mask)


def run(x):
    rows, n = x.shape
    double[(rows,)](x, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return x


def sample(hidden, weight, vocabulary):
    logits = hidden @ weight
    logits = logits[:, :vocabulary]
    return run(logits)
```

## Sources
[vllm#42684](https://github.com/vllm-project/vllm/issues/42684), [unsloth#10713](https://github.com/unslothai/unsloth/issues/10713).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    // `x[:, :n]`
    if !text.contains(", :") && !text.contains(",:") {
        return;
    }
    let mut dense: Vec<(&HostFunction, usize)> = Vec::new();
    for known in context.launches() {
        for param in &known.kernel.params {
            let Some(tensor) = known.tensor(&param.name) else { continue };
            if !steps_by_width(&known, &param.name, tensor) {
                continue;
            }
            if is_sliced(tensor) {
                if let Some(argument) = known.argument(&param.name) {
                    findings.push(report(argument.span, tensor.label(), known.launch.args_span));
                }
            } else if let Some(host) = known.launch.host.and_then(|host| context.module.hosts.get(host))
                && let Some(at) = host.params.iter().position(|name| tensor.name.as_deref() == Some(name))
                && !dense.contains(&(host, at))
            {
                dense.push((host, at));
            }
        }
    }
    if !dense.is_empty() && !context.is_for_other_compiler() {
        through_calls(context, &dense, findings);
    }
}

/// Whether the kernel steps through the rows of a tensor by the size of its last axis.
fn steps_by_width(known: &AnalysedLaunch<'_, '_>, param: &str, tensor: &HostTensor) -> bool {
    let Some(width) = tensor.shape.as_ref().filter(|shape| shape.len() > 1).and_then(|shape| shape.last()) else {
        return false;
    };
    if tensor.is_contiguous() || *width == HostNumber::Unknown {
        return false;
    }
    let steps = row_steps(known.facts, param).unwrap_or_default();
    steps.into_iter().any(|step| known.number(step).is(width))
}

fn is_sliced(tensor: &HostTensor) -> bool {
    let last = tensor.shape.as_ref().map_or(0, Vec::len).wrapping_sub(1);
    matches!(&tensor.layout, Layout::Sliced { axis, .. } if *axis == last)
}

/// Slices that other functions of the file pass for parameters whose rows must lie without gaps.
fn through_calls(context: &RuleContext<'_>, dense: &[(&HostFunction, usize)], findings: &mut Findings<'_>) {
    for caller in callers(context, dense) {
        let run = HostRun::of(context.module, context.source.text(), &caller);
        for call in &run.calls {
            let Some((host, at)) = dense.iter().find(|(host, at)| is_call_of(call, host, *at)) else { continue };
            let tensor = call.args[*at].0.tensor().map(|id| run.tensor(id));
            if let Some(tensor) = tensor.filter(|tensor| is_sliced(tensor)) {
                findings.push(report(call.args[*at].1, tensor.label(), host.name_span));
            }
        }
    }
}

fn is_call_of(call: &HostCall, host: &HostFunction, at: usize) -> bool {
    call.name == host.name && call.args.len() > at
}

/// The functions that call one of `dense` by name.
fn callers(context: &RuleContext<'_>, dense: &[(&HostFunction, usize)]) -> Vec<HostFunction> {
    let text = context.source.text();
    let mut found: Vec<HostFunction> = Vec::new();
    for (host, _) in dense {
        let called = format!("{}(", host.name);
        for (at, _) in text.match_indices(&called) {
            let is_definition = text[..at].ends_with("def ");
            if is_definition || found.iter().any(|known| known.span.touches(at)) {
                continue;
            }
            found.extend(Module::function_around(context.source, at).filter(|function| function.span != host.span));
        }
    }
    found
}

fn report(argument: Span, tensor: &str, place: Span) -> Diagnostic {
    let message = format!(
        "`{tensor}` is a slice of columns: its rows are as far apart as in the whole tensor, and the kernel takes its width for that \
         distance; pass the stride to the kernel, or a contiguous tensor"
    );
    Diagnostic::new(&RULE.declaration, argument, message).with_related(place, "the width is passed on here")
}
