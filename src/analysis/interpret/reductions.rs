//! Reductions, and which of them the undefined lanes of a load reach.

use super::super::constants::truth;
use super::super::lanes::{Undefined, Value};
use super::calls::{Arguments, as_int};
use super::{Run, UndefinedReduction};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};

/// What the domain takes for a reduction.
pub(super) const REDUCTIONS: &[&str] = &["argmax", "argmin", "max", "min", "reduce", "reduce_or", "sum", "xor_sum"];

impl<'a> Run<'a> {
    pub(super) fn reduction(
        &mut self,
        expr: &'a Expr,
        name: &'static str,
        value: Value<'a>,
        args: &Arguments<'a, '_>,
    ) -> Value<'a> {
        let Some(rank) = value.rank() else { return Value::unknown() };
        let axis_expr = args.expr("axis", 1).filter(|axis| !matches!(axis.kind, ExprKind::None));
        let axis = match axis_expr.map(|axis| (axis, axis.as_int())) {
            None => None,
            Some(_) if rank == 1 => None,
            Some((_, Some(axis))) => {
                let at = if axis < 0 { axis + as_int(rank) } else { axis };
                match usize::try_from(at) {
                    Ok(at) if at < rank => Some(at),
                    _ => return Value::unknown(),
                }
            }
            Some((_, None)) => return Value::unknown(),
        };
        let keep_position = match name {
            "max" | "min" => 4,
            "argmax" | "argmin" | "reduce" => 3,
            _ => 2,
        };
        let flag = |expr: Option<&Expr>| match expr {
            None => Some(false),
            Some(expr) => truth(expr),
        };
        let keep_dims = flag(args.expr("keep_dims", keep_position));
        let (left, mixed) = value.reduced(axis, keep_dims == Some(true), name == "sum");
        for lanes in mixed {
            self.report(&lanes, expr, name);
        }
        let pair = matches!(name, "max" | "min") && flag(args.expr("return_indices", 2)) != Some(false);
        if keep_dims.is_none() || pair { Value::unknown() } else { left }
    }

    fn report(&mut self, lanes: &Undefined<'a>, reduction: &'a Expr, name: &'static str) {
        let unread = |(statement, target): (&'a Stmt, &'a str)| !self.is_read_after(statement, target);
        if self.assignment.is_some_and(unread) {
            return;
        }
        let neutral = lanes.zero_stays
            && match name {
                "sum" | "xor_sum" | "reduce_or" => true,
                "max" => lanes.nonnegative,
                _ => false,
            };
        match self.found.iter_mut().find(|found| found.load.span == lanes.load.span) {
            Some(found) => found.zero_is_neutral &= neutral,
            None => self.found.push(UndefinedReduction {
                load: lanes.load,
                reduction,
                name,
                mask: self.masks.get(&lanes.load.span).copied(),
                zero_is_neutral: neutral,
                as_loaded: lanes.as_loaded,
            }),
        }
    }

    /// Whether what `statement` assigns to `name` is read before the statement runs again. A running total that nothing
    /// reads after the loop takes in the lanes behind the end only in the last round, where they do no harm.
    fn is_read_after(&self, statement: &Stmt, name: &str) -> bool {
        let mut read = false;
        walk_statements(&self.kernel.body, &mut |stmt| {
            let (values, from) = match &stmt.kind {
                StmtKind::Assign { value, .. } => (value.iter().collect(), statement.span.end),
                // The condition stands before the body and is read after it.
                StmtKind::While { test, .. } if stmt.span.contains(statement.span) => (vec![test], 0),
                _ => (stmt.exprs(), statement.span.end),
            };
            for value in values {
                value.walk(&mut |expr| read |= expr.as_name() == Some(name) && expr.span.start >= from);
            }
        });
        read
    }
}
