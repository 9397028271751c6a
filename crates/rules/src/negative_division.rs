//! M007: `//` and `%` of a negative number.

use model::analysis::types::KernelAnalysis;
use model::analysis::types::access::Division;
use model::syntax::Span;

use super::memory_accesses::{at_first, kernels};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M007",
        name: "negative-division",
        severity: Severity::Warning,
        summary: "`//` or `%` of a run-time integer that certainly is negative somewhere",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `//` and `%` of a run-time integer that is negative in the first program, in the first lane and the first iteration of the
loops around, where Python and Triton give different results.

## Why is this bad?
At run time Triton divides like C: `-1 // 4` is 0 and `-1 % 4` is -1, while Python has -1 and 3. An index that is to wrap around
then points in front of the tensor.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def roll(x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    before = (lanes - 1) % BLOCK
    #        ^^^^^^^^^^^^^^^^^^^
    tl.store(y + lanes, tl.load(x + before))


def run(x, y):
    roll[(1,)](x, y, BLOCK=64)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def roll(x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    before = (lanes + BLOCK - 1) % BLOCK
    tl.store(y + lanes, tl.load(x + before))


def run(x, y):
    roll[(1,)](x, y, BLOCK=64)
```

## Sources
[triton#619](https://github.com/triton-lang/triton/issues/619), [triton#954](https://github.com/triton-lang/triton/issues/954),
[triton#4955](https://github.com/triton-lang/triton/issues/4955), [triton#4676](https://github.com/triton-lang/triton/issues/4676).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for (_, facts) in kernels(context) {
        for division in &facts.divisions {
            if !seen.contains(&division.span)
                && let Some(message) = differs(facts, division)
                && !context.is_for_other_compiler()
            {
                seen.push(division.span);
                findings.push(Diagnostic::new(&RULE.declaration, division.span, message));
            }
        }
    }
}

fn differs(facts: &KernelAnalysis, division: &Division) -> Option<String> {
    if division.branches > 0 || division.is_uncertain {
        return None;
    }
    let left = at_first(facts, &division.left.poly).filter(|left| *left < 0)?;
    let right = division.right.as_ref()?;
    match right.as_number() {
        Some(right) if right <= 0 || left % right == 0 => return None,
        Some(_) => {}
        // A size that an index wraps around at is greater than the number that is subtracted from the index.
        None => drop(right.as_param()?),
    }
    let op = &division.op;
    let (triton, python) =
        if op == "//" { ("rounds towards zero", "rounds down") } else { ("keeps the sign", "gives a positive number") };
    Some(format!(
        "what is left of `{op}` is {left} in the first lane of the first program, and Triton {triton} like C where Python {python}; add a \
         multiple of the divisor first"
    ))
}
