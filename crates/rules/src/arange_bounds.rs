//! L004: bounds that `tl.arange` does not accept.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use model::analysis::constants::{self, binary};
use model::analysis::flow::live;
use model::analysis::launches::{self, ArgumentSource, LaunchVariant, certainly_launched, passed};
use model::analysis::types::ProblemKind;
use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module, Param};
use model::syntax::Span;

use super::{Declaration, Diagnostic, Edit, Findings, Rule, RuleContext, Severity, fix_edits, language};

pub(super) static RULE: Rule = Rule {
    declaration: Declaration {
        code: "L004",
        name: "invalid-arange",
        severity: Severity::Error,
        summary: "bounds that `tl.arange` does not accept",
        since: "0.1.0",
        fixable: true,
        tags: &[],
        doc: include_str!("arange_bounds.md"),
    },
    check,
};

/// The maximum number of elements of a tile.
const MAX_ELEMENTS: i128 = 1 << 20;

/// What is known about a bound.
#[derive(Clone, Copy, Debug)]
enum Bound<'a> {
    /// This integer, with the span of its literal where that is elsewhere.
    Int(i128, Option<Span>),
    /// A compile-time value that is not known here.
    Constexpr,
    /// A compile-time value that is not an integer.
    NoInteger,
    /// A parameter without `constexpr` of a kernel that the host launches.
    Param(&'a Param),
    /// A variable of the kernel; its only assignment, if there is one.
    Local(&'a str, Option<&'a Stmt>),
    /// The run-time result of a function of `triton.language`.
    Computed,
    /// Nothing is known.
    Unknown,
}

impl Bound<'_> {
    fn at_run_time(self) -> bool {
        matches!(self, Self::Param(_) | Self::Local(..) | Self::Computed)
    }
}

/// Classifies the expressions of one kernel's body.
struct Kinds<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    launched: bool,
    /// The bindings of the names that were looked up so far.
    bindings: RefCell<FxHashMap<&'a str, Rc<[Binding<'a>]>>>,
}

fn check(context: &RuleContext<'_>, findings: &mut Findings<'_>) {
    let found = context.in_kernels(&RULE, |kernel| by_bounds(context, kernel));
    let covered = |span: Span| found.iter().any(|known| span.contains(known.span));
    let inferred = language::problems(context, &[ProblemKind::Arange]).into_iter();
    let inferred = inferred.filter(|problem| !covered(problem.span) && is_certain(context, problem.span));
    let inferred: Vec<Diagnostic> = inferred.map(|problem| language::diagnostic(&RULE.declaration, problem)).collect();
    findings.extend(found);
    findings.extend(inferred);
}

/// Whether a call of `tl.arange` is certainly Triton's, and takes no name that is declared (`M: tl.constexpr`) before it
/// is assigned.
fn is_certain(context: &RuleContext<'_>, span: Span) -> bool {
    let Some((kernel, call)) = fix_edits::call_at(context, span) else { return false };
    let mut declared = false;
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { targets, annotation: Some(_), value: None } = &stmt.kind {
            let mut names = targets.iter().filter_map(Expr::as_name);
            declared |= names.any(|name| context.source.slice(call.args_span).contains(name));
        }
    });
    !declared && context.module.resolve_in(kernel, &call.func).is_some_and(|found| found.direct)
}

/// The findings from the bounds themselves and the launches, which give more detail than the types do.
fn by_bounds(context: &RuleContext<'_>, kernel: &Kernel) -> Vec<Diagnostic> {
    let module = context.module;
    let mut calls = Vec::new();
    if !kernel.has_error {
        live(&kernel.body, &mut |stmt| {
            for expr in stmt.exprs() {
                expr.walk(&mut |expr| {
                    let arange = expr.as_call().filter(|call| {
                        let resolved = module.resolve_in(kernel, &call.func);
                        resolved.is_some_and(|found| found.direct && found.path == "triton.language.arange")
                    });
                    calls.extend(arange.map(|call| (expr, call)));
                });
            }
        });
    }
    if calls.is_empty() {
        return Vec::new();
    }
    let launched = certainly_launched(module, kernel);
    let kinds = Kinds { module, kernel, launched, bindings: RefCell::default() };
    let settings = launches::settings(module, kernel);
    calls.into_iter().filter_map(|(expr, call)| check_call(context, &kinds, &settings, expr, call)).collect()
}

fn check_call<'a>(
    context: &RuleContext<'_>,
    kinds: &Kinds<'a>,
    settings: &[LaunchVariant<'_>],
    expr: &Expr,
    call: &'a Call,
) -> Option<Diagnostic> {
    if call.has_star() || call.args.len() != 2 {
        return None;
    }
    let (start, end) = (call.argument("start", Some(0))?, call.argument("end", Some(1))?);
    for bound in [start, end] {
        let kind = kinds.of(bound, None, 0);
        if kind.at_run_time() || matches!(kind, Bound::NoInteger) {
            return Some(not_constexpr(context, kinds, bound, kind));
        }
    }
    let other_compiler = || context.is_for_other_compiler();
    let (mut bad, mut may_be_good) = (None, false);
    for setting in settings.iter().map(Some).chain(settings.is_empty().then_some(None)) {
        let found = match (kinds.of(start, setting, 0), kinds.of(end, setting, 0)) {
            (Bound::Int(start, from), Bound::Int(end, to)) => {
                wrong_range(start, end, other_compiler).map(|why| (why, from.or(to)))
            }
            // No valid start is smaller, since a start may not be negative.
            (Bound::Constexpr, Bound::Int(end, to)) if end <= 0 => {
                Some((format!("`tl.arange` up to {end} is empty; the end must be greater than the start"), to))
            }
            _ => None,
        };
        match found {
            Some(_) => bad = bad.or(found),
            None => may_be_good = true,
        }
    }
    let (why, written) = bad?;
    // A branch may be reached only in the settings that are valid.
    if may_be_good && is_conditional(&kinds.kernel.body, expr.span) {
        return None;
    }
    let diagnostic = Diagnostic::new(&RULE.declaration, expr.span, why);
    Some(match written {
        Some(span) => diagnostic.with_related(span, "the bound is set here"),
        None => diagnostic,
    })
}

/// Why Triton rejects these bounds, in the order of its checks.
fn wrong_range(start: i128, end: i128, other_compiler: impl Fn() -> bool) -> Option<String> {
    let outside = |bound: i128| !(0..1 << 32).contains(&bound);
    let size = end - start;
    if outside(start) || outside(end) {
        return Some("the bounds of `tl.arange` must not be negative and must fit in 32 bits".to_owned());
    }
    if size <= 0 {
        return Some(format!("`tl.arange` from {start} to {end} is empty; the end must be greater than the start"));
    }
    if size & (size - 1) != 0 {
        // Triton-Ascend accepts any size.
        return (!other_compiler()).then(|| format!(
            "`tl.arange` from {start} to {end} has {size} elements, which is no power of two; take the next power of two \
             and mask the lanes beyond"
        ));
    }
    (size > MAX_ELEMENTS)
        .then(|| format!("`tl.arange` from {start} to {end} has {size} elements; a tile has at most {MAX_ELEMENTS}"))
}

/// Whether `span` is inside an `if` that may or may not be compiled or run.
fn is_conditional(body: &[Stmt], span: Span) -> bool {
    let mut found = false;
    walk_statements(body, &mut |stmt| {
        found |= stmt.span.contains(span)
            && match &stmt.kind {
                StmtKind::If { branches, .. } => {
                    branches.iter().any(|(test, _)| constants::constant_truth(test).is_none())
                }
                StmtKind::Block(_) | StmtKind::While { .. } => true,
                _ => stmt.exprs().into_iter().any(|expr| within_choice(expr, span)),
            };
    });
    found
}

fn within_choice(expr: &Expr, span: Span) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| found |= matches!(expr.kind, ExprKind::IfExp { .. }) && expr.span.contains(span));
    found
}

fn not_constexpr<'a>(context: &RuleContext<'_>, kinds: &Kinds<'a>, bound: &Expr, kind: Bound<'a>) -> Diagnostic {
    let written = context.source.slice(bound.span);
    let what = match kind {
        Bound::Param(param) => format!("`{}` is an argument at run time", param.name),
        Bound::Local(name, _) => format!("`{name}` is a variable of the kernel, which makes it a run-time value"),
        Bound::NoInteger => format!("`{written}` is no integer"),
        _ => format!("`{written}` is computed at run time"),
    };
    let message = format!("the bounds of `tl.arange` must be integers known when the kernel is compiled; {what}");
    let diagnostic = Diagnostic::new(&RULE.declaration, bound.span, message);
    let fix = kinds.module.language_name(kinds.kernel, "constexpr").and_then(|constexpr| match kind {
        Bound::Param(param) => kinds.annotate_param(param, &constexpr),
        Bound::Local(name, Some(stmt)) => kinds.annotate_local(name, stmt, &constexpr),
        _ => None,
    });
    let diagnostic = match kind {
        Bound::Local(name, Some(stmt)) => diagnostic.with_related(stmt.span, format!("`{name}` is assigned here")),
        Bound::Param(param) => diagnostic.with_related(param.span, "it has no `constexpr` annotation"),
        _ => diagnostic,
    };
    match fix {
        Some((title, edit)) => diagnostic.with_fix(title, vec![edit]),
        None => diagnostic,
    }
}

/// How the body binds a name.
enum Binding<'a> {
    /// `name = value` or `name op= value`, which Triton makes a run-time value; the statement when it is the former.
    RunTime(Option<&'a Stmt>),
    /// `name: tl.constexpr = value`
    Constexpr(&'a Expr),
    /// Anything else.
    Other,
}

impl<'a> Kinds<'a> {
    fn of(&self, expr: &'a Expr, setting: Option<&LaunchVariant<'_>>, depth: usize) -> Bound<'a> {
        match &expr.kind {
            ExprKind::Int(value) => Bound::Int(*value, None),
            ExprKind::Bool(value) => Bound::Int(i128::from(*value), None),
            ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::None => Bound::NoInteger,
            // `M: tl.constexpr = N`, `N: tl.constexpr = …`: such chains are short.
            ExprKind::Name(name) if depth < 8 => self.of_name(name, setting, depth),
            ExprKind::Unary { op, operand } => match (op.as_str(), self.of(operand, setting, depth)) {
                ("-", Bound::Int(value, from)) => Bound::Int(-value, from),
                ("-" | "+" | "~", kind) if kind.at_run_time() => kind,
                _ => Bound::Unknown,
            },
            ExprKind::Binary { op, left, right } => {
                match (self.of(left, setting, depth), self.of(right, setting, depth)) {
                    (Bound::Int(left, from), Bound::Int(right, to)) => {
                        binary(op, left, right).map_or(Bound::Unknown, |value| Bound::Int(value, from.or(to)))
                    }
                    (left, Bound::Int(..) | Bound::Constexpr) if left.at_run_time() => left,
                    (Bound::Int(..) | Bound::Constexpr, right) if right.at_run_time() => right,
                    (left, right) if left.at_run_time() && right.at_run_time() => left,
                    (Bound::Int(..) | Bound::Constexpr, Bound::Int(..) | Bound::Constexpr) => Bound::Constexpr,
                    _ => Bound::Unknown,
                }
            }
            ExprKind::Call(call) => match self.module.language_member(self.kernel, &call.func).as_deref() {
                Some("program_id" | "num_programs" | "load") => Bound::Computed,
                _ => Bound::Unknown,
            },
            _ => Bound::Unknown,
        }
    }

    fn of_name(&self, name: &'a str, setting: Option<&LaunchVariant<'_>>, depth: usize) -> Bound<'a> {
        let bindings =
            Rc::clone(self.bindings.borrow_mut().entry(name).or_insert_with(|| self.bindings_of(name).into()));
        if let Some(param) = self.kernel.param(name) {
            return match () {
                () if !bindings.is_empty() || param.variadic => Bound::Unknown,
                () if param.constexpr => match setting.and_then(|setting| setting.value(name)) {
                    Some((value, span)) => Bound::Int(value, Some(span)),
                    None => Bound::Constexpr,
                },
                () if self.launched && self.at_run_time(name, param) => Bound::Param(param),
                () => Bound::Unknown,
            };
        }
        match &*bindings {
            [] if self.kernel.locals.contains(name) => Bound::Unknown,
            [] => self.of_global(name),
            _ if self.module.globals.iter().any(|global| global.name == name) => Bound::Unknown,
            [Binding::Constexpr(value)] => self.of(value, setting, depth + 1),
            [Binding::RunTime(stmt)] => Bound::Local(name, *stmt),
            all if all.iter().all(|binding| matches!(binding, Binding::RunTime(_))) => Bound::Local(name, None),
            _ => Bound::Unknown,
        }
    }

    /// The bound of a global name: `NAME = tl.constexpr(64)`.
    fn of_global(&self, name: &str) -> Bound<'a> {
        let wrapped = launches::global(self.module, name).and_then(Expr::as_call).filter(|call| {
            let resolved = self.module.imports.resolve(&call.func);
            call.args.len() == 1 && resolved.is_some_and(|found| found.path == "triton.language.constexpr")
        });
        let value = wrapped.and_then(|call| constants::integer(&call.args[0].value, &|_| None));
        match (value, wrapped) {
            (Some(value), Some(call)) => Bound::Int(value, Some(call.func.span)),
            (None, Some(_)) => Bound::Constexpr,
            _ => Bound::Unknown,
        }
    }

    fn bindings_of(&self, name: &str) -> Vec<Binding<'a>> {
        let mut found = Vec::new();
        walk_statements(&self.kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, annotation, value } => {
                for target in targets.iter().filter(|target| binds(target, name)) {
                    found.push(match (annotation, value) {
                        (None, Some(_)) => {
                            let alone = targets.len() == 1 && target.as_name().is_some();
                            Binding::RunTime(alone.then_some(stmt))
                        }
                        (Some(annotation), Some(value)) if self.is_constexpr(annotation) => Binding::Constexpr(value),
                        _ => Binding::Other,
                    });
                }
            }
            StmtKind::AugAssign { target, .. } if binds(target, name) => found.push(Binding::RunTime(None)),
            StmtKind::For { target, .. } if binds(target, name) => found.push(Binding::Other),
            StmtKind::Definition { name: defined, .. } if defined == name => found.push(Binding::Other),
            StmtKind::Block(_) | StmtKind::Other(_) => found.push(Binding::Other),
            _ => {}
        });
        walk_expressions(&self.kernel.body, &mut |expr| {
            if matches!(&expr.kind, ExprKind::Named { name: bound, .. } if bound == name) {
                found.push(Binding::Other);
            }
        });
        found
    }

    fn is_constexpr(&self, annotation: &Expr) -> bool {
        annotation.dotted().is_some_and(|parts| parts.last() == Some(&"constexpr"))
    }

    /// Whether the parameter is a run-time value in every launch of the file. Triton turns 1, `None` and a
    /// `tl.constexpr(…)` that the host passes into constants.
    fn at_run_time(&self, name: &str, param: &Param) -> bool {
        let constant = |value: &Expr| {
            matches!(value.kind, ExprKind::None | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::Starred(_))
                || value.as_int() == Some(1)
                || value.as_call().is_some_and(|call| is_constexpr_call(self.module, call))
        };
        let certain = |value: &Expr| match value.as_name() {
            // A name is certain not to hold a constant only where the file shows its value.
            Some(text) => launches::global(self.module, text).is_none_or(|value| !constant(value)),
            None => !constant(value),
        };
        let default = || param.default.as_ref().is_none_or(certain);
        let configs = self.kernel.autotune.iter().flat_map(|autotune| autotune.configs.iter().flatten());
        let mut tuned = configs.flat_map(|config| &config.meta).filter(|(meta, _)| meta == name);
        self.kernel.plain
            && tuned.all(|(_, value)| certain(value))
            && self.module.launches_of(&self.kernel.name).all(|launch| match passed(launch, self.kernel, name) {
                ArgumentSource::Argument(value) => certain(value),
                ArgumentSource::Omitted => default(),
                ArgumentSource::Unknown => false,
            })
    }

    /// Whether all uses of the name also work on a compile-time value: that has no attributes, and a helper may not
    /// accept it.
    fn may_be_constexpr(&self, name: &str) -> bool {
        let mut fine = true;
        walk_expressions(&self.kernel.body, &mut |expr| match &expr.kind {
            ExprKind::Attribute { value, .. } => fine &= value.as_name() != Some(name),
            ExprKind::Call(call) if self.module.resolve_in(self.kernel, &call.func).is_none() => {
                fine &= call.args.iter().all(|arg| arg.value.as_name() != Some(name));
            }
            _ => {}
        });
        fine
    }

    fn annotate_param(&self, param: &Param, constexpr: &str) -> Option<(String, Edit)> {
        let title = format!("Annotate `{}` as `{constexpr}`", param.name);
        let edit = match &param.annotation {
            Some(annotation) => Edit { span: annotation.span, text: constexpr.to_owned() },
            None => {
                let end = param.name_span.end;
                let text = if param.default.is_some() && param.span.end > end {
                    format!(": {constexpr} ")
                } else {
                    format!(": {constexpr}")
                };
                Edit { span: Span::new(end, end), text }
            }
        };
        self.may_be_constexpr(&param.name).then_some((title, edit))
    }

    /// `M = BLOCK * 2` → `M: tl.constexpr = BLOCK * 2`, where the value is known at compile time and the statement runs
    /// once: Triton rejects the annotation of a name that is already bound.
    fn annotate_local(&self, name: &str, stmt: &'a Stmt, constexpr: &str) -> Option<(String, Edit)> {
        let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
        let constant = matches!(self.of(value, None, 0), Bound::Int(..) | Bound::Constexpr) || self.is_host_call(value);
        let mut in_loop = false;
        walk_statements(&self.kernel.body, &mut |outer| {
            in_loop |=
                matches!(outer.kind, StmtKind::For { .. } | StmtKind::While { .. }) && outer.span.contains(stmt.span);
        });
        let end = targets.first()?.span.end;
        let edit = Edit { span: Span::new(end, end), text: format!(": {constexpr}") };
        let title = format!("Annotate `{name}` as `{constexpr}`");
        (constant && !in_loop && self.may_be_constexpr(name)).then_some((title, edit))
    }

    /// `triton.next_power_of_2(…)` and `triton.cdiv(…)` of compile-time values are compile-time values in every version.
    fn is_host_call(&self, value: &'a Expr) -> bool {
        let Some(call) = value.as_call() else { return false };
        let path = self.module.resolve_in(self.kernel, &call.func).map(|resolved| resolved.path);
        matches!(path.as_deref(), Some("triton.next_power_of_2" | "triton.cdiv"))
            && call.args.iter().all(|arg| matches!(self.of(&arg.value, None, 0), Bound::Int(..) | Bound::Constexpr))
    }
}

fn is_constexpr_call(module: &Module, call: &Call) -> bool {
    module.imports.resolve(&call.func).is_some_and(|found| found.path.ends_with(".constexpr"))
        || call.func.dotted().is_some_and(|parts| parts.last() == Some(&"constexpr"))
}

fn binds(target: &Expr, name: &str) -> bool {
    match &target.kind {
        ExprKind::Name(bound) => bound == name,
        ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().any(|part| binds(part, name)),
        ExprKind::Starred(inner) => binds(inner, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
