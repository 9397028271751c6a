//! The number of elements of a launch, and the launch of a kernel with two-dimensional tiles.

use std::collections::BTreeSet;

use model::kernel::ast::{Arg, Expr, ExprKind, Stmt, StmtKind, has_star, walk_statements};
use model::kernel::{HostFunction, Launch, Module};
use rules::Edit;

use super::Names;
use crate::names::in_expr;
use crate::subject::Subject;
use crate::subject_launch::{only_launch, passed};
use crate::words::has_word;
use crate::written::{bindings, certain, grid_of, is_settled, is_steady, only_value, tuple_of};

/// The greatest number of names that are followed.
const DEPTH: usize = 3;

/// A launch with one program for each `BLOCK` elements.
pub(super) struct ElementLaunch<'a> {
    subject: &'a Subject<'a>,
    launch: &'a Launch,
    host: &'a HostFunction,
    /// The argument for `BLOCK`.
    tile: &'a Arg,
    /// The factors of the number of elements, and the place of that expression.
    count: Vec<String>,
    since: usize,
}

impl<'a> ElementLaunch<'a> {
    pub(super) fn of(subject: &'a Subject<'a>, tile: &str) -> Option<Self> {
        let (module, text) = (&subject.candidate.module, subject.candidate.text.as_str());
        let launch = only_launch(subject).filter(|launch| !has_star(&launch.args))?;
        let host = &module.hosts[launch.host?];
        let grid = grid_of(module, launch)?;
        let (_, parts, meta) = tuple_of(grid)?;
        let (programs, others) = parts.split_first()?;
        let written = text.get(launch.grid.span.start..launch.grid.span.end)?;
        // The commas of `k[a, b](…)` are not part of the expression.
        let is_whole = launch.grid.as_name().is_some() || written.starts_with(['(', '[', 'l']);
        if !is_whole || written.contains('#') || !others.iter().all(|part| part.as_int() == Some(1)) {
            return None;
        }
        let (_, passed) = passed(subject, launch).into_iter().find(|(param, _)| *param == tile)?;
        let mut site = Self { subject, launch, host, tile: passed, count: Vec::new(), since: grid.span.start };
        let (count, by) = quotient(module, programs)?;
        if !site.is_tile(by, meta, tile) || !site.is_settled(count) {
            return None;
        }
        site.count = site.factors(count, DEPTH);
        Some(site)
    }

    /// Whether an expression is the tile size that the kernel takes as `BLOCK`.
    fn is_tile(&self, by: &Expr, meta: Option<&str>, tile: &str) -> bool {
        if let ExprKind::Subscript { value, index } = &by.kind {
            let is_named = matches!(index.as_slice(), [Expr { kind: ExprKind::Str(name), .. }] if name == tile);
            return is_named && value.as_name().is_some() && value.as_name() == meta;
        }
        let number = |expr: &Expr| certain(&self.subject.candidate.module, self.launch, expr);
        let passed = &self.tile.value;
        let is_number = number(by).is_some() && number(by) == number(passed);
        is_number || self.is_settled(by) && self.slice(by).is_some() && self.slice(by) == self.slice(passed)
    }

    /// Whether an expression has the same value at the launch as at the grid.
    fn is_settled(&self, expr: &Expr) -> bool {
        is_steady(expr) && is_settled(self.host, expr, self.since)
    }

    fn slice(&self, expr: &Expr) -> Option<&'a str> {
        self.subject.candidate.text.get(expr.span.start..expr.span.end)
    }

    /// The factors of a product in the host function, in order.
    fn factors(&self, expr: &Expr, depth: usize) -> Vec<String> {
        let mut found = Vec::new();
        match (&expr.kind, depth.checked_sub(1)) {
            (ExprKind::Binary { op, left, right }, Some(depth)) if op == "*" => {
                found.extend(self.factors(left, depth));
                found.extend(self.factors(right, depth));
            }
            (ExprKind::Name(name), Some(depth)) => match self.value(name) {
                Some(value) => found = self.factors(value, depth),
                None => found.push(name.clone()),
            },
            _ => match self.axes(expr) {
                Some(axes) => found = axes,
                None => found.extend(self.slice(expr).map(str::to_owned)),
            },
        }
        found.sort_unstable();
        found
    }

    /// The certain value of a name.
    fn value(&self, name: &str) -> Option<&'a Expr> {
        let value = only_value(&self.host.body, name)?;
        let is_param = self.host.params.iter().any(|param| param == name);
        (!is_param && is_steady(value) && is_settled(self.host, value, value.span.start)).then_some(value)
    }

    /// `x.numel()` as `rows, columns`, where these are the whole shape.
    fn axes(&self, expr: &Expr) -> Option<Vec<String>> {
        let call = expr.as_call().filter(|call| call.args.is_empty())?;
        let ExprKind::Attribute { value: tensor, name, .. } = &call.func.kind else { return None };
        let mut found = None;
        walk_statements(&self.host.body, &mut |stmt| {
            if let Some(names) = shape_of(stmt, tensor) {
                found = Some((names, stmt.span.start));
            }
        });
        let (names, at) = found.filter(|_| name == "numel")?;
        let is_kept = |name: &String| bindings(&self.host.body, name).len() == 1;
        (names.iter().all(is_kept) && is_settled(self.host, tensor, at)).then_some(names)
    }

    // --- what the kernel says -------------------------------------------------------------------------------------

    /// The argument of a parameter.
    fn passed(&self, name: &str) -> Option<&'a Expr> {
        let (_, arg) = passed(self.subject, self.launch).into_iter().find(|(param, _)| *param == name)?;
        Some(&arg.value).filter(|value| self.is_settled(value))
    }

    /// Whether an expression of the kernel is the number of elements: a parameter, or a product of parameters.
    pub(super) fn is_count(&self, expr: &Expr) -> bool {
        self.passed_factors(expr).is_some_and(|mut factors| {
            factors.sort_unstable();
            factors == self.count
        })
    }

    fn passed_factors(&self, expr: &Expr) -> Option<Vec<String>> {
        match &expr.kind {
            ExprKind::Binary { op, left, right } if op == "*" => {
                let (mut one, other) = (self.passed_factors(left)?, self.passed_factors(right)?);
                one.extend(other);
                Some(one)
            }
            _ => Some(self.factors(self.passed(self.kept(expr)?)?, DEPTH)),
        }
    }

    /// A parameter that is never assigned.
    fn kept<'b>(&self, expr: &'b Expr) -> Option<&'b str> {
        let kernel = self.subject.kernel;
        expr.as_name().filter(|name| kernel.param(name).is_some() && bindings(&kernel.body, name).is_empty())
    }

    /// Whether the arguments of two parameters are the same memory, or one of them is unknown.
    pub(super) fn is_same_memory(&self, one: &str, other: &str) -> bool {
        let of = |name: &str| {
            let mut all = passed(self.subject, self.launch).into_iter();
            all.find(|(param, _)| *param == name).map(|(_, arg)| in_expr(&arg.value))
        };
        match (of(one), of(other)) {
            (Some(one), Some(other)) => one.intersection(&other).count() > 0,
            _ => true,
        }
    }

    // --- the new launch -------------------------------------------------------------------------------------------

    /// The edits of the launch: one program for each tile of a matrix with this many columns.
    pub(super) fn edits(&self, columns: &str, names: &Names, tile: (i64, i64)) -> Option<Vec<Edit>> {
        let module = &self.subject.candidate.module;
        let triton = module.imports.aliases_of("triton").into_iter().next()?;
        let grid = grid_of(module, self.launch)?;
        let (_, parts, _) = tuple_of(grid)?;
        let (count, _) = quotient(module, parts.first()?)?;
        let (count, columns) = (self.slice(count)?, self.slice(self.passed(columns)?)?);
        let is_hidden =
            module.bindings.contains_key("max") || [count, columns].iter().any(|text| has_word(text, "meta"));
        if is_hidden || [count, columns].iter().any(|text| text.contains('#')) {
            return None;
        }
        let Names { height, width, .. } = names;
        // A matrix without columns has no elements.
        let rows = format!("{triton}.cdiv({count}, max({columns}, 1))");
        let ones: String = parts.iter().skip(1).map(|_| " 1,").collect();
        let grid = format!(
            "lambda meta: ({triton}.cdiv({rows}, meta[\"{height}\"]) * {triton}.cdiv({columns}, meta[\"{width}\"]),{})",
            ones.trim_end_matches(',')
        );
        let sizes = match self.tile.keyword {
            Some(_) => format!("{height}={}, {width}={}", tile.0, tile.1),
            None => format!("{}, {}", tile.0, tile.1),
        };
        let launch = Edit { span: self.launch.grid.span, text: grid };
        Some(vec![launch, Edit { span: self.tile.span, text: sizes }])
    }
}

/// `triton.cdiv(n, BLOCK)` or `(n + BLOCK - 1) // BLOCK`
fn quotient<'a>(module: &Module, expr: &'a Expr) -> Option<(&'a Expr, &'a Expr)> {
    match &expr.kind {
        ExprKind::Call(call) => {
            let is_cdiv = module.imports.resolve(&call.func).is_some_and(|it| it.path == "triton.cdiv");
            match call.args.as_slice() {
                [of, by] if is_cdiv && of.keyword.is_none() && by.keyword.is_none() => Some((&of.value, &by.value)),
                _ => None,
            }
        }
        ExprKind::Binary { op, left, right } if op == "//" => {
            let (sum, one) = sides(left, "-")?;
            let (of, tile) = sides(sum, "+")?;
            let is_same = one.as_int() == Some(1) && is_alike(tile, right);
            is_same.then_some((of, right.as_ref()))
        }
        _ => None,
    }
}

fn sides<'a>(expr: &'a Expr, operator: &str) -> Option<(&'a Expr, &'a Expr)> {
    match &expr.kind {
        ExprKind::Binary { op, left, right } if op == operator => Some((left, right)),
        _ => None,
    }
}

/// Whether both are the same name, number, or item of a dictionary.
fn is_alike(one: &Expr, other: &Expr) -> bool {
    match (&one.kind, &other.kind) {
        (ExprKind::Subscript { value: a, index: i }, ExprKind::Subscript { value: b, index: j }) => {
            let (names, keys) = (a.as_name().zip(b.as_name()), (i.as_slice(), j.as_slice()));
            let is_key = matches!(keys, ([one], [other]) if one.kind == other.kind);
            is_key && names.is_some_and(|(a, b)| a == b)
        }
        (ExprKind::Name(a), ExprKind::Name(b)) => a == b,
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        _ => false,
    }
}

/// The names of `rows, columns = x.shape`.
fn shape_of(stmt: &Stmt, tensor: &Expr) -> Option<Vec<String>> {
    let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { return None };
    let ([target], ExprKind::Attribute { value, name, .. }) = (targets.as_slice(), &value.kind) else { return None };
    let ExprKind::Tuple(parts) = &target.kind else { return None };
    let is_it = name == "shape" && value.dotted().is_some() && value.dotted() == tensor.dotted();
    let names: Option<Vec<String>> = parts.iter().map(|part| part.as_name().map(str::to_owned)).collect();
    let names = names.filter(|_| is_it)?;
    let different: BTreeSet<&String> = names.iter().collect();
    (different.len() == names.len()).then_some(names)
}
