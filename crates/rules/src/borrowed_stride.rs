//! H010: a new tensor addressed with the strides of another one.

use model::analysis::host::{HostNames, Hosts};
use model::analysis::launches::{ArgumentSource, passed};
use model::analysis::strides::address_parts;
use model::kernel::Launch;
use model::kernel::ast::{Expr, ExprKind};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H010",
        name: "borrowed-stride",
        severity: Severity::Warning,
        summary: "a new tensor that a kernel addresses with the strides of another one",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds launches that pass a stride of one tensor (`x.stride(0)`), which the function got from its caller, for a kernel that
addresses another tensor with it, made in the function by `torch.empty` or the like, while nothing in the file asks
whether anything is contiguous.

## Why is this bad?
`torch.empty` makes a contiguous tensor. When the caller passes a slice or a transposed tensor, whose strides are larger,
the kernel writes past the end of the new one. As long as the argument happens to be contiguous all is well.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, stride, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * stride
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    tl.store(out + start + offsets, 2 * tl.load(x + start + offsets, mask=mask), mask=mask)


def run(x):
    rows, columns = x.shape
    out = torch.empty((rows, columns), device=x.device, dtype=x.dtype)
    double[(rows,)](x, out, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    #                       ^^^^^^^^^^^
    return out
```

## Good
Each tensor with strides of its own, or only contiguous ones:

```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * x_stride + offsets, mask=mask)
    tl.store(out + row * out_stride + offsets, 2 * value, mask=mask)


def run(x):
    rows, columns = x.shape
    out = torch.empty((rows, columns), device=x.device, dtype=x.dtype)
    double[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return out
```

## When it is silent
About tensors made by `torch.empty_like`, which keeps the strides of a dense tensor; in files with the word `contiguous`;
where the kernel also gets a stride of the new tensor.

## Fix
Makes the argument contiguous at the launch.

## Sources
[pytorch#130243](https://github.com/pytorch/pytorch/issues/130243), [aiter#2117](https://github.com/ROCm/aiter/issues/2117),
[executorch#22193](https://github.com/pytorch/executorch/issues/22193)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    if !text.contains(".stride(") || text.contains("contiguous") {
        return;
    }
    let mut hosts = Hosts::new(context.module);
    for launch in context.module.launches.iter().filter(|launch| !launch.has_error) {
        findings.extend(look(context, launch, &hosts.around(launch)));
    }
}

fn look<'a>(context: &RuleContext<'a>, launch: &'a Launch, names: &HostNames<'a>) -> Option<Diagnostic> {
    let module = context.module;
    let kernel = launch.kernel.as_deref().and_then(|name| module.kernel(name)).filter(|kernel| !kernel.has_error)?;
    let given: Vec<(&str, &Expr)> = kernel
        .params
        .iter()
        .filter_map(|param| match passed(launch, kernel, &param.name) {
            ArgumentSource::Argument(value) => Some((param.name.as_str(), value)),
            ArgumentSource::Omitted | ArgumentSource::Unknown => None,
        })
        .collect();
    // The parameters for which strides are passed, with the tensors of the strides.
    let strides: Vec<(&str, &Expr, &str)> =
        given.iter().filter_map(|(param, value)| Some((*param, *value, stride_of(names.resolve(value))?))).collect();
    let tensors: Vec<(&str, &str)> =
        given.iter().filter_map(|(param, value)| Some((*param, value.as_name()?))).collect();
    let is_pointer = |param: &str| {
        tensors.iter().any(|(of, tensor)| {
            of == &param && (strides.iter().any(|(.., owner)| owner == tensor) || is_new(names, tensor))
        })
    };
    // This check rules out most launches before the kernel's addresses are analysed.
    if !strides.iter().any(|(.., owner)| names.is_param(owner))
        || !tensors.iter().any(|(_, tensor)| is_new(names, tensor))
    {
        return None;
    }
    for parts in address_parts(module, kernel) {
        let mut pointers = parts.iter().filter(|part| is_pointer(part));
        let (Some(pointer), None) = (pointers.next(), pointers.next()) else { continue };
        let Some((_, tensor)) = tensors.iter().find(|(param, _)| param == pointer) else { continue };
        let used = || strides.iter().filter(|(param, ..)| parts.contains(param));
        if !is_new(names, tensor) || used().any(|(.., owner)| owner == tensor) {
            continue;
        }
        if let Some((_, argument, owner)) = used().find(|(.., owner)| names.is_param(owner)) {
            return Some(report(context, launch, names, (tensor, owner), argument));
        }
    }
    None
}

fn report<'a>(
    context: &RuleContext<'_>,
    launch: &Launch,
    names: &HostNames<'a>,
    (tensor, owner): (&str, &str),
    argument: &Expr,
) -> Diagnostic {
    let message = format!(
        "the kernel addresses `{tensor}`, which is made contiguous here, with a stride of `{owner}`: unless `{owner}` is \
         contiguous too, it writes elsewhere"
    );
    let mut found = Diagnostic::new(&RULE.declaration, argument.span, message);
    if let Some(value) = names.value(tensor) {
        found = found.with_related(value.span, "the new tensor");
    }
    let text = context.source.text();
    let line = text[..launch.span.start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &text[line..launch.span.start];
    if indent.trim().is_empty() {
        let edit = Edit {
            span: Span::new(launch.span.start, launch.span.start),
            text: format!("{owner} = {owner}.contiguous()\n{indent}"),
        };
        return found.with_fix(format!("Make `{owner}` contiguous before the launch"), vec![edit]);
    }
    found
}

/// The tensor `x` of `x.stride(i)`.
fn stride_of(expr: &Expr) -> Option<&str> {
    let call = expr.as_call()?;
    match &call.func.kind {
        ExprKind::Attribute { value, name, .. } if name == "stride" && call.args.len() == 1 => value.as_name(),
        _ => None,
    }
}

/// Whether a name is bound once, to a new contiguous tensor.
fn is_new(names: &HostNames<'_>, name: &str) -> bool {
    let made = names.value(name).and_then(Expr::as_call);
    made.is_some_and(|call| {
        let plain = call.args.iter().all(|arg| arg.keyword.as_ref().is_none_or(|(name, _)| name != "memory_format"));
        plain
            && matches!(call.func.dotted().as_deref(), Some(["torch", "empty" | "zeros" | "ones" | "full"]))
            && !call.has_star()
    })
}
