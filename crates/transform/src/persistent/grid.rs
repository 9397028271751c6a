//! The grid of a persistent kernel.

use model::analysis::types::access::pointers;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use model::kernel::{GlobalBinding, HostFunction, Launch};
use model::syntax::Span;
use rules::Edit;

use crate::launched::innermost;
use crate::subject::Subject;
use crate::subject_launch::{only_launch, passed, passed_as};
use crate::words::{fresh, indent_of};
use crate::written::{grid_of, is_settled, is_steady, is_used_once, tuple_of};

/// The number of programs along an axis of the original grid.
pub(super) struct Count {
    /// The expression in the kernel, before any statement of it.
    pub(super) text: String,
    /// The expression of the host, where it is passed as a parameter named as above.
    passed: Option<String>,
}

/// A grid of one or two axes, and its place.
pub(super) struct Grid<'a> {
    subject: &'a Subject<'a>,
    pub(super) counts: Vec<Count>,
    launch: &'a Launch,
    /// The tuple, and the product of its parts as an expression of the host.
    tuple: &'a Expr,
    product: String,
    /// The start of the statement that contains the grid.
    start: usize,
    /// The name of a tensor on the device.
    tensor: &'a str,
    torch: String,
}

impl<'a> Grid<'a> {
    pub(super) fn of(subject: &'a Subject<'a>) -> Option<Self> {
        let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
        let launch = only_launch(subject)?;
        let host = &module.hosts[launch.host?];
        let grid = grid_of(module, launch)?;
        let (tuple, parts, meta) = tuple_of(grid)?;
        let parts = several(parts);
        let slice = text.get(tuple.span.start..tuple.span.end)?;
        let is_plain = slice.starts_with(['(', '[']) && !slice.contains(['#', '\n']) && parts.len() <= 2;
        let statement = innermost(host, tuple.span).filter(|_| is_plain && !module.bindings.contains_key("min"))?;
        if launch
            .grid
            .as_name()
            .is_some_and(|name| !is_used_once(host, name) || !is_settled(host, tuple, statement.span.start))
        {
            return None;
        }
        indent_of(text, statement.span.start)?;
        let is_torch =
            |(_, binding): &(&String, &GlobalBinding)| **binding == GlobalBinding::Import("torch".to_owned());
        let mut torch = module.bindings.iter().filter(is_torch).map(|(name, _)| name.clone());
        let torch = torch.next()?;
        let tensor = tensor(subject, host, launch, statement)?;
        let (counts, product) = (Vec::new(), product(text, parts)?);
        let start = statement.span.start;
        let mut grid = Self { subject, counts, launch, tuple, product, start, tensor, torch };
        for (axis, part) in parts.iter().enumerate() {
            let base = if parts.len() == 1 { "programs".to_owned() } else { format!("programs_{axis}") };
            let count = grid.count(part, meta, &base)?;
            grid.counts.push(count);
        }
        Some(grid)
    }

    /// The number of programs along an axis, in terms of the kernel's parameters or else as a new argument.
    fn count(&self, part: &Expr, meta: Option<&str>, base: &str) -> Option<Count> {
        if let Some(text) = self.in_kernel(part, meta) {
            return Some(Count { text, passed: None });
        }
        let is_of_meta = meta.is_some_and(|meta| part.mentions(meta));
        if is_of_meta || !is_steady(part) {
            return None;
        }
        let text = self.subject.candidate.text.as_str();
        let passed = text.get(part.span.start..part.span.end)?.to_owned();
        Some(Count { text: fresh(text, base), passed: Some(passed) })
    }

    /// The kernel's expression for an expression of the host.
    fn in_kernel(&self, expr: &Expr, meta: Option<&str>) -> Option<String> {
        if let ExprKind::Int(number) = expr.kind {
            // A tile size in the grid changes with the tile.
            let mut tiles = self.subject.knobs.iter().filter(|knob| !knob.is_option());
            let tile = tiles.find_map(|knob| knob.in_kernel(expr.span));
            return Some(tile.unwrap_or_else(|| number.to_string()));
        }
        if let Some(param) = passed_as(self.subject, self.launch, expr) {
            return Some(param.to_owned());
        }
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        match &expr.kind {
            ExprKind::Subscript { value, index } => {
                let [ExprKind::Str(name)] = [&index.first()?.kind] else { return None };
                let is_meta = value.as_name().is_some() && value.as_name() == meta;
                Some(kernel.param(name).filter(|_| is_meta)?.name.clone())
            }
            ExprKind::Binary { op, left, right } if ["+", "-", "*", "//", "%"].contains(&op.as_str()) => {
                let side = |side: &Expr| {
                    let text = self.in_kernel(side, meta)?;
                    let is_tight = text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
                    Some(if is_tight { text } else { format!("({text})") })
                };
                Some(format!("{} {op} {}", side(left)?, side(right)?))
            }
            ExprKind::Call(call) => {
                let is_cdiv = module.imports.resolve(&call.func).is_some_and(|it| it.path == "triton.cdiv");
                let [of, by] = call.args.as_slice() else { return None };
                let is_plain = is_cdiv && of.keyword.is_none() && by.keyword.is_none();
                let cdiv = module.language_name(kernel, "cdiv").filter(|_| is_plain)?;
                Some(format!("{cdiv}({}, {})", self.in_kernel(&of.value, meta)?, self.in_kernel(&by.value, meta)?))
            }
            _ => None,
        }
    }

    /// The edits for a grid with this many programs per multiprocessor, and for its new arguments.
    pub(super) fn edits(&self, programs: i64) -> Vec<Edit> {
        let text = self.subject.candidate.text.as_str();
        let (tensor, torch) = (self.tensor, &self.torch);
        let name = fresh(text, "multiprocessors");
        let indent = indent_of(text, self.start).unwrap_or_default();
        // The interpreter has no device.
        let before = format!(
            "{name} = {torch}.cuda.get_device_properties({tensor}.device).multi_processor_count if {tensor}.is_cuda else 1\n{indent}"
        );
        let most = format!("(min({}, {programs} * {name}),)", self.product);
        let mut edits = vec![
            Edit { span: Span::new(self.start, self.start), text: before },
            Edit { span: self.tuple.span, text: most },
        ];
        let passed = |count: &Count| count.passed.as_ref().map(|value| format!(", {}={value}", count.text));
        let passed: String = self.counts.iter().filter_map(passed).collect();
        let params = self.counts.iter().filter(|count| count.passed.is_some()).map(|count| count.text.as_str());
        let last = self.subject.kernel.params.last();
        let params: String = params
            .map(|name| match last.is_some_and(|last| last.default.is_some()) {
                true => format!(", {name}=1"),
                false => format!(", {name}"),
            })
            .collect();
        if let (Some(last), Some(arg)) = (last, self.launch.args.last()) {
            edits.push(Edit { span: Span::new(last.span.end, last.span.end), text: params });
            edits.push(Edit { span: Span::new(arg.span.end, arg.span.end), text: passed });
        }
        edits.retain(|edit| !edit.text.is_empty());
        edits
    }
}

/// The parts of a grid, without trailing parts of 1.
fn several(parts: &[Expr]) -> &[Expr] {
    let is_one = |part: &&Expr| part.as_int() == Some(1);
    &parts[..parts.len() - parts.iter().skip(1).rev().take_while(is_one).count()]
}

/// The product of a grid's parts.
fn product(text: &str, parts: &[Expr]) -> Option<String> {
    let factor = |part: &Expr| {
        let slice = text.get(part.span.start..part.span.end)?;
        let is_loose = matches!(part.kind, ExprKind::Binary { .. } | ExprKind::IfExp { .. } | ExprKind::BoolOp { .. });
        Some(if is_loose && parts.len() > 1 { format!("({slice})") } else { slice.to_owned() })
    };
    let factors: Option<Vec<String>> = parts.iter().map(factor).collect();
    factors.filter(|factors| !factors.is_empty()).map(|factors| factors.join(" * "))
}

/// The name of a tensor argument that the host binds before it computes the grid.
fn tensor<'a>(subject: &'a Subject<'a>, host: &HostFunction, launch: &'a Launch, before: &Stmt) -> Option<&'a str> {
    let known = pointers(&subject.candidate.module, subject.kernel);
    let is_bound = |name: &str| {
        let mut found = host.params.iter().any(|param| param == name);
        walk_statements(&host.body, &mut |stmt| {
            let StmtKind::Assign { targets, .. } = &stmt.kind else { return };
            let is_target = targets.iter().any(|target| target.mentions(name));
            found |= is_target && stmt.span.end <= before.span.start;
        });
        found
    };
    let mut passed = passed(subject, launch).into_iter().filter(|(param, _)| known.contains(param));
    passed.find_map(|(_, arg)| arg.value.as_name().filter(|name| is_bound(name)))
}
