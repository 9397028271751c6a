//! M025: an assumption that does not hold for the first program.

use model::analysis::definitions::Definitions;
use model::analysis::types::index::LaneFact;
use model::analysis::types::{AbstractValue, Const};
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};

use super::memory_accesses::at_first;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M025",
        name: "false-assumption",
        severity: Severity::Warning,
        summary: "a `tl.assume` that does not hold in the first program",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds `tl.assume(pid > 0)` and the like, where the number is 0 in the first program, whatever the sizes are.

## Why is this bad?
The compiler builds on the assumption. In the program where it is wrong anything may happen: a branch or a check is gone that this
program needs.

## Bad
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.assume(pid > 0)
    #         ^^^^^^^
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets))
```

```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def grouped(pid, columns, GROUP: tl.constexpr):
    per_group = GROUP * columns
    return (pid // per_group) * GROUP, (pid % per_group) // GROUP


@triton.jit
def tiles(x, y, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row, column = grouped(tl.program_id(0), columns, GROUP)
    tl.assume(row > 0)
    #         ^^^^^^^
    offsets = (row * columns + column) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets))
```

## Good
```python triton=3.6
import triton
import triton.language as tl


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.assume(pid >= 0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, 2 * tl.load(x + offsets))
```

## Sources
[aiter](https://github.com/ROCm/aiter), which assumed `pid > 0` in several kernels.
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    findings.extend(context.kept_in_kernels(RULE.declaration.code, |at| found(context, at)));
}

/// The findings in the kernel with this index.
fn found(context: &RuleContext<'_>, at: usize) -> Vec<Diagnostic> {
    let kernel = &context.module.kernels[at];
    if kernel.has_error || !context.mentions(kernel, &["assume"]) {
        return Vec::new();
    }
    let (values, facts, mut found) = (context.values(at), context.facts_of(at), Vec::new());
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        if context.module.language_member(kernel, &call.func).as_deref() != Some("assume") {
            return;
        }
        let Some(test) = call.args.first().map(|arg| &arg.value) else { return };
        let ExprKind::Compare { left, rest } = &test.kind else { return };
        let [(op, right)] = rest.as_slice() else { return };
        let first = |side: &Expr| match values.get(&side.span) {
            Some(AbstractValue::Const(Const::Int(number))) => Some(*number),
            Some(AbstractValue::Tile(tile)) => match &tile.about {
                LaneFact::Index(index) if index.base.is_none() => at_first(&facts, &index.poly),
                _ => None,
            },
            _ => side.as_int(),
        };
        let first = |side: &Expr| {
            first(side).or_else(|| FirstProgram::new(context.module, kernel).is_zero(side, 0).then_some(0))
        };
        let (Some(a), Some(b)) = (first(left), first(right)) else { return };
        let holds = match op.as_str() {
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            "!=" => a != b,
            _ => return,
        };
        if !holds {
            let message =
                format!("in the first program this is {a} {op} {b}, which is false: the compiler builds on it");
            found.push(Diagnostic::new(&RULE.declaration, test.span, message));
        }
    });
    found
}

/// The deepest expression that is followed.
const MAX_DEPTH: usize = 24;

/// What holds in the program whose numbers are all 0.
struct FirstProgram<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    definitions: Definitions<'a>,
    /// Parameters that are 0, of a helper.
    zeros: Vec<&'a str>,
}

impl<'a> FirstProgram<'a> {
    fn new(module: &'a Module, kernel: &'a Kernel) -> Self {
        Self { module, kernel, definitions: Definitions::of(kernel), zeros: Vec::new() }
    }

    /// Whether an expression certainly is 0, whatever the sizes are. A divisor is taken not to be 0.
    fn is_zero(&self, expr: &'a Expr, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let zero = |part: &'a Expr| self.is_zero(part, depth + 1);
        match &expr.kind {
            ExprKind::Int(_) => expr.as_int() == Some(0),
            ExprKind::Name(name) => self.zeros.contains(&name.as_str()) || self.is_zero_name(name, depth),
            ExprKind::Binary { op, left, right } => match op.as_str() {
                "+" | "-" | "|" => zero(left) && zero(right),
                "*" | "&" => zero(left) || zero(right),
                "//" | "%" => zero(left),
                _ => false,
            },
            ExprKind::Call(call) => self.is_zero_call(call, None, depth),
            _ => false,
        }
    }

    fn is_zero_name(&self, name: &'a str, depth: usize) -> bool {
        if self.kernel.param(name).is_some() {
            return false;
        }
        match self.definitions.all(name) {
            Some(values) => !values.is_empty() && values.into_iter().all(|value| self.is_zero(value, depth + 1)),
            None => self.is_zero_part(name, depth),
        }
    }

    /// Whether a name is bound only by tuples of which its part is 0: `pid_m, pid_n = grouped(pid, m, n)`.
    fn is_zero_part(&self, name: &str, depth: usize) -> bool {
        let (mut count, mut zeros) = (0_usize, 0_usize);
        walk_statements(&self.kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                for target in targets {
                    if target.as_name() == Some(name) {
                        count += 1;
                        zeros += usize::from(self.is_zero(value, depth + 1));
                    } else if let ExprKind::Tuple(parts) = &target.kind {
                        let Some(at) = parts.iter().position(|part| part.as_name() == Some(name)) else { continue };
                        count += 1;
                        let is_zero = match &value.kind {
                            ExprKind::Tuple(values) => {
                                values.get(at).is_some_and(|value| self.is_zero(value, depth + 1))
                            }
                            ExprKind::Call(call) => self.is_zero_call(call, Some(at), depth),
                            _ => false,
                        };
                        zeros += usize::from(is_zero);
                    }
                }
            }
            StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } if target.mentions(name) => count += 1,
            _ => {}
        });
        count > 0 && count == zeros
    }

    /// Whether a call, or a part of the tuple that it returns, is 0.
    fn is_zero_call(&self, call: &'a Call, part: Option<usize>, depth: usize) -> bool {
        let zero = |expr: &'a Expr| self.is_zero(expr, depth + 1);
        if let Some(member) = self.module.language_member(self.kernel, &call.func) {
            return match member.as_str() {
                "program_id" => true,
                "multiple_of" | "max_contiguous" | "cast" | "cdiv" => {
                    call.args.first().is_some_and(|arg| zero(&arg.value))
                }
                _ => false,
            };
        }
        if let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && matches!(name.as_str(), "to" | "cast")
        {
            return zero(value);
        }
        let callee = call.func.as_name().and_then(|name| self.module.kernel(name)).filter(|_| depth < MAX_DEPTH / 2);
        let Some(callee) = callee.filter(|callee| !callee.has_error && callee.span != self.kernel.span) else {
            return false;
        };
        let mut within = Self::new(self.module, callee);
        for (at, param) in callee.params.iter().enumerate() {
            if call.argument(&param.name, Some(at)).is_some_and(zero) {
                within.zeros.push(&param.name);
            }
        }
        let (mut returns, mut zeros) = (0_usize, 0_usize);
        walk_statements(&callee.body, &mut |stmt| {
            if let StmtKind::Return(value) = &stmt.kind {
                returns += 1;
                let value = value.as_ref().and_then(|value| match (part, &value.kind) {
                    (Some(at), ExprKind::Tuple(parts)) => parts.get(at),
                    (None, _) => Some(value),
                    _ => None,
                });
                zeros += usize::from(value.is_some_and(|value| within.is_zero(value, depth + 1)));
            }
        });
        returns > 0 && returns == zeros
    }
}
