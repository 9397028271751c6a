//! Elementwise kernels over memory with one axis, which give the same results in any tile.

use std::collections::BTreeSet;

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions};

use super::form::Form;
use super::side::{Access, Side, mask_of, times_bound};
use crate::names::in_expr;
use crate::pointwise::{METHODS, is_function};

/// An elementwise kernel over a flat range of elements.
pub(super) struct Flat<'a> {
    /// The name of the element indices.
    pub(super) offsets: &'a str,
    /// `offsets < n`, wherever it occurs, with `n`.
    pub(super) bounds: Vec<(&'a Expr, &'a Expr)>,
    /// Assignments of names that are nothing but such a comparison.
    pub(super) masks: Vec<(&'a Stmt, &'a str)>,
    /// Statements that only determine which elements a program processes.
    pub(super) dropped: Vec<&'a Stmt>,
    /// Whether all loads and stores that depend on the element are masked by a bound.
    pub(super) is_bounded: bool,
}

impl<'a> Flat<'a> {
    pub(super) fn of(side: &Side<'a>) -> Option<Self> {
        let kernel = side.kernel;
        let (mut offsets, mut dropped, mut programs) = (None, Vec::new(), BTreeSet::new());
        for (stmt, name, form) in &side.given {
            let form = form.address();
            if is_offsets(&form) {
                if offsets.is_some() {
                    return None;
                }
                offsets = Some(*name);
            } else if !is_program(&form) {
                continue;
            }
            if times_bound(kernel, name) != 1 || !matches!(&stmt.kind, StmtKind::Assign { .. }) {
                return None;
            }
            programs.insert(*name);
            dropped.push(*stmt);
        }
        let offsets = offsets?;
        programs.remove(offsets);
        let kept: Vec<&'a Stmt> = kernel.body.iter().filter(|stmt| !dropped.iter().any(|one| one == stmt)).collect();
        let (bounds, masks, is_bounded) = (Vec::new(), Vec::new(), true);
        let mut flat = Self { offsets, bounds, masks, dropped, is_bounded };
        let sizes = sizes_of(&flat.dropped, side);
        for stmt in kept {
            let value = match &stmt.kind {
                StmtKind::Assign { value: Some(value), .. } | StmtKind::AugAssign { value, .. } => value,
                StmtKind::Expr(value) => value,
                StmtKind::Pass => continue,
                _ => return None,
            };
            let names = in_expr(value);
            if names.iter().any(|name| programs.contains(name) || sizes.contains(name)) {
                return None;
            }
            if !matches!(value.kind, ExprKind::Str(_)) {
                flat.read(side, value)?;
            }
            if let (StmtKind::Assign { targets, .. }, Some(_)) = (&stmt.kind, flat.bound(value))
                && let [target] = targets.as_slice()
                && let Some(name) = target.as_name().filter(|name| times_bound(kernel, name) == 1)
            {
                flat.masks.push((stmt, name));
            }
        }
        flat.is_bounded = flat.accesses_are_bounded(side);
        Some(flat)
    }

    fn bound(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let ExprKind::Compare { left, rest } = &expr.kind else { return None };
        let [(op, right)] = rest.as_slice() else { return None };
        let is_it = left.as_name() == Some(self.offsets) && op == "<" && !right.mentions(self.offsets);
        is_it.then_some(right)
    }

    /// Accepts an expression whose value at each element depends on that element alone.
    fn read(&mut self, side: &Side<'a>, expr: &'a Expr) -> Option<()> {
        if let Some(end) = self.bound(expr) {
            self.bounds.push((expr, end));
            return Some(());
        }
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None => Some(()),
            ExprKind::Attribute { value, .. } => {
                if side.member(expr).is_some() {
                    Some(())
                } else {
                    self.read(side, value)
                }
            }
            ExprKind::Binary { left, right, .. } => {
                self.read(side, left)?;
                self.read(side, right)
            }
            ExprKind::Unary { operand, op } if op != "not" => self.read(side, operand),
            ExprKind::Compare { left, rest } if rest.len() == 1 => {
                self.read(side, left)?;
                self.read(side, &rest[0].1)
            }
            ExprKind::Call(call) => self.call(side, call),
            _ => None,
        }
    }

    fn call(&mut self, side: &Side<'a>, call: &'a Call) -> Option<()> {
        let resolved = side.around.module.resolve_in(side.kernel, &call.func);
        match (side.member(&call.func), &call.func.kind) {
            (Some(member), _) if is_function(&member) || matches!(member.as_str(), "load" | "store") => {}
            (None, _) if resolved.is_some_and(|it| is_function(&it.path)) => {}
            (None, ExprKind::Attribute { value, name, .. }) if METHODS.contains(&name.as_str()) => {
                self.read(side, value)?;
            }
            // Helpers are read together with the kernel.
            (None, ExprKind::Name(_)) => {}
            _ => return None,
        }
        let is_text = |expr: &Expr| matches!(expr.kind, ExprKind::Str(_));
        call.args.iter().filter(|arg| !is_text(&arg.value)).try_for_each(|arg| self.read(side, &arg.value))
    }

    fn accesses_are_bounded(&self, side: &Side<'a>) -> bool {
        let of_element = self.of_element(side);
        let mut all = true;
        walk_expressions(&side.kernel.body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            let Some(member) = side.member(&call.func).filter(|it| it == "load" || it == "store") else { return };
            let pointer = call.argument("pointer", Some(0));
            if pointer.is_none_or(|pointer| in_expr(pointer).iter().any(|name| of_element.contains(name))) {
                all &= mask_of(call, member == "store").is_some_and(|mask| self.is_within(side, mask));
            }
        });
        all
    }

    fn is_within(&self, side: &Side<'a>, mask: &Expr) -> bool {
        match &mask.kind {
            ExprKind::Name(name) => {
                self.masks.iter().any(|(_, mask)| mask == name)
                    || side.given.iter().any(|(stmt, given, _)| {
                        let StmtKind::Assign { value: Some(value), .. } = &stmt.kind else { return false };
                        given == name && value.as_name() != Some(name) && self.is_within(side, value)
                    }) && times_bound(side.kernel, name) == 1
            }
            ExprKind::Binary { op, left, right } if op == "&" => {
                self.is_within(side, left) || self.is_within(side, right)
            }
            _ => self.bounds.iter().any(|(bound, _)| bound.span == mask.span),
        }
    }

    /// The names whose values may differ from element to element.
    fn of_element(&self, side: &Side<'a>) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::from([self.offsets]);
        for (stmt, name, _) in &side.given {
            let read = stmt.exprs().into_iter().skip(1).flat_map(in_expr).any(|name| names.contains(name));
            if read {
                names.insert(name);
            }
        }
        names
    }

    /// Whether an access is at the element itself.
    pub(super) fn is_own(&self, side: &Side<'a>, access: &Access<'a>) -> bool {
        let Some((.., offsets)) = side.given.iter().find(|(_, name, _)| *name == self.offsets) else { return false };
        let tensor = side.form_of_param(access.root);
        access.pointer.address() == Form::binary("+", tensor, offsets.address())
    }
}

/// `pid * BLOCK + arange(0, BLOCK)`
fn is_offsets(form: &Form) -> bool {
    let Form::Sum(parts) = form else { return false };
    let [one, other] = parts.as_slice() else { return false };
    let is_it = |program: &Form, range: &Form| {
        let (Form::Product(parts), Form::Of(name, ends)) = (program, range) else { return false };
        let ([start, size], "arange") = (ends.as_slice(), name.as_str()) else { return false };
        let others: Vec<&Form> = parts.iter().filter(|part| *part != size).collect();
        *start == Form::leaf("0") && parts.len() == 2 && matches!(others.as_slice(), [one] if is_id(one))
    };
    is_it(one, other) || is_it(other, one)
}

fn is_id(form: &Form) -> bool {
    matches!(form, Form::Of(name, axis) if name == "program_id" && *axis == [Form::leaf("0")])
}

/// The index of a program, or that of its first element.
fn is_program(form: &Form) -> bool {
    is_id(form)
        || matches!(form, Form::Product(parts) if parts.len() == 2 && parts.iter().any(is_id))
        || matches!(form, Form::Of(name, parts) if name == "arange" && parts.len() == 2)
}

/// The parameters that determine how many elements a program processes.
fn sizes_of<'a>(dropped: &[&'a Stmt], side: &Side<'a>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for stmt in dropped {
        stmt.exprs().into_iter().skip(1).for_each(|expr| names.extend(in_expr(expr)));
    }
    names.retain(|name| side.kernel.param(name).is_some());
    names
}
