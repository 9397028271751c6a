//! The body of the kernel. One pass, in order, determines along which axes of the tile each name varies.

use std::collections::HashMap;

use model::analysis::types::access::leftmost;
use model::kernel::ast::{Arg, Call, Expr, ExprKind, Stmt, StmtKind};
use rules::Edit;

use super::flat::LinearOffsets;
use super::host::ElementLaunch;
use super::{Names, divided};
use crate::masked::and_mask;
use crate::names::in_expr;
use crate::pointwise::{METHODS, is_function, is_helper};
use crate::subject::Subject;
use crate::written::{bindings, only_value};

/// Functions that broadcast their arguments to one shape.
const BROADCASTING: &[&str] = &["where", "maximum", "minimum"];

/// The axes of a tile along which a value differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Axes {
    rows: bool,
    columns: bool,
}

const SCALAR: Axes = Axes { rows: false, columns: false };
const ROW: Axes = Axes { rows: true, columns: false };
const COLUMN: Axes = Axes { rows: false, columns: true };
const TILE: Axes = Axes { rows: true, columns: true };

impl Axes {
    fn with(self, other: Self) -> Self {
        Self { rows: self.rows || other.rows, columns: self.columns || other.columns }
    }

    fn holds(self, other: Self) -> bool {
        self.with(other) == self
    }
}

type Known<'a> = HashMap<&'a str, Axes>;

/// A load or a store.
struct Access<'a> {
    /// The parameter that is the base of the address.
    root: &'a str,
    pointer: &'a Expr,
    is_store: bool,
}

pub(super) struct Body<'a> {
    subject: &'a Subject<'a>,
    flat: &'a LinearOffsets<'a>,
    site: &'a ElementLaunch<'a>,
    /// The parameter for the number of columns.
    columns: &'a str,
    names: &'a Names,
    axes: Known<'a>,
    /// The kernel's expression for the number of elements.
    count: Option<&'a Expr>,
    accesses: Vec<Access<'a>>,
    edits: Vec<Edit>,
}

impl<'a> Body<'a> {
    pub(super) fn new(
        subject: &'a Subject<'a>,
        flat: &'a LinearOffsets<'a>,
        site: &'a ElementLaunch<'a>,
        columns: &'a str,
        names: &'a Names,
    ) -> Self {
        let axes = Known::from([(flat.offsets, TILE)]);
        Self { subject, flat, site, columns, names, axes, count: None, accesses: Vec::new(), edits: Vec::new() }
    }

    /// The edits of the body, and the kernel's expression for the number of elements; `None` where something is not
    /// known to be elementwise.
    pub(super) fn tiled(mut self) -> Option<(Vec<Edit>, String)> {
        let kernel = self.subject.kernel;
        let is_kept = bindings(&kernel.body, self.columns).is_empty() && self.columns != self.flat.size;
        let (body, flat) = (&kernel.body, self.flat);
        let is_of_flat = |stmt: &&Stmt| {
            let others = flat.named.iter().chain(&flat.dropped);
            std::ptr::eq(*stmt, flat.stmt) || others.into_iter().any(|other| std::ptr::eq(*stmt, *other))
        };
        body.iter().filter(|stmt| !is_of_flat(stmt)).try_for_each(|stmt| self.statement(stmt))?;
        let is_stored = self.accesses.iter().any(|access| access.is_store);
        if !is_kept || !is_stored || self.reads_what_it_writes() {
            return None;
        }
        let count = self.count?.span;
        let count = self.subject.candidate.text.get(count.start..count.end)?;
        // The text is inserted elsewhere, without its parentheses.
        (!count.contains('\n')).then(|| (self.edits, count.to_owned()))
    }

    // --- statements -----------------------------------------------------------------------------------------------

    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, annotation: None, value: Some(value) } => {
                let [target] = targets.as_slice() else { return None };
                let axes = self.expr(value)?;
                self.bind(target, axes)
            }
            StmtKind::AugAssign { target, value, .. } => {
                let axes = self.known(target.as_name()?)?.with(self.expr(value)?);
                self.bind(target, axes)
            }
            StmtKind::Expr(value) => self.expr(value).map(drop),
            StmtKind::If { branches, orelse } => self.branches(branches, orelse),
            StmtKind::Pass => Some(()),
            _ => None,
        }
    }

    fn branches(&mut self, branches: &'a [(Expr, Vec<Stmt>)], orelse: &'a [Stmt]) -> Option<()> {
        let before = self.axes.clone();
        let mut ends = Vec::new();
        for (test, body) in branches {
            self.scalar(test)?;
            self.axes.clone_from(&before);
            body.iter().try_for_each(|stmt| self.statement(stmt))?;
            ends.push(std::mem::replace(&mut self.axes, before.clone()));
        }
        orelse.iter().try_for_each(|stmt| self.statement(stmt))?;
        // A name that only some branches bind is unknown afterwards.
        let differs = |name: &str, axes: Axes| ends.iter().any(|end| end.get(name).is_some_and(|other| *other != axes));
        if self.axes.iter().any(|(name, axes)| differs(name, *axes)) {
            return None;
        }
        self.axes.retain(|name, _| ends.iter().all(|end| end.contains_key(name)));
        Some(())
    }

    /// Binds a name, which must be neither a parameter nor the element indices.
    fn bind(&mut self, target: &'a Expr, axes: Axes) -> Option<()> {
        let name = target.as_name().filter(|name| self.subject.kernel.param(name).is_none())?;
        (name != self.flat.offsets).then(|| self.axes.insert(name, axes)).map(drop)
    }

    // --- expressions ----------------------------------------------------------------------------------------------

    /// The axes of a name; a local one must have been bound before.
    fn known(&self, name: &str) -> Option<Axes> {
        if let Some(axes) = self.axes.get(name) {
            return Some(*axes);
        }
        let is_outer = self.subject.kernel.param(name).is_some() || !self.subject.kernel.locals.contains(name);
        (is_outer && name != self.flat.size).then_some(SCALAR)
    }

    fn scalar(&mut self, expr: &'a Expr) -> Option<()> {
        (self.expr(expr)? == SCALAR).then_some(())
    }

    fn expr(&mut self, expr: &'a Expr) -> Option<Axes> {
        if let Some((op, by)) = divided(expr, self.flat.offsets)
            && by.as_name() == Some(self.columns)
        {
            let (name, axes) = if op == "//" { (&self.names.rows, ROW) } else { (&self.names.columns, COLUMN) };
            self.edits.push(Edit { span: expr.span, text: name.clone() });
            return Some(axes);
        }
        if let Some(count) = self.bound(expr) {
            self.count = self.count.or(Some(count));
            self.edits.push(Edit { span: expr.span, text: self.names.in_tile.clone() });
            return Some(TILE);
        }
        match &expr.kind {
            ExprKind::Name(name) => self.known(name),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Str(_) => {
                Some(SCALAR)
            }
            ExprKind::Attribute { value, name, .. } => match name.as_str() {
                "dtype" => self.expr(value).map(|_| SCALAR),
                "T" | "shape" => None,
                _ => self.scalar(value).map(|()| SCALAR),
            },
            ExprKind::Binary { left, right, .. } => Some(self.expr(left)?.with(self.expr(right)?)),
            ExprKind::Unary { op, operand } if op != "not" => self.expr(operand),
            ExprKind::Compare { left, rest } if rest.len() == 1 => Some(self.expr(left)?.with(self.expr(&rest[0].1)?)),
            ExprKind::Unary { operand, .. } => self.scalar(operand).map(|()| SCALAR),
            ExprKind::BoolOp { left, right, .. } => {
                self.scalar(left)?;
                self.scalar(right).map(|()| SCALAR)
            }
            ExprKind::Call(call) if !call.has_star() => self.call(call),
            _ => None,
        }
    }

    /// The `n` of `offsets < n`, where that is the number of elements.
    fn bound(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let ExprKind::Compare { left, rest } = &expr.kind else { return None };
        let [(op, right)] = rest.as_slice() else { return None };
        let is_it = left.as_name() == Some(self.flat.offsets) && op == "<" && self.site.is_count(right);
        is_it.then_some(right)
    }

    fn all(&mut self, args: &'a [Arg]) -> Option<Axes> {
        args.iter().try_fold(SCALAR, |axes, arg| Some(axes.with(self.expr(&arg.value)?)))
    }

    /// The same, where all tiles must have the same axes: not all functions broadcast their arguments.
    fn alike(&mut self, args: &'a [Arg]) -> Option<Axes> {
        let mut found = SCALAR;
        for arg in args {
            let axes = self.expr(&arg.value)?;
            if axes != SCALAR && found != SCALAR && axes != found {
                return None;
            }
            found = found.with(axes);
        }
        Some(found)
    }

    fn call(&mut self, call: &'a Call) -> Option<Axes> {
        let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
        if let Some(name) = module.language_member(kernel, &call.func) {
            return match name.as_str() {
                "load" => self.load(call),
                "store" => self.store(call),
                "cdiv" | "constexpr" | "static_assert" => self.all(&call.args).filter(|axes| *axes == SCALAR),
                name if BROADCASTING.contains(&name) => self.all(&call.args),
                name if is_function(name) => self.alike(&call.args),
                _ => None,
            };
        }
        match &call.func.kind {
            ExprKind::Attribute { value, name, .. } if METHODS.contains(&name.as_str()) => {
                let axes = self.expr(value)?;
                (self.all(&call.args)? == SCALAR).then_some(axes)
            }
            ExprKind::Name(name) if !kernel.locals.contains(name) => match module.kernel(name) {
                Some(helper) => is_helper(module, helper).then(|| self.alike(&call.args))?,
                None if ["float", "min", "max"].contains(&name.as_str()) => {
                    self.all(&call.args).filter(|axes| *axes == SCALAR)
                }
                None => None,
            },
            _ => None,
        }
    }

    // --- memory ---------------------------------------------------------------------------------------------------

    /// Reads a load. The mask and the value for masked-off elements must not have more axes than the pointer. A value
    /// that is loaded once per row or column gets the mask of the existing rows or columns in place of that of all
    /// elements.
    fn load(&mut self, call: &'a Call) -> Option<Axes> {
        let pointer = call.argument("pointer", Some(0))?;
        let axes = self.access(pointer, false)?;
        let mask = call.argument("mask", Some(1)).filter(|mask| mask.kind != ExprKind::None);
        for arg in call.args.iter().filter(|arg| arg.value.span != pointer.span) {
            let is_mask = mask.is_some_and(|mask| mask.span == arg.value.span);
            if !is_mask && !axes.holds(self.expr(&arg.value)?) {
                return None;
            }
        }
        let exist = match axes {
            // A scalar load has no mask of tiles.
            SCALAR => return mask.is_none_or(|mask| self.scalar(mask).is_some()).then_some(axes),
            ROW => self.names.in_rows.clone(),
            COLUMN => self.names.in_columns.clone(),
            _ => self.names.in_tile.clone(),
        };
        match mask {
            Some(mask) if axes != TILE && self.is_bound(mask) => {
                self.edits.push(Edit { span: mask.span, text: exist });
            }
            Some(mask) => {
                if !axes.holds(self.expr(mask)?) {
                    return None;
                }
                if !self.is_within(mask) {
                    self.edits.extend(and_mask(call, 1, &exist)?);
                }
            }
            None => self.edits.extend(and_mask(call, 1, &exist)?),
        }
        Some(axes)
    }

    /// Reads a store. The value and the mask are broadcast to the shape of the pointer, which must be that of the tile.
    /// Elements after the last one may be missing from the new tiles, so stores there are not supported.
    fn store(&mut self, call: &'a Call) -> Option<Axes> {
        let pointer = call.argument("pointer", Some(0))?;
        let axes = self.access(pointer, true)?;
        for arg in call.args.iter().filter(|arg| arg.value.span != pointer.span) {
            self.expr(&arg.value)?;
        }
        let is_within = call.argument("mask", Some(2)).is_some_and(|mask| self.is_within(mask));
        (axes == TILE && is_within).then_some(SCALAR)
    }

    /// Whether a mask is exactly that of all elements.
    fn is_bound(&self, mask: &'a Expr) -> bool {
        match self.followed(mask) {
            Some(value) => self.is_bound(value),
            None => self.bound(mask).is_some(),
        }
    }

    /// Whether a mask enables no elements beyond the last.
    fn is_within(&self, mask: &'a Expr) -> bool {
        match (&mask.kind, self.followed(mask)) {
            (_, Some(value)) => self.is_within(value),
            (ExprKind::Binary { op, left, right }, _) if op == "&" => self.is_within(left) || self.is_within(right),
            _ => self.bound(mask).is_some(),
        }
    }

    /// The only value of a name, which must be bound before its use.
    fn followed(&self, expr: &Expr) -> Option<&'a Expr> {
        let name = expr.as_name().filter(|name| self.subject.kernel.param(name).is_none())?;
        only_value(&self.subject.kernel.body, name).filter(|value| value.span.end <= expr.span.start)
    }

    fn access(&mut self, pointer: &'a Expr, is_store: bool) -> Option<Axes> {
        let axes = self.expr(pointer)?;
        let mut root = leftmost(pointer)?;
        let mut expr = pointer;
        while self.subject.kernel.param(root).is_none() {
            expr = only_value(&self.subject.kernel.body, root).filter(|value| value.span.end <= expr.span.start)?;
            root = leftmost(expr)?;
        }
        self.accesses.push(Access { root, pointer, is_store });
        Some(axes)
    }

    /// Whether a load may read an element that another program writes.
    fn reads_what_it_writes(&self) -> bool {
        let text = self.subject.candidate.text.as_str();
        let slice = |expr: &Expr| &text[expr.span.start..expr.span.end];
        let is_steady =
            |expr: &Expr| in_expr(expr).iter().all(|name| bindings(&self.subject.kernel.body, name).len() <= 1);
        let clashes = |read: &Access<'_>, write: &Access<'_>| {
            let is_same = read.root == write.root || self.site.is_same_memory(read.root, write.root);
            let is_own = slice(read.pointer) == slice(write.pointer) && is_steady(read.pointer);
            is_same && !(is_own && read.root == write.root)
        };
        let of = |is_store: bool| self.accesses.iter().filter(move |access| access.is_store == is_store);
        of(true).any(|write| of(false).any(|read| clashes(read, write)))
    }
}
