//! Classifies the statements of a kernel with a row in one tile: which work on elements of the row, and what they read.

use std::collections::BTreeSet;

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions};

use super::super::lift::REDUCTIONS;
use super::row::{Row, reduction};

/// The role of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It does not depend on elements of the row.
    Scalar,
    /// It only binds names of values along the row.
    Along,
    /// It stores elements of the row.
    Store,
}

/// A sum, maximum or minimum of a row.
#[derive(Clone, Debug)]
pub(super) struct Reduction<'a> {
    pub(super) call: &'a Expr,
    pub(super) input: &'a Expr,
    /// `sum`, `max` or `min`.
    pub(super) name: String,
    /// Names that are read, except those that only nested reductions read.
    pub(super) reads: BTreeSet<&'a str>,
    /// Whether it is nested in another reduction.
    pub(super) is_inner: bool,
}

/// A statement, with all nested statements.
pub(super) struct Part<'a> {
    pub(super) stmt: &'a Stmt,
    pub(super) role: Role,
    /// Names that are read, except those that only reductions read.
    pub(super) reads: BTreeSet<&'a str>,
    pub(super) writes: BTreeSet<&'a str>,
    /// Whether it always binds its name to a value that does not depend on the former one.
    pub(super) is_certain: bool,
    /// Whether it may skip the statements after it.
    pub(super) leaves: bool,
    /// The reductions in it, innermost first.
    pub(super) reductions: Vec<Reduction<'a>>,
}

/// The block of statements that works on the row, and the statements before it.
pub(super) struct Home<'a> {
    pub(super) parts: Vec<Part<'a>>,
    /// The index of the first part in the block.
    pub(super) first: usize,
}

impl<'a> Home<'a> {
    pub(super) fn of(row: &Row<'a>) -> Option<Self> {
        let mut home = Self { parts: Vec::new(), first: 0 };
        home.read(row, &row.kernel.body)?;
        let is_worked_on = |part: &Part<'_>| part.role == Role::Store || !part.reductions.is_empty();
        let (outer, inner) = home.parts.split_at(home.first);
        // Values along the row are computed anew in each iteration of enclosing loops.
        let kept: BTreeSet<&str> =
            outer.iter().filter(|part| part.role == Role::Along).flat_map(|part| part.writes.clone()).collect();
        let is_carried = inner.iter().any(|part| !part.writes.is_disjoint(&kept));
        (!outer.iter().any(is_worked_on) && inner.iter().any(is_worked_on) && !is_carried).then_some(home)
    }

    fn read(&mut self, row: &Row<'a>, body: &'a [Stmt]) -> Option<()> {
        self.first = self.parts.len();
        for (at, stmt) in body.iter().enumerate() {
            let inner = match &stmt.kind {
                StmtKind::For { body, .. } if row.is_worked_on(body) => body,
                _ => {
                    self.parts.push(Part::of(row, stmt)?);
                    continue;
                }
            };
            for after in &body[at + 1..] {
                Part::of(row, after).filter(|part| part.role == Role::Scalar && part.reductions.is_empty())?;
            }
            self.parts.push(Part::head(row, stmt)?);
            return self.read(row, inner);
        }
        Some(())
    }

    /// The parts before `at` that bind these names to the values that they have there; `None` where one of them is not
    /// known.
    pub(super) fn needed(&self, row: &Row<'a>, at: usize, reads: &BTreeSet<&'a str>) -> Option<BTreeSet<usize>> {
        let along = |names: &BTreeSet<&'a str>| -> Vec<&'a str> {
            names.iter().copied().filter(|name| row.along.contains(name)).collect()
        };
        let mut open: BTreeSet<&str> = along(reads).into_iter().collect();
        let mut needed = BTreeSet::new();
        for (at, part) in self.parts[..at].iter().enumerate().rev() {
            if part.role != Role::Along || part.writes.is_disjoint(&open) {
                continue;
            }
            if part.is_certain {
                open.retain(|name| !part.writes.contains(name));
            }
            open.extend(along(&part.reads));
            needed.insert(at);
        }
        open.is_empty().then_some(needed)
    }

    /// Whether names have the same values at two places.
    pub(super) fn is_steady(&self, row: &Row<'a>, reads: &BTreeSet<&'a str>, at: usize, elsewhere: usize) -> bool {
        let between = if at < elsewhere { at + 1..elsewhere } else { elsewhere..at };
        // Statements before a loop do not run again in each iteration.
        let from = if at < self.first { self.first..self.parts.len() } else { 0..0 };
        let written = between.chain(from).flat_map(|at| &self.parts[at].writes);
        !written.into_iter().any(|name| reads.contains(name) && !row.along.contains(name))
    }

    /// Whether all these parts mean the same in a loop before part `at`.
    pub(super) fn are_steady(&self, row: &Row<'a>, parts: &BTreeSet<usize>, at: usize) -> bool {
        parts.iter().all(|&part| self.is_steady(row, &self.parts[part].reads, part, at))
    }
}

impl<'a> Part<'a> {
    fn empty(stmt: &'a Stmt) -> Self {
        let (reads, writes, reductions) = Default::default();
        Self { stmt, role: Role::Scalar, reads, writes, is_certain: false, leaves: false, reductions }
    }

    /// Reads the head of a loop that contains the work on the row.
    fn head(row: &Row<'a>, stmt: &'a Stmt) -> Option<Self> {
        let StmtKind::For { target, iter, orelse, .. } = &stmt.kind else { return None };
        let mut part = Self::empty(stmt);
        part.writes.insert(target.as_name().filter(|_| orelse.is_empty())?);
        part.scalar(row, iter, &Done::default())?;
        part.reductions.is_empty().then_some(part)
    }

    fn of(row: &Row<'a>, stmt: &'a Stmt) -> Option<Self> {
        let mut part = Self::empty(stmt);
        let mut done = Done::default();
        part.statement(row, stmt, &mut done)?;
        let is_nested = !stmt.bodies().is_empty();
        if is_nested && !part.reductions.is_empty() || done.scalar && (done.along || done.store) {
            return None;
        }
        part.is_certain = matches!(stmt.kind, StmtKind::Assign { .. });
        part.role = match (done.store, done.along) {
            (true, true) => return None,
            (true, false) => Role::Store,
            (false, true) => Role::Along,
            (false, false) => Role::Scalar,
        };
        Some(part)
    }

    fn statement(&mut self, row: &Row<'a>, stmt: &'a Stmt, done: &mut Done<'a>) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                row.is_along(value)?;
                self.read(row, value, done);
                for target in targets {
                    self.bind(row, target, done);
                }
                done.given.extend(targets.iter().filter_map(Expr::as_name));
            }
            StmtKind::AugAssign { target, value, .. } => {
                row.is_along(value)?;
                self.read(row, value, done);
                self.read(row, target, done);
                self.bind(row, target, done);
            }
            StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)) => done.scalar = true,
            StmtKind::Expr(value) => self.effect(row, value, done)?,
            StmtKind::If { branches, orelse } => {
                let given = done.given.clone();
                for (test, body) in branches {
                    self.scalar(row, test, done)?;
                    body.iter().try_for_each(|stmt| self.statement(row, stmt, done))?;
                    done.given.clone_from(&given);
                }
                orelse.iter().try_for_each(|stmt| self.statement(row, stmt, done))?;
                done.given = given;
            }
            StmtKind::For { target, iter, body, orelse } if orelse.is_empty() => {
                self.scalar(row, iter, done)?;
                self.bind(row, target, done);
                let given = done.given.clone();
                body.iter().try_for_each(|stmt| self.statement(row, stmt, done))?;
                done.given = given;
            }
            StmtKind::While { test, body, orelse } if orelse.is_empty() => {
                self.scalar(row, test, done)?;
                done.scalar = true;
                let given = done.given.clone();
                body.iter().try_for_each(|stmt| self.statement(row, stmt, done))?;
                done.given = given;
            }
            StmtKind::Return(None) | StmtKind::Break | StmtKind::Continue => (self.leaves, done.scalar) = (true, true),
            StmtKind::Pass => {}
            _ => return None,
        }
        Some(())
    }

    /// Reads an expression that must be a scalar.
    fn scalar(&mut self, row: &Row<'a>, expr: &'a Expr, done: &Done<'a>) -> Option<()> {
        self.read(row, expr, done);
        (!row.is_along(expr)?).then_some(())
    }

    /// Reads a call that is a statement: a store, or an assertion about scalars.
    fn effect(&mut self, row: &Row<'a>, value: &'a Expr, done: &mut Done<'a>) -> Option<()> {
        let call = value.as_call().filter(|call| !call.has_star())?;
        self.read(row, value, done);
        if row.function(call).as_deref() != Some("store") {
            done.scalar = true;
            return (!row.is_along(value)?).then_some(());
        }
        let is_along = row.is_along(call.argument("pointer", Some(0))?)?;
        for arg in &call.args {
            // Without that, all elements would be stored to one place.
            if row.is_along(&arg.value)? && !is_along {
                return None;
            }
        }
        *(if is_along { &mut done.store } else { &mut done.scalar }) = true;
        Some(())
    }

    fn bind(&mut self, row: &Row<'a>, target: &'a Expr, done: &mut Done<'a>) {
        target.walk(&mut |part| {
            if let Some(name) = part.as_name() {
                self.writes.insert(name);
                *(if row.along.contains(name) { &mut done.along } else { &mut done.scalar }) = true;
            }
        });
    }

    /// Records the names and the reductions of an expression.
    fn read(&mut self, row: &Row<'a>, expr: &'a Expr, done: &Done<'a>) {
        let mut reads = BTreeSet::new();
        self.read_into(row, expr, false, &mut reads);
        self.reads.extend(reads.difference(&done.given));
    }

    fn read_into(&mut self, row: &Row<'a>, expr: &'a Expr, is_inner: bool, reads: &mut BTreeSet<&'a str>) {
        reads.extend(expr.as_name());
        let call = expr.as_call();
        let found = call.and_then(|call| {
            let name = row.function(call).filter(|name| REDUCTIONS.contains(&name.as_str()))?;
            Some((name, reduction(call)?.0))
        });
        let Some((name, input)) = found else {
            expr.each_child(&mut |child| self.read_into(row, child, is_inner, reads));
            return;
        };
        let mut own = BTreeSet::new();
        self.read_into(row, input, true, &mut own);
        self.reductions.push(Reduction { call: expr, input, name, reads: own, is_inner });
    }
}

/// The effects of a statement so far.
#[derive(Default)]
struct Done<'a> {
    /// Names that it binds before it reads them.
    given: BTreeSet<&'a str>,
    scalar: bool,
    along: bool,
    store: bool,
}

impl<'a> Row<'a> {
    /// Whether statements reduce or store the row.
    fn is_worked_on(&self, body: &'a [Stmt]) -> bool {
        let mut found = false;
        walk_expressions(body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            found |= match self.function(call) {
                Some(name) if name == "store" => {
                    call.argument("pointer", Some(0)).is_none_or(|pointer| self.is_along(pointer) != Some(false))
                }
                Some(name) => REDUCTIONS.contains(&name.as_str()),
                None => false,
            };
        });
        found
    }
}
