//! Proves which comparisons hold for the whole tile of an iteration, and up to which iteration.

use model::kernel::ast::{Expr, ExprKind, Stmt};

use crate::names::{Names, in_expr};
use crate::subject::Subject;
use crate::written::{bindings, only_value};

/// The greatest number of names that are followed.
const DEPTH: usize = 8;

/// A loop over tiles.
pub(super) struct Rounds<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) body: &'a [Stmt],
    /// The loop variable, which is the start of each iteration's tile, and its step.
    variable: &'a str,
    step: &'a str,
    bound: &'a Names<'a>,
}

/// The form of an index.
enum Index<'a> {
    /// `variable + tl.arange(0, STEP)`
    Round,
    /// `base + tl.arange(0, SIZE)`, or a value that is the same for all lanes.
    Steady(&'a Expr),
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        subject: &'a Subject<'a>,
        variable: &'a str,
        step: &'a Expr,
        body: &'a [Stmt],
        bound: &'a Names<'a>,
    ) -> Option<Self> {
        let is_kept = bindings(&subject.kernel.body, step.as_name()?).is_empty();
        is_kept.then_some(Self { subject, body, variable, step: step.as_name()?, bound })
    }

    /// The bounds up to which an iteration may extend such that a mask is true everywhere, as loop-invariant
    /// expressions; `None` where they are not known.
    pub(super) fn limits(&self, mask: &'a Expr) -> Option<Vec<String>> {
        self.limits_within(mask, DEPTH)
    }

    fn limits_within(&self, mask: &'a Expr, depth: usize) -> Option<Vec<String>> {
        let depth = depth.checked_sub(1)?;
        match &mask.kind {
            ExprKind::Name(name) => {
                self.limits_within(self.value(name).filter(|_| self.bound.contains(name.as_str()))?, depth)
            }
            ExprKind::Subscript { value, index } => is_axes(index).then(|| self.limits_within(value, depth)).flatten(),
            ExprKind::Binary { op, left, right } if op == "&" => {
                let mut limits = self.limits_within(left, depth)?;
                limits.extend(self.limits_within(right, depth)?);
                Some(limits)
            }
            ExprKind::Compare { left, rest } => {
                let [(op, right)] = rest.as_slice() else { return None };
                let limit = match op.as_str() {
                    "<" => self.below(left, right, ""),
                    "<=" => self.below(left, right, " + 1"),
                    ">" => self.below(right, left, ""),
                    ">=" => self.below(right, left, " + 1"),
                    _ => None,
                };
                limit.map(|limit| vec![limit])
            }
            _ => None,
        }
    }

    /// The bounds for `index < limit` to hold for all indices of an iteration.
    fn below(&self, index: &'a Expr, limit: &'a Expr, more: &str) -> Option<String> {
        let Index::Round = self.index(index, DEPTH)? else { return None };
        let Index::Steady(least) = self.index(limit, DEPTH)? else { return None };
        let text = &self.subject.candidate.text[least.span.start..least.span.end];
        let is_apart = matches!(least.kind, ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Call(_));
        Some(if is_apart || more.is_empty() { format!("{text}{more}") } else { format!("({text}){more}") })
    }

    /// The form of an index; for a loop-invariant tile, its first element.
    fn index(&self, expr: &'a Expr, depth: usize) -> Option<Index<'a>> {
        let depth = depth.checked_sub(1)?;
        if self.is_scalar(expr, depth) {
            return Some(Index::Steady(expr));
        }
        match &expr.kind {
            ExprKind::Subscript { value, index } => is_axes(index).then(|| self.index(value, depth)).flatten(),
            ExprKind::Name(name) => self.index(self.value(name)?, depth),
            ExprKind::Binary { op, left, right } if op == "+" => {
                let (base, size) = match (self.arange(left), self.arange(right)) {
                    (None, Some(size)) => (left, size),
                    (Some(size), None) => (right, size),
                    _ => return None,
                };
                if base.as_name() == Some(self.variable) {
                    return (size.as_name() == Some(self.step)).then_some(Index::Round);
                }
                self.is_scalar(base, depth).then_some(Index::Steady(base))
            }
            _ => None,
        }
    }

    /// The size of `tl.arange(0, SIZE)`, directly or through a name.
    fn arange(&self, expr: &'a Expr) -> Option<&'a Expr> {
        let expr = match expr.as_name() {
            Some(name) => self.value(name)?,
            None => expr,
        };
        let call = expr.as_call()?;
        let is_arange = self.member(&call.func).as_deref() == Some("arange");
        let [start, size] = call.args.as_slice() else { return None };
        let is_plain = start.keyword.is_none() && size.keyword.is_none();
        (is_arange && is_plain && start.value.as_int() == Some(0)).then_some(&size.value)
    }

    /// Whether an expression is a loop-invariant scalar.
    fn is_scalar(&self, expr: &'a Expr, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let of = |expr: &'a Expr| self.is_scalar(expr, depth);
        if in_expr(expr).iter().any(|name| self.bound.contains(name) || *name == self.variable) {
            return false;
        }
        match &expr.kind {
            ExprKind::Int(_) => true,
            ExprKind::Name(name) if self.subject.kernel.param(name).is_some() => {
                bindings(&self.subject.kernel.body, name).is_empty()
            }
            ExprKind::Name(name) => self.value(name).is_some_and(of),
            ExprKind::Binary { op, left, right } => {
                ["+", "-", "*", "//"].contains(&op.as_str()) && of(left) && of(right)
            }
            ExprKind::Call(call) => {
                let is_known = self.member(&call.func).is_some_and(|name| {
                    ["program_id", "num_programs", "cdiv", "minimum", "maximum"].contains(&name.as_str())
                });
                is_known && call.args.iter().all(|arg| of(&arg.value))
            }
            _ => false,
        }
    }

    fn value(&self, name: &str) -> Option<&'a Expr> {
        self.subject.kernel.param(name).is_none().then(|| only_value(&self.subject.kernel.body, name))?
    }

    pub(super) fn member(&self, func: &Expr) -> Option<String> {
        self.subject.candidate.module.language_member(self.subject.kernel, func)
    }
}

/// `[None, :]`
fn is_axes(index: &[Expr]) -> bool {
    index.iter().all(|part| match &part.kind {
        ExprKind::None => true,
        ExprKind::Slice(parts) => parts.is_empty(),
        _ => false,
    })
}
