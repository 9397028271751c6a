//! Folds the factor between the bases into an existing multiplication, so that exponents to base 2 need none of their
//! own.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::kernel::ast::{Call, Expr, ExprKind};
use model::kernel::{Kernel, Module};

use super::super::reaching::{Given, Id, Reaching};
use super::{LN_2, LOG2_E};

/// Functions of scalars that are computed once, before the kernel does any work.
const OF_NUMBERS: &[&str] = &["rsqrt", "sqrt", "sqrt_rn"];
/// Functions that only rearrange their argument.
const ARRANGING: &[&str] = &["broadcast_to", "expand_dims", "max", "min", "reshape", "trans"];

type Times = HashMap<*const Expr, &'static str>;

/// The factors of expressions such that as many of these exponents as possible are to base 2; the remaining exponents
/// are multiplied themselves. `None` where all would be.
pub(super) fn folded(module: &Module, kernel: &Kernel, exponents: &[&Expr]) -> Option<Times> {
    let reaching = Reaching::of(kernel)?;
    let (wider, wanted, times) = Default::default();
    let mut fold = Fold { module, kernel, reaching: &reaching, wider, wanted, times };
    let mut is_any = false;
    for exponent in exponents {
        let mut next = fold.clone();
        if next.want(exponent).is_some() {
            (fold, is_any) = (next, true);
        } else {
            fold.times.insert(std::ptr::from_ref(*exponent), LOG2_E);
        }
    }
    fold.settle().filter(|_| is_any)?;
    Some(fold.times)
}

/// The assignments whose values get the factor, and the uses that need it.
#[derive(Clone)]
struct Fold<'a, 'r> {
    module: &'a Module,
    kernel: &'a Kernel,
    reaching: &'r Reaching<'a>,
    wider: BTreeSet<Id>,
    /// Reads of names where the value with the factor is meant.
    wanted: HashSet<*const Expr>,
    times: Times,
}

impl Fold<'_, '_> {
    fn multiply(&mut self, expr: &Expr, factor: &'static str) -> Option<()> {
        self.times.insert(std::ptr::from_ref(expr), factor);
        Some(())
    }

    /// Makes an expression produce its value with the factor; `None` where that would need a multiplication of tiles.
    fn want(&mut self, expr: &Expr) -> Option<()> {
        match &expr.kind {
            ExprKind::Name(_) => {
                let from = self.reaching.of_name(expr)?.from.clone();
                self.wanted.insert(std::ptr::from_ref(expr));
                (!from.is_empty()).then_some(())?;
                from.into_iter().try_for_each(|id| self.widen(id))
            }
            ExprKind::Subscript { value, .. } => self.want(value),
            ExprKind::Unary { op, operand } if op == "-" || op == "+" => self.want(operand),
            ExprKind::Int(0) => Some(()),
            ExprKind::Float(value) if *value == 0.0 => Some(()),
            ExprKind::Int(_) | ExprKind::Float(_) => self.multiply(expr, LOG2_E),
            ExprKind::Binary { op, left, right } => match op.as_str() {
                "+" | "-" => self.want(left).and_then(|()| self.want(right)),
                "*" if self.is_number(right) => self.multiply(right, LOG2_E),
                "*" if self.is_number(left) => self.multiply(left, LOG2_E),
                "/" if self.is_number(right) => self.multiply(right, LN_2),
                _ => None,
            },
            ExprKind::Call(call) => self.want_call(call),
            _ => None,
        }
    }

    fn want_call(&mut self, call: &Call) -> Option<()> {
        if call.func.as_name() == Some("float") && !self.kernel.locals.contains("float") {
            let [arg] = call.args.as_slice() else { return None };
            return matches!(&arg.value.kind, ExprKind::Str(text) if text.ends_with("inf")).then_some(());
        }
        let name = self.module.language_member(self.kernel, &call.func).filter(|_| !call.has_star())?;
        let mut all = |names: &[(&str, usize)]| {
            names.iter().try_for_each(|(name, at)| self.want(call.argument(name, Some(*at))?))
        };
        match name.as_str() {
            "zeros" => Some(()),
            "full" => all(&[("value", 1)]),
            "where" => all(&[("x", 1), ("y", 2)]),
            "maximum" | "minimum" => all(&[("x", 0), ("y", 1)]),
            _ if ARRANGING.contains(&name.as_str()) && call.argument("return_indices", Some(2)).is_none() => {
                all(&[("input", 0)])
            }
            _ => None,
        }
    }

    /// Makes an assignment give its name the value with the factor.
    fn widen(&mut self, id: Id) -> Option<()> {
        if !self.wider.insert(id) {
            return Some(());
        }
        match self.reaching.assignments[id].0.clone() {
            Given::Value(value) => self.want(value),
            Given::Update { op, value, before } => match op {
                "+" | "-" => {
                    self.want(value)?;
                    before.into_iter().try_for_each(|id| self.widen(id))
                }
                // The previous value of the name keeps its meaning.
                "*" if self.is_number(value) => self.multiply(value, LOG2_E),
                "/" if self.is_number(value) => self.multiply(value, LN_2),
                _ => None,
            },
            Given::Parameter | Given::Other => None,
        }
    }

    /// Checks that everything else keeps its meaning: where a name with the factor is read for another purpose, the
    /// factor is removed again, but not in a loop, where each iteration would remove it.
    fn settle(&mut self) -> Option<()> {
        let is_wider = |ids: &BTreeSet<Id>| ids.iter().any(|id| self.wider.contains(id));
        for (id, (given, _)) in self.reaching.assignments.iter().enumerate() {
            if let Given::Update { op, before, .. } = given
                && is_wider(before)
                && !(self.wider.contains(&id) && ["+", "-"].contains(op))
            {
                return None;
            }
        }
        let others = self.reaching.uses().filter(|(name, read)| !self.wanted.contains(name) && is_wider(&read.from));
        let others: Vec<_> = others.collect();
        for (name, read) in others {
            if read.in_loop || !read.from.is_subset(&self.wider) {
                return None;
            }
            self.times.insert(name, LN_2);
        }
        Some(())
    }

    /// Whether an expression is a loop-invariant scalar, whose product with the factor is computed before the kernel
    /// does any work.
    fn is_number(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            ExprKind::Name(name) => {
                let from: Vec<Id> =
                    self.reaching.of_name(expr).iter().flat_map(|read| read.from.iter().copied()).collect();
                match from.as_slice() {
                    [] => !self.kernel.locals.contains(name),
                    [only] => match &self.reaching.assignments[*only] {
                        (Given::Parameter, _) => true,
                        (Given::Value(value), false) => !self.wider.contains(only) && self.is_number(value),
                        _ => false,
                    },
                    _ => false,
                }
            }
            ExprKind::Unary { op, operand } => op != "not" && self.is_number(operand),
            ExprKind::Binary { left, right, .. } => self.is_number(left) && self.is_number(right),
            ExprKind::Call(call) => {
                let name = self.module.language_member(self.kernel, &call.func);
                let is_known = name.is_some_and(|name| OF_NUMBERS.contains(&name.trim_start_matches("math.")));
                is_known && call.args.iter().all(|arg| self.is_number(&arg.value))
            }
            _ => false,
        }
    }
}
