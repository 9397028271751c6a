//! M021: a flag that is raised before the data that it announces is written.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, MemoryAccess, leftmost};
use model::kernel::ast::{Expr, Stmt, StmtKind, walk_statements};
use model::kernel::{Kernel, Module};

use super::memory_accesses::kernels;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M021",
        name: "early-flag",
        severity: Severity::Warning,
        summary: "an atomic operation on a flag behind the store of a tile, without a barrier between them",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds kernels in which programs wait in a loop for a flag, and in which a tile is stored and the flag raised behind it by an atomic operation
on one number, without `tl.debug_barrier()` between them.

## Why is this bad?
One thread executes an atomic operation on one number. It orders the stores of this thread, and other warps of the program may not have
written their part of the tile yet when the waiting program reads it.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def pass_on(part, flag, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    if program == 0:
        tl.store(part + lanes, lanes)
        tl.atomic_xchg(flag, 1)
      # ^^^^^^^^^^^^^^^^^^^^^^^
    else:
        while tl.atomic_cas(flag, 1, 1) != 1:
            pass
        tl.store(out + lanes, tl.load(part + lanes))


def run(part, flag, out):
    pass_on[(2,)](part, flag, out, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def pass_on(part, flag, out, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    if program == 0:
        tl.store(part + lanes, lanes)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1)
    else:
        while tl.atomic_cas(flag, 1, 1) != 1:
            pass
        tl.store(out + lanes, tl.load(part + lanes))
```

## When it is silent
When the kernel waits for no flag, and when the tile and the flag are not written one after the other in the same branch.

## Sources
[ROCm/triton#745](https://github.com/ROCm/triton/issues/745),
[stickbreaking-attention#7](https://github.com/shawntan/stickbreaking-attention/issues/7).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for (kernel, facts) in kernels(context) {
        if !context.mentions(kernel, &["while"]) || !context.mentions(kernel, &["atomic_"]) {
            continue;
        }
        let awaited = awaited(context.module, kernel);
        if awaited.is_empty() || context.is_for_other_compiler() {
            continue;
        }
        let mut found = Vec::new();
        in_block(context, kernel, facts, &awaited, &kernel.body, &mut found);
        findings.extend(found);
    }
}

/// The pointers of flags that the kernel waits for in a `while`.
fn awaited<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<&'a str> {
    let mut flags = Vec::new();
    walk_statements(&kernel.body, &mut |stmt| {
        let StmtKind::While { test, body, .. } = &stmt.kind else { return };
        let mut look = |expr: &'a Expr| {
            if let Some((_, pointer)) = flag_access(module, kernel, expr) {
                flags.extend(leftmost(pointer));
            }
        };
        test.walk(&mut look);
        model::kernel::ast::walk_expressions(body, &mut look);
    });
    flags
}

/// The function and the pointer of an atomic operation or a volatile load.
fn flag_access<'a>(module: &Module, kernel: &Kernel, expr: &'a Expr) -> Option<(String, &'a Expr)> {
    let call = expr.as_call()?;
    let name = module.language_member(kernel, &call.func)?;
    (name.starts_with("atomic_") || name == "load").then(|| call.argument("pointer", Some(0)).map(|it| (name, it)))?
}

fn in_block(
    context: &RuleContext<'_>,
    kernel: &Kernel,
    facts: &KernelAnalysis,
    awaited: &[&str],
    body: &[Stmt],
    found: &mut Vec<Diagnostic>,
) {
    let mut stored: Option<&MemoryAccess> = None;
    for stmt in body {
        stmt.bodies().into_iter().for_each(|inner| in_block(context, kernel, facts, awaited, inner, found));
        if !stmt.bodies().is_empty() {
            // What a branch or loop leaves behind is not followed.
            stored = None;
            continue;
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let Some(call) = part.as_call() else { return };
                let Some(name) = context.module.language_member(kernel, &call.func) else { return };
                let access = facts.accesses.iter().find(|access| access.span == part.span);
                match (name.as_str(), access) {
                    ("debug_barrier", _) => stored = None,
                    ("store", Some(access)) if access.pointer.is_block() => stored = Some(access),
                    (name, Some(access)) if name.starts_with("atomic_") && access.kind == AccessKind::Atomic => {
                        let root = call.argument("pointer", Some(0)).and_then(leftmost);
                        let is_flag = access.pointer.is_scalar() == Some(true)
                            && root.is_some_and(|root| awaited.contains(&root));
                        if let Some(store) = stored.filter(|_| is_flag) {
                            let message = "one thread raises this flag while other warps may still write their part of the \
                                           tile: put `tl.debug_barrier()` between them";
                            found.push(
                                Diagnostic::new(&RULE.declaration, part.span, message.to_owned())
                                    .with_related(store.span, "the tile is written here"),
                            );
                        }
                    }
                    _ => {}
                }
            });
        }
    }
}
