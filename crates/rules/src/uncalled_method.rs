//! H018: a method of a tensor that is tested instead of being called.

use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H018",
        name: "uncalled-method",
        severity: Severity::Warning,
        summary: "a check of a tensor's method that is not called, and so always holds",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: r#"
## What it does
Finds `assert x.is_contiguous` and the like, where the method is named and not called.

## Why is this bad?
A method is always true. The check never fails, and the kernel gets the tensors that it cannot handle.

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
    assert x.is_contiguous and y.is_cuda
    #      ^^^^^^^^^^^^^^^
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
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
    assert x.is_contiguous() and y.is_cuda
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
```

## Fix
Calls the method.

## Sources
[gpu-mode/lectures#20](https://github.com/gpu-mode/lectures/issues/20).
"#,
    },
    check,
};

/// Methods without arguments that ask something of a tensor, and that are properties of nothing else.
const QUESTIONS: [&str; 5] = ["is_contiguous", "is_pinned", "is_coalesced", "is_inference", "is_neg"];

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    for at in memchr::memmem::find_iter(text.as_bytes(), b".is_") {
        for name in QUESTIONS.into_iter().filter(|name| text[at + 1..].starts_with(name)) {
            let end = at + 1 + name.len();
            let follows = text[end..].trim_start_matches([' ', '\t']).chars().next();
            let is_longer = text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
            if is_longer || follows == Some('(') {
                continue;
            }
            if let Some(span) = tested(context, Span::new(at + 1, end)) {
                let message = format!("`{name}` is a method, which is always true: call it, `{name}()`");
                let edit = Edit { span: Span::new(end, end), text: "()".to_owned() };
                findings.push(
                    Diagnostic::new(&RULE.declaration, span, message).with_fix(format!("Call `{name}`"), vec![edit]),
                );
            }
        }
    }
}

/// The attribute whose name is at `name`, when its truth value is what counts: in an assertion, a condition, or an
/// operand of `and`, `or` and `not`.
fn tested(context: &RuleContext<'_>, name: Span) -> Option<Span> {
    let node = context.source.node_at(name)?.parent().filter(|node| node.kind() == "attribute")?;
    let mut inner = node;
    loop {
        let outer = inner.parent()?;
        let is_tested = match outer.kind() {
            "parenthesized_expression" | "boolean_operator" | "not_operator" => {
                inner = outer;
                continue;
            }
            "assert_statement" => outer.named_child(0) == Some(inner),
            "if_statement" | "elif_clause" | "while_statement" => outer.child_by_field_name("condition") == Some(inner),
            "conditional_expression" => outer.named_child(1) == Some(inner),
            _ => false,
        };
        return is_tested.then(|| model::syntax::node_span(node));
    }
}
