//! M029: an index that a masked load leaves undefined.

use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};

use super::formula_reader::{self, FormulaReader, MAX_DEPTH};
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M029",
        name: "unfilled-index",
        severity: Severity::Warning,
        summary: "an access without a mask at an index that was loaded with a mask and without `other`",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds accesses without a mask whose address contains a number that was loaded with a mask and without `other`.

## Why is this bad?
Where the mask is off, the loaded number is undefined, and so is the address: the access reads or writes anywhere.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def gather(x, index, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = tl.load(index + offsets, mask=mask)
    value = tl.load(x + row)
    #       ^^^^^^^^^^^^^^^^
    tl.store(y + offsets, value, mask=mask)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def gather(x, index, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row = tl.load(index + offsets, mask=mask, other=0)
    value = tl.load(x + row)
    tl.store(y + offsets, value, mask=mask)
```

## When it is silent
When the access has any mask, and when something is chosen or limited on the way, such as by `tl.where` or `tl.minimum`.

## Fix
Fills the lanes that the mask turns off with 0.

## Sources
[aiter](https://github.com/ROCm/aiter), `_triton_gather_kv_b_proj`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("load") && text.contains("mask");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| found.extend(look(reader, expr)));
        found
    }));
}

fn look<'a>(reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<Diagnostic> {
    let call = expr.as_call()?;
    let member = reader.member(call)?;
    let (is_access, mask_at) = match member.as_str() {
        "load" => (true, 1),
        "store" => (true, 2),
        name => (name.starts_with("atomic_"), 2),
    };
    if !is_access || call.has_star() || call.argument("mask", Some(mask_at)).is_some() {
        return None;
    }
    let pointer = call.argument("pointer", Some(0))?;
    let (load, mask) = unfilled(reader, pointer, 0)?;
    let message = "where the mask of the index is off, the index is undefined, and this access has no mask: fill the index with `other=0`, \
                   or mask this, too";
    let mut found = Diagnostic::new(&RULE.declaration, expr.span, message.to_owned())
        .with_related(mask.span, "the mask of the index");
    let at = load.args.last()?.value.span.end;
    let edits = vec![Edit { span: model::syntax::Span::new(at, at), text: ", other=0".to_owned() }];
    found.fix = Some(Fix { title: "Fill the index with 0".to_owned(), edits });
    Some(found)
}

/// A load with a mask and without `other` in a sum or product, with its mask.
fn unfilled<'a>(reader: &FormulaReader<'a>, expr: &'a Expr, depth: usize) -> Option<(&'a Call, &'a Expr)> {
    if depth > MAX_DEPTH {
        return None;
    }
    let within = |part| unfilled(reader, part, depth + 1);
    match &expr.kind {
        ExprKind::Name(name) => reader.definitions.only(name).and_then(within),
        ExprKind::Binary { op, left, right } if matches!(op.as_str(), "+" | "-" | "*") => {
            within(left).or_else(|| within(right))
        }
        ExprKind::Subscript { value, .. } => within(value),
        ExprKind::Call(call) => match &call.func.kind {
            ExprKind::Attribute { value, name, .. } if name == "to" && reader.member(call).is_none() => within(value),
            _ => {
                let call = reader.call_of(expr, &["load"])?;
                let mask = call.argument("mask", Some(1)).filter(|mask| mask.kind != ExprKind::None)?;
                let is_filled = call.argument("other", Some(2)).is_some() || call.has_star();
                // What is loaded through a pointer of pointers has a base of its own.
                (!is_filled).then_some((call, mask))
            }
        },
        _ => None,
    }
}
