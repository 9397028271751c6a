//! M016: a lock that is acquired and never released.

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::syntax::Span;

use super::loop_argument::is_bound;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M016",
        name: "unreleased-lock",
        severity: Severity::Warning,
        summary: "a lock that every program waits for and none gives back",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds loops that wait for a lock (`while tl.atomic_cas(lock, 0, 1) == 1`, `while tl.atomic_xchg(lock, 1) != 0`) at one address for all
programs, in kernels that write nothing else there, launched with more than one program.

## Why is this bad?
The first program takes the lock. All others wait forever, and the launch never ends.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, lock, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + offsets, mask=offsets < n, other=0.0))
    while tl.atomic_cas(lock, 0, 1) == 1:
    #     ^^^^^^^^^^^^^^^^^^^^^^^^^
        pass
    tl.atomic_add(y, part)


def run(x, y, lock):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, y, lock, n, BLOCK=1024)
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def total(x, y, lock, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + offsets, mask=offsets < n, other=0.0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_add(y, part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def run(x, y, lock):
    n = x.numel()
    total[(triton.cdiv(n, 1024),)](x, y, lock, n, BLOCK=1024)
```

## When it is silent
When the loop is in a branch or after a `return`, when the address is not a parameter or a number behind it, when anything else in the kernel writes through the same
pointer or gets it passed, and when a launch may have one program only. Whether as many programs as wait can run at the same
time is not looked at.

## Sources
The semantics of compare-and-swap. [triton#1452](https://github.com/triton-lang/triton/issues/1452) and
[triton#7402](https://github.com/triton-lang/triton/issues/7402) are about locks that do not end.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    if !text.contains("while ") || !text.contains("atomic_") || context.is_for_other_compiler() {
        return;
    }
    for kernel in context.module.kernels.iter().filter(|kernel| kernel.plain && !kernel.has_error) {
        for (call, span) in waits(context, kernel) {
            if is_shared(kernel, call) && !is_released(context, kernel, call) && starts_several(context, kernel) {
                let message = "the first program takes this lock, nothing in the kernel gives it back, and all other programs wait for \
                               ever; give it back with `tl.atomic_xchg` behind a `tl.debug_barrier()`";
                findings.push(Diagnostic::new(&RULE.declaration, span, message));
            }
        }
    }
}

/// The lock operations on which loops outside of branches spin.
fn waits<'a>(context: &RuleContext<'_>, kernel: &'a Kernel) -> Vec<(&'a Call, Span)> {
    let spins = kernel.body.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::While { test, body, .. } if body.iter().all(|stmt| stmt.kind == StmtKind::Pass) => Some(test),
        _ => None,
    });
    spins.filter_map(|test| taken(context, kernel, test)).collect()
}

/// The lock operation of a condition that is true once the lock is acquired.
fn taken<'a>(context: &RuleContext<'_>, kernel: &Kernel, test: &'a Expr) -> Option<(&'a Call, Span)> {
    let ExprKind::Compare { left, rest } = &test.kind else { return None };
    let [(op, right)] = rest.as_slice() else { return None };
    let (call, right) = (left.as_call()?, right.as_int()?);
    let number = |name: &str, at| call.argument(name, Some(at)).and_then(Expr::as_int);
    let held = match context.module.language_member(kernel, &call.func).as_deref()? {
        // An operation that writes the same number only reads the lock.
        "atomic_cas" => number("val", 2).filter(|held| number("cmp", 1).is_some_and(|free| free != *held))?,
        "atomic_xchg" if call.argument("mask", Some(2)).is_none() => number("val", 1)?,
        _ => return None,
    };
    let holds = (op == "==" && held == right) || (op == "!=" && held != right);
    holds.then_some((call, left.span))
}

/// Whether each program executes the operation, and all use the same address: a parameter, or a constant offset from
/// it.
fn is_shared(kernel: &Kernel, lock: &Call) -> bool {
    let pointer = lock.argument("pointer", Some(0)).map(|pointer| match &pointer.kind {
        ExprKind::Binary { op, left, right } if op == "+" && right.as_int().is_some() => left.as_ref(),
        _ => pointer,
    });
    let is_param = |name: &str| kernel.param(name).is_some() && !is_bound(&kernel.body, name);
    let mut leaves = false;
    walk_statements(&kernel.body, &mut |stmt| {
        leaves |= matches!(stmt.kind, StmtKind::Return(_)) && stmt.span.start < lock.args_span.start;
    });
    !leaves && pointer.and_then(Expr::as_name).is_some_and(is_param)
}

/// Whether other code may write through the lock's pointer or receive it.
fn is_released(context: &RuleContext<'_>, kernel: &Kernel, lock: &Call) -> bool {
    let names: Vec<&str> = lock.args.first().map(|arg| names_in(&arg.value)).unwrap_or_default();
    let mut released = names.is_empty();
    let is_lock = |expr: &Expr| names.iter().any(|name| expr.mentions(name));
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call().filter(|call| call.args_span != lock.args_span) else { return };
        let member = context.module.language_member(kernel, &call.func);
        released |= member.as_deref() != Some("load") && call.args.iter().any(|arg| is_lock(&arg.value));
    });
    // It may also be written through another name.
    walk_statements(&kernel.body, &mut |stmt| {
        released |=
            matches!(&stmt.kind, StmtKind::Assign { value: Some(value), .. } if is_lock(value) && !is_read(value));
    });
    released
}

fn is_read(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Call(_) | ExprKind::Compare { .. })
}

fn names_in(expr: &Expr) -> Vec<&str> {
    let mut names = Vec::new();
    expr.walk(&mut |part| names.extend(part.as_name()));
    names
}

/// Whether each launch starts several programs, except for small sizes.
fn starts_several(context: &RuleContext<'_>, kernel: &Kernel) -> bool {
    let mut launches = context.launches_of(kernel).peekable();
    launches.peek().is_some()
        && launches.all(|known| {
            let grid = known.passed.grid.as_deref().unwrap_or_default();
            grid.iter().any(|programs| programs.tiles().is_some() || programs.known().is_some_and(|count| count > 1))
        })
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// How many locks are found in a kernel of this body, launched so.
    fn found(body: &str, launch: &str) -> usize {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef helper(p):\n    tl.store(p, 0)\n\n@triton.jit\ndef k(x, lock, \
             n):\n{body}\n\ndef run(x, lock, n):\n    {launch}\n"
        );
        messages(&text, "M016").len()
    }

    const WAIT: &str = "while tl.atomic_cas(lock, 0, 1) == 1:\n    pass\ntl.store(x, tl.load(x) + 1)";
    const MANY: &str = "k[(64,)](x, lock, n)";

    #[test]
    fn locks_that_are_never_released_are_flagged() {
        assert_eq!(found(WAIT, MANY), 1);
        assert_eq!(found(&WAIT.replace("== 1", "!= 0"), "k[lambda meta: (triton.cdiv(n, 64),)](x, lock, n)"), 1);
        assert_eq!(found(&WAIT.replace("atomic_cas(lock, 0, 1)", "atomic_xchg(lock + 3, 1)"), MANY), 1);
        assert_eq!(found(&WAIT.replace("cas(lock, 0, 1)", "cas(lock, cmp=0, val=1)"), MANY), 1);
    }

    #[test]
    fn locks_that_may_be_released_are_not_flagged() {
        assert_eq!(found(&format!("{WAIT}\ntl.atomic_xchg(lock, 0)"), MANY), 0);
        assert_eq!(found(&format!("{WAIT}\ntl.store(lock, 0)"), MANY), 0);
        assert_eq!(found(&format!("{WAIT}\nhelper(lock)"), MANY), 0);
        assert_eq!(found(&format!("p = lock\n{WAIT}\ntl.store(p, 0)"), MANY), 0);
        assert_eq!(found(WAIT, "k[(1,)](x, lock, n)"), 0);
        assert_eq!(found(WAIT, "k[grid](x, lock, n)"), 0);
        assert_eq!(found(&WAIT.replace("cas(lock, 0, 1)", "cas(lock, 1, 1)"), MANY), 0, "it only asks");
        assert_eq!(found(&WAIT.replace("== 1", "== 0"), MANY), 0, "it waits for another program");
        assert_eq!(found(&WAIT.replace("(lock,", "(lock + tl.program_id(0),"), MANY), 0);
        let branch: String = WAIT.lines().map(|line| format!("    {line}\n")).collect();
        assert_eq!(found(&format!("if tl.program_id(0) == 0:\n{branch}"), MANY), 0);
        assert_eq!(found(&format!("if tl.program_id(0) > 0:\n    return\n{WAIT}"), MANY), 0);
    }
}
