//! H023: a tile size of the host that is not always a power of two.

use model::analysis::host::HostNames;
use model::analysis::types::index::Poly;
use model::analysis::types::shape::Dim;
use model::host::{HostNumber, HostOperator};
use model::syntax::Span;

use super::known_launch::AnalysedLaunch;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H023",
        name: "uneven-block",
        severity: Severity::Warning,
        summary: "a tile size that is computed from a size and is not a power of two for each of them",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds launches that pass for the length of a `tl.arange` a number which the host computes from a size (rounded up to a
multiple of 32, halved, or the size itself), and for which some size gives no power of two; and those that pass more than 1,048,576.

## Why is this bad?
`tl.arange` needs a power of two, and a tile has 1,048,576 elements at most: the kernel compiles for some sizes, and fails with a `ValueError` for others.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(value))


def run(x, y):
    rows, n = x.shape
    block = (n + 31) // 32 * 32
    #       ^^^^^^^^^^^^^^^^^^^
    total[(rows,)](x, y, n, BLOCK=block)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(value))


def run(x, y):
    rows, n = x.shape
    total[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n))
```

## When it is silent
When the function looks at the size in an assertion or a condition, and when the size is passed on as it is.

## Sources
[triton#8898](https://github.com/triton-lang/triton/issues/8898).
"#,
    },
    check,
};

/// The greatest number of elements of a tile (Triton's `TRITON_MAX_TENSOR_NUMEL`).
const MOST_ELEMENTS: i128 = 1 << 20;

/// The sizes that are tried.
const TRIED: std::ops::RangeInclusive<i128> = 1..=4096;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let mut seen: Vec<Span> = Vec::new();
    for known in context.launches() {
        for param in known.kernel.params.iter().filter(|param| param.constexpr) {
            let Some(argument) = known.argument(&param.name).filter(|argument| !seen.contains(&argument.span)) else {
                continue;
            };
            let number = known.number(&param.name);
            if let Some(length) = number.known().filter(|length| *length > MOST_ELEMENTS)
                && let Some(lane) = known.facts.lanes.iter().find(|lane| is_of(&lane.size, &param.name))
            {
                seen.push(argument.span);
                let message = format!(
                    "this is {length}, and a tile holds {MOST_ELEMENTS} elements at most: go through it in pieces"
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, argument.span, message)
                        .with_related(lane.span, "it is the length of this `tl.arange`"),
                );
                continue;
            }
            let Some((source, size, block)) = example(&known, &number) else { continue };
            let Some(lane) = known.facts.lanes.iter().find(|lane| is_of(&lane.size, &param.name)) else {
                continue;
            };
            if context.is_for_other_compiler() {
                return;
            }
            seen.push(argument.span);
            let names =
                HostNames::of(context.module, known.launch.host.and_then(|host| context.module.hosts.get(host)));
            let made = names.resolve(argument).span;
            if seen.contains(&made) {
                continue;
            }
            seen.push(made);
            let source = shown(&source);
            let message = format!(
                "for `{source}` = {size} this is {block}, and `tl.arange` needs a power of two; use `triton.next_power_of_2`"
            );
            findings.push(
                Diagnostic::new(&RULE.declaration, made, message)
                    .with_related(lane.span, "it is the length of this `tl.arange`"),
            );
        }
    }
}

fn is_of(size: &Dim, param: &str) -> bool {
    Poly::of_dim(size).is_some_and(|poly| poly.as_param() == Some(param))
}

/// The same for a quotient of two sizes.
fn quotient(
    known: &AnalysedLaunch<'_, '_>,
    number: &HostNumber,
    one: &str,
    other: &str,
) -> Option<(String, i128, i128)> {
    let HostNumber::Operation(operation) = number else { return None };
    let is_open = |source: &str| source.contains('.') && !known.run.is_checked(source);
    if operation.op != HostOperator::Python("//") || !is_open(one) || !is_open(other) {
        return None;
    }
    let block = number.evaluate(&|name| if name == one { Some(6) } else { (name == other).then_some(2) })?;
    (block == 3).then(|| (one.to_owned(), 6, block))
}

/// A size as the file writes it: `q.shape[1]` for `q@3.shape[1]`, the third tensor of this name.
fn shown(source: &str) -> String {
    match source.split_once('@') {
        Some((name, rest)) => format!("{name}{}", rest.trim_start_matches(|it: char| it.is_ascii_digit())),
        None => source.to_owned(),
    }
}

/// A size from outside for which a number of the host is positive and no power of two.
fn example(known: &AnalysedLaunch<'_, '_>, number: &HostNumber) -> Option<(String, i128, i128)> {
    // A size that is passed on as it is may be promised to be a power of two, and so may one that is only bounded.
    let HostNumber::Operation(operation) = number else { return None };
    let is_bounded = matches!(operation.op, HostOperator::Min | HostOperator::Max);
    let is_size = [&operation.left, &operation.right].into_iter().any(|part| matches!(part, HostNumber::Given(_)));
    let sources = number.sources()?;
    if let [one, other] = sources.as_slice() {
        return quotient(known, number, one, other);
    }
    let [source] = sources.as_slice() else { return None };
    // Names of parameters, such as `group_size`, stand for numbers that callers choose with care.
    let is_promised = is_bounded && is_size && !source.ends_with(".numel()");
    if known.run.is_checked(source) || !source.contains('.') || is_promised {
        return None;
    }
    TRIED.into_iter().find_map(|size| {
        let block = number.evaluate(&|name| (name == &**source).then_some(size))?;
        let is_power = u64::try_from(block).is_ok_and(u64::is_power_of_two);
        (block > 0 && !is_power).then(|| (source.to_string(), size, block))
    })
}
