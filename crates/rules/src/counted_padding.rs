//! M023: a histogram that counts the padding of a masked load.

use model::kernel::ast::{Expr, walk_expressions};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M023",
        name: "counted-padding",
        severity: Severity::Warning,
        summary: "a `tl.histogram` of a masked load, which counts the lanes that the mask turns off",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.histogram(x, bins)` without `mask` where `x` was loaded with a mask and a number for the other lanes.

## Why is this bad?
A histogram counts all lanes. Those behind the end hold the number that the load filled in, and its bin is too large.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def count(x, y, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0)
    bins = tl.histogram(value, BINS)
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.atomic_add(y + tl.arange(0, BINS), bins)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def count(x, y, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask, other=0)
    padding = BLOCK - tl.sum(mask.to(tl.int32))
    bins = tl.histogram(value, BINS)
    bins = tl.where(tl.arange(0, BINS) == 0, bins - padding, bins)
    tl.atomic_add(y + tl.arange(0, BINS), bins)
```

From Triton 3.4 on `tl.histogram(value, BINS, mask=mask)` counts no padding.

## When it is silent
When something is subtracted from the counts, or they are chosen with `tl.where`.

## Fix
Passes the mask of the load, which `tl.histogram` takes from Triton 3.4 on.

## Sources
[triton#4825](https://github.com/triton-lang/triton/issues/4825).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(formula_reader::find(context, &RULE, &|text| text.contains("histogram"), |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| found.extend(look(context, reader, expr)));
        found
    }));
}

fn look<'a>(context: &RuleContext<'a>, reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<Diagnostic> {
    let call = reader.call_of(expr, &["histogram"])?;
    if call.argument("mask", Some(2)).is_some() || is_corrected(context, reader) {
        return None;
    }
    let load = reader.call_of(reader.definitions.behind(call.argument("input", Some(0))?), &["load"])?;
    let mask = load.argument("mask", Some(1))?;
    load.argument("other", Some(2))?;
    let message = "the lanes that the mask of the load turns off are counted, too: pass the mask to `tl.histogram` (from \
                   Triton 3.4 on), or subtract them";
    let mut found = Diagnostic::new(&RULE.declaration, expr.span, message.to_owned())
        .with_related(mask.span, "the mask of the load");
    if let (Some(name), Some(last)) = (mask.as_name(), call.args.last())
        && context.target.table.version.series() >= (3, 4)
    {
        let at = last.span.end;
        let edits = vec![Edit { span: model::syntax::Span::new(at, at), text: format!(", mask={name}") }];
        found.fix = Some(Fix { title: format!("Pass `mask={name}`"), edits });
    }
    Some(found)
}

/// Whether the kernel subtracts or chooses something, which may take the padding out of the counts.
fn is_corrected(context: &RuleContext<'_>, reader: &FormulaReader<'_>) -> bool {
    let text = context.source.slice(reader.kernel.def_span);
    text.contains(" - ") || text.contains("-=") || text.contains(".where(")
}
