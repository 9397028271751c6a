//! M008: a load of data that other lanes have stored, without a barrier between the two.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess};
use model::analysis::types::index::{Atom, Index, Poly};
use model::kernel::Kernel;
use model::kernel::ast::{StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::memory_accesses::{index, is_certain, kernel_around, kernels, line};
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M008",
        name: "unordered-exchange",
        severity: Severity::Warning,
        summary: "a load of what other lanes of the program have just stored, without a barrier between",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds a `tl.store` of a tile and a later `tl.load` from the same tensor in the same program that certainly reads, in some
lane, what another lane has stored, with no `tl.debug_barrier()`, reduction, or product between them.

## Why is this bad?
A tile is spread over the threads of a program, and these run independently. Nothing makes the store of one thread come before the
load of another: the load may see what was there before, now and then.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def shift(x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    tl.store(y + lanes, value * 2)
    next = tl.load(y + lanes + 1, mask=lanes < BLOCK - 1, other=0.0)
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(x + lanes, next)


def run(x, y):
    shift[(1,)](x, y, BLOCK=256)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def shift(x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    tl.store(y + lanes, value * 2)
    tl.debug_barrier()
    next = tl.load(y + lanes + 1, mask=lanes < BLOCK - 1, other=0.0)
    tl.store(x + lanes, next)


def run(x, y):
    shift[(1,)](x, y, BLOCK=256)
```

## When it is silent
When both go to the same addresses in the same lanes, when they may touch different parts of the tensor, and when they
are not in the same loops.

## Fix
Puts `tl.debug_barrier()` in front of the statement that loads.

## Sources
[triton#1097](https://github.com/triton-lang/triton/issues/1097), [triton#9887](https://github.com/triton-lang/triton/issues/9887),
[triton#10924](https://github.com/triton-lang/triton/issues/10924), [triton#11872](https://github.com/triton-lang/triton/issues/11872),
[triton#8259](https://github.com/triton-lang/triton/issues/8259).
"#,
    },
    check,
};

/// The number of lanes below which one thread may hold all of them.
const FEW: i64 = 32;

/// Functions that synchronise all threads of a program.
const MEETING: &[&str] = &[
    "debug_barrier",
    "sum",
    "max",
    "min",
    "argmax",
    "argmin",
    "reduce",
    "xor_sum",
    "dot",
    "dot_scaled",
    "cumsum",
    "cumprod",
    "associative_scan",
    "sort",
    "trans",
    "permute",
    "reshape",
    "histogram",
    "gather",
    "flip",
    "softmax",
    "topk",
    "join",
    "cat",
    "inline_asm_elementwise",
];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        for (at, load) in facts.accesses.iter().enumerate() {
            if load.kind != AccessKind::Load || !is_certain(load) || seen.contains(&load.span) {
                continue;
            }
            let before =
                facts.accesses[..at].iter().rev().filter(|store| store.kind == AccessKind::Store && is_certain(store));
            for store in before {
                if exchanges(facts, store, load)
                    && let Some(kernel) = kernel_around(context, load.span)
                    && unordered(context, kernel, store, load)
                    && !context.is_for_other_compiler()
                {
                    seen.push(load.span);
                    findings.push(report(context, kernel, store, load));
                    break;
                }
            }
        }
    }
}

/// Whether some lane of `load` certainly reads what another lane of `store` wrote.
fn exchanges(facts: &KernelAnalysis, store: &MemoryAccess, load: &MemoryAccess) -> bool {
    let (Some(to), Some(from)) = (index(store), index(load)) else { return false };
    if to.base.is_none() || to.base != from.base || store.loops != load.loops || matches!(store.mask, Mask::Unknown) {
        return false;
    }
    let Some(lane) = only_lane(to) else { return false };
    if to.poly.factor_of(&Atom::Lane(lane)) != Some(Poly::number(1)) {
        return false;
    }
    let (Some(difference), Some(size)) = (from.poly.plus(&to.poly, -1), facts.lanes.get(lane as usize)) else {
        return false;
    };
    // One thread may hold a few lanes.
    let size = size.size.known().map_or(2, |size| if size < FEW { 0 } else { i128::from(size) });
    match difference.as_number() {
        // The lane of a neighbour; with a mask on either access, only a step to the next lane is certain enough.
        Some(shift) => shift != 0 && shift.abs() < size && only_lane(from) == Some(lane),
        None => false,
    }
}

fn only_lane(index: &Index) -> Option<u32> {
    match index.axes.as_slice() {
        [lanes] => match lanes.as_slice() {
            [lane] => Some(*lane),
            _ => None,
        },
        _ => None,
    }
}

/// Whether nothing between the two accesses synchronises the threads.
fn unordered(context: &RuleContext<'_>, kernel: &Kernel, store: &MemoryAccess, load: &MemoryAccess) -> bool {
    let inside = |span: Span| kernel.def_span.start <= span.start && span.end <= kernel.def_span.end;
    if !inside(store.span) || store.span.end > load.span.start {
        return false;
    }
    let mut ordered = false;
    walk_expressions(&kernel.body, &mut |expr| {
        if let Some(call) = expr.as_call()
            && store.span.end <= expr.span.start
            && expr.span.start < load.span.start
        {
            let member = context.module.language_member(kernel, &call.func);
            let method = call.func.dotted().and_then(|path| path.last().map(|name| (*name).to_owned()));
            let name = member.as_deref().and_then(|path| path.rsplit('.').next()).map(str::to_owned).or(method);
            ordered |= name.is_none_or(|name| MEETING.contains(&name.as_str()) || name.starts_with("atomic"));
            // A helper may do anything.
            ordered |= member.is_none() && call.func.as_name().is_some();
        }
    });
    !ordered
}

fn report(context: &RuleContext<'_>, kernel: &Kernel, store: &MemoryAccess, load: &MemoryAccess) -> Diagnostic {
    let message = format!(
        "lanes of this load read what other lanes store on line {}, and nothing makes the threads wait for each other; put \
         `tl.debug_barrier()` between",
        line(context, store.span)
    );
    let diagnostic = Diagnostic::new(&RULE.declaration, load.span, message).with_related(store.span, "stored here");
    let mut around: Option<Span> = None;
    walk_statements(&kernel.body, &mut |stmt| {
        let simple = matches!(stmt.kind, StmtKind::Assign { .. } | StmtKind::AugAssign { .. } | StmtKind::Expr(_));
        if simple && stmt.span.start <= load.span.start && load.span.end <= stmt.span.end {
            around = Some(stmt.span);
        }
    });
    let (Some(stmt), Some(barrier)) = (around, context.module.language_name(kernel, "debug_barrier")) else {
        return diagnostic;
    };
    let text = context.source.text();
    let start = text[..stmt.start].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = &text[start..stmt.start];
    if !indent.trim().is_empty() {
        return diagnostic;
    }
    let edit = Edit { span: Span::new(stmt.start, stmt.start), text: format!("{barrier}()\n{indent}") };
    diagnostic.with_fix(format!("Put `{barrier}()` in front of it"), vec![edit])
}
