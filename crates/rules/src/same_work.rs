//! M018: a kernel without a program number that several programs run.

use model::analysis::types::access::AccessKind;
use model::host::{HostNumber, HostOperator};
use model::kernel::ast::{Expr, walk_expressions};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M018",
        name: "same-work",
        severity: Severity::Warning,
        summary: "a launch of several programs that all do the same",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches of more than one program, or of a number that depends on a size, for a kernel that stores and nowhere asks for
`tl.program_id`.

## Why is this bad?
All programs read and write the same addresses. At best the work is done many times; where the kernel reads what it writes, the
result is undefined.

## Bad
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    #      ^^^^^^^^^^^^^^^^^^^^^^^
    return y
```

## Good
```python
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
```

## When it is silent
When the kernel calls a function that is not in the file, which may ask for the program, and when it uses atomic operations
or inline assembly.

## Sources
[TritonBench#10](https://github.com/thunlp/TritonBench/issues/10).
"#,
    },
    check,
};

/// Words of kernels that tell their programs from each other in another way, or combine their results.
const TELLS: [&str; 6] = ["num_programs", "atomic_", "inline_asm", "globaltimer", "smid", "import "];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        let grid = known.launch.grid.span;
        if seen.contains(&grid) {
            continue;
        }
        if !starts_several(&known) || !is_alike_everywhere(context, known.kernel) {
            if let Some(axis) = unused_axis(context, &known)
                && let Some(store) = known.facts.accesses.iter().find(|access| access.kind == AccessKind::Store)
                && !context.is_for_other_compiler()
            {
                seen.push(grid);
                let message = format!(
                    "`{}` never asks for `tl.program_id({axis})`, so the programs along this axis read and write the same",
                    known.kernel.name
                );
                findings
                    .push(Diagnostic::new(&RULE.declaration, grid, message).with_related(store.span, "written by all"));
            }
            continue;
        }
        let store = known.facts.accesses.iter().find(|access| access.kind == AccessKind::Store);
        if let Some(store) = store
            && !context.is_for_other_compiler()
        {
            seen.push(grid);
            let message = format!(
                "`{}` never asks for `tl.program_id`, so all programs of this grid read and write the same",
                known.kernel.name
            );
            findings.push(Diagnostic::new(&RULE.declaration, grid, message).with_related(store.span, "written by all"));
        }
    }
}

/// Whether the grid certainly has more than one program, or as many as a size says.
fn starts_several(known: &AnalysedLaunch<'_, '_>) -> bool {
    let Some(grid) = &known.passed.grid else { return false };
    // `(n,)` of a parameter may be 1 in each call; a quotient of a size is meant to be more.
    grid.iter().any(|extent| match extent {
        HostNumber::Known(programs) => *programs > 1,
        HostNumber::Operation(_) => extent.sources().is_some(),
        HostNumber::Given(name) => name.contains('.'),
        _ => false,
    })
}

/// An axis along which the grid has a number of tiles, and whose programs the kernel does not tell from each other.
fn unused_axis(context: &RuleContext<'_>, known: &AnalysedLaunch<'_, '_>) -> Option<usize> {
    let grid = known.passed.grid.as_ref()?;
    let is_tiled = |extent: &HostNumber| match extent {
        HostNumber::Operation(operation) => {
            let divides = matches!(operation.op, HostOperator::CeilDiv | HostOperator::Python("//"));
            divides && extent.sources().is_some()
        }
        _ => false,
    };
    let tiled: Vec<usize> = (0..grid.len()).filter(|axis| is_tiled(&grid[*axis])).collect();
    if tiled.is_empty() || context.mentions(known.kernel, &TELLS) || calls_others(context.module, known.kernel) {
        return None;
    }
    let asked = asked_axes(context.module, known.kernel, 0)?;
    tiled.into_iter().find(|axis| !asked.contains(axis))
}

/// The axes whose programs a kernel or a helper of it asks for; `None` when that is not known.
fn asked_axes(module: &Module, kernel: &Kernel, depth: usize) -> Option<Vec<usize>> {
    let (mut axes, mut is_known) = (Vec::new(), depth < 4);
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        if module.language_member(kernel, &call.func).as_deref() == Some("program_id") {
            let axis =
                call.argument("axis", Some(0)).and_then(Expr::as_int).and_then(|axis| usize::try_from(axis).ok());
            is_known &= axis.is_some();
            axes.extend(axis);
        } else if let Some(callee) = call.func.as_name().and_then(|name| module.kernel(name))
            && depth < 4
        {
            match asked_axes(module, callee, depth + 1) {
                Some(more) => axes.extend(more),
                None => is_known = false,
            }
        }
    });
    is_known.then_some(axes)
}

/// Whether nothing in the kernel tells one program from another.
fn is_alike_everywhere(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    !context.mentions(kernel, &["program_id"])
        && !context.mentions(kernel, &TELLS)
        && !calls_others(context.module, kernel)
}

/// Whether the kernel calls a function that is not Triton's.
fn calls_others(module: &Module, kernel: &Kernel) -> bool {
    let mut others = false;
    walk_expressions(&kernel.body, &mut |expr| {
        if let Some(call) = expr.as_call()
            && let Some(name) = call.func.first_name()
        {
            let is_python = call.func.as_name().is_some_and(model::analysis::types::is_of_python);
            let is_method = kernel.locals.contains(name);
            others |= !is_python && !is_method && module.resolve_in(kernel, &call.func).is_none();
        }
    });
    others
}
