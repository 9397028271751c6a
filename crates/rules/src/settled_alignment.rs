//! H019: a test of alignment whose outcome is always the same.

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H019",
        name: "settled-alignment",
        severity: Severity::Warning,
        summary: "a test whether a stride is a multiple of a number that never holds, because the stride is always 1",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `x.stride(-1) % 16 == 0` and the like where `x` is certainly contiguous, so that the stride is 1 and the test fails for
every call.

## Why is this bad?
What depends on the test (a hint for the compiler, a faster kernel) is never used. Meant is most likely the stride of the rows.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, stride, n, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    if ALIGNED:
        stride = tl.multiple_of(stride, 16)
    offsets = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    x = x.contiguous()
    rows, n = x.shape
    y = torch.empty_like(x)
    aligned = x.stride(-1) % 16 == 0
    #         ^^^^^^^^^^^^^^^^^^^^^^
    double[(rows,)](x, y, x.stride(0), n, ALIGNED=aligned, BLOCK=triton.next_power_of_2(n))
    return y
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, stride, n, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    if ALIGNED:
        stride = tl.multiple_of(stride, 16)
    offsets = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    x = x.contiguous()
    rows, n = x.shape
    y = torch.empty_like(x)
    aligned = x.stride(0) % 16 == 0
    double[(rows,)](x, y, x.stride(0), n, ALIGNED=aligned, BLOCK=triton.next_power_of_2(n))
    return y
```

## Sources
[TransformerEngine#464](https://github.com/ROCm/TransformerEngine/pull/464).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    if !text.contains(".stride(") || !text.contains('%') {
        return;
    }
    for run in context.runs() {
        for test in run.settled.iter().filter(|test| test.is_of_remainder && !test.holds) {
            let message = "the tensor is contiguous, so this stride is always 1 and the test never holds; is the stride \
                           of another axis meant?";
            findings.push(Diagnostic::new(&RULE.declaration, test.span, message.to_owned()));
        }
    }
}
