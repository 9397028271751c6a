//! M009: a data race between programs that write the same address.

use model::analysis::in_place_updates::updates;
use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Poly};
use model::kernel::Kernel;
use model::kernel::ast::{Expr, StmtKind, walk_statements};
use model::syntax::Span;

use super::memory_accesses::{depends_on_program, index, is_certain, kernels};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M009",
        name: "program-race",
        severity: Severity::Warning,
        summary: "a store to one address by all programs, of what differs between them or of what was there before",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds stores whose address is the same in every program of a grid that has several, and whose value is computed from data
that each program loads for itself, or from what is at the address.

## Why is this bad?
The programs run at the same time and in any order. Which of their values remains at the end is undefined, and of a sum that is
loaded, increased and stored, parts are lost. `tl.atomic_add` adds without losing anything; or give each program a place
of its own and add up in a second kernel.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + offsets, mask=offsets < n, other=0.0))
    before = tl.load(out)
    tl.store(out, before + part)
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^


def run(x, out):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, out, count, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + offsets, mask=offsets < n, other=0.0))
    tl.atomic_add(out, part)
    if tl.program_id(0) == 0:
        tl.store(count, n)


def run(x, out, count):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, out, count, n, BLOCK=1024)
```

## When it is silent
When a branch or an early `return` precedes the store, when its mask depends on the program, when the address comes from
memory or from a loop, and when every launch of the file starts one program only.

## Sources
[tritonbench#1266](https://github.com/meta-pytorch/tritonbench/issues/1266),
[triton#6307](https://github.com/triton-lang/triton/issues/6307), [triton#10594](https://github.com/triton-lang/triton/issues/10594).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (kernel, facts) in kernels(context) {
        let stores =
            facts.accesses.iter().filter(|access| access.kind == AccessKind::Store && is_shared(facts, access));
        for store in stores {
            if seen.contains(&store.span) || !starts_several(context, kernel, facts) || context.is_for_other_compiler()
            {
                continue;
            }
            let own = updates(context.module, kernel).into_iter().find(|update| update.span == store.span);
            let (message, place) = if let Some(load) = own.and_then(|update| update.load) {
                (
                    "all programs load this address, change the value and store it: what others store in between is lost",
                    load,
                )
            } else if let Some(load) = depends_on(kernel, facts, store) {
                ("all programs store to this address, each with its own value: which one remains is undefined", load)
            } else {
                continue;
            };
            seen.push(store.span);
            let message = format!("{message}; use an atomic operation, or a place for each program");
            findings.push(
                Diagnostic::new(&RULE.declaration, store.span, message)
                    .with_related(place, "the value comes from here"),
            );
        }
    }
}

/// Whether every program certainly stores to the same addresses.
fn is_shared(facts: &KernelAnalysis, store: &MemoryAccess) -> bool {
    let Some(index) = index(store).filter(|index| index.base.is_some() && is_certain(store)) else { return false };
    let same_mask = match &store.mask {
        Mask::None => true,
        Mask::Unknown => false,
        Mask::Tile(tile) => tile.about.guard().is_some_and(|guard| {
            let fixed = |poly: &Poly| {
                let counters = poly.renamed(&mut |atom| match atom {
                    Atom::Loop(id) if store.loops.contains(id) => Atom::Programs(0),
                    other => other.clone(),
                });
                counters.is_some_and(|poly| !depends_on_program(&poly))
            };
            !guard.is_partial
                && guard.conditions.iter().all(|condition| fixed(&condition.left) && fixed(&condition.right))
        }),
    };
    let bounds_fixed = store.loops.iter().all(|id| {
        facts.loops.get(*id as usize).is_some_and(|around| {
            [&around.start, &around.end]
                .into_iter()
                .all(|bound| bound.as_ref().is_some_and(|poly| !depends_on_program(poly)))
        })
    });
    // A counter runs over the same numbers in each program.
    let counters: Vec<Atom> = store.loops.iter().map(|id| Atom::Loop(*id)).collect();
    let without_counters = index.poly.renamed(&mut |atom| match atom {
        Atom::Loop(_) if counters.contains(atom) => Atom::Programs(0),
        other => other.clone(),
    });
    same_mask && bounds_fixed && without_counters.is_some_and(|poly| !depends_on_program(&poly))
}

/// Whether the kernel divides its work among programs along an axis on which no launch has only one program.
fn starts_several(context: &RuleContext<'_>, kernel: &Kernel, facts: &KernelAnalysis) -> bool {
    let used = |axis: u8| facts.accesses.iter().filter_map(index).any(|index| index.poly.has(&Atom::Program(axis)));
    let axes: Vec<u8> = (0..3).filter(|axis| used(*axis)).collect();
    let mut launches = context.launches_of(kernel).peekable();
    launches.peek().is_some()
        && launches.all(|known| {
            let grid = known.passed.grid.as_deref().unwrap_or_default();
            let along = |axis: &u8| grid.get(usize::from(*axis));
            axes.iter().filter_map(along).any(|programs| programs.known().is_none_or(|count| count > 1))
        })
}

/// The load of program-dependent data that the stored value is computed from.
fn depends_on(kernel: &Kernel, facts: &KernelAnalysis, store: &MemoryAccess) -> Option<Span> {
    let own = |span: Span| {
        facts.accesses.iter().any(|access| {
            access.kind == AccessKind::Load
                && access.span == span
                && index(access).is_some_and(|index| index.poly.any(|atom| matches!(atom, Atom::Program(_))))
        })
    };
    let mut assigned: Vec<(&str, &Expr)> = Vec::new();
    let mut stored: Option<&Expr> = None;
    walk_statements(&kernel.body, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                assigned.extend(targets.iter().filter_map(|target| Some((target.as_name()?, value))));
            }
            StmtKind::AugAssign { target, value, .. } => assigned.extend(target.as_name().map(|name| (name, value))),
            _ => {}
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                if expr.span == store.span {
                    stored = expr.as_call().and_then(|call| call.argument("value", Some(1)));
                }
            });
        }
    });
    let mut waiting = vec![stored?];
    let mut known: Vec<&str> = Vec::new();
    let mut found = None;
    while let Some(expr) = waiting.pop() {
        expr.walk(&mut |expr| {
            if own(expr.span) {
                found = found.or(Some(expr.span));
            }
            if let Some(name) = expr.as_name()
                && !known.contains(&name)
            {
                known.push(name);
            }
        });
        if found.is_some() {
            return found;
        }
        let more: Vec<&Expr> =
            assigned.iter().filter(|(name, _)| known.contains(name)).map(|(_, value)| *value).collect();
        assigned.retain(|(name, _)| !known.contains(name));
        waiting.extend(more);
    }
    None
}
