//! H028: the address of a tensor that is passed where a kernel takes a pointer.

use model::analysis::types::access::pointers;
use model::kernel::ast::ExprKind;

use super::{Declaration, Diagnostic, Edit, Findings, Fix, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H028",
        name: "address-argument",
        severity: Severity::Warning,
        summary: "`x.data_ptr()` passed for a pointer: a kernel gets an integer, which it cannot load from",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds launches that pass `x.data_ptr()` for a parameter that the kernel loads from or stores to.

## Why is this bad?
An address is an integer of 64 bits without an element type. The kernel does not compile: `tl.load` takes a pointer. Triton takes the address of a tensor
by itself.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x.data_ptr(), y, n, BLOCK=1024)
    #                               ^^^^^^^^^^^^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, 2 * tl.load(x + offsets, mask=mask), mask=mask)


def run(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## When it is silent
When the kernel casts the parameter to a pointer, and when it is reinterpreted.

## Fix
Passes the tensor.

## Sources
[triton#2943](https://github.com/triton-lang/triton/issues/2943).
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    if !context.file_mentions(&["data_ptr()"]) {
        return;
    }
    let mut seen = Vec::new();
    for known in context.launches() {
        let text = context.source.slice(known.kernel.span);
        if text.contains("pointer_type") || text.contains("bitcast") {
            continue;
        }
        let taken = pointers(context.module, known.kernel);
        for param in known.kernel.params.iter().filter(|param| taken.contains(param.name.as_str())) {
            let Some(argument) = known.argument(&param.name).filter(|argument| !seen.contains(&argument.span)) else {
                continue;
            };
            let Some(call) = argument.as_call().filter(|call| call.args.is_empty()) else { continue };
            let ExprKind::Attribute { value, name, .. } = &call.func.kind else { continue };
            if name != "data_ptr" || context.is_for_other_compiler() {
                continue;
            }
            seen.push(argument.span);
            let message = format!(
                "the kernel loads from `{}`, and gets an integer without an element type: pass the tensor",
                param.name
            );
            let mut found = Diagnostic::new(&RULE.declaration, argument.span, message)
                .with_related(param.name_span, "the kernel takes a pointer here");
            let edits = vec![Edit { span: argument.span, text: context.source.slice(value.span).to_owned() }];
            found.fix = Some(Fix { title: "Pass the tensor".to_owned(), edits });
            findings.push(found);
        }
    }
}
