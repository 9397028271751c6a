//! A kernel with a row in one tile, and the values that extend along the row.

use std::collections::HashSet;

use model::analysis::types::dtype::Dtype;
use model::analysis::types::{LaneType, infer};
use model::api::TritonTarget;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

use super::super::lift::REDUCTIONS;
use super::super::pointwise::{METHODS, is_function, is_helper};
use crate::subject::Subject;

/// Functions that return a scalar for scalars.
const OF_NUMBERS: &[&str] = &[
    "assume",
    "cdiv",
    "constexpr",
    "max_contiguous",
    "multiple_of",
    "num_programs",
    "program_id",
    "range",
    "static_assert",
    "static_range",
];
/// Elementwise functions besides those for tiles of rows: their results depend at most on the position of the element.
const BY_PLACE: &[&str] = &["rand", "randint", "randn"];
/// Functions of Python.
const BUILTINS: &[&str] = &["float", "int", "max", "min", "range"];
/// The greatest number of names that are followed.
const DEPTH: usize = 16;

/// A kernel with a row in one tile.
pub(super) struct Row<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) text: &'a str,
    /// The parameter for the size of the tile.
    pub(super) block: &'a str,
    /// The name of the row's length.
    pub(super) length: &'a str,
    /// The names of values that extend along the row.
    pub(super) along: HashSet<&'a str>,
    /// The assigned values of names, in source order.
    pub(super) given: Vec<(&'a str, Option<&'a Expr>)>,
    /// The types of expressions, as far as the file determines them.
    types: Vec<(Span, Dtype)>,
}

impl<'a> Row<'a> {
    /// Reads a kernel; `None` where something in it is not known to be elementwise.
    pub(super) fn of(subject: &Subject<'a>) -> Option<Self> {
        let (module, kernel) = (&subject.candidate.module, subject.kernel);
        let text: &'a str = &subject.candidate.text;
        let (length, along, types) = Default::default();
        let mut row = Self { module, kernel, text, block: "", length, along, given: given(kernel)?, types };
        row.block = row.tile()?;
        row.spread()?;
        row.length = row.bound_of_all()?;
        row.is_unmixed()?;
        let index = module.kernels.iter().position(|one| std::ptr::eq(one, kernel))?;
        let types = infer(module, text, TritonTarget::newest(), index, true).types;
        let number = |(span, value): &(Span, model::analysis::types::AbstractValue<'_>)| match value.tile()?.element {
            LaneType::Number(number) => Some((*span, number)),
            _ => None,
        };
        row.types = types.iter().filter_map(number).collect();
        Some(row)
    }

    /// The last part of the name of a Triton function; `abs` for all functions of libdevice, which are elementwise,
    /// too.
    pub(super) fn function(&self, call: &Call) -> Option<String> {
        let name = self.module.language_member(self.kernel, &call.func)?;
        Some(if name.contains("libdevice.") { "abs".to_owned() } else { name.rsplit('.').next()?.to_owned() })
    }

    /// The type in which sums of an element type are accumulated; `None` for types that are not floats.
    pub(super) fn gathered_in(&self, expr: &Expr) -> Option<&'static str> {
        match self.types.iter().rev().find(|(span, _)| *span == expr.span) {
            None | Some((_, Dtype::Fp16 | Dtype::Bf16 | Dtype::Fp32)) => Some("float32"),
            Some((_, Dtype::Fp64)) => Some("float64"),
            Some(_) => None,
        }
    }

    /// The parameter that is the size of all `tl.arange(0, BLOCK)`.
    fn tile(&self) -> Option<&'a str> {
        let mut ends = Vec::new();
        let kernel: &'a Kernel = self.kernel;
        walk_expressions(&kernel.body, &mut |expr| {
            if let Some(call) = expr.as_call().filter(|call| self.function(call).as_deref() == Some("arange")) {
                ends.push(call.argument("end", Some(1)).and_then(Expr::as_name));
            }
        });
        let first = (*ends.first()?)?;
        let is_tile = kernel.param(first).is_some_and(|param| param.constexpr);
        (is_tile && ends.iter().all(|end| *end == Some(first))).then_some(first)
    }

    /// Finds the names of values that extend along the row.
    fn spread(&mut self) -> Option<()> {
        loop {
            let before = self.along.len();
            for at in 0..self.given.len() {
                let (name, value) = self.given[at];
                if value.is_some_and(|value| self.is_along(value) == Some(true)) {
                    self.along.insert(name);
                }
            }
            if self.along.len() == before {
                break;
            }
        }
        let is_known = |&(name, value): &(&str, Option<&Expr>)| match value {
            Some(value) => self.is_along(value).is_some(),
            None => !self.along.contains(name),
        };
        let is_param = |name: &&str| self.kernel.param(name).is_some();
        (self.given.iter().all(is_known) && !self.along.iter().any(is_param)).then_some(())
    }

    /// The value of the only assignment of a name.
    pub(super) fn only(&self, name: &str) -> Option<&'a Expr> {
        let mut of_name = self.given.iter().filter(|(given, _)| *given == name);
        let (_, value) = of_name.next()?;
        (*value).filter(|_| of_name.next().is_none() && self.kernel.param(name).is_none())
    }

    // --- what lies along the row ----------------------------------------------------------------------------------

    /// Whether a value extends along the row; `None` where that is not known, or where something unsupported is done
    /// with the row.
    pub(super) fn is_along(&self, expr: &Expr) -> Option<bool> {
        match &expr.kind {
            ExprKind::Name(name) => (name != self.block).then(|| self.along.contains(name.as_str())),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Str(_) => {
                Some(false)
            }
            ExprKind::Attribute { value, name, .. } => {
                let is_along = self.is_along(value)?;
                (!is_along || name == "dtype").then_some(is_along)
            }
            ExprKind::Binary { left, right, .. } => self.any(&[left, right]),
            ExprKind::Compare { left, rest } if rest.len() == 1 => self.any(&[left, &rest[0].1]),
            ExprKind::Unary { op, operand } => self.is_along(operand).filter(|is_along| op != "not" || !is_along),
            ExprKind::BoolOp { left, right, .. } => self.none(&[left, right]),
            ExprKind::IfExp { test, body, orelse } => {
                self.none(&[test])?;
                self.any(&[body, orelse])
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => self.none(&parts.iter().collect::<Vec<_>>()),
            ExprKind::Call(call) => self.is_call_along(call),
            _ => None,
        }
    }

    fn any(&self, exprs: &[&Expr]) -> Option<bool> {
        exprs.iter().try_fold(false, |is_any, expr| Some(is_any | self.is_along(expr)?))
    }

    fn none(&self, exprs: &[&Expr]) -> Option<bool> {
        self.any(exprs).filter(|is_any| !is_any)
    }

    fn is_call_along(&self, call: &Call) -> Option<bool> {
        if call.has_star() {
            return None;
        }
        let args: Vec<&Expr> = call.args.iter().map(|arg| &arg.value).collect();
        let Some(name) = self.function(call) else {
            return match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if METHODS.contains(&name.as_str()) => {
                    self.any(&[&[&**value], args.as_slice()].concat())
                }
                ExprKind::Name(name) if self.kernel.locals.contains(name) => None,
                ExprKind::Name(name) if BUILTINS.contains(&name.as_str()) => self.none(&args),
                ExprKind::Name(name)
                    if self.module.kernel(name).is_some_and(|helper| is_helper(self.module, helper)) =>
                {
                    self.any(&args)
                }
                _ => None,
            };
        };
        match name.as_str() {
            "arange" => {
                let is_whole = call.args.len() == 2 && call.argument("start", Some(0))?.as_int() == Some(0);
                (is_whole && call.argument("end", Some(1))?.as_name() == Some(self.block)).then_some(true)
            }
            "zeros" | "full" => {
                let shape = call.argument("shape", Some(0))?;
                let (ExprKind::List(parts) | ExprKind::Tuple(parts)) = &shape.kind else { return None };
                let [part] = parts.as_slice() else { return None };
                let rest: Vec<&Expr> = args.into_iter().filter(|arg| !std::ptr::eq(*arg, shape)).collect();
                (part.as_name() == Some(self.block) && self.none(&rest).is_some()).then_some(true)
            }
            "load" => {
                let is_along = self.is_along(call.argument("pointer", Some(0))?)?;
                (self.any(&args)? == is_along).then_some(is_along)
            }
            _ if REDUCTIONS.contains(&name.as_str()) => {
                let (input, rest) = reduction(call)?;
                self.none(&rest)?;
                self.is_along(input)?.then_some(false)
            }
            _ if OF_NUMBERS.contains(&name.as_str()) => self.none(&args),
            _ if is_function(&name) || BY_PLACE.contains(&name.as_str()) => self.any(&args),
            _ => None,
        }
    }

    // --- the end of the row ---------------------------------------------------------------------------------------

    /// Whether the value is the lane index.
    pub(super) fn is_lane(&self, expr: &Expr) -> bool {
        self.is_lane_within(expr, DEPTH)
    }

    fn is_lane_within(&self, expr: &Expr, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match &expr.kind {
            ExprKind::Name(name) => self.only(name).is_some_and(|value| self.is_lane_within(value, depth)),
            ExprKind::Call(call) => match &call.func.kind {
                _ if self.function(call).as_deref() == Some("arange") => true,
                ExprKind::Attribute { value, name, .. } => name == "to" && self.is_lane_within(value, depth),
                _ => false,
            },
            _ => false,
        }
    }

    /// The right side of `cols < n`.
    pub(super) fn compared<'e>(&self, expr: &'e Expr) -> Option<&'e str> {
        let ExprKind::Compare { left, rest } = &expr.kind else { return None };
        match rest.as_slice() {
            [(op, right)] if op == "<" && self.is_lane(left) => right.as_name(),
            [(op, right)] if op == ">" && self.is_lane(right) => left.as_name(),
            _ => None,
        }
    }

    /// The row length by which a mask disables all lanes beyond the end.
    fn bound(&self, mask: &'a Expr, depth: usize) -> Option<&'a str> {
        let depth = depth.checked_sub(1)?;
        match &mask.kind {
            ExprKind::Name(name) => self.bound(self.only(name)?, depth),
            ExprKind::Binary { op, left, right } if op == "&" => {
                self.bound(left, depth).or_else(|| self.bound(right, depth))
            }
            _ => self.compared(mask),
        }
    }

    /// The row length in the masks of all loads and stores along the row.
    fn bound_of_all(&self) -> Option<&'a str> {
        let mut bounds = Vec::new();
        for (call, position) in self.accesses() {
            let pointer = call.argument("pointer", Some(0));
            if pointer.is_none_or(|pointer| self.is_along(pointer) != Some(false)) {
                bounds.push(call.argument("mask", Some(position)).and_then(|mask| self.bound(mask, DEPTH)));
            }
        }
        let first = (*bounds.first()?)?;
        let times = self.given.iter().filter(|(name, _)| *name == first).count();
        let is_fixed = times == usize::from(self.kernel.param(first).is_none());
        let is_one = bounds.iter().all(|bound| *bound == Some(first));
        (is_fixed && is_one && !self.along.contains(first)).then_some(first)
    }
}

/// The operand of `tl.sum(input, axis=0)`, and the other arguments; `None` for another axis or unknown arguments.
pub(super) fn reduction(call: &Call) -> Option<(&Expr, Vec<&Expr>)> {
    let is_known = call.args.iter().enumerate().all(|(at, arg)| match &arg.keyword {
        Some((name, _)) => ["input", "axis"].contains(&name.as_str()),
        None => at < 2,
    });
    let axis = call.argument("axis", Some(1));
    let is_whole = axis.is_none_or(|axis| matches!(axis.as_int(), Some(0 | -1)) || axis.kind == ExprKind::None);
    Some((call.argument("input", Some(0)).filter(|_| is_known && is_whole)?, axis.into_iter().collect()))
}

/// The assigned values of names in a kernel; `None` where a name is bound other than by assignments and loops.
fn given(kernel: &Kernel) -> Option<Vec<(&str, Option<&Expr>)>> {
    let (mut given, mut is_known) = (Vec::new(), true);
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, annotation: None, value: Some(value) } => match targets.as_slice() {
            [target] => match &target.kind {
                ExprKind::Name(name) => given.push((name.as_str(), Some(value))),
                ExprKind::Tuple(parts) => {
                    for part in parts {
                        is_known &= part.as_name().map(|name| given.push((name, Some(value)))).is_some();
                    }
                }
                _ => is_known = false,
            },
            _ => is_known = false,
        },
        StmtKind::AugAssign { target, value, .. } => {
            is_known &= target.as_name().map(|name| given.push((name, Some(value)))).is_some();
        }
        StmtKind::For { target, .. } => is_known &= target.as_name().map(|name| given.push((name, None))).is_some(),
        StmtKind::Assign { .. } | StmtKind::Definition { .. } | StmtKind::Block(_) | StmtKind::Other(_) => {
            is_known = false
        }
        _ => {}
    });
    is_known.then_some(given)
}
