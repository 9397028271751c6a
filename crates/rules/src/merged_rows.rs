//! H025: rows of several axes that are taken to be equally far apart.

use model::host::{HostNumber, HostTensor};

use model::analysis::types::index::Atom;
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::memory_accesses::index;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H025",
        name: "merged-rows",
        severity: Severity::Warning,
        summary: "a stride that is taken for the distance of all rows of a tensor with several axes, which may not be contiguous",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches with a program for each row of a tensor of three axes or more, which pass the stride of its last but one axis as the distance of the rows,
where nothing makes the tensor contiguous.

## Why is this bad?
The rows of `x[b, s]` are equally far apart only where the leading axes are contiguous. For `x.transpose(0, 1)` the kernel reads other rows, without an
error. A test of `x.stride(-1) == 1` does not tell the two apart.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row, tl.sum(value))


def run(x):
    batch, length, n = x.shape
    if x.stride(-1) != 1:
        x = x.contiguous()
    y = torch.empty((batch, length), device=x.device)
    total[(batch * length,)](x, y, x.stride(-2), n, BLOCK=triton.next_power_of_2(n))
    #                              ^^^^^^^^^^^^
    return y
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    tl.store(y + row, tl.sum(value))


def run(x):
    batch, length, n = x.shape
    x = x.contiguous()
    y = torch.empty((batch, length), device=x.device)
    total[(batch * length,)](x, y, x.stride(-2), n, BLOCK=triton.next_power_of_2(n))
    return y
```

## Sources
[TransformerEngine#2746](https://github.com/NVIDIA/TransformerEngine/issues/2746).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for access in &known.facts.accesses {
            let Some(index) = index(access) else { continue };
            let Some(base) = index.base.as_deref() else { continue };
            let Some(tensor) = known.tensor(base).filter(|tensor| tensor.shape.as_ref().is_some_and(|it| it.len() > 2))
            else {
                continue;
            };
            let strides = (0..3).filter_map(|axis: u8| {
                let factor = index.poly.factor_of(&Atom::Program(axis))?;
                Some((usize::from(axis), factor.as_param()?.to_owned()))
            });
            for (axis, stride) in strides {
                let Some(argument) = known.argument(&stride).filter(|argument| !seen.contains(&argument.span)) else {
                    continue;
                };
                if !merges(&known, tensor, axis, &known.number(&stride)) || context.is_for_other_compiler() {
                    continue;
                }
                seen.push(argument.span);
                let message = format!(
                    "the rows of `{}` are this far apart along one axis only, and the grid counts those of several: make it contiguous first",
                    tensor.label()
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, argument.span, message)
                        .with_related(known.launch.grid.span, "a program for each row of all leading axes")
                        .with_related(access.span, "the number of the program is multiplied with it here"),
                );
            }
        }
    }
}

/// Whether the grid counts the rows along all leading axes of a tensor, and the stride is that of the last of them.
fn merges(known: &AnalysedLaunch<'_, '_>, tensor: &HostTensor, axis: usize, stride: &HostNumber) -> bool {
    let (Some(shape), Some(grid)) = (&tensor.shape, &known.passed.grid) else { return false };
    let rank = shape.len();
    if tensor.is_contiguous() || stride.known().is_some() {
        return false;
    }
    let Ok(last_but_one) = i128::try_from(rank - 2) else { return false };
    let rows = shape[..rank - 1].iter().fold(HostNumber::Known(1), |product, size| product.times(size));
    stride.is(&tensor.stride(last_but_one)) && grid.get(axis).is_some_and(|programs| programs.is(&rows))
}
