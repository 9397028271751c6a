//! H020: a compile-time parameter in `do_not_specialize`.

use model::kernel::ast::ExprKind;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H020",
        name: "unused-exemption",
        severity: Severity::Warning,
        summary: "`do_not_specialize` for a `tl.constexpr` parameter, which it cannot help",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds parameters that `do_not_specialize` names and whose annotation is `tl.constexpr`.

## Why is this bad?
The kernel is compiled anew for each value of a `tl.constexpr`, whatever `do_not_specialize` says. Newer releases refuse the
kernel: 3.6.0 and 3.9.0 do, 3.3.1 accepts it silently.

## Bad
```python
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def double(x, y, n: tl.constexpr, BLOCK: tl.constexpr):
    #            ^
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)
```

## Sources
[triton#8273](https://github.com/triton-lang/triton/issues/8273).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for kernel in &context.module.kernels {
        for decorator in &kernel.decorators {
            let Some(call) = decorator.expr.as_call() else { continue };
            let Some(given) = call.argument("do_not_specialize", None) else { continue };
            let (ExprKind::List(items) | ExprKind::Tuple(items)) = &given.kind else { continue };
            for item in items {
                let param = match &item.kind {
                    ExprKind::Str(name) => kernel.param(name),
                    ExprKind::Int(at) => usize::try_from(*at).ok().and_then(|at| kernel.params.get(at)),
                    _ => None,
                };
                let Some(param) = param.filter(|param| param.constexpr && !context.is_for_other_compiler()) else {
                    continue;
                };
                let message = format!(
                    "`{}` is a `tl.constexpr`: each value compiles the kernel anew, and `do_not_specialize` cannot help; \
                     newer releases refuse it",
                    param.name
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, param.name_span, message).with_related(item.span, "named here"),
                );
            }
        }
    }
}
