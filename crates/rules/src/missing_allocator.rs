//! H029: descriptors that a kernel makes, without an allocator.

use model::kernel::ast::{Expr, walk_expressions};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H029",
        name: "missing-allocator",
        severity: Severity::Hint,
        summary: "a kernel that makes tensor descriptors is launched, and the file sets no allocator",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches of kernels that call `tl.make_tensor_descriptor`, in files that never call `triton.set_allocator`.

## Why is this bad?
Such a kernel needs memory of the device for its descriptors, which Triton asks an allocator for. Without one the launch fails: "Kernel requires a runtime
memory allocation, but no allocator was set". It is a hint because another file may set it.

## Bad
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    target = tl.make_tensor_descriptor(y, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    target.store(at, source.load(at) * 2)


def run(x, y):
    m, n = x.shape
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    double[grid](x, y, m, n, M=64, N=64)
  # ^^^^^^
```

## Good
```python triton=3.6
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    target = tl.make_tensor_descriptor(y, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    target.store(at, source.load(at) * 2)


def memory(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


def run(x, y):
    m, n = x.shape
    triton.set_allocator(memory)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    double[grid](x, y, m, n, M=64, N=64)
```

## When it is silent
When the file speaks of an allocator anywhere.

## Sources
[verl#4676](https://github.com/verl-project/verl/issues/4676).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    if !context.file_mentions(&["make_tensor_descriptor"]) || context.file_mentions(&["allocator"]) {
        return;
    }
    let mut seen = Vec::new();
    for known in context.launches() {
        let made = context.with_helpers(known.kernel).into_iter().find_map(|kernel| {
            let mut found: Option<&Expr> = None;
            walk_expressions(&kernel.body, &mut |expr| {
                let is_made = expr.as_call().is_some_and(|call| {
                    context.module.language_member(kernel, &call.func).as_deref() == Some("make_tensor_descriptor")
                });
                found = found.or(Some(expr).filter(|_| is_made));
            });
            found
        });
        let Some(made) = made.filter(|_| !seen.contains(&known.kernel.span)) else { continue };
        if context.is_for_other_compiler() {
            return;
        }
        seen.push(known.kernel.span);
        let message = format!(
            "`{}` makes tensor descriptors, which need memory: call `triton.set_allocator` before the launch, unless another file does",
            known.kernel.name
        );
        findings.push(
            Diagnostic::new(&RULE.declaration, known.launch.target.span, message)
                .with_related(made.span, "a descriptor is made here"),
        );
    }
}
