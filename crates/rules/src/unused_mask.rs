//! M003: a mask that is computed and never used.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::{Mask, MemoryAccess, NamedMask};
use model::kernel::Kernel;
use model::kernel::ast::{StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::memory_accesses::{call_at, index, kernels, lanes_in, lanes_of, line, verb};
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
    let lanes = lanes_of(&mask.guard.conditions);
    if lanes.is_empty() || mask.name.starts_with('_') || is_read(kernel, &mask.name) {
        return None;
    }
    let along = |access: &&MemoryAccess| {
        access.mask == Mask::None
            && inside(access.span)(&kernel)
            && index(access).is_some_and(|index| lanes.iter().all(|lane| lanes_in(index).contains(lane)))
    };
    let bare: Vec<&MemoryAccess> = facts.accesses.iter().filter(along).collect();
    let first = bare.first()?;
    let message = format!(
        "`{}` is never used, and the access on line {} {} the same lanes without a mask",
        mask.name,
        line(context, first.span),
        verb(first)
    );
    let mut diagnostic = Diagnostic::new(&RULE.declaration, mask.span, message);
    let mut edits: Vec<Edit> = Vec::new();
    let mut spans: Vec<Span> = bare.iter().map(|access| access.span).collect();
    spans.sort_unstable();
    spans.dedup();
    for &span in &spans {
        diagnostic = diagnostic.with_related(span, "no mask here");
    }
    for access in bare {
        let exact = index(access).is_some_and(|index| lanes_in(index) == lanes);
        let end = call_at(context, access.span).and_then(|call| call.args.last()).map(|arg| arg.span.end);
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

/// Whether a name is read anywhere in a kernel.
fn is_read(kernel: &Kernel, name: &str) -> bool {
    let (mut all, mut written) = (0_usize, 0_usize);
    walk_expressions(&kernel.body, &mut |expr| all += usize::from(expr.as_name() == Some(name)));
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, .. } = &stmt.kind {
            for target in targets {
                target.walk(&mut |expr| written += usize::from(expr.as_name() == Some(name)));
            }
        }
    });
    all > written
}
