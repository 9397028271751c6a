//! M019: a sum at loaded indices that loses updates.

use model::analysis::expressions::alike;
use model::analysis::types::AbstractValue;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};

use super::formula_reader::{self, FormulaReader};
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M019",
        name: "lost-update",
        severity: Severity::Hint,
        summary: "a sum that is loaded, increased and stored at indices which may repeat",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.store(out + index, tl.load(out + index) + value)` where `index` is a tile that was loaded.

## Why is this bad?
Lanes and programs whose index is the same read the same sum, and only one of their results remains. It is right where no
index occurs twice, such as in a permutation; `tl.atomic_add` is right always.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scatter(index, value, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    place = tl.load(index + offsets, mask=mask, other=0)
    more = tl.load(value + offsets, mask=mask, other=0.0)
    tl.store(out + place, tl.load(out + place, mask=mask) + more, mask=mask)
  # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^


def run(index, value, out):
    n = index.numel()
    scatter[(triton.cdiv(n, 256),)](index, value, out, n, BLOCK=256)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scatter(index, value, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    place = tl.load(index + offsets, mask=mask, other=0)
    more = tl.load(value + offsets, mask=mask, other=0.0)
    tl.atomic_add(out + place, more, mask=mask)
```

## When it is silent
When the kernel takes a lock, and when nothing is added.

## Sources
[triton#558](https://github.com/triton-lang/triton/issues/558), [triton#5326](https://github.com/triton-lang/triton/issues/5326).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| text.contains("store") && !text.contains("atomic_cas") && !text.contains("atomic_xchg");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| found.extend(look(context, reader, expr)));
        found
    }));
}

fn look<'a>(context: &RuleContext<'a>, reader: &FormulaReader<'a>, expr: &'a Expr) -> Option<Diagnostic> {
    let call = reader.call_of(expr, &["store"])?;
    let pointer = call.argument("pointer", Some(0))?;
    let sum = reader.uncast(call.argument("value", Some(1))?);
    let ExprKind::Binary { op, left, right } = &sum.kind else { return None };
    let is_own = |part: &&'a Expr| {
        let load = reader.call_of(reader.uncast(part), &["load"]);
        let from = load.and_then(|load| load.argument("pointer", Some(0)));
        from.is_some_and(|from| {
            alike(from, pointer) || alike(reader.definitions.behind(from), reader.definitions.behind(pointer))
        })
    };
    let sides: [&'a Expr; 2] = [left, right];
    let own = sides.iter().find(|part| is_own(part)).filter(|_| op == "+")?;
    let index = index_of(context, reader, pointer)?;
    let message = "lanes and programs with the same index overwrite each other's sum here; where an index can occur twice, use \
                   `tl.atomic_add`";
    Some(
        Diagnostic::new(&RULE.declaration, expr.span, message.to_owned())
            .with_related(own.span, "the sum is loaded here")
            .with_related(index.span, "the index is loaded here"),
    )
}

/// The load of a tile of indices in an address.
fn index_of<'a>(context: &RuleContext<'a>, reader: &FormulaReader<'a>, pointer: &'a Expr) -> Option<&'a Expr> {
    let mut load = None;
    reader.walk_through(pointer, &mut rustc_hash::FxHashSet::default(), &mut |part| {
        if reader.call_of(part, &["load"]).is_some() {
            load = Some(part);
        }
    });
    let load = load?;
    let is_tile = match reader.values(context)?.get(&load.span) {
        Some(AbstractValue::Tile(tile)) => tile.is_block(),
        _ => false,
    };
    is_tile.then_some(load)
}
