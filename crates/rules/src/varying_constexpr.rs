//! H009: a size that varies between calls, passed as a compile-time parameter.

use model::analysis::host::{HostNames, Hosts, LocalBinding};
use model::analysis::launches::{ArgumentSource, passed};
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind};
use model::kernel::{Kernel, Launch, Module};

use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H009",
        name: "varying-constexpr",
        severity: Severity::Hint,
        summary: "a kernel that is compiled again for each size of a tensor without need",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: r#"
## What it does
Finds parameters annotated `tl.constexpr` that get the number of elements or rows of a tensor (`x.numel()`, `x.shape[0]`)
and that the kernel uses for nothing but arithmetic and masks, where a run-time value does as well.

## Why is this bad?
Triton compiles a kernel again for each value of a compile-time parameter, from a tenth of a second to several seconds each
time, and keeps every version. With sizes that change from call to call (batches, sequences, prompts) compiling takes longer
than running.

## Bad
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n_elements: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(out + offsets, factor * tl.load(x + offsets, mask=mask), mask=mask)


def double(x, out):
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, 2.0, n, BLOCK=1024)
    #                                           ^
```

## Good
```python
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(out + offsets, factor * tl.load(x + offsets, mask=mask), mask=mask)


def double(x, out):
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, 2.0, n, BLOCK=1024)
```

## When it is silent
Where the parameter is used for a shape, a condition, a loop or in a call of another function; about sizes of the later
dimensions, which a model fixes; about tensors that are named as weights or tables.

## Sources
[flash-attention#911](https://github.com/Dao-AILab/flash-attention/issues/911),
[vllm#42849](https://github.com/vllm-project/vllm/issues/42849), [vllm#45631](https://github.com/vllm-project/vllm/issues/45631),
[triton#3102](https://github.com/triton-lang/triton/issues/3102)
"#,
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut hosts = Hosts::new(module);
    for launch in module.launches.iter().filter(|launch| !launch.has_error) {
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| module.kernel(name)) else { continue };
        if kernel.has_error || kernel.nested {
            continue;
        }
        for param in kernel.params.iter().filter(|param| param.constexpr) {
            let ArgumentSource::Argument(argument) = passed(launch, kernel, &param.name) else { continue };
            if matches!(argument.kind, ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Compare { .. })
            {
                continue;
            }
            let names = hosts.around(launch);
            let tensor = varies(&names, argument).map(str::to_owned);
            let Some(tensor) = tensor.or_else(|| varies_through(context, &names, launch, kernel, &param.name)) else {
                continue;
            };
            if is_arithmetic_only(module, kernel, &param.name) {
                let message = format!(
                    "`{}` is compiled again for each size of `{tensor}`: `{}` is `tl.constexpr`, and the kernel uses it for \
                     arithmetic and masks only, where a run-time value does as well",
                    kernel.name, param.name
                );
                findings.push(
                    Diagnostic::new(&RULE.declaration, argument.span, message)
                        .with_related(param.span, "the compile-time parameter"),
                );
            }
        }
    }
}

/// The tensor whose number of elements or rows is passed, where it is a parameter of the host function.
fn varies<'a>(names: &HostNames<'a>, argument: &'a Expr) -> Option<&'a str> {
    if let Some(LocalBinding::Item(value, 0)) = argument.as_name().and_then(|name| names.binding(name)) {
        let shape = is_attribute(value, "shape").or_else(|| is_method(value.as_call()?, "size"));
        return tensor(names, shape?);
    }
    let value = names.resolve(argument);
    match &value.kind {
        ExprKind::Call(call) => {
            let rows = |at: &Expr| at.as_int() == Some(0);
            let subject = is_method(call, "numel").filter(|_| call.args.is_empty());
            let sized = || is_method(call, "size").filter(|_| matches!(call.args.as_slice(), [at] if rows(&at.value)));
            tensor(names, subject.or_else(sized)?)
        }
        ExprKind::Subscript { value, index } if matches!(index.as_slice(), [at] if at.as_int() == Some(0)) => {
            tensor(names, is_attribute(value, "shape")?)
        }
        _ => None,
    }
}

/// The same for a number that the function computes from the rows of a tensor, such as the stride of a new tensor with
/// one column for each of them.
fn varies_through<'a>(
    context: &RuleContext<'a>,
    names: &HostNames<'a>,
    launch: &Launch,
    kernel: &Kernel,
    param: &str,
) -> Option<String> {
    let known = context.launches().find(|known| known.launch.span == launch.span)?;
    if known.kernel.span != kernel.span {
        return None;
    }
    let number = known.number(param);
    // Rounding to a power of two, or choosing the smaller of two, leaves few different values.
    let text = number.to_string();
    if text.contains("next_power_of_2") || text.contains("min(") {
        return None;
    }
    number.sources()?.into_iter().find_map(|source| {
        let name = source.strip_suffix(".shape[0]").or_else(|| source.strip_suffix(".numel()"))?;
        let is_data = names.is_param(name) && !is_fixed(name);
        is_data.then(|| name.to_owned())
    })
}

fn is_attribute<'a>(expr: &'a Expr, wanted: &str) -> Option<&'a Expr> {
    match &expr.kind {
        ExprKind::Attribute { value, name, .. } if name == wanted => Some(value),
        _ => None,
    }
}

fn is_method<'a>(call: &'a Call, wanted: &str) -> Option<&'a Expr> {
    is_attribute(&call.func, wanted)
}

fn tensor<'a>(names: &HostNames<'a>, expr: &'a Expr) -> Option<&'a str> {
    let name = expr.as_name().filter(|name| names.is_param(name))?;
    (!is_fixed(name)).then_some(name)
}

/// Whether a tensor of this name most likely belongs to a model and has the same size in each call.
fn is_fixed(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["w", "cos", "sin"].contains(&lower.as_str())
        || ["weight", "param", "bias", "table", "cache", "freq", "scale", "quant", "packed", "expert"]
            .iter()
            .any(|word| lower.contains(word))
}

/// Whether a kernel uses `name` only where a run-time value works as well.
pub(super) fn is_arithmetic_only(module: &Module, kernel: &Kernel, name: &str) -> bool {
    let mut uses = 0;
    let fine = kernel.body.iter().all(|stmt| Uses { module, kernel, name, count: &mut uses }.stmt(stmt));
    fine && uses > 0
}

struct Uses<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    name: &'a str,
    count: &'a mut usize,
}

impl Uses<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> bool {
        let fine = match &stmt.kind {
            StmtKind::Assign { annotation: None, value: Some(value), targets } => {
                targets.iter().all(|target| !self.mentioned(target)) && self.expr(value)
            }
            StmtKind::AugAssign { target, value, .. } => !self.mentioned(target) && self.expr(value),
            StmtKind::Expr(expr) => self.expr(expr),
            _ => stmt.exprs().into_iter().all(|expr| !self.mentioned(expr)),
        };
        fine && stmt.bodies().into_iter().flatten().all(|inner| self.stmt(inner))
    }

    fn mentioned(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.walk(&mut |inner| found |= inner.as_name() == Some(self.name));
        found
    }

    fn expr(&mut self, expr: &Expr) -> bool {
        if !self.mentioned(expr) {
            return true;
        }
        match &expr.kind {
            ExprKind::Name(_) => {
                *self.count += 1;
                true
            }
            ExprKind::Binary { .. } | ExprKind::Compare { .. } | ExprKind::Unary { .. } => {
                expr.children().into_iter().all(|child| self.expr(child))
            }
            ExprKind::Call(call) => {
                let member = self.module.language_member(self.kernel, &call.func);
                let plain = ["load", "store", "where", "minimum", "maximum", "sum", "atomic_add"];
                let fine = member.as_deref().is_some_and(|name| plain.contains(&name));
                fine && call.args.iter().all(|arg| {
                    let data = arg
                        .keyword
                        .as_ref()
                        .is_none_or(|(name, _)| ["mask", "other", "value", "pointer"].contains(&name.as_str()));
                    if data { self.expr(&arg.value) } else { !self.mentioned(&arg.value) }
                })
            }
            _ => false,
        }
    }
}
