//! M015: strides that no tensor descriptor can have.

use model::analysis::constants::integer;
use model::analysis::definitions::Definitions;
use model::analysis::launches::{LaunchVariant, settings};
use model::analysis::types::dtype::Dtype;
use model::analysis::types::signature::{self, SignatureComment};
use model::analysis::types::{AbstractValue, LaneType};
use model::host::{HostDescriptor, HostRun};
use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind};
use model::syntax::Span;

use super::known_launch::KnownLaunch;
use super::loop_argument::is_bound;
use super::{Declaration, Diagnostic, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "M015",
        name: "descriptor-strides",
        severity: Severity::Warning,
        summary: "a tensor descriptor with a stride that is not a multiple of 16 bytes, or whose last stride is not 1",
        since: "0.1.0",
        fixable: false,
        tags: &[],
        doc: include_str!("descriptor_strides.md"),
    },
    check,
};

/// The required alignment of strides, in bytes.
const ALIGNMENT: i128 = 16;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let text = context.source.text();
    let (in_kernels, on_hosts) = (text.contains("make_tensor_descriptor"), text.contains("TensorDescriptor"));
    if !in_kernels && !on_hosts || context.is_for_other_compiler() {
        return;
    }
    for kernel in context.module.kernels.iter().filter(|kernel| in_kernels && !kernel.has_error) {
        in_kernel(context, kernel, findings);
    }
    for run in context.runs().iter().filter(|_| on_hosts) {
        findings.extend(run.descriptors.iter().filter_map(|descriptor| on_host(run, descriptor)));
    }
}

/// Whether a stride certainly is no multiple of 16 bytes.
fn is_misaligned(stride: i128, number: Option<Dtype>) -> bool {
    // No element type is larger than eight bytes.
    let bytes = number.map_or(8, Dtype::bytes);
    stride.checked_mul(i128::from(bytes)).is_some_and(|bytes| bytes % ALIGNMENT != 0)
}

/// The text for a stride and its element type in a message.
fn told(stride: i128, number: Option<Dtype>) -> String {
    match number {
        Some(number) => format!("{stride} elements of `{number}` are {} bytes", stride * i128::from(number.bytes())),
        None => format!("it is {stride}, which is odd"),
    }
}

fn in_kernel<'a>(context: &RuleContext<'a>, kernel: &'a Kernel, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut calls: Vec<&'a Call> = Vec::new();
    unconditional(&kernel.body, &mut |expr| {
        calls.extend(expr.as_call().filter(|call| {
            let member = module.language_member(kernel, &call.func);
            matches!(member.as_deref(), Some("make_tensor_descriptor" | "_experimental_make_tensor_descriptor"))
        }));
    });
    if calls.is_empty() {
        return;
    }
    let comment = signature::of(module, kernel, context.source.text());
    let known = Known { kernel, definitions: Definitions::of(kernel), comment: comment.as_ref() };
    let settings = settings(module, kernel);
    let ways: Vec<Option<&LaunchVariant<'_>>> =
        settings.iter().map(Some).chain(settings.is_empty().then_some(None)).collect();
    let mut seen: Vec<Span> = Vec::new();
    for way in ways {
        let launch = way.and_then(LaunchVariant::launch);
        let of_way = |site: &KnownLaunch<'_, '_>| launch.is_some_and(|launch| launch.span == site.launch.span);
        let mut sites: Vec<Option<KnownLaunch<'_, '_>>> =
            context.launches_of(kernel).filter(of_way).map(Some).collect();
        if sites.is_empty() {
            sites.push(None);
        }
        for (call, site) in calls.iter().flat_map(|call| sites.iter().map(move |site| (call, site.as_ref()))) {
            let Some((stride, message)) = known.look(call, way, site) else { continue };
            if !seen.contains(&stride) {
                seen.push(stride);
                let found = Diagnostic::new(&RULE.declaration, stride, message);
                findings.push(match launch {
                    Some(launch) => found.with_related(launch.args_span, "the launch"),
                    None => found,
                });
            }
        }
    }
}

/// Visits the expressions outside of branches: a branch may be taken only for valid strides.
fn unconditional<'a>(body: &'a [Stmt], visit: &mut dyn FnMut(&'a Expr)) {
    for stmt in body.iter().filter(|stmt| !matches!(stmt.kind, StmtKind::If { .. })) {
        stmt.exprs().into_iter().for_each(|expr| expr.walk(visit));
        stmt.bodies().into_iter().for_each(|body| unconditional(body, visit));
    }
}

/// The known values of integers in a kernel.
struct Known<'a, 's> {
    kernel: &'a Kernel,
    definitions: Definitions<'a>,
    comment: Option<&'s SignatureComment>,
}

impl<'a> Known<'a, '_> {
    fn look(
        &self,
        call: &'a Call,
        way: Option<&LaunchVariant<'_>>,
        site: Option<&KnownLaunch<'_, '_>>,
    ) -> Option<(Span, String)> {
        let strides = items(self.definitions.behind(call.argument("strides", Some(2))?))?;
        let (_, strides) = strides.split_last()?;
        let number = self.element(call.argument("base", Some(0))?, site);
        strides.iter().find_map(|stride| {
            let value = self.number(stride, way, site, 0).filter(|value| is_misaligned(*value, number))?;
            let message = format!(
                "each stride of a descriptor but the last must be a multiple of 16 bytes, and {}: GPUs with TMA go to other addresses, \
                 without a word",
                told(value, number)
            );
            Some((stride.span, message))
        })
    }

    /// The value of an integer expression of the kernel in one setting of a launch.
    fn number(
        &self,
        expr: &'a Expr,
        way: Option<&LaunchVariant<'_>>,
        site: Option<&KnownLaunch<'_, '_>>,
        depth: usize,
    ) -> Option<i128> {
        integer(expr, &|name| {
            if self.kernel.param(name).is_some() {
                return self.param(name, way, site).filter(|_| !is_bound(&self.kernel.body, name));
            }
            let value = self.definitions.only(name).filter(|_| depth < 8)?;
            self.number(value, way, site, depth + 1)
        })
    }

    fn param(&self, name: &str, way: Option<&LaunchVariant<'_>>, site: Option<&KnownLaunch<'_, '_>>) -> Option<i128> {
        let by_setting = || Some(way?.value(name)?.0);
        let by_size = || {
            let is_set =
                self.kernel.autotune.is_some() || self.kernel.heuristics.as_ref().is_none_or(|names| !names.is_empty());
            site.filter(|_| !is_set)?.number(name).known()
        };
        self.comment.and_then(|comment| comment.number(name)).or_else(by_setting).or_else(by_size)
    }

    fn element(&self, base: &'a Expr, site: Option<&KnownLaunch<'_, '_>>) -> Option<Dtype> {
        let base = leftmost(self.definitions.behind(base))?;
        match self.comment.and_then(|comment| comment.value(base)) {
            Some(AbstractValue::Tile(tile)) => match tile.element {
                LaneType::Pointer(number) => number,
                _ => None,
            },
            Some(_) => None,
            None => site?.tensor(base)?.dtype,
        }
    }
}

/// The name that a pointer starts from.
fn leftmost(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Binary { op, left, .. } if op == "+" => leftmost(left),
        _ => None,
    }
}

fn items(expr: &Expr) -> Option<&[Expr]> {
    match &expr.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            let starred = items.iter().any(|item| matches!(item.kind, ExprKind::Starred(_)));
            (!starred).then_some(items)
        }
        _ => None,
    }
}

fn on_host(run: &HostRun, descriptor: &HostDescriptor) -> Option<Diagnostic> {
    let number = descriptor.base.and_then(|base| run.tensor(base).dtype);
    // Unknown strides are not reported.
    let strides: Vec<(i128, Span)> =
        descriptor.strides.iter().map(|(stride, span)| (stride.known().unwrap_or(0), *span)).collect();
    let ((last, place), rest) = strides.split_last()?;
    if !matches!(*last, 0 | 1) {
        let message =
            format!("the last stride of a descriptor must be 1, and this is {last}: Triton raises an `AssertionError`");
        return Some(Diagnostic::new(&RULE.declaration, *place, message));
    }
    let (stride, place) = rest.iter().find(|(stride, _)| is_misaligned(*stride, number))?;
    let message = format!(
        "each stride of a descriptor but the last must be a multiple of 16 bytes, and {}: Triton raises an `AssertionError`",
        told(*stride, number)
    );
    Some(Diagnostic::new(&RULE.declaration, *place, message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// How many strides are found in a kernel with this descriptor, launched so.
    fn found(body: &str, launch: &str) -> usize {
        let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let launch: String = launch.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "import torch\nimport triton\nimport triton.language as tl\nfrom triton.tools.tensor_descriptor import \
             TensorDescriptor\n\n@triton.jit\ndef k(x, n, m, S: tl.constexpr):\n{body}    d.store([0, 0], tl.zeros((16, 16), tl.float32))\n\ndef run(x, \
             n):\n{launch}"
        );
        messages(&text, "M015").len()
    }

    const MADE: &str = "d = tl.make_tensor_descriptor(x, [n, m], [m, 1], [16, 16])";

    #[test]
    fn misaligned_strides_in_kernels_are_flagged() {
        let by_constant = MADE.replace("[m, 1]", "(S * 2 + 1, 1)");
        assert_eq!(found(&by_constant, "k[(1,)](x, n, n, S=8)"), 1);
        assert_eq!(found(&MADE.replace("[m, 1]", "[17, 1]"), "pass"), 1);
        assert_eq!(found(&MADE.replace("[m, 1]", "[18, 1]"), "pass"), 0, "two elements of 8 bytes");
        let half = "y = torch.empty(64, 20, dtype=torch.float16)\nk[(1,)](y, y.shape[0], y.shape[1], S=8)";
        assert_eq!(found(MADE, half), 1, "40 bytes");
        assert_eq!(found(MADE, &half.replace("20", "24")), 0);
        assert_eq!(found(MADE, &half.replace("float16", "float32")), 0);
        assert_eq!(found(MADE, "k[(1,)](x, n, n, S=8)"), 0);
        assert_eq!(found(&format!("m = m * 16\n{MADE}"), "k[(1,)](x, n, 5, S=8)"), 0);
        assert_eq!(found(&format!("if m % 16 == 0:\n    {MADE}"), "k[(1,)](x, n, 5, S=8)"), 0);
    }

    #[test]
    fn misaligned_strides_on_the_host_are_flagged() {
        let of = |made: &str| {
            found(MADE, &format!("y = torch.empty(64, 20, dtype=torch.float16)\nd = {made}\nk[(1,)](d, n, n, S=8)"))
        };
        assert_eq!(of("TensorDescriptor(y, [64, 20], [20, 1], [16, 16])"), 1);
        assert_eq!(of("TensorDescriptor(y, [64, 20], [24, 1], [16, 16])"), 0);
        assert_eq!(of("TensorDescriptor(y, [64, 20], [24, 2], [16, 16])"), 1);
        assert_eq!(of("TensorDescriptor(x, [n, 20], [n, 1], [16, 16])"), 0);
        assert_eq!(of("TensorDescriptor(y, shape=y.shape, strides=y.stride(), block_shape=[16, 16])"), 1);
        assert_eq!(of("TensorDescriptor.from_tensor(y, [16, 16])"), 1);
        assert_eq!(of("TensorDescriptor.from_tensor(x, [16, 16])"), 0);
        assert_eq!(of("TensorDescriptor.from_tensor(torch.empty(64, 32, dtype=torch.int8), [16, 16])"), 0);
        // A boolean takes a byte.
        assert_eq!(of("TensorDescriptor.from_tensor(torch.empty(64, 32, dtype=torch.bool), [16, 16])"), 0);
        assert_eq!(of("TensorDescriptor.from_tensor(torch.empty(64, 20, dtype=torch.bool), [16, 16])"), 1);
    }
}
