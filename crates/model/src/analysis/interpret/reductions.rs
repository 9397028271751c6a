//! Reductions, and the undefined lanes and padding that reach them.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::super::constants::constant_truth;
use super::super::fills::{Content, Fill};
use super::super::lanes::{LaneValue, Undefined};
use super::calls::{CallArguments, as_int};
use super::{PaddedReduction, Run, UndefinedReduction};
use crate::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_statements};
use crate::syntax::Span;

/// Functions and methods that the domain treats as reductions.
pub(super) const REDUCTIONS: &[&str] = &["argmax", "argmin", "max", "min", "reduce", "reduce_or", "sum", "xor_sum"];

impl<'a> Run<'a> {
    pub(super) fn reduction(
        &mut self,
        expr: &'a Expr,
        name: &'static str,
        value: LaneValue<'a>,
        args: &CallArguments<'a, '_>,
    ) -> LaneValue<'a> {
        let Some(rank) = value.rank() else { return LaneValue::unknown() };
        let axis_expr = args.expr("axis", 1).filter(|axis| !matches!(axis.kind, ExprKind::None));
        let axis = match axis_expr.map(|axis| (axis, axis.as_int())) {
            None => None,
            Some(_) if rank == 1 => None,
            Some((_, Some(axis))) => {
                let at = if axis < 0 { axis + as_int(rank) } else { axis };
                match usize::try_from(at) {
                    Ok(at) if at < rank => Some(at),
                    _ => return LaneValue::unknown(),
                }
            }
            Some((_, None)) => return LaneValue::unknown(),
        };
        let keep_position = match name {
            "max" | "min" => 4,
            "argmax" | "argmin" | "reduce" => 3,
            _ => 2,
        };
        let flag = |expr: Option<&Expr>| match expr {
            None => Some(false),
            Some(expr) => constant_truth(expr),
        };
        let keep_dims = flag(args.expr("keep_dims", keep_position));
        if let Some(fill) = &value.fill
            && fill.axes.iter().enumerate().any(|(at, &on)| on && axis.is_none_or(|axis| axis == at))
        {
            self.report_padding(fill, expr, name);
        }
        let (left, mixed) = value.reduced(axis, keep_dims == Some(true), name);
        for lanes in mixed {
            self.report(&lanes, expr, name);
        }
        let pair = matches!(name, "max" | "min") && flag(args.expr("return_indices", 2)) != Some(false);
        if keep_dims.is_none() || pair { LaneValue::unknown() } else { left }
    }

    /// `tl.dot(a, b)` sums along the last axis of `a` and the last but one of `b`.
    pub(super) fn product(&mut self, expr: &'a Expr, args: &CallArguments<'a, '_>) -> LaneValue<'a> {
        let operands = [args.value("input", 0).or_else(|| args.value("lhs", 0)), args.value("other", 1)];
        let [Some(left), Some(right)] = operands else { return LaneValue::unknown() };
        if left.rank() != Some(2) || right.rank() != Some(2) {
            return LaneValue::unknown();
        }
        // Both operands with the summed axis as axis 0.
        let (left, right) = (left.clone().transposed(), right.clone());
        for (own, partner) in [(&left, &right), (&right, &left)] {
            for lanes in own.undefined.iter().filter(|lanes| lanes.axes[0]) {
                if partner.keeps_undefined(lanes) {
                    self.report(lanes, expr, "dot");
                }
            }
        }
        LaneValue::unknown()
    }

    /// Reports padding whose content changes the result of a reduction.
    fn report_padding(&mut self, fill: &Fill<'a>, reduction: &'a Expr, name: &'static str) {
        let counts = match (name, fill.content) {
            ("sum", Content::Number(number)) => number != 0.0,
            // A finite number may be below (or above) all others, such as a zero among squares or counts.
            ("max" | "argmax", Content::Number(number)) => number == f64::INFINITY,
            ("min" | "argmin", Content::Number(number)) => number == f64::NEG_INFINITY,
            ("sum" | "max" | "argmax" | "min" | "argmin", Content::Other { .. }) => true,
            _ => false,
        };
        if !counts || self.is_never_read() {
            return;
        }
        if self.padded.iter().all(|known| known.reduction.span != reduction.span) {
            self.padded.push(PaddedReduction { fill: fill.clone(), reduction, name });
        }
    }

    fn report(&mut self, lanes: &Undefined<'a>, reduction: &'a Expr, name: &'static str) {
        if self.is_never_read() {
            return;
        }
        let neutral = lanes.zero_stays
            && match name {
                "sum" | "xor_sum" | "reduce_or" | "dot" => true,
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

    /// Whether nothing reads the name that the running statement assigns.
    fn is_never_read(&mut self) -> bool {
        self.assignment.is_some_and(|(statement, target)| !self.is_read_after(statement, target))
    }

    /// Whether the value that `statement` assigns to `name` is read before the statement runs again. A running total
    /// that is not read after the loop gets undefined lanes in its last iteration only, where they do no harm.
    fn is_read_after(&mut self, statement: &Stmt, name: &str) -> bool {
        let body = &self.kernel.body;
        let reads = self.reads.get_or_insert_with(|| Reads::of(body));
        let is_tested = |(span, names): &(Span, HashSet<&str>)| span.contains(statement.span) && names.contains(name);
        reads.last.get(name).is_some_and(|&last| last >= statement.span.end) || reads.tests.iter().any(is_tested)
    }
}

/// The places where the names of a kernel are read.
pub(super) struct Reads<'a> {
    /// Byte offset of the last read of each name.
    last: HashMap<&'a str, usize>,
    /// For each `while`, its span and the names in its condition, which is before the body in the text and is read
    /// after it.
    tests: Vec<(Span, HashSet<&'a str>)>,
}

impl<'a> Reads<'a> {
    fn of(body: &'a [Stmt]) -> Self {
        let mut reads = Self { last: HashMap::default(), tests: Vec::new() };
        walk_statements(body, &mut |stmt| {
            let values = match &stmt.kind {
                StmtKind::Assign { value, .. } => value.iter().collect(),
                _ => stmt.exprs(),
            };
            let mut names = HashSet::default();
            for value in values {
                value.walk(&mut |expr| {
                    if let Some(name) = expr.as_name() {
                        let last = reads.last.entry(name).or_default();
                        *last = expr.span.start.max(*last);
                        names.insert(name);
                    }
                });
            }
            if matches!(stmt.kind, StmtKind::While { .. }) {
                reads.tests.push((stmt.span, names));
            }
        });
        reads
    }
}
