//! The launch of a kernel, and the tensors that the kernel stores into.

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, argument, has_star, walk_expressions, walk_statements};
use model::kernel::{GlobalBinding, HostFunction, Kernel, Launch};
use model::syntax::Span;
use protocol::{ArgumentValue, LaunchRecord};
use rules::Edit;

use super::gather::{Gather, member};
use crate::launched::called_with;
use crate::lines::lines_of;
use crate::subject::Subject;
use crate::written::{grid_of, only_value};

/// Functions of torch that allocate memory, each with the one that fills it with zeros.
const FUNCTIONS: &[(&str, &str)] =
    &[("empty", "zeros"), ("empty_like", "zeros_like"), ("zeros", "zeros"), ("zeros_like", "zeros_like")];
/// Methods of tensors that allocate memory, each with the one that fills it with zeros.
const METHODS: &[(&str, &str)] = &[("new_empty", "new_zeros"), ("new_zeros", "new_zeros")];
/// Parts of assignments that may bind a name to a tensor of another type.
const CONVERSIONS: &[&str] = &[".to(", ".type", ".half", ".float", ".bfloat16", ".double", "dtype"];

/// The only launch of a kernel.
pub(super) struct Site<'a> {
    pub(super) launch: &'a Launch,
    /// The statement of the launch.
    pub(super) stmt: &'a Stmt,
    /// Its whole lines.
    pub(super) lines: Span,
    /// The number of axes of the grid.
    pub(super) axes: usize,
    grid: &'a Expr,
    /// The output argument, and the call that allocates it.
    pub(super) out: &'a Expr,
    allocation: &'a Call,
    pub(super) host: &'a HostFunction,
    /// The file's name for torch.
    pub(super) torch: &'a str,
}

impl<'a> Site<'a> {
    pub(super) fn of(subject: &Subject<'a>, root: &str) -> Option<Self> {
        let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
        let mut launches = module.launches.iter().filter(|one| one.kernel.as_deref() == Some(&subject.kernel.name));
        let launch = launches.next().filter(|_| launches.next().is_none())?;
        let host = launch.host.map(|host| &module.hosts[host])?;
        let mut found = None;
        walk_statements(&host.body, &mut |stmt| {
            if matches!(&stmt.kind, StmtKind::Expr(value) if value.span == launch.span) {
                found = Some(stmt);
            }
        });
        let stmt = found.filter(|_| !launch.has_error && !has_star(&launch.args))?;
        let grid = grid_of(module, launch)?;
        let parts = tuple_of(grid)?;
        let is_plain = parts.iter().all(|part| !matches!(part.kind, ExprKind::Starred(_)));
        let axes = (1..=2).find(|axes| *axes == parts.len() && is_plain)?;
        let at = subject.kernel.params.iter().position(|param| param.name == root)?;
        let out = argument(&launch.args, root, Some(at))?;
        let allocation = only_value(&host.body, out.as_name()?)?.as_call()?;
        let torch =
            module.bindings.iter().find(|(_, binding)| **binding == GlobalBinding::Import("torch".to_owned()))?.0;
        let site = Self { launch, stmt, lines: lines_of(text, stmt)?, axes, grid, out, allocation, host, torch };
        site.zeroed().filter(|_| are_below(subject, axes)).map(|_| site)
    }

    /// The edit that fills the memory with zeros; `None` where the allocation is unknown.
    pub(super) fn zeroed(&self) -> Option<Edit> {
        let ExprKind::Attribute { value, name, name_span } = &self.allocation.func.kind else { return None };
        let is_torch = value.as_name() == Some(self.torch);
        let known = if is_torch { FUNCTIONS } else { METHODS };
        let (_, zeroed) = known.iter().find(|(known, _)| known == name)?;
        Some(Edit { span: *name_span, text: (*zeroed).to_owned() })
    }

    /// Whether the memory has no contents before the launch.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(&self.allocation.func.kind, ExprKind::Attribute { name, .. } if name.contains("empty"))
    }

    /// The grid with one more axis.
    pub(super) fn longer(&self, text: &str, split: &str) -> Option<Edit> {
        let span = self.launch.grid.span;
        if let Some(name) = self.launch.grid.as_name() {
            let text = match self.grid.kind {
                ExprKind::Lambda { .. } => format!("lambda meta: (*{name}(meta), {split})"),
                _ => format!("(*{name}, {split})"),
            };
            return Some(Edit { span, text });
        }
        let last = tuple_of(self.grid)?.last()?.span.end;
        let rest = text.get(last..span.end)?.trim().trim_start_matches(',').trim();
        let is_end = matches!(rest, ")" | "]");
        is_end.then(|| Edit { span: Span::new(last, last), text: format!(", {split}") })
    }

    /// The names of parameters that the grid uses.
    pub(super) fn asked(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        self.grid.walk(&mut |expr| {
            if let ExprKind::Str(name) = &expr.kind {
                names.push(name.as_str());
            }
        });
        names
    }

    /// Whether the memory certainly holds fp32.
    pub(super) fn is_float32(&self, subject: &Subject<'_>, root: &str) -> bool {
        let is_it = |name: &str| matches!(name, "float32" | "float");
        let passed = record(subject).and_then(|record| record.arguments.iter().find(|(name, _)| name == root));
        match passed {
            Some((_, ArgumentValue::Pointer(dtype))) => return is_it(dtype),
            Some((_, ArgumentValue::Tensor(tensor))) => return is_it(&tensor.dtype),
            _ => {}
        }
        match argument(&self.allocation.args, "dtype", None) {
            Some(dtype) => match &dtype.kind {
                ExprKind::Attribute { value, name, .. } if value.as_name() == Some(self.torch) => is_it(name),
                ExprKind::Attribute { value, name, .. } if name == "dtype" => self.is_of(subject, value, &is_it),
                _ => false,
            },
            None => match &self.allocation.func.kind {
                ExprKind::Attribute { name, .. } if matches!(name.as_str(), "empty" | "zeros") => true,
                ExprKind::Attribute { name, .. } if matches!(name.as_str(), "empty_like" | "zeros_like") => {
                    self.allocation.args.first().is_some_and(|arg| self.is_of(subject, &arg.value, &is_it))
                }
                ExprKind::Attribute { value, .. } => self.is_of(subject, value, &is_it),
                _ => false,
            },
        }
    }

    /// Whether a tensor argument of the call has this type, as far as it is not converted.
    fn is_of(&self, subject: &Subject<'_>, tensor: &Expr, is_it: &dyn Fn(&str) -> bool) -> bool {
        let workload = subject.workload;
        let Some(name) = tensor.as_name().filter(|_| workload.entry == self.host.qualname) else { return false };
        let text = subject.candidate.text.as_str();
        let mut is_same = true;
        walk_statements(&self.host.body, &mut |stmt| {
            if let StmtKind::Assign { targets, .. } = &stmt.kind
                && targets.iter().any(|target| target.mentions(name))
            {
                let said = text.get(stmt.span.start..stmt.span.end).unwrap_or_default();
                is_same &= !CONVERSIONS.iter().any(|word| said.contains(word));
            }
        });
        match called_with(self.host, workload, name) {
            Some(ArgumentValue::Tensor(tensor)) => is_same && is_it(&tensor.dtype),
            _ => false,
        }
    }
}

/// The parts of a grid.
fn tuple_of(grid: &Expr) -> Option<&[Expr]> {
    match &grid.kind {
        ExprKind::Tuple(parts) | ExprKind::List(parts) => Some(parts),
        ExprKind::Lambda { body, params } if params.len() == 1 => match &body.kind {
            ExprKind::Tuple(parts) | ExprKind::List(parts) => Some(parts),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a kernel and its helpers use only axes below this one.
fn are_below(subject: &Subject<'_>, axes: usize) -> bool {
    let module = &subject.candidate.module;
    let is_meant =
        |kernel: &&Kernel| std::ptr::eq(*kernel, subject.kernel) || module.called_in_kernels().contains(&kernel.name);
    let mut are_below = true;
    for kernel in module.kernels.iter().filter(is_meant) {
        walk_expressions(&kernel.body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            let name = member(subject, kernel, &call.func);
            if matches!(name.as_deref(), Some("program_id" | "num_programs")) {
                let axis = call.argument("axis", Some(0)).and_then(Expr::as_int);
                are_below &= axis.and_then(|axis| usize::try_from(axis).ok()).is_some_and(|axis| axis < axes);
            }
        });
    }
    are_below
}

/// The recorded launch of the kernel.
fn record<'a>(subject: &Subject<'a>) -> Option<&'a LaunchRecord> {
    subject.records().next()
}

/// The number of programs of the recorded launch, where it is known.
pub(super) fn programs(subject: &Subject<'_>) -> Option<i64> {
    let grid = &record(subject)?.grid;
    (!grid.is_empty()).then(|| grid.iter().product())
}

/// The number of iterations of the loop in the recorded launch, where it is known.
pub(super) fn rounds(subject: &Subject<'_>, gather: &Gather<'_>) -> Option<i64> {
    let (end, step) = (number(subject, gather.end)?, gather.step.map_or(Some(1), |step| number(subject, step))?);
    (step > 0).then(|| (end + step - 1) / step)
}

fn number(subject: &Subject<'_>, expr: &Expr) -> Option<i64> {
    if let Some(number) = expr.as_int() {
        return i64::try_from(number).ok();
    }
    match &expr.kind {
        ExprKind::Name(name) => {
            let record = record(subject)?;
            let mut passed = record.keywords.iter().chain(&record.arguments).filter(|(known, _)| known == name);
            if let Some((_, ArgumentValue::Int(number))) = passed.next() { Some(*number) } else { None }
        }
        ExprKind::Call(call) if member(subject, subject.kernel, &call.func).as_deref() == Some("cdiv") => {
            let [x, by] = call.args.as_slice() else { return None };
            let (x, by) = (number(subject, &x.value)?, number(subject, &by.value)?);
            (by > 0).then(|| (x + by - 1) / by)
        }
        _ => None,
    }
}
