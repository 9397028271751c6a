//! H011: a device assertion that no launch enables.

use model::kernel::Kernel;
use model::kernel::ast::{ExprKind, walk_expressions};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H011",
        name: "unchecked-assert",
        severity: Severity::Hint,
        summary: "a `tl.device_assert` that nothing in the file turns on",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Points at the first `tl.device_assert` of a kernel when nothing in the file turns on assertions: no `debug=` in its
launches or in `@triton.jit`, no word of `TRITON_DEBUG`.

## Why is this bad?
Triton leaves device assertions out of the compiled kernel unless it is compiled for debugging. An index out of bounds that
the assertion is to catch then reads or writes foreign memory.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def gather(x, index, out, rows, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + offsets)
    tl.device_assert(row < rows, "row out of bounds")
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(out + offsets, tl.load(x + row))
```

## Good
Where a wrong index must not pass, the mask keeps it out; the assertion reports it when assertions are enabled:

```python
import triton
import triton.language as tl


@triton.jit(debug=True)
def gather(x, index, out, rows, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + offsets)
    tl.device_assert(row < rows, "row out of bounds")
    tl.store(out + offsets, tl.load(x + row, mask=row < rows))
```

## When it is silent
In files for other compilers than Triton's own.

## Sources
`device_assert` in `triton/language/semantic.py` (in 3.1 `triton/compiler/code_generator.py`), read in nine versions from
3.1.0 to 3.9.0. [triton#1448](https://github.com/triton-lang/triton/issues/1448),
[pytorch#93538](https://github.com/pytorch/pytorch/issues/93538)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    if !text.contains("device_assert")
        || ["TRITON_DEBUG", "knobs"].iter().any(|word| text.contains(word))
        || context.is_for_other_compiler()
    {
        return;
    }
    for kernel in context.module.kernels.iter().filter(|kernel| !kernel.has_error && !may_debug(context, kernel)) {
        let mut first = None;
        walk_expressions(&kernel.body, &mut |expr| {
            let is_assert = || {
                let call = expr.as_call()?;
                let found = context.module.resolve_in(kernel, &call.func)?;
                (found.direct && found.path == "triton.language.device_assert").then_some(())
            };
            if first.is_none() && is_assert().is_some() {
                first = Some(expr.span);
            }
        });
        if let Some(span) = first {
            let message =
                "Triton leaves this assertion out, unless `TRITON_DEBUG=1` is set or the launch has `debug=True`";
            findings.push(Diagnostic::new(&RULE.declaration, span, message));
        }
    }
}

/// Whether a launch or a decorator may enable assertions. A helper is compiled with the options of its caller.
fn may_debug(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let debugs = |args: &[model::kernel::ast::Arg]| {
        args.iter().any(|arg| {
            matches!(arg.value.kind, ExprKind::Starred(_))
                || arg.keyword.as_ref().is_some_and(|(name, _)| name == "debug")
        })
    };
    let is_helper = context.module.called_in_kernels().contains(&kernel.name);
    let launches = context
        .module
        .launches
        .iter()
        .filter(|launch| is_helper || launch.kernel.as_deref() == Some(kernel.name.as_str()));
    kernel.decorators.iter().filter_map(|decorator| decorator.expr.as_call()).any(|call| debugs(&call.args))
        || launches.into_iter().any(|launch| debugs(&launch.args))
}
