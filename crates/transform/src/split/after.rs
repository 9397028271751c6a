//! The code after the reduction loop: elementwise work and stores.

use model::kernel::ast::{Arg, Call, Expr, ExprKind, Stmt, StmtKind, walk_statements};

use super::gather::{Gather, has_no_effect, leftmost, member};
use crate::names::{Names, bound_by, bound_in, in_expr, read_in, uses};
use crate::pointwise::{METHODS, is_function, is_helper};
use crate::subject::Subject;

/// The arguments of a store besides pointer and value that are accepted.
const HINTS: &[&str] = &["mask", "cache_modifier", "eviction_policy"];

/// The work after the loop: elementwise operations and stores.
pub(super) struct After<'a> {
    /// The index of the statement with the store that determines the position of each element.
    pub(super) at: usize,
    pub(super) store: &'a Call,
    pub(super) pointer: &'a Expr,
    pub(super) mask: Option<&'a Expr>,
    pub(super) value: &'a Expr,
    /// The indices of the statements before it that its pointer and mask need.
    pub(super) places: Vec<usize>,
    /// The parameter that the store goes through.
    pub(super) root: &'a str,
    /// The names that its pointer is computed from, step by step, and the parameter.
    pub(super) pointers: Names<'a>,
    /// Whether the only work is a conversion and the store.
    pub(super) is_plain: bool,
}

impl<'a> After<'a> {
    pub(super) fn of(subject: &Subject<'a>, gather: &Gather<'a>) -> Option<Self> {
        let stmts = gather.after;
        let mut worked = Worked { subject, names: Names::from([gather.result]) };
        worked.block(stmts)?;
        let at = stmts.iter().position(|stmt| worked.stores(stmt).is_some())?;
        let store = worked.stores(&stmts[at])?;
        let [pointer, value, more @ ..] = store.args.as_slice() else { return None };
        let is_hint = |arg: &Arg| arg.keyword.as_ref().is_some_and(|(name, _)| HINTS.contains(&name.as_str()));
        let is_known = more.iter().enumerate().all(|(at, arg)| is_hint(arg) || at == 0 && arg.keyword.is_none());
        if pointer.keyword.is_some() || value.keyword.is_some() || !is_known {
            return None;
        }
        let (pointer, value) = (&pointer.value, &value.value);
        let mask = store.argument("mask", Some(2)).filter(|mask| mask.kind != ExprKind::None);

        let mut needed = in_expr(pointer);
        needed.extend(mask.map(in_expr).unwrap_or_default());
        let mut places = Vec::new();
        for (at, stmt) in stmts[..at].iter().enumerate().rev() {
            let bound = bound_in(std::slice::from_ref(stmt))?;
            if bound.is_disjoint(&needed) {
                continue;
            }
            needed.extend(read_in(stmt));
            places.push(at);
        }
        places.reverse();
        // These statements run in both kernels.
        let are_pure = places.iter().all(|&place| has_no_effect(subject, &stmts[place]));
        if !needed.is_disjoint(&worked.names) || !are_pure {
            return None;
        }
        let can_move = places.iter().all(|&place| {
            let bound = bound_in(&stmts[place..=place]).unwrap_or_default();
            (0..place).filter(|one| !places.contains(one)).all(|one| read_in(&stmts[one]).is_disjoint(&bound))
        });
        let root = Root::of(subject, gather, stmts, &places, (pointer, mask)).filter(|_| can_move)?;
        let is_conversion = |stmt: &Stmt| match &stmt.kind {
            StmtKind::Assign { value, .. } => value.as_ref().is_some_and(|value| worked.is_converted(value)),
            _ => false,
        };
        let others = (0..stmts.len()).filter(|one| *one != at && !places.contains(one));
        let is_plain = worked.is_converted(value) && others.into_iter().all(|one| is_conversion(&stmts[one]));
        let Root { name: root, pointers } = root;
        Some(Self { at, store, pointer, mask, value, places, root, pointers, is_plain })
    }
}

/// The names of values that are computed from the accumulated one.
struct Worked<'a, 's> {
    subject: &'s Subject<'a>,
    names: Names<'a>,
}

impl<'a> Worked<'a, '_> {
    fn block(&mut self, body: &'a [Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                if self.expr(value)? {
                    let [target] = targets.as_slice() else { return None };
                    self.names.insert(target.as_name()?);
                }
                bound_by(stmt).map(drop)
            }
            StmtKind::AugAssign { target, value, .. } => {
                if self.expr(value)? {
                    self.names.insert(target.as_name()?);
                }
                bound_by(stmt).map(drop)
            }
            StmtKind::Expr(value) if matches!(value.kind, ExprKind::Str(_)) => Some(()),
            StmtKind::Expr(value) => {
                let call = value.as_call().filter(|call| !call.has_star())?;
                if member(self.subject, self.subject.kernel, &call.func).as_deref() != Some("store") {
                    return None;
                }
                let (value, others): (Vec<_>, Vec<_>) =
                    call.args.iter().enumerate().partition(|(at, arg)| *at == 1 && arg.keyword.is_none());
                value.into_iter().try_for_each(|(_, arg)| self.expr(&arg.value).map(drop))?;
                others.into_iter().all(|(_, arg)| self.is_apart(&arg.value)).then_some(())
            }
            StmtKind::If { branches, orelse } => {
                for (test, body) in branches {
                    self.is_apart(test).then_some(())?;
                    self.block(body)?;
                }
                self.block(orelse)
            }
            StmtKind::Pass => Some(()),
            _ => None,
        }
    }

    /// Whether an expression does not depend on the accumulated value.
    fn is_apart(&self, expr: &Expr) -> bool {
        in_expr(expr).is_disjoint(&self.names)
    }

    /// Whether an expression depends on the accumulated value; `None` where the dependence is not elementwise.
    fn expr(&self, expr: &Expr) -> Option<bool> {
        if self.is_apart(expr) {
            return Some(false);
        }
        let all = |args: &[Arg]| args.iter().try_for_each(|arg| self.expr(&arg.value).map(drop));
        let is_fine = match &expr.kind {
            ExprKind::Name(_) => Some(()),
            ExprKind::Attribute { name, .. } => return (name == "dtype").then_some(false),
            ExprKind::Binary { op, left, right } if op != "@" => self.expr(left).and(self.expr(right)).map(drop),
            ExprKind::Unary { op, operand } if op != "not" => self.expr(operand).map(drop),
            ExprKind::Compare { left, rest } if rest.len() == 1 => self.expr(left).and(self.expr(&rest[0].1)).map(drop),
            ExprKind::IfExp { test, body, orelse } if self.is_apart(test) => {
                self.expr(body).and(self.expr(orelse)).map(drop)
            }
            ExprKind::Call(call) if !call.has_star() => {
                let (module, kernel) = (&self.subject.candidate.module, self.subject.kernel);
                match (member(self.subject, kernel, &call.func), &call.func.kind) {
                    (Some(name), _) => is_function(&name).then(|| all(&call.args))?,
                    (None, ExprKind::Attribute { value, name, .. }) if METHODS.contains(&name.as_str()) => {
                        let is_alone = call.args.iter().all(|arg| self.expr(&arg.value) == Some(false));
                        is_alone.then(|| self.expr(value).map(drop))?
                    }
                    (None, ExprKind::Name(name)) if matches!(name.as_str(), "max" | "min") => all(&call.args),
                    (None, ExprKind::Name(name)) => {
                        let helper = module.kernel(name).filter(|_| !kernel.locals.contains(name))?;
                        is_helper(module, helper).then(|| all(&call.args))?
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        is_fine.map(|()| true)
    }

    /// The store of a value that depends on the accumulated one.
    fn stores(&self, stmt: &'a Stmt) -> Option<&'a Call> {
        let StmtKind::Expr(value) = &stmt.kind else { return None };
        let call = value.as_call()?;
        let is_store = member(self.subject, self.subject.kernel, &call.func).as_deref() == Some("store");
        call.args.get(1).filter(|arg| is_store && !self.is_apart(&arg.value)).map(|_| call)
    }

    /// `acc`, `acc.to(tl.float16)`
    fn is_converted(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.names.contains(name.as_str()),
            ExprKind::Call(call) => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } => name == "to" && self.is_converted(value),
                _ => false,
            },
            _ => false,
        }
    }
}

/// The base parameter of a pointer.
struct Root<'a> {
    name: &'a str,
    pointers: Names<'a>,
}

impl<'a> Root<'a> {
    /// Finds the base of a pointer; `None` where it is used otherwise, or is not the first term of a sum.
    fn of(
        subject: &Subject<'a>,
        gather: &Gather<'a>,
        stmts: &'a [Stmt],
        places: &[usize],
        (pointer, mask): (&'a Expr, Option<&'a Expr>),
    ) -> Option<Self> {
        let is_param = |name: &str| subject.kernel.param(name).is_some_and(|param| !param.constexpr);
        let stmts: Vec<&Stmt> = gather.before.iter().chain(places.iter().map(|&place| &stmts[place])).collect();
        let (mut open, mut pointers, mut roots) = (vec![leftmost(pointer)?], Names::new(), Names::new());
        let mut known = uses_in(pointer, &Names::from([open[0]]));
        while let Some(name) = open.pop() {
            if !pointers.insert(name) {
                continue;
            }
            let mut is_bound = is_param(name);
            roots.extend(Some(name).filter(|_| is_bound));
            for stmt in &stmts {
                if !bound_in(std::slice::from_ref(stmt))?.contains(name) {
                    continue;
                }
                is_bound = true;
                let from = match &stmt.kind {
                    StmtKind::Assign { targets, value: Some(value), .. } if targets.len() == 1 => leftmost(value)?,
                    StmtKind::AugAssign { op, .. } if op == "+" => name,
                    _ => return None,
                };
                // It occurs as the target and, in a plain assignment, once in the value.
                known += if matches!(stmt.kind, StmtKind::AugAssign { .. }) { 1 } else { 2 };
                open.push(from);
            }
            if !is_bound || bound_in(gather.body)?.contains(name) {
                return None;
            }
        }
        let mut all = uses_in(pointer, &pointers) + mask.map_or(0, |mask| uses_in(mask, &pointers));
        all += pointers.iter().map(|name| uses(gather.body, name)).sum::<usize>();
        for stmt in stmts {
            all += pointers.iter().map(|name| uses(std::slice::from_ref(stmt), name)).sum::<usize>();
        }
        let name = roots.pop_first().filter(|_| roots.is_empty() && all == known)?;
        Some(Self { name, pointers })
    }
}

/// How often some names occur in an expression.
fn uses_in(expr: &Expr, names: &Names<'_>) -> usize {
    let mut count = 0;
    expr.walk(&mut |expr| count += usize::from(expr.as_name().is_some_and(|name| names.contains(name))));
    count
}

/// The statements before the loop that compute the values of some names; `None` where one of them does more.
pub(super) fn needed_of<'a>(gather: &Gather<'a>, mut needed: Names<'a>) -> Option<Vec<&'a Stmt>> {
    let mut kept = Vec::new();
    for stmt in gather.before.iter().rev() {
        let mut is_known = true;
        walk_statements(std::slice::from_ref(stmt), &mut |stmt| {
            is_known &= match &stmt.kind {
                StmtKind::Assign { .. } | StmtKind::AugAssign { .. } | StmtKind::If { .. } | StmtKind::Pass => true,
                // Assertions need not be repeated.
                StmtKind::Expr(_) => true,
                _ => false,
            };
        });
        let bound = bound_in(std::slice::from_ref(stmt)).filter(|_| is_known)?;
        if bound.is_disjoint(&needed) {
            continue;
        }
        if !bound.is_disjoint(&gather.names) {
            return None;
        }
        needed.extend(read_in(stmt));
        needed.extend(bound);
        kept.push(stmt);
    }
    kept.reverse();
    Some(kept)
}
