//! H008: a tensor in host memory passed to a kernel.

use model::analysis::host::{HostNames, Hosts};
use model::analysis::launches::{ArgumentSource, passed};
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use model::kernel::{Kernel, Launch};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H008",
        name: "host-tensor",
        severity: Severity::Warning,
        summary: "a launch that passes a tensor created without a device",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds tensors that a function creates without `device=` (`torch.zeros(n)`) and passes to a kernel as they are.

## Why is this bad?
Without a device PyTorch makes a tensor in the host's memory, and the launch raises
`ValueError: Pointer argument cannot be accessed from Triton (cpu tensor?)`.

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


def sum(x):
    n = x.numel()
    out = torch.zeros(1, dtype=torch.float32)
    #     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
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


def sum(x):
    n = x.numel()
    out = torch.zeros(1, dtype=torch.float32, device=x.device)
    total[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
```

## When it is silent
In files that set a default device, enter one with `with`, or speak of Triton's interpreter; about pinned memory, which a
kernel can read; about tensors that are moved before the launch.

## Fix
Creates the tensor on the device of another one in the same launch.

## Sources
[triton#5205](https://github.com/triton-lang/triton/issues/5205),
[triton#2441](https://github.com/triton-lang/triton/issues/2441),
[triton#2925](https://github.com/triton-lang/triton/issues/2925), [KIVI#24](https://github.com/jy-yuan/KIVI/issues/24)
"#,
    },
    check,
};

/// Functions that create a tensor in host memory by default.
const MAKERS: [&str; 12] = [
    "arange",
    "empty",
    "eye",
    "from_numpy",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "zeros",
];

/// Words in a file that mean that a tensor without a device may be on another device, or that a kernel may accept a
/// tensor in host memory.
const ELSEWHERE: [&str; 7] = [
    "set_default_device",
    "set_default_tensor_type",
    "with torch.device",
    "with device",
    "with torch_device",
    "TRITON_INTERPRET",
    "torch.compile",
];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut reported: Vec<Span> = Vec::new();
    let mut hosts = Hosts::new(module);
    for launch in module.launches.iter().filter(|launch| !launch.has_error) {
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| module.kernel(name)).filter(|kernel| kernel.plain)
        else {
            continue;
        };
        let names = hosts.around(launch);
        for param in kernel.params.iter().filter(|param| !param.constexpr) {
            let ArgumentSource::Argument(argument) = passed(launch, kernel, &param.name) else { continue };
            let made = names.resolve(argument);
            if !is_on_host(made) || reported.contains(&made.span) || is_moved(context, launch, argument) {
                continue;
            }
            let text = context.source.text();
            if ELSEWHERE.iter().any(|word| text.contains(word)) || context.is_for_other_compiler() {
                return;
            }
            reported.push(made.span);
            findings.push(report(context, kernel, launch, &names, made, argument));
        }
    }
}

fn is_on_host(made: &Expr) -> bool {
    let Some(call) = made.as_call().filter(|call| !call.has_star()) else { return false };
    let named =
        |name: &str| call.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name));
    if let ExprKind::Attribute { name, .. } = &call.func.kind
        && name == "cpu"
        && call.args.is_empty()
    {
        return true;
    }
    let made_of_numbers = || {
        call.args
            .first()
            .is_some_and(|arg| matches!(arg.value.kind, ExprKind::List(_) | ExprKind::Int(_) | ExprKind::Float(_)))
    };
    let makes = match call.func.dotted().as_deref() {
        Some(["torch", "tensor"]) => made_of_numbers(),
        Some(["torch", name]) => MAKERS.contains(name),
        _ => false,
    };
    makes && !named("device") && !named("pin_memory") && !named("out")
}

/// Whether the file uses the tensor in a way that this rule does not follow.
fn is_moved(context: &RuleContext<'_>, launch: &Launch, argument: &Expr) -> bool {
    let (Some(name), Some(host)) = (argument.as_name(), launch.host.and_then(|host| context.module.hosts.get(host)))
    else {
        return argument.as_name().is_some();
    };
    let mut moved = false;
    walk_expressions(&host.body, &mut |expr| {
        if let ExprKind::Attribute { value, name: member, .. } = &expr.kind {
            moved |= value.as_name() == Some(name)
                && matches!(member.as_str(), "data" | "set_" | "to" | "cuda" | "share_memory_" | "pin_memory");
        }
    });
    moved
}

fn report<'a>(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    launch: &'a Launch,
    names: &HostNames<'a>,
    made: &Expr,
    argument: &Expr,
) -> Diagnostic {
    let is_copied = made.as_call().is_some_and(|call| call.args.is_empty());
    let message = if is_copied {
        "this tensor is in the host's memory, and the launch that takes it fails"
    } else {
        "without `device=` this tensor is in the host's memory, and the launch that takes it fails"
    };
    let found =
        Diagnostic::new(&RULE.declaration, made.span, message).with_related(argument.span, "passed to a kernel here");
    let has_device = |name: &&str| {
        names.is_param(name)
            && ["device", "shape", "dtype", "numel"]
                .iter()
                .any(|member| context.source.text().contains(&format!("{name}.{member}")))
    };
    let pointers = kernel.params.iter().filter(|param| !param.constexpr && param.annotation.is_none());
    let other = pointers
        .filter_map(|param| match passed(launch, kernel, &param.name) {
            ArgumentSource::Argument(value) => value.as_name(),
            ArgumentSource::Omitted | ArgumentSource::Unknown => None,
        })
        .find(|name| has_device(name));
    match (other, made.as_call()) {
        (Some(other), Some(call)) if !is_from_numpy(call) => {
            let Some(last) = call.args.last() else { return found };
            let edit = Edit { span: Span::new(last.span.end, last.span.end), text: format!(", device={other}.device") };
            found.with_fix(format!("Create it on the device of `{other}`"), vec![edit])
        }
        _ => found,
    }
}

fn is_from_numpy(call: &Call) -> bool {
    call.func.dotted().is_some_and(|parts| parts.last() == Some(&"from_numpy"))
}
