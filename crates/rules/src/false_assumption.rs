//! M025: an assumption that does not hold for the first program.

use model::analysis::types::index::LaneFact;
use model::analysis::types::{AbstractValue, Const};
use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::memory_accesses::at_first;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M025",
        name: "false-assumption",
        severity: Severity::Warning,
        summary: "a `tl.assume` that does not hold in the first program",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.assume(pid > 0)` and the like, where the number is 0 in the first program.

## Why is this bad?
The compiler builds on the assumption. In the program where it is wrong anything may happen: a branch or a check is gone that this
program needs.

## Bad
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.assume(pid > 0)
    #         ^^^^^^^
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets))
```

## Good
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.assume(pid >= 0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets))
```

## Sources
[aiter](https://github.com/ROCm/aiter), which assumed `pid > 0` in several kernels.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    for (at, kernel) in context.module.kernels.iter().enumerate() {
        if kernel.has_error || !context.mentions(kernel, &["assume"]) {
            continue;
        }
        let (values, facts) = (context.values(at), &context.facts()[at]);
        walk_expressions(&kernel.body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            if context.module.language_member(kernel, &call.func).as_deref() != Some("assume") {
                return;
            }
            let Some(test) = call.args.first().map(|arg| &arg.value) else { return };
            let ExprKind::Compare { left, rest } = &test.kind else { return };
            let [(op, right)] = rest.as_slice() else { return };
            let first = |side: &Expr| match values.get(&side.span) {
                Some(AbstractValue::Const(Const::Int(number))) => Some(*number),
                Some(AbstractValue::Tile(tile)) => match &tile.about {
                    LaneFact::Index(index) if index.base.is_none() => at_first(facts, &index.poly),
                    _ => None,
                },
                _ => side.as_int(),
            };
            let (Some(a), Some(b)) = (first(left), first(right)) else { return };
            let holds = match op.as_str() {
                "<" => a < b,
                "<=" => a <= b,
                ">" => a > b,
                ">=" => a >= b,
                "!=" => a != b,
                _ => return,
            };
            if !holds {
                let message =
                    format!("in the first program this is {a} {op} {b}, which is false: the compiler builds on it");
                findings.push(Diagnostic::new(&RULE.declaration, test.span, message));
            }
        });
    }
}
