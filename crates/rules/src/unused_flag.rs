//! H027: a compile-time parameter that the kernel never uses.

use model::host::HostValue;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H027",
        name: "unused-flag",
        severity: Severity::Warning,
        summary: "a flag that the caller chooses, that is passed to a kernel, and that the kernel never uses",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds compile-time parameters that a kernel never uses, where a launch passes a parameter of the launching function for them that is a flag: it has the
annotation `bool` or a default of `True` or `False`.

## Why is this bad?
The caller chooses between two results and gets the same one.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, n, SQUARED: tl.constexpr, BLOCK: tl.constexpr):
  #                ^^^^^^^
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(y, tl.sum(value))


def run(x, y, squared: bool = False):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, y, n, SQUARED=squared, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, n, SQUARED: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n, other=0.0)
    if SQUARED:
        value *= value
    tl.atomic_add(y, tl.sum(value))


def run(x, y, squared: bool = False):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, y, n, SQUARED=squared, BLOCK=1024)
```

## When it is silent
When the launching function uses the flag for anything else, and when a decorator of the kernel names the parameter.

## Sources
[triton#4541](https://github.com/triton-lang/triton/issues/4541).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen = Vec::new();
    for known in context.launches() {
        for param in known.kernel.params.iter().filter(|param| param.constexpr) {
            let value = known.passed.value(context.module, known.kernel, &param.name);
            let Some(HostValue::Given(flag)) = value else { continue };
            let text = context.source.slice(known.kernel.span).as_bytes();
            let is_named_once = memchr::memmem::find_iter(text, param.name.as_bytes()).take(2).count() == 1;
            if !is_named_once || param.name.starts_with('_') || seen.contains(&param.name_span) {
                continue;
            }
            let host = known.launch.host.and_then(|host| context.module.hosts.get(host));
            let Some(host) = host.filter(|host| is_flag(context, host, flag) && is_used_once(host, flag)) else {
                continue;
            };
            if context.is_for_other_compiler() {
                return;
            }
            seen.push(param.name_span);
            let message = format!(
                "`{}` takes the flag `{flag}` of `{}` and is used nowhere in the kernel: the result is the same for both",
                param.name, host.name
            );
            let launch = known.argument(&param.name).map_or(known.launch.args_span, |argument: &Expr| argument.span);
            findings.push(
                Diagnostic::new(&RULE.declaration, param.name_span, message)
                    .with_related(launch, "the flag is passed here"),
            );
        }
    }
}

/// Whether a parameter of a host function is a flag by its annotation or default.
fn is_flag(context: &RuleContext<'_>, host: &model::kernel::HostFunction, name: &str) -> bool {
    let text = context.source.slice(host.span);
    let Some(head) = text.split_once("):").or_else(|| text.split_once("->")).map(|(head, _)| head) else {
        return false;
    };
    head.split(['(', ',']).any(|param| {
        let Some(rest) = param.trim().strip_prefix(name) else { return false };
        let rest: String = rest.split_whitespace().collect();
        rest.starts_with(":bool") || rest.starts_with("=True") || rest.starts_with("=False")
    })
}

/// Whether the body of a host function reads a name once: where it is passed.
fn is_used_once(host: &model::kernel::HostFunction, name: &str) -> bool {
    let mut count = 0_usize;
    walk_expressions(&host.body, &mut |expr| {
        count += usize::from(matches!(&expr.kind, ExprKind::Name(it) if it == name))
    });
    count == 1
}
