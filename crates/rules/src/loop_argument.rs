//! H016: the variable of a host loop, passed as an argument for whose values Triton specializes the kernel.

use std::collections::{BTreeSet, HashMap};

use model::analysis::constants::binary;
use model::analysis::launches::{ArgumentSource, certainly_launched, passed};
use model::analysis::tuning::{NameList, Tuner};
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Param};
use model::syntax::Span;

use super::unit_argument::is_specialized;
use super::varying_constexpr::is_arithmetic_only;
use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H016",
        name: "loop-argument",
        severity: Severity::Hint,
        summary: "the variable of a loop passed to a kernel, which is compiled or tuned again for each of its values",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("loop_argument.md"),
    },
    check,
};

/// The number of iterations that are examined in a loop whose end is not known.
const ROUNDS: usize = 64;

/// The length up to which chains of names that derive from a parameter are followed.
const MAX_ROUNDS: usize = 16;

/// The number of values below which a compile-time parameter may be intended.
const FEW: usize = 4;

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut of_hosts: HashMap<usize, Vec<Counted<'_>>> = HashMap::new();
    for launch in module.launches.iter().filter(|launch| !launch.has_error) {
        let Some((at, host)) = launch.host.and_then(|at| Some((at, module.hosts.get(at)?))) else { continue };
        let all = of_hosts.entry(at).or_insert_with(|| all_counted(&host.body));
        let loops: Vec<&Counted<'_>> = all.iter().filter(|of| of.body.contains(launch.span)).collect();
        if loops.is_empty() {
            continue;
        }
        let Some(kernel) = launch.kernel.as_deref().and_then(|name| module.kernel(name)) else { continue };
        if kernel.has_error || kernel.nested || !certainly_launched(module, kernel) {
            continue;
        }
        for param in kernel.params.iter().filter(|param| !param.variadic) {
            let ArgumentSource::Argument(argument) = passed(launch, kernel, &param.name) else { continue };
            let Some((head, values)) = loops.iter().rev().find_map(|of| Some((of.head, of.values(argument)?))) else {
                continue;
            };
            let found = look(context, kernel, param, argument, &values);
            if let Some(found) = found.filter(|_| !context.is_for_other_compiler()) {
                findings.push(found.with_related(head, "the loop").with_related(param.name_span, "the parameter"));
            }
        }
    }
}

/// A counting loop of the host.
struct Counted<'a> {
    head: Span,
    body: Span,
    variable: &'a str,
    start: Option<i128>,
    end: Option<i128>,
    step: i128,
}

/// The counting loops of a host function, outer loops first.
fn all_counted(body: &[Stmt]) -> Vec<Counted<'_>> {
    let mut found = Vec::new();
    walk_statements(body, &mut |stmt| {
        let StmtKind::For { target, iter, body, .. } = &stmt.kind else { return };
        if let Some((first, last)) = body.first().zip(body.last()) {
            let inside = Span::new(first.span.start, last.span.end);
            found.extend(counted(target, iter, inside).filter(|of| !is_bound(body, of.variable)));
        }
    });
    found
}

fn counted<'a>(target: &'a Expr, iter: &'a Expr, body: Span) -> Option<Counted<'a>> {
    let call = iter.as_call().filter(|call| !call.has_star())?;
    let args: Vec<&Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
    let head = iter.span;
    match (call.func.as_name()?, args.as_slice(), &target.kind) {
        ("range", [end], ExprKind::Name(variable)) => {
            Some(Counted { head, body, variable, start: Some(0), end: end.as_int(), step: 1 })
        }
        ("range", [start, end], ExprKind::Name(variable)) => {
            Some(Counted { head, body, variable, start: start.as_int(), end: end.as_int(), step: 1 })
        }
        ("range", [start, end, step], ExprKind::Name(variable)) => {
            Some(Counted { head, body, variable, start: start.as_int(), end: end.as_int(), step: step.as_int()? })
        }
        ("enumerate", [_], ExprKind::Tuple(targets)) => {
            let variable = targets.first()?.as_name()?;
            Some(Counted { head, body, variable, start: Some(0), end: None, step: 1 })
        }
        _ => None,
    }
}

/// Whether statements bind a name.
pub(super) fn is_bound(body: &[Stmt], name: &str) -> bool {
    let mut bound = false;
    walk_statements(body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => bound |= targets.iter().any(|target| target.mentions(name)),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => bound |= target.mentions(name),
        _ => {}
    });
    bound
}

impl Counted<'_> {
    /// The values of an argument that depends on the variable in the first iterations.
    fn values(&self, argument: &Expr) -> Option<Vec<i128>> {
        // Where the start is not known, only a step of 1 allows a conclusion.
        let start = self.start.or((self.step == 1).then_some(2))?;
        let rounds = match (self.start, self.end, self.step) {
            (_, _, 0) => return None,
            (Some(start), Some(end), step) => usize::try_from((end - start + step - step.signum()) / step).ok()?,
            _ => ROUNDS,
        };
        let of = |variable: i128| match &argument.kind {
            ExprKind::Name(name) => (name == self.variable).then_some(variable),
            ExprKind::Binary { op, left, right } if matches!(op.as_str(), "+" | "-" | "*") => {
                let side = |side: &Expr| match side.as_name() {
                    Some(name) => (name == self.variable).then_some(variable),
                    None => side.as_int(),
                };
                binary(op, side(left)?, side(right)?)
            }
            _ => None,
        };
        let first: Option<Vec<i128>> = (0_i128..)
            .take(rounds.min(ROUNDS))
            .map(|round| of(start.checked_add(round.checked_mul(self.step)?)?))
            .collect();
        first.filter(|values| values.iter().collect::<BTreeSet<_>>().len() > 1)
    }
}

fn look<'a>(
    context: &RuleContext<'a>,
    kernel: &'a Kernel,
    param: &'a Param,
    argument: &Expr,
    values: &[i128],
) -> Option<Diagnostic> {
    let (name, of) = (&param.name, &kernel.name);
    let tuner = Tuner::of(context.module, kernel);
    let is_key = tuner.is_some_and(|tuner| {
        matches!(tuner.names("key"), NameList::Listed(key) if key.iter().any(|(key, _)| key == name))
            && tuner.at_least > 1
    });
    if is_key {
        let message = format!(
            "`{name}` is in the `key` of the tuner: all configurations of `{of}` are timed again in each iteration of the loop"
        );
        return Some(Diagnostic::new(&RULE.declaration, argument.span, message));
    }
    if param.constexpr {
        let is_number = is_arithmetic_only(context.module, kernel, name) && !divides(kernel, name);
        let message = format!(
            "`{of}` is compiled again in each iteration of the loop: `{name}` is `tl.constexpr`, and the kernel uses it for arithmetic and masks \
             only, where a run-time value does as well"
        );
        return (is_number && values.len() >= FEW).then(|| Diagnostic::new(&RULE.declaration, argument.span, message));
    }
    let mut variants = Vec::new();
    for (text, is_it) in [
        ("1", &(|value: i128| value == 1) as &dyn Fn(i128) -> bool),
        ("multiples of 16", &|value| value % 16 == 0),
        ("other numbers", &|value| value != 1 && value % 16 != 0),
    ] {
        if values.iter().any(|value| is_it(*value)) {
            variants.push(text);
        }
    }
    let (last, rest) = variants.split_last().filter(|(_, rest)| !rest.is_empty())?;
    if param.annotation.is_some() || !is_specialized(kernel, name) || is_in_address(context, kernel, name) {
        return None;
    }
    let message = format!(
        "`{name}` counts the iterations of the loop, and `{of}` is compiled again for {} and {last}; name it in `do_not_specialize`",
        rest.join(", ")
    );
    let found = Diagnostic::new(&RULE.declaration, argument.span, message);
    let jit = kernel.decorators.iter().find(|decorator| decorator.path.as_deref() == Some("triton.jit"))?;
    if jit.expr.as_call().is_some() {
        return Some(found);
    }
    let edit = Edit {
        span: Span::new(jit.expr.span.end, jit.expr.span.end),
        text: format!("(do_not_specialize=[\"{name}\"])"),
    };
    Some(found.with_fix(format!("Do not specialize `{name}`"), vec![edit]))
}

/// Whether a kernel divides or shifts by a value that depends on `name`, which is faster with constants.
fn divides(kernel: &Kernel, name: &str) -> bool {
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        if let ExprKind::Binary { op, right, .. } = &expr.kind {
            found |= matches!(op.as_str(), "//" | "%" | "/" | "<<" | ">>" | "**") && right.mentions(name);
        }
    });
    found
}

/// Whether an integer may be part of an address, where multiples of 16 allow wider accesses.
fn is_in_address<'a>(context: &RuleContext<'a>, kernel: &'a Kernel, name: &str) -> bool {
    let mut made: BTreeSet<&str> = BTreeSet::from([name]);
    let is_made = |made: &BTreeSet<&str>, expr: &Expr| {
        let mut found = false;
        expr.walk(&mut |part| found |= part.as_name().is_some_and(|name| made.contains(name)));
        found
    };
    // Repeats until no further name is found that derives from it, since assignments may be in any order.
    for round in 0.. {
        let before = made.len();
        if round == MAX_ROUNDS {
            return true;
        }
        walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } if is_made(&made, value) => {
                targets.iter().for_each(|target| target.walk(&mut |part| made.extend(part.as_name())));
            }
            StmtKind::AugAssign { target, value, .. } if is_made(&made, value) => made.extend(target.as_name()),
            StmtKind::For { target, iter, .. } if is_made(&made, iter) => made.extend(target.as_name()),
            _ => {}
        });
        if made.len() == before {
            break;
        }
    }
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        // Its use in other functions is not followed.
        let (is_opaque, pointer) = match context.module.language_member(kernel, &call.func).as_deref() {
            Some(name) if matches!(name, "load" | "store") || name.starts_with("atomic_") => {
                (false, call.argument("pointer", Some(0)))
            }
            Some("make_block_ptr" | "advance" | "make_tensor_descriptor") | None => (true, None),
            Some(_) => (false, None),
        };
        let passed = call.args.iter().filter(|_| is_opaque).map(|arg| &arg.value);
        found |= passed.chain(pointer).any(|part| is_made(&made, part));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::messages;

    /// The findings in a kernel with this head whose parameter `i` is passed so in a loop.
    fn found(head: &str, body: &str, of: &str, launch: &str) -> Vec<String> {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n{head}\n    o = tl.arange(0, 64)\n    tl.store(x + o, {body}, mask=o < n)\n\ndef run(x, n, m):\n    \
             for {of}:\n        {launch}\n"
        );
        messages(&text, "H016")
    }

    const PLAIN: &str = "@triton.jit\ndef k(x, i, n):";
    const CONSTANT: &str = "@triton.jit\ndef k(x, i: tl.constexpr, n):";
    const LAUNCH: &str = "k[(1,)](x, i, n)";

    fn count(head: &str, body: &str, of: &str, launch: &str) -> usize {
        found(head, body, of, launch).len()
    }

    #[test]
    fn loop_counters_passed_to_launches_are_flagged() {
        let messages = found(PLAIN, "o + i", "i in range(m)", LAUNCH);
        assert!(messages.len() == 1 && messages[0].contains("1, multiples of 16 and other numbers"), "{messages:?}");
        let messages = found(PLAIN, "o + i", "i in range(2)", LAUNCH);
        assert!(messages.len() == 1 && messages[0].contains("again for 1 and multiples of 16"), "{messages:?}");
        assert_eq!(count(PLAIN, "o + i", "i, y in enumerate(m)", "k[(1,)](x, i + 1, n)"), 1);
        assert_eq!(count(PLAIN, "o + i", "i in range(m, n)", "k[(1,)](x, i=i, n=n)"), 1);
        assert_eq!(count(CONSTANT, "o + i", "i in range(m)", LAUNCH), 1);
        let tuned = "@triton.autotune([triton.Config({}), triton.Config({}, num_warps=2)], key=['i'])\n@triton.jit\ndef k(x, i, n):";
        assert_eq!(count(tuned, "o + i", "i in range(0, n, 64)", LAUNCH), 1);
    }

    #[test]
    fn loops_that_need_a_single_variant_are_not_flagged() {
        assert_eq!(count(PLAIN, "o + i", "i in range(0, m, 64)", LAUNCH), 0);
        assert_eq!(count(PLAIN, "o + i", "i in range(m)", "k[(1,)](x, i * 32, n)"), 0);
        assert_eq!(count(PLAIN, "o + i", "i in range(2, 9)", LAUNCH), 0);
        assert_eq!(count(PLAIN, "o + i", "i in m", LAUNCH), 0);
        assert_eq!(count(PLAIN, "o + i", "i in range(1)", LAUNCH), 0);
        assert_eq!(count(PLAIN, "o + i", "i in range(m)", "i = 64; k[(1,)](x, i, n)"), 0);
        assert_eq!(count(&PLAIN.replace("jit", "jit(do_not_specialize=['i'])"), "o + i", "i in range(m)", LAUNCH), 0);
        assert_eq!(count(&PLAIN.replace("i,", "i: tl.int32,"), "o + i", "i in range(m)", LAUNCH), 0);
        assert_eq!(count(PLAIN, "tl.load(x + i * 16 + o)", "i in range(m)", LAUNCH), 0, "a part of an address");
        assert_eq!(count(CONSTANT, "o + i", "i in range(3)", LAUNCH), 0);
        assert_eq!(count(CONSTANT, "o // i", "i in range(m)", LAUNCH), 0);
        assert_eq!(count(CONSTANT, "tl.sum(tl.arange(0, i))", "i in range(m)", LAUNCH), 0);
    }
}
