//! P001: a matrix kernel whose tile sizes are fixed and never tuned.

use model::analysis::host::Hosts;
use model::analysis::launches::{ArgumentSource, passed};
use model::kernel::ast::{Expr, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Launch, Module};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "P001",
        name: "untuned-launch",
        severity: Severity::Hint,
        summary: "a matrix kernel whose tile sizes are fixed and never tuned",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Points at a launch that passes fixed numbers for the tile sizes of a kernel with `tl.dot` in a loop, when nothing tunes
them. It speaks once for each kernel.

## Why is this bad?
How fast such a loop is depends on the tile sizes, `num_warps` and `num_stages` together, on the device and on the shapes.
What was right on the card of the author need not be on yours.

`warpsmith optimize FILE --kernel NAME`, or "Optimize" in the editor, tries settings on your card and your shapes and offers
one that is measured to be faster. `@triton.autotune` chooses among settings at run time.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def gram(x, out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, STEP):
        step = start + tl.arange(0, STEP)
        left = tl.load(x + rows[:, None] * n + step[None, :], mask=(rows < n)[:, None] & (step < n)[None, :], other=0.0)
        right = tl.load(x + step[:, None] + columns[None, :] * n, mask=(step < n)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows < n)[:, None] & (columns < n)[None, :])


def run(x, out):
    n = x.shape[0]
    tiles = triton.cdiv(n, 64)
    gram[(tiles, tiles)](x, out, n, BLOCK=64, STEP=32)
  # ^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.jit
def gram(x, out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, STEP):
        step = start + tl.arange(0, STEP)
        left = tl.load(x + rows[:, None] * n + step[None, :], mask=(rows < n)[:, None] & (step < n)[None, :], other=0.0)
        right = tl.load(x + step[:, None] + columns[None, :] * n, mask=(step < n)[:, None] & (columns < n)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows < n)[:, None] & (columns < n)[None, :])


def run(x, out):
    n = x.shape[0]
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]), triton.cdiv(n, meta["BLOCK"]))
    gram[grid](x, out, n, STEP=32)
```

## When it is silent
About kernels without `tl.dot` in a loop, which gain less, and where a size is not a plain number.

## Sources
[Triton's tutorial on matrix multiplication](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut hosts = Hosts::new(module);
    for kernel in module.kernels.iter().filter(|kernel| kernel.plain && !kernel.has_error && kernel.autotune.is_none())
    {
        let heuristics = kernel.heuristics.as_ref().is_some_and(Vec::is_empty);
        if !heuristics || module.kernel(&kernel.name).is_none() || !multiplies_in_a_loop(module, kernel) {
            continue;
        }
        let sizes = tile_sizes(module, kernel);
        let mut fixed = |launch: &&Launch| {
            let names = hosts.around(launch);
            let literal = |name: &&str| match passed(launch, kernel, name) {
                ArgumentSource::Argument(value) => names.integer(value).is_some_and(|size| size >= 16),
                ArgumentSource::Omitted | ArgumentSource::Unknown => false,
            };
            sizes.iter().filter(|name| literal(name)).count() >= 2
        };
        if let Some(launch) = module.launches_of(&kernel.name).filter(|launch| !launch.has_error).find(&mut fixed) {
            let message = format!(
                "the tile sizes of `{0}` are fixed and nothing tunes them; `warpsmith optimize --kernel {0}` measures which \
                 are the fastest",
                kernel.name
            );
            findings.push(Diagnostic::new(&RULE.declaration, launch.target.span, message));
        }
    }
}

fn multiplies_in_a_loop(module: &Module, kernel: &Kernel) -> bool {
    let mut found = false;
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::For { body, .. } | StmtKind::While { body, .. } = &stmt.kind {
            walk_expressions(body, &mut |expr| {
                found |= expr
                    .as_call()
                    .is_some_and(|call| module.language_member(kernel, &call.func).as_deref() == Some("dot"));
            });
        }
    });
    found
}

/// The compile-time parameters that are lengths of tiles.
fn tile_sizes<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<&'a str> {
    let mut sizes: Vec<&str> = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        if module.language_member(kernel, &call.func).as_deref() == Some("arange")
            && let Some(name) = call.argument("end", Some(1)).and_then(Expr::as_name)
            && kernel.param(name).is_some_and(|param| param.constexpr)
            && !sizes.contains(&name)
        {
            sizes.push(name);
        }
    });
    sizes
}
