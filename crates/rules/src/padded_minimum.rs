//! M031: a minimum over lanes that a masked load has filled with 0.

use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M031",
        name: "padded-minimum",
        severity: Severity::Warning,
        summary: "a minimum of a masked load that fills the other lanes with 0, which is less than every positive number",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.min` and `tl.argmin` of a masked load with `other=0`.

## Why is this bad?
The lanes that the mask turns off take part. Where all numbers are positive, the minimum is 0 and its place is behind the end.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def nearest(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    distance = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    best = tl.argmin(distance, axis=0)
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + row, best)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def nearest(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    distance = tl.load(x + row * stride + columns, mask=columns < n, other=float("inf"))
    best = tl.argmin(distance, axis=0)
    tl.store(y + row, best)
```

## When it is silent
When anything happens to the numbers between the load and the minimum except for a cast.

## Fix
Fills the lanes with infinity, where the load fills them with a float.

## Sources
[FlagGems#6447](https://github.com/flagos-ai/FlagGems/issues/6447).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("min(") && text.contains("other");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| found.extend(look(reader, expr)));
        found
    }));
}

fn look<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<Diagnostic> {
    let call = reader.call_of(expr, &["min", "argmin"])?;
    let input = reader.uncast(call.argument("input", Some(0))?);
    let load = reader.call_of(input, &["load"])?;
    load.argument("mask", Some(1)).filter(|mask| mask.kind != ExprKind::None)?;
    let fill = load.argument("other", Some(2))?;
    if !matches!(fill.kind, ExprKind::Int(0) | ExprKind::Float(0.0)) {
        return None;
    }
    let message =
        "the lanes that the mask turns off hold 0, which is less than every positive number: fill them with infinity";
    let mut found =
        Diagnostic::new(&RULE.declaration, expr.span, message.to_owned()).with_related(fill.span, "filled with 0 here");
    if matches!(fill.kind, ExprKind::Float(_)) {
        let edits = vec![Edit { span: fill.span, text: "float(\"inf\")".to_owned() }];
        found.fix = Some(Fix { title: "Fill the lanes with infinity".to_owned(), edits });
    }
    Some(found)
}
