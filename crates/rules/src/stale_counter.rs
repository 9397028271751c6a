//! M006: the variable of a run-time loop, read after the loop.

use model::syntax::Span;

use super::memory_accesses::kernels;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M006",
        name: "stale-loop-variable",
        severity: Severity::Warning,
        summary: "the variable of a run-time loop that is read behind the loop",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds places behind a `for` loop over `range` or `tl.range` that read the loop's variable.

## Why is this bad?
In Python the variable keeps its last value. In a kernel it refers to a value that exists only inside the loop; after it
the compiler has a placeholder without a value, and may silently put anything there. Values that the body assigns
do survive.

`tl.static_range` is unrolled: behind it the variable is a number.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def last(x, y, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    tl.store(y, total / (i + 1))
    #                    ^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def last(x, y, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    tl.store(y, total / n)
    for i in range(4):
        tl.store(y + 1 + i, total)
    for i in tl.static_range(4):
        total += 1.0
    tl.store(y + 5 + i, total)
```

## Sources
[triton#11439](https://github.com/triton-lang/triton/pull/11439). Compiled with Triton 3.1.0, 3.2.0, 3.4.0, 3.6.0 and 3.9.0: all
accept the first example, and add 1 to `ub.poison` (3.1.0: `llvm.mlir.undef`).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        for (span, head) in &facts.stale {
            if seen.contains(span) || context.is_for_other_compiler() {
                continue;
            }
            seen.push(*span);
            let name = context.source.slice(*span);
            let message = format!(
                "`{name}` has no value behind its loop: what the compiler puts here is undefined; compute it from the loop's bounds, \
                 or assign it to another name in the loop"
            );
            findings.push(Diagnostic::new(&RULE.declaration, *span, message).with_related(*head, "the loop"));
        }
    }
}
