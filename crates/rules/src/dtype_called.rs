//! L002: a dtype called as if it were a function.

use model::analysis::flow::live;
use model::api::{Lookup, MemberKind};
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L002",
        name: "dtype-called",
        severity: Severity::Error,
        summary: "a dtype such as `tl.float32` called as if it were a function",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds calls of a dtype of `triton.language` in a kernel: `tl.float32(x)`.

## Why is this bad?
In NumPy and PyTorch a dtype is a class and calling it converts. In Triton `tl.float32` is an instance of `tl.dtype`,
which cannot be called: compilation stops with `TypeError("'dtype' object is not callable")`, whatever the argument, in
every version from 3.1 to 3.9.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    m = tl.float32(-float("inf"))
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^
    v = tl.load(x + offsets, mask=offsets < n, other=0.0)
    count = tl.float32(n)
    #       ^^^^^^^^^^^^^
    tl.store(y + offsets, v - m + count, mask=offsets < n)
```

The same by a name of its own, and in a form that has no automatic fix:

```python
import triton
from triton.language import constexpr, int64, load, store


@triton.jit
def first(x, y, BLOCK: constexpr):
    store(y, load(x) + int64())
    #                  ^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    m = tl.cast(-float("inf"), tl.float32)
    v = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    acc = tl.full([BLOCK], -1e30, tl.float32)
    kind = tl.dtype("fp32")
    tl.store(y + offsets, tl.maximum(v, acc) - m, mask=offsets < n)
```

A branch that is spelled out as dead is never compiled:

```python
import triton
import triton.language as tl


@triton.jit
def copy(x, y):
    if False:
        tl.store(y, tl.float32(1))
    tl.store(y, tl.load(x))
```

## Fix
`tl.cast(x, tl.float32)`, where there is exactly one argument. It compiles for literals, compile-time values, scalars and
tiles in every version.

## Sources
Re-executed on Triton 3.1.0, 3.6.0 and 3.9.0; nine versions from 3.1.0 to 3.9.0 reject it in the same words. Seen in
liger-kernel 0.8.5 (`ops/softmax.py`, three times). [`tl.cast`](https://triton-lang.org/main/python-api/generated/triton.language.cast.html)
"#,
    },
    check,
};

/// Every dtype of Triton 3.1 to 3.9.
const DTYPES: &[&str] = &[
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "pi32_t",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "void",
];

/// The dtypes to which no value can be cast.
const NOT_FOR_CAST: &[&str] = &["pi32_t", "void"];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(context.in_kernels(&RULE, |kernel| found(context, kernel)));
}

fn found(context: &RuleContext<'_>, kernel: &Kernel) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if !kernel.has_error {
        live(&kernel.body, &mut |stmt| {
            for expr in stmt.exprs() {
                expr.walk(&mut |expr| {
                    if let ExprKind::Call(call) = &expr.kind
                        && let Some(dtype) = dtype(context, kernel, &call.func)
                    {
                        found.push(report(context, kernel, expr.span, call, &dtype));
                    }
                });
            }
        });
    }
    found
}

/// The name of the dtype to which `func` certainly refers.
fn dtype(context: &RuleContext<'_>, kernel: &Kernel, func: &Expr) -> Option<String> {
    let resolved = context.module.resolve_in(kernel, func)?;
    let name = resolved.path.strip_prefix("triton.language.")?;
    let known = match context.target.lookup(&resolved.path) {
        Lookup::Found(member) => member.kind == MemberKind::Dtype,
        Lookup::Absent => false,
        Lookup::Undescribed => DTYPES.contains(&name),
    };
    (resolved.direct && known).then(|| name.to_owned())
}

fn report(context: &RuleContext<'_>, kernel: &Kernel, span: Span, call: &Call, dtype: &str) -> Diagnostic {
    let written = context.source.slice(call.func.span);
    let message = format!(
        "`{written}` is a dtype and cannot be called; use `tl.cast(x, {written})` or, for a tensor, `x.to({written})`"
    );
    let diagnostic = Diagnostic::new(&RULE.declaration, span, message);
    let [arg] = call.args.as_slice() else { return diagnostic };
    let plain = arg.keyword.is_none() && !matches!(arg.value.kind, ExprKind::Starred(_));
    let Some(cast) = context.module.language_name(kernel, "cast").filter(|_| plain && !NOT_FOR_CAST.contains(&dtype))
    else {
        return diagnostic;
    };
    let edits = vec![
        Edit { span: call.func.span, text: cast.clone() },
        Edit { span: Span::new(arg.span.end, arg.span.end), text: format!(", {written}") },
    ];
    diagnostic.with_fix(format!("Use `{cast}(…, {written})`"), edits)
}
