//! Rewrites a kernel whose programs process one row each so that they process tiles of rows.
//!
//! One pass over the kernel, in order, determines for each name whether its value differs from row to row and whether
//! it extends along the row. The rewrite gives up at the first construct that is not known to keep its meaning.

use std::collections::HashMap;

use model::kernel::ast::{Arg, Call, Expr, ExprKind, Stmt, StmtKind};
use model::kernel::{Kernel, Launch, Module};
use model::syntax::Span;
use protocol::WorkloadSource;
use rules::Edit;

use super::masked::and_mask;
use super::pointwise::{METHODS, is_function, is_helper};
use super::subject::Subject;
use super::words::fresh;

/// The kind of a value in the kernel as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kind {
    /// The value differs from program to program, or is a tile of one element for another reason: it has two axes in
    /// the new kernel.
    of_row: bool,
    /// The value extends along the row.
    along: bool,
}

const SCALAR: Kind = Kind { of_row: false, along: false };

impl Kind {
    fn with(self, other: Self) -> Self {
        Self { of_row: self.of_row || other.of_row, along: self.along || other.along }
    }
}

/// Functions that reduce a row to one element.
pub(super) const REDUCTIONS: &[&str] = &["max", "min", "sum"];

/// Names of the new kernel.
struct Names {
    /// The indices of the rows of a program, as a column, or of an iteration.
    rows: String,
    /// The mask of the rows that exist.
    exist: String,
    /// The number of rows.
    count: String,
    /// The number of rows per program.
    size: String,
}

/// The source of a kernel's row index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowSource {
    /// Each program along this axis of the grid has one row.
    Programs(u8),
    /// The last loop of each program iterates over rows, from the program's index in steps of the number of programs.
    Rounds,
}

struct Lift<'a> {
    way: RowSource,
    module: &'a Module,
    kernel: &'a Kernel,
    text: &'a str,
    names: Names,
    kinds: HashMap<String, Kind>,
    /// Names that were first bound to scalars, with their initial values.
    begun: HashMap<String, &'a Expr>,
    edits: Vec<Edit>,
    has_rows: bool,
}

/// A kernel that processes several rows per program.
pub(super) struct Lifted {
    pub(super) edits: Vec<Edit>,
    /// The parameter for the number of rows per program.
    pub(super) size: String,
}

/// Lets each program, or each iteration of its loop, process several rows; `None` where that is not possible.
pub(super) fn lift(subject: &Subject<'_>, way: RowSource, size: i64) -> Option<Lifted> {
    let (module, kernel, text) = (&subject.candidate.module, subject.kernel, subject.candidate.text.as_str());
    let is_plain = kernel.plain
        && kernel.autotune.is_none()
        && kernel.heuristics.as_ref().is_some_and(Vec::is_empty)
        && !kernel.has_error;
    if subject.workload.source == WorkloadSource::Launch || !is_plain {
        return None;
    }
    let fresh = |base: &str| fresh(text, base);
    let rows = fresh(if way == RowSource::Rounds { "first_row" } else { "rows" });
    let names = Names { rows, exist: fresh("in_rows"), count: fresh("row_count"), size: fresh("ROWS") };
    let (kinds, begun, edits) = Default::default();
    let mut lift = Lift { way, module, kernel, text, names, kinds, begun, edits, has_rows: false };
    lift.block(&kernel.body)?;
    if !lift.has_rows {
        return None;
    }
    lift.head()?;
    let launches: Vec<&Launch> = module.launches_of(&kernel.name).collect();
    if launches.is_empty() {
        return None;
    }
    for launch in launches {
        lift.launch(launch, size)?;
    }
    lift.edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    Some(Lifted { edits: lift.edits, size: lift.names.size })
}

impl<'a> Lift<'a> {
    fn put(&mut self, at: usize, text: impl Into<String>) {
        self.edits.push(Edit { span: Span::new(at, at), text: text.into() });
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    // --- statements -----------------------------------------------------------------------------------------------

    fn block(&mut self, body: &'a [Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, annotation, value: Some(value) } => {
                let [target] = targets.as_slice() else { return None };
                let name = target.as_name()?;
                let kind = self.expr(value)?;
                // `half: tl.constexpr = D // 2`
                if annotation.is_some() {
                    return (kind == SCALAR).then(|| self.bind(name, kind))?;
                }
                if kind == SCALAR && !self.kinds.contains_key(name) {
                    self.begun.insert(name.to_owned(), value);
                }
                self.bind(name, kind)
            }
            StmtKind::AugAssign { target, value, .. } => {
                let name = target.as_name()?;
                let kind = self.known(name)?.with(self.expr(value)?);
                self.bind(name, kind)
            }
            StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)) => Some(()),
            StmtKind::Expr(value) => match value.as_call().filter(|call| self.is_atomic_sum(call)) {
                Some(call) => self.summed(call),
                None => self.expr(value).map(drop),
            },
            StmtKind::For { target, iter, body, orelse } if orelse.is_empty() => {
                if self.way == RowSource::Rounds && self.kernel.body.last().is_some_and(|last| std::ptr::eq(last, stmt))
                {
                    return self.rounds(target, iter, body);
                }
                self.scalar(iter)?;
                let name = target.as_name()?;
                self.bind(name, SCALAR)?;
                self.repeated(body)
            }
            StmtKind::If { branches, orelse } => {
                let before = self.kinds.clone();
                let mut after: Option<HashMap<String, Kind>> = None;
                for (test, body) in branches {
                    self.scalar(test)?;
                    self.kinds.clone_from(&before);
                    self.block(body)?;
                    join(&mut after, &self.kinds)?;
                }
                self.kinds = before;
                self.block(orelse)?;
                join(&mut after, &self.kinds)?;
                self.kinds = after?;
                Some(())
            }
            StmtKind::Pass | StmtKind::Return(None) => Some(()),
            _ => None,
        }
    }

    /// Reads the body of a loop. A value that is carried from one iteration to the next must be a tile of rows before
    /// the first, too.
    fn repeated(&mut self, body: &'a [Stmt]) -> Option<()> {
        let before = self.kinds.clone();
        let edits = self.edits.len();
        self.block(body)?;
        let carried: Vec<String> =
            before.iter().filter(|(name, kind)| self.kinds[*name] != **kind).map(|(name, _)| name.clone()).collect();
        if carried.is_empty() {
            return Some(());
        }
        // Reads the body once more, with the carried values as tiles of rows.
        self.edits.truncate(edits);
        let after = std::mem::replace(&mut self.kinds, before);
        for name in carried {
            let (was, is) = (self.kinds[&name], after[&name]);
            if was != SCALAR || is.along {
                return None;
            }
            self.widen(&name)?;
        }
        let before = self.kinds.clone();
        self.block(body)?;
        before.iter().all(|(name, kind)| self.kinds[name] == *kind).then_some(())
    }

    /// Turns the initial value of a carried scalar into a column.
    fn widen(&mut self, name: &str) -> Option<()> {
        let value = *self.begun.get(name)?;
        let is_float = match &value.kind {
            ExprKind::Float(_) => true,
            ExprKind::Unary { operand, .. } => matches!(operand.kind, ExprKind::Float(_)) || is_float_call(operand),
            _ => is_float_call(value),
        };
        let full = self.module.language_name(self.kernel, "full").filter(|_| is_float)?;
        let float = self.module.language_name(self.kernel, "float32")?;
        self.put(value.span.start, format!("{full}(({}, 1), ", self.names.size));
        self.put(value.span.end, format!(", {float})"));
        self.kinds.insert(name.to_owned(), Kind { of_row: true, along: false });
        Some(())
    }

    fn bind(&mut self, name: &str, kind: Kind) -> Option<()> {
        self.kinds.insert(name.to_owned(), kind);
        Some(())
    }

    // --- expressions ----------------------------------------------------------------------------------------------

    /// The kind of a name; a local one must have been bound before.
    fn known(&self, name: &str) -> Option<Kind> {
        if let Some(kind) = self.kinds.get(name) {
            return Some(*kind);
        }
        let is_param = self.kernel.params.iter().any(|param| param.name == name);
        (is_param || !self.kernel.locals.contains(name)).then_some(SCALAR)
    }

    /// Requires an expression to be a scalar that is the same in all programs.
    fn scalar(&mut self, expr: &'a Expr) -> Option<()> {
        (self.expr(expr)? == SCALAR).then_some(())
    }

    fn expr(&mut self, expr: &'a Expr) -> Option<Kind> {
        match &expr.kind {
            ExprKind::Name(name) => self.known(name),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Str(_) => {
                Some(SCALAR)
            }
            ExprKind::Attribute { value, name, .. } => match name.as_str() {
                // A tile has the same type with rows added.
                "dtype" => self.expr(value).map(|_| SCALAR),
                "T" | "shape" => None,
                _ => self.scalar(value).map(|()| SCALAR),
            },
            ExprKind::Binary { left, right, .. } => Some(self.expr(left)?.with(self.expr(right)?)),
            ExprKind::Unary { op, operand } if op != "not" => self.expr(operand),
            ExprKind::Compare { left, rest } if rest.len() == 1 => Some(self.expr(left)?.with(self.expr(&rest[0].1)?)),
            ExprKind::BoolOp { left, right, .. } => {
                self.scalar(left)?;
                self.scalar(right)?;
                Some(SCALAR)
            }
            ExprKind::Unary { operand, .. } => self.scalar(operand).map(|()| SCALAR),
            ExprKind::Call(call) => self.call(expr, call),
            _ => None,
        }
    }

    fn all(&mut self, args: &'a [Arg]) -> Option<Kind> {
        args.iter().try_fold(SCALAR, |kind, arg| Some(kind.with(self.expr(&arg.value)?)))
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Option<Kind> {
        if call.has_star() {
            return None;
        }
        if let Some(name) = self.module.language_member(self.kernel, &call.func) {
            return self.language(expr, call, &name);
        }
        match &call.func.kind {
            ExprKind::Attribute { value, name, .. } if METHODS.contains(&name.as_str()) => {
                let kind = self.expr(value)?;
                (self.all(&call.args)? == SCALAR).then_some(kind)
            }
            ExprKind::Name(name) if self.module.kernel(name).is_some() => {
                let helper = self.module.kernel(name).filter(|_| !self.kernel.locals.contains(name))?;
                is_helper(self.module, helper).then(|| self.all(&call.args))?
            }
            ExprKind::Name(name) if ["float", "range", "min", "max"].contains(&name.as_str()) => {
                (!self.kernel.locals.contains(name) && self.all(&call.args)? == SCALAR).then_some(SCALAR)
            }
            _ => None,
        }
    }

    fn language(&mut self, expr: &'a Expr, call: &'a Call, name: &str) -> Option<Kind> {
        let last = name.rsplit('.').next().unwrap_or(name);
        match last {
            "program_id" => {
                let axis = call.argument("axis", Some(0))?.as_int()?;
                if !matches!(self.way, RowSource::Programs(of_rows) if i128::from(of_rows) == axis) {
                    return Some(SCALAR);
                }
                self.edits.push(Edit { span: expr.span, text: self.names.rows.clone() });
                self.has_rows = true;
                Some(Kind { of_row: true, along: false })
            }
            "num_programs" => (self.way == RowSource::Rounds).then_some(SCALAR),
            "arange" => {
                self.all(&call.args).filter(|kind| *kind == SCALAR)?;
                self.put(expr.span.end, "[None, :]");
                Some(Kind { of_row: false, along: true })
            }
            "zeros" | "full" => self.filled(call),
            "load" => {
                let pointer = self.expr(call.argument("pointer", Some(0))?)?;
                let kind = self.others(call)?.with(pointer);
                if pointer.of_row {
                    self.mask(call, 1)?;
                }
                (pointer.of_row || !kind.of_row).then_some(kind)
            }
            "store" => {
                let pointer = self.expr(call.argument("pointer", Some(0))?)?;
                let rest = self.others(call)?;
                self.mask(call, 2)?;
                // Without that, all rows would store to one place.
                (pointer.of_row && (pointer.along || !rest.along)).then_some(SCALAR)
            }
            "range" | "static_range" | "cdiv" | "constexpr" | "static_assert" => {
                self.all(&call.args).filter(|kind| *kind == SCALAR)
            }
            _ if REDUCTIONS.contains(&last) => self.reduction(call),
            _ if is_function(name) => self.all(&call.args),
            _ => None,
        }
    }

    /// Reads all arguments but the first.
    fn others(&mut self, call: &'a Call) -> Option<Kind> {
        let is_pointer = |at: usize, arg: &Arg| match &arg.keyword {
            Some((name, _)) => name == "pointer",
            None => at == 0,
        };
        let mut kind = SCALAR;
        for (_, arg) in call.args.iter().enumerate().filter(|(at, arg)| !is_pointer(*at, arg)) {
            kind = kind.with(self.expr(&arg.value)?);
        }
        Some(kind)
    }

    /// Adds the mask of existing rows to a call.
    fn mask(&mut self, call: &'a Call, position: usize) -> Option<()> {
        self.edits.extend(and_mask(call, position, &self.names.exist)?);
        Some(())
    }

    fn reduction(&mut self, call: &'a Call) -> Option<Kind> {
        let kind = self.expr(call.argument("input", Some(0))?)?;
        let is_known = call.args.iter().enumerate().all(|(at, arg)| match &arg.keyword {
            Some((name, _)) => ["input", "axis"].contains(&name.as_str()),
            None => at < 2,
        });
        if !kind.along || !is_known {
            return None;
        }
        let end = call.args.last()?.span.end;
        match call.argument("axis", Some(1)) {
            None => self.put(end, ", axis=1, keep_dims=True"),
            Some(axis) if axis.as_int() == Some(0) || axis.kind == ExprKind::None => {
                self.edits.push(Edit { span: axis.span, text: "1".to_owned() });
                self.put(end, ", keep_dims=True");
            }
            Some(_) => return None,
        }
        Some(Kind { of_row: true, along: false })
    }

    /// Reads `tl.zeros([BLOCK], …)` and similar calls, which extend along the row.
    fn filled(&mut self, call: &'a Call) -> Option<Kind> {
        let shape = call.argument("shape", Some(0))?;
        let (ExprKind::List(parts) | ExprKind::Tuple(parts)) = &shape.kind else { return None };
        let [part] = parts.as_slice() else { return None };
        self.scalar(part)?;
        let rest = call.args.iter().filter(|arg| arg.value.span != shape.span);
        for arg in rest {
            self.scalar(&arg.value)?;
        }
        self.put(part.span.start, format!("{}, ", self.names.size));
        Some(Kind { of_row: true, along: true })
    }
}

/// The kinds on which all branches agree; a name that only some of them bind is unknown afterwards.
fn join(after: &mut Option<HashMap<String, Kind>>, kinds: &HashMap<String, Kind>) -> Option<()> {
    let Some(known) = after else {
        *after = Some(kinds.clone());
        return Some(());
    };
    let differs = known.iter().any(|(name, kind)| kinds.get(name).is_some_and(|other| other != kind));
    known.retain(|name, _| kinds.contains_key(name));
    (!differs).then_some(())
}

/// `float("inf")`
fn is_float_call(expr: &Expr) -> bool {
    expr.as_call().is_some_and(|call| call.func.as_name() == Some("float"))
}

mod atomic;
mod rounds;
mod site;
#[cfg(test)]
mod tests;
