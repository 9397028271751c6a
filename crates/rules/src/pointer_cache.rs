//! H012: a copy of a tensor cached under its address.

use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_statements};
use model::kernel::{HostFunction, Module};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H012",
        name: "pointer-cache",
        severity: Severity::Warning,
        summary: "a copy of a tensor that is cached under the tensor's address alone",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds caches that keep a converted copy of a tensor (`w.t().contiguous()`, `w.to(…)`, …) under a key made of
`w.data_ptr()`, without its version.

## Why is this bad?
The address of a tensor stays the same when its contents change: after a step of the optimizer or `load_state_dict` the
cache gives the old copy. An address is also given out again when the tensor is freed.

## Bad
```python
import torch
import triton
import triton.language as tl

_transposed = {}


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask), mask=mask)


def transposed(weight):
    key = (weight.data_ptr(), weight.shape)
    #      ^^^^^^^^^^^^^^^^^
    if key not in _transposed:
        _transposed[key] = weight.t().contiguous()
    return _transposed[key]
```

## Good
```python
import torch
import triton
import triton.language as tl

_transposed = {}


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask), mask=mask)


def transposed(weight):
    key = (weight.data_ptr(), weight._version, weight.shape)
    if key not in _transposed:
        _transposed[key] = weight.t().contiguous()
    return _transposed[key]
```

## When it is silent
About what is kept under such a key but does not depend on the contents, such as descriptors, and in functions that look at
`_version`.

## Sources
Seen in released collections of generated kernels.
[`Tensor._version`](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks) counts the
changes in place.
"#,
    },
    check,
};

/// Methods that copy the contents of a tensor (`to` may).
const COPIES: [&str; 9] = ["bfloat16", "clone", "contiguous", "cpu", "double", "float", "half", "int", "to"];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    let mut done = 0;
    for at in memchr::memmem::find_iter(text.as_bytes(), ".data_ptr()") {
        if at < done {
            continue;
        }
        let Some(function) = Module::function_around(context.source, at) else { continue };
        done = function.span.end;
        if !context.source.slice(function.span).contains("_version") {
            findings.extend(look(&function));
        }
    }
}

fn look(function: &HostFunction) -> Option<Diagnostic> {
    // The keys by name, with the tensor whose address they contain.
    let mut keys: Vec<(&str, &Expr, Vec<&str>)> = Vec::new();
    let mut values: Vec<(&str, &Expr)> = Vec::new();
    let mut found = None;
    walk_statements(&function.body, &mut |stmt| {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return };
        let [target] = targets.as_slice() else { return };
        if let Some(name) = target.as_name() {
            values.push((name, value));
            if let Some((call, tensor)) = address(value) {
                keys.push((name, call, tensor));
            }
            return;
        }
        let ExprKind::Subscript { index, .. } = &target.kind else { return };
        let [index] = index.as_slice() else { return };
        let named = || {
            let name = index.as_name()?;
            keys.iter().find(|(key, ..)| *key == name).map(|(_, call, tensor)| (*call, tensor.clone()))
        };
        let Some((call, tensor)) = address(index).or_else(named) else { return };
        let kept = value.as_name().and_then(|name| values.iter().rev().find(|(known, _)| *known == name));
        let kept = kept.map_or(value, |(_, value)| value);
        if found.is_none() && copies(kept, &tensor) {
            let tensor = tensor.join(".");
            let message = format!(
                "the address of `{tensor}` stays the same when its contents change, and the copy kept under it is stale then; \
                 put `{tensor}._version` into the key"
            );
            found = Some(Diagnostic::new(&RULE.declaration, call.span, message).with_related(stmt.span, "the copy"));
        }
    });
    found
}

/// The call `x.data_ptr()` in an expression, and the path of `x`.
fn address(expr: &Expr) -> Option<(&Expr, Vec<&str>)> {
    let mut found = None;
    expr.walk(&mut |inner| {
        if let Some(call) = inner.as_call()
            && let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && name == "data_ptr"
            && found.is_none()
        {
            found = value.dotted().map(|tensor| (inner, tensor));
        }
    });
    found
}

/// Whether an expression is a chain of methods on `tensor` of which one copies it.
fn copies(expr: &Expr, tensor: &[&str]) -> bool {
    let (mut at, mut copied) = (expr, false);
    loop {
        if at.dotted().as_deref() == Some(tensor) {
            return copied;
        }
        at = match &at.kind {
            ExprKind::Call(call) => &call.func,
            ExprKind::Attribute { value, name, .. } => {
                copied |= COPIES.contains(&name.as_str());
                value
            }
            _ => return false,
        };
    }
}
