//! H024: a loop whose step is negative and known at run time only.

use model::syntax::Span;

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H024",
        name: "backward-loop",
        severity: Severity::Warning,
        summary: "a loop that gets a negative step at run time, and does not run once",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds loops whose step is a parameter without `tl.constexpr` for which a launch passes a negative number.

## Why is this bad?
Loops of a kernel count upwards. Triton turns a loop round when it knows while compiling that the step is negative; a step that it
only gets at run time leaves a loop that does not run once.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scan(x, y, n, first, last, step):
    total = 0.0
    for i in tl.range(first, last, step):
        #                          ^^^^
        total = total * 0.9 + tl.load(x + i)
        tl.store(y + i, total)


def run(x, y):
    n = x.numel()
    scan[(1,)](x, y, n, n - 1, -1, -1)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scan(x, y, n, first, last, step: tl.constexpr):
    total = 0.0
    for i in tl.range(first, last, step):
        total = total * 0.9 + tl.load(x + i)
        tl.store(y + i, total)


def run(x, y):
    n = x.numel()
    scan[(1,)](x, y, n, n - 1, -1, -1)
```

## Sources
[triton#10950](https://github.com/triton-lang/triton/issues/10950).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for around in &known.facts.loops {
            let Some(step) = around.step.as_ref().and_then(|step| step.as_param()) else { continue };
            if known.kernel.param(step).is_none_or(|param| param.constexpr) {
                continue;
            }
            let is_negative = known.number(step).values().is_some_and(|values| values.iter().any(|step| *step < 0));
            let Some(argument) = known.argument(step).filter(|_| is_negative) else { continue };
            let place = step_in(context, around.span, step).unwrap_or(around.span);
            if seen.contains(&place) || context.is_for_other_compiler() {
                continue;
            }
            seen.push(place);
            let message = format!(
                "`{step}` is negative in a launch and known at run time only: the loop then does not run once; make it a \
                 `tl.constexpr`"
            );
            findings.push(
                Diagnostic::new(&RULE.declaration, place, message).with_related(argument.span, "a negative step"),
            );
        }
    }
}

/// The place of the name in the head of a loop.
fn step_in(context: &RuleContext<'_>, head: Span, step: &str) -> Option<Span> {
    let text = context.source.slice(head);
    let line = text.lines().next()?;
    let at = line.rfind(step)?;
    Some(Span::new(head.start + at, head.start + at + step.len()))
}
