//! H005: a grid that does not depend on the block size, which the autotuner chooses.

use model::analysis::host::{HostNames, Hosts};
use model::analysis::tuning::Tuner;
use model::kernel::ast::{Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Launch, Module};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "H005",
        name: "tuned-grid",
        severity: Severity::Warning,
        summary: "a fixed grid for a kernel whose block size is autotuned",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("tuned_grid.md"),
    },
    check,
};

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let module = context.module;
    let mut hosts = Hosts::new(module);
    for kernel in module.kernels.iter().filter(|kernel| !kernel.has_error && kernel.autotune.is_some()) {
        if module.kernel(&kernel.name).is_none() || module.launches_of(&kernel.name).next().is_none() {
            continue;
        }
        let Some(tuner) = Tuner::of(module, kernel) else { continue };
        let blocks = blocks(module, kernel);
        for launch in module.launches_of(&kernel.name).filter(|launch| !launch.has_error && !blocks.is_empty()) {
            let names = hosts.around(launch);
            findings.extend(blocks.iter().find_map(|block| look(context, launch, &names, &tuner, block)));
        }
    }
}

/// A block: each program takes the elements from `program_id(axis) * name` on.
struct Block<'a> {
    axis: usize,
    name: &'a str,
    span: Span,
}

/// The blocks of a kernel whose programs do not loop over more than one each.
fn blocks<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<Block<'a>> {
    let axis_of = |expr: &Expr| {
        let call = expr.as_call()?;
        let is_pid = module.language_member(kernel, &call.func).as_deref() == Some("program_id");
        usize::try_from(call.argument("axis", Some(0)).filter(|_| is_pid)?.as_int()?).ok()
    };
    let (mut pids, mut bound) = (Vec::new(), Vec::new());
    let mut persistent = false;
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value: Some(value), .. } => {
            bound.extend(targets.iter().filter_map(Expr::as_name));
            let axis = axis_of(value);
            pids.extend(targets.iter().filter_map(|target| Some((target.as_name()?, axis?))));
        }
        StmtKind::AugAssign { target, .. } => bound.extend(target.as_name()),
        // A loop whose start or step depends on the program may process many blocks.
        StmtKind::For { iter, target, .. } => {
            bound.extend(target.as_name());
            iter.walk(&mut |inner| {
                persistent |= axis_of(inner).is_some()
                    || inner.as_name().is_some_and(|name| pids.iter().any(|(pid, _)| *pid == name))
            });
        }
        StmtKind::While { .. } => persistent = true,
        _ => {}
    });
    let once = |name: &str| bound.iter().filter(|other| **other == name).count() == 1;
    let axis = |expr: &Expr| {
        let named = || pids.iter().find(|(pid, _)| expr.as_name() == Some(pid)).filter(|(pid, _)| once(pid));
        axis_of(expr).or_else(|| named().map(|(_, axis)| *axis))
    };
    let mut found = Vec::new();
    walk_expressions(&kernel.body, &mut |expr| {
        persistent |= expr
            .as_call()
            .is_some_and(|call| module.language_member(kernel, &call.func).as_deref() == Some("num_programs"));
        let ExprKind::Binary { op, left, right } = &expr.kind else { return };
        let (pid, size) = if axis(left).is_some() { (left, right) } else { (right, left) };
        if let ("*", Some(axis), Some(name)) = (op.as_str(), axis(pid), size.as_name()) {
            found.push(Block { axis, name, span: expr.span });
        }
    });
    if persistent { Vec::new() } else { found }
}

fn look<'a>(
    context: &RuleContext<'a>,
    launch: &'a Launch,
    names: &HostNames<'a>,
    tuner: &Tuner<'a>,
    block: &Block<'a>,
) -> Option<Diagnostic> {
    let grid = names.resolve(&launch.grid);
    let ExprKind::Tuple(items) = &grid.kind else { return None };
    let item = names.resolve(items.get(block.axis)?);
    let size = divisor(item, names)?;
    let fixed = names.integer(size)?;
    let smallest = *tuner.values(block.name)?.first()?;
    if smallest >= fixed {
        return None;
    }
    let name = block.name;
    let message = format!(
        "the grid counts blocks of {fixed}, but the tuner may choose `{name}={smallest}`: then programs are missing and part \
         of the result is never written"
    );
    let mut found = Diagnostic::new(&RULE.declaration, item.span, message)
        .with_related(block.span, "each program takes one block of the size tuned");
    if let Some(config) = tuner.configs.iter().find(|config| config.value(name).is_some()) {
        found = found.with_related(config.span, "a configuration");
    }
    let text = context.source.text();
    let in_place =
        grid.span == launch.grid.span && item.span.start >= grid.span.start && item.span.end <= grid.span.end;
    // The parentheses belong to the tuple only when it is not written `kernel[a, b]`.
    let edits = vec![
        Edit { span: Span::new(grid.span.start, grid.span.start), text: "lambda meta: ".to_owned() },
        Edit { span: size.span, text: format!("meta[\"{name}\"]") },
    ];
    let fits = in_place && text[grid.span.start..].starts_with('(') && text[..grid.span.end].ends_with(')');
    Some(if fits { found.with_fix("Let the grid follow the tuner", edits) } else { found })
}

/// The divisor of `cdiv(n, size)` or `(n + size - 1) // size`.
fn divisor<'a>(item: &'a Expr, names: &HostNames<'a>) -> Option<&'a Expr> {
    match &item.kind {
        ExprKind::Call(call) if names.is_cdiv(call) => call.argument("y", Some(1)),
        ExprKind::Binary { op, right, .. } if op == "//" => Some(right),
        _ => None,
    }
}
