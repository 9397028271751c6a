//! L027: the result of a reduction that is broadcast along the axis that it has lost.

use std::sync::Arc;

use model::analysis::types::access::MemoryAccess;
use model::analysis::types::shape::{Dim, Shape};
use model::analysis::types::{AbstractValue, KernelAnalysis};
use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};
use model::syntax::Span;
use rustc_hash::FxHashSet as HashSet;

use super::context::SpanValues;
use super::formula_reader::{self, FormulaReader, MAX_DEPTH};
use super::memory_accesses::index;
use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L027",
        name: "misplaced-reduction",
        severity: Severity::Warning,
        summary: "a tile and its reduction along the last axis, which do not line up without `[:, None]`",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds a tile with the axes `[M, N]` that is combined with the result of a reduction along its last axis, which has the axis `[M]`.

## Why is this bad?
Axes line up from the last one: `[M]` stands beside `N`. If the two sizes differ, the kernel does not compile; if they are equal, each column gets the
number of a row.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def center(x, y, stride, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    offsets = rows[:, None] * stride + tl.arange(0, N)[None, :]
    value = tl.load(x + offsets)
    result = value - tl.sum(value, axis=1) / N
    #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    tl.store(y + offsets, result)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def center(x, y, stride, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    offsets = rows[:, None] * stride + tl.arange(0, N)[None, :]
    value = tl.load(x + offsets)
    result = value - tl.sum(value, axis=1)[:, None] / N
    tl.store(y + offsets, result)
```

## When it is silent
When the sizes are numbers: then the shapes are compared, and an error is reported.

## Fix
Adds the axis to the reduction.

## Sources
[attorch](https://github.com/BobMcDear/attorch), `rms_norm_backward_kernel`.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let may_be = |text: &str| ["sum(", "max(", "min("].iter().any(|name| text.contains(name)) && text.contains("None");
    findings.extend(formula_reader::find(context, &RULE, &may_be, |reader| {
        let Some(at) = context.module.kernels.iter().position(|kernel| kernel.span == reader.kernel.span) else {
            return Vec::new();
        };
        let shapes = Shapes { reader, values: context.values(at), facts: context.facts_of(at) };
        let mut found = Vec::new();
        walk_expressions(&reader.kernel.body, &mut |expr| {
            let ExprKind::Binary { left, right, .. } = &expr.kind else { return };
            for (tile, row) in [(left, right), (right, left)] {
                if let Some(reduction) = reduction(reader, row, &mut HashSet::default())
                    && let (Some(whole), Some(part)) = (shapes.of(tile, 0), shapes.of(row, 0))
                    && is_misplaced(&whole, &part)
                {
                    found.push(diagnostic(expr, reduction, &whole));
                }
            }
        });
        found
    }));
}

/// The shapes of a kernel's tiles, also of those whose type depends on the launch.
struct Shapes<'c, 'a> {
    reader: &'c FormulaReader<'a>,
    values: Arc<SpanValues>,
    facts: Arc<KernelAnalysis>,
}

impl<'a> Shapes<'_, 'a> {
    fn of(&self, expr: &'a Expr, depth: usize) -> Option<Shape> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(AbstractValue::Tile(tile)) = self.values.get(&expr.span)
            && let Some(shape) = &tile.shape
        {
            return Some(shape.clone());
        }
        let within = |part: &'a Expr| self.of(part, depth + 1);
        match &expr.kind {
            ExprKind::Name(name) => self.reader.definitions.only(name).and_then(within),
            ExprKind::Unary { operand, .. } => within(operand),
            // A scalar or a side that is not known takes the shape of the other.
            ExprKind::Binary { left, right, .. } => {
                let (left, right) = (within(left), within(right));
                let rank = |shape: &Option<Shape>| shape.as_ref().map_or(0, |shape| shape.len());
                if rank(&left) >= rank(&right) { left } else { right }
            }
            ExprKind::Call(call) => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if name == "to" && self.reader.member(call).is_none() => {
                    within(value)
                }
                _ => self.of_call(call, expr, depth),
            },
            _ => None,
        }
    }

    /// The shape of an access whose pointer counts one `tl.arange` along each axis.
    fn along(&self, access: &MemoryAccess) -> Option<Shape> {
        let size = |lanes: &Vec<u32>| match lanes.as_slice() {
            [lane] => Some(self.facts.lanes.get(*lane as usize)?.size.clone()),
            _ => None,
        };
        index(access)?.axes.iter().map(size).collect()
    }

    fn of_call(&self, call: &'a Call, expr: &Expr, depth: usize) -> Option<Shape> {
        let first = || self.of(&call.args.first()?.value, depth + 1);
        match self.reader.member(call)?.as_str() {
            "load" => {
                let access = self.facts.accesses.iter().find(|access| access.span == expr.span)?;
                access.pointer.shape.clone().or_else(|| self.along(access))
            }
            "exp" | "exp2" | "log" | "log2" | "sqrt" | "rsqrt" | "abs" | "sigmoid" => first(),
            "sum" | "max" | "min" => {
                let keeps =
                    call.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == "keep_dims"));
                let axis = usize::try_from(call.argument("axis", Some(1))?.as_int()?).ok().filter(|_| !keeps)?;
                let mut shape = first()?.to_vec();
                if axis >= shape.len() {
                    return None;
                }
                shape.remove(axis);
                Some(shape.into())
            }
            _ => None,
        }
    }
}

/// Whether the only axis of `part` is the first of `whole` and not the last.
fn is_misplaced(whole: &Shape, part: &Shape) -> bool {
    let ([first, last], [only]) = (&**whole, &**part) else { return false };
    let is_symbol = |size: &Dim| matches!(size, Dim::Symbol(_));
    is_symbol(first) && is_symbol(last) && only == first && only != last
}

/// The reduction along the last axis from which an expression is computed, with numbers alone. Each expression is looked
/// at once.
fn reduction<'a>(reader: &FormulaReader<'a>, expr: &'a Expr, seen: &mut HashSet<Span>) -> Option<&'a Expr> {
    let expr = reader.definitions.behind(expr);
    if !seen.insert(expr.span) {
        return None;
    }
    match &expr.kind {
        ExprKind::Binary { left, right, .. } => {
            reduction(reader, left, seen).or_else(|| reduction(reader, right, seen))
        }
        ExprKind::Unary { operand, .. } => reduction(reader, operand, seen),
        _ => {
            let call = reader.call_of(expr, &["sum", "max", "min"])?;
            let axis = call.argument("axis", Some(1)).and_then(Expr::as_int);
            matches!(axis, Some(1 | -1)).then_some(expr)
        }
    }
}

fn diagnostic(expr: &Expr, reduction: &Expr, whole: &Shape) -> Diagnostic {
    let sizes: Vec<String> = whole.iter().map(Dim::to_string).collect();
    let message = format!(
        "axes line up from the last one, so that the reduction with the axis `[{}]` stands beside the last axis of `[{}]`: add `[:, None]`",
        sizes.first().map_or("", String::as_str),
        sizes.join(", ")
    );
    let mut found = Diagnostic::new(&RULE.declaration, expr.span, message);
    let at = reduction.span.end;
    let edits = vec![Edit { span: Span::new(at, at), text: "[:, None]".to_owned() }];
    found.fix = Some(Fix { title: "Add the axis".to_owned(), edits });
    found
}
