//! M003: a mask that is computed and never used.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{AccessKind, Mask, MemoryAccess, NamedMask};
use model::analysis::types::index::{IndexComparison, Poly};
use model::kernel::Kernel;
use model::kernel::ast::{Expr, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::memory_accesses::{call_at, covers, index, kernels, lanes_in, lanes_of, line, tiled_by, upper_bound, verb};
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity, Tag};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M003",
        name: "unused-mask",
        severity: Severity::Warning,
        summary: "a mask that is computed and never used, while an access along the same lanes has none",
        since: "0.1.0",
        fixable: true,
        tags: &[Tag::Unnecessary],
        doc: r#"
## What it does
Finds a name that is given a comparison of lane numbers, that nothing reads, in a kernel in which a `tl.load`, `tl.store` or
atomic operation goes along the same lanes without a `mask`.

## Why is this bad?
The mask was written because the last tile extends past the tensor. Without it the access reads or writes memory that
belongs to something else: wrong values, or an illegal memory access that is reported much later.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
  # ^^^^
    value = tl.load(x + offsets)
    tl.store(y + offsets, value * 2)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    tl.store(y + offsets, value * 2, mask=mask)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it is silent
When the mask compares other lanes than those of the access, or anything that is not followed, and where a
parameter known while compiling decides whether the mask is made at all.

## Fix
Passes the mask to all later accesses that go along exactly its lanes and have none.

## Sources
[flash-attention#2789](https://github.com/Dao-AILab/flash-attention/issues/2789),
[flash-attention#2790](https://github.com/Dao-AILab/flash-attention/issues/2790),
[flash-attention#2822](https://github.com/Dao-AILab/flash-attention/issues/2822),
[triton#9026](https://github.com/triton-lang/triton/issues/9026).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        for mask in &facts.masks {
            if !seen.contains(&mask.span)
                && let Some(found) = look(context, facts, mask)
                && !context.is_for_other_compiler()
            {
                seen.push(mask.span);
                findings.push(found);
            }
        }
    }
}

fn look(context: &RuleContext<'_>, facts: &KernelAnalysis, mask: &NamedMask) -> Option<Diagnostic> {
    let inside =
        |span: Span| move |kernel: &&Kernel| kernel.def_span.start <= span.start && span.end <= kernel.def_span.end;
    let kernel = context.module.kernels.iter().find(inside(mask.span))?;
    let bounds = mask.guard.conditions.iter().filter(|condition| is_bound(condition));
    let lanes = lanes_of(bounds);
    if lanes.is_empty() || mask.name.starts_with('_') || is_read(kernel, mask) {
        return None;
    }
    let along = |access: &&MemoryAccess| {
        leaves_out(&access.mask, &lanes)
            && inside(access.span)(&kernel)
            && index(access).is_some_and(|index| lanes.iter().all(|lane| lanes_in(index).contains(lane)))
    };
    let bare: Vec<&MemoryAccess> = facts.accesses.iter().filter(along).collect();
    let first = bare.first()?;
    // A mask of other lanes may be all that is needed, unless the grid goes over the edge.
    if first.mask != Mask::None && !goes_over_the_edge(context, kernel, facts, mask) {
        return None;
    }
    let message = format!(
        "`{}` is never used, and the access on line {} {} the same lanes {}",
        mask.name,
        line(context, first.span),
        verb(first),
        if first.mask == Mask::None { "without a mask" } else { "with a mask for other lanes only" }
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, mask.span, message);
    let mut edits: Vec<Edit> = Vec::new();
    let mut spans: Vec<Span> = bare.iter().map(|access| access.span).collect();
    spans.sort_unstable();
    spans.dedup();
    for &span in &spans {
        diagnostic = diagnostic.with_related(span, "not masked here");
    }
    for access in bare {
        let exact = index(access).is_some_and(|index| lanes_in(index) == lanes);
        let position = if access.kind == AccessKind::Load { 1 } else { 2 };
        let call = call_at(context, access.span).filter(|call| call.argument("mask", Some(position)).is_none());
        let end = call.and_then(|call| call.args.last()).map(|arg| arg.span.end);
        if let Some(end) = end.filter(|_| exact && access.span.start > mask.span.end) {
            let edit = Edit { span: Span::new(end, end), text: format!(", mask={}", mask.name) };
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    if edits.len() == spans.len() {
        Some(diagnostic.with_fix(format!("Pass `mask={}`", mask.name), edits))
    } else {
        Some(diagnostic)
    }
}

/// Whether the grid of a launch rounds up to whole tiles of what a mask bounds.
fn goes_over_the_edge(context: &RuleContext<'_>, kernel: &Kernel, facts: &KernelAnalysis, mask: &NamedMask) -> bool {
    mask.guard.conditions.iter().any(|condition| {
        let Some((left, right)) = upper_bound(condition) else { return false };
        lanes_of([condition]).into_iter().any(|lane| {
            let block = facts.lanes.get(lane as usize).and_then(|lane| Poly::of_dim(&lane.size));
            let axis = tiled_by(facts, left, lane);
            match (block, axis, right.as_param()) {
                (Some(block), Some(axis), Some(size)) => covers(context, kernel, axis, size, &block).is_some(),
                _ => false,
            }
        })
    })
}

/// Whether a comparison keeps lanes within a size: `!= -1` does not.
fn is_bound(condition: &IndexComparison) -> bool {
    matches!(condition.op.as_ref(), "<" | "<=" | ">" | ">=")
}

/// Whether a mask leaves some of the lanes as they are. A mask that is not followed may use them.
fn leaves_out(mask: &Mask, lanes: &[u32]) -> bool {
    match mask {
        Mask::None => true,
        Mask::Unknown => false,
        Mask::Tile(tile) => tile.about.guard().is_some_and(|guard| {
            let masked = lanes_of(&guard.conditions);
            !guard.is_partial && lanes.iter().all(|lane| !masked.contains(lane))
        }),
    }
}

/// Whether something may read the mask: an expression after it, or anywhere in the loops around it.
fn is_read(kernel: &Kernel, mask: &NamedMask) -> bool {
    let mut from = mask.span.end;
    walk_statements(&kernel.body, &mut |stmt| {
        let is_loop = matches!(stmt.kind, StmtKind::For { .. } | StmtKind::While { .. });
        if is_loop && stmt.span.contains(mask.span) {
            from = from.min(stmt.span.start);
        }
    });
    let (mut all, mut written) = (0_usize, 0_usize);
    let is_later = |expr: &Expr| expr.as_name() == Some(&mask.name) && expr.span.start >= from;
    walk_expressions(&kernel.body, &mut |expr| all += usize::from(is_later(expr)));
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, .. } = &stmt.kind {
            for target in targets {
                target.walk(&mut |expr| written += usize::from(is_later(expr)));
            }
        }
    });
    all > written
}
