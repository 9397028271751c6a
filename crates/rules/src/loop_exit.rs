//! L003: `break` and `continue`.

use model::analysis::flow::live;
use model::kernel::ast::{Stmt, StmtKind};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L003",
        name: "break-or-continue",
        severity: Severity::Error,
        summary: "`break` or `continue` in a kernel",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `break` and `continue` in kernels.

## Why is this bad?
Triton compiles neither, in any kind of loop and in every version from 3.1 to 3.9: compilation stops with
`unsupported AST node type: Continue`.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def tile(x, y, n, TILE: tl.constexpr):
    start = tl.program_id(0) * TILE
    for t in range(TILE):
        row = start + t
        if row >= n:
            continue
#           ^^^^^^^^
        tl.store(y + row, tl.load(x + row))
```

```python
import triton
import triton.language as tl


@triton.jit
def find(x, y, n):
    i = 0
    while i < n:
        if tl.load(x + i) == 0:
            break
#           ^^^^^
        i += 1
    tl.store(y, i)
```

## Good
The rest of the body under the opposite condition, and the condition of `break` in the loop's own:

```python
import triton
import triton.language as tl


@triton.jit
def tile(x, y, n, TILE: tl.constexpr):
    start = tl.program_id(0) * TILE
    for t in range(TILE):
        row = start + t
        if row < n:
            tl.store(y + row, tl.load(x + row))


@triton.jit
def find(x, y, n):
    i = 0
    searching = n > 0
    while searching:
        searching = tl.load(x + i) != 0
        i += searching.to(tl.int32)
        searching = searching & (i < n)
    tl.store(y, i)
```

Host code is Python, and a branch that is spelled out as dead is never compiled:

```python
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n):
    for i in range(n):
        if False:
            continue
        tl.store(y + i, tl.load(x + i))


def run(tensors):
    for x in tensors:
        if x is None:
            continue
        copy[(1,)](x, x, 4)
```

## Sources
Re-executed on Triton 3.1.0, 3.6.0 and 3.9.0; nine versions from 3.1.0 to 3.9.0 reject both. Seen in flag-gems 5.0.2
(`mhc_bwd.py`).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(context.in_kernels(&RULE, |kernel| {
        let mut found = Vec::new();
        // The `triton.jit` of another module may use another compiler.
        let triton_compiles = kernel.decorators.iter().any(|decorator| {
            let called = decorator.expr.as_call().map_or(&decorator.expr, |call| &call.func);
            context.module.imports.resolve(called).is_some_and(|found| found.direct && found.path.ends_with("jit"))
        });
        if triton_compiles && !kernel.has_error {
            live(&kernel.body, &mut |stmt| found.extend(report(stmt)));
        }
        found
    }));
}

fn report(stmt: &Stmt) -> Option<Diagnostic> {
    let message = match stmt.kind {
        StmtKind::Break => "Triton does not compile `break`; put its condition into the loop's own `while`",
        StmtKind::Continue => {
            "Triton does not compile `continue`; put the rest of the loop's body under the opposite condition"
        }
        _ => return None,
    };
    Some(Diagnostic::new(&RULE.declaration, stmt.span, message))
}
