//! The masks that whole iterations do not need.

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions};
use model::syntax::Span;
use rules::Edit;

use super::proof::Rounds;
use crate::lines::lines_of;
use crate::names::uses;

/// The bound up to which an iteration may extend without needing some mask.
#[derive(PartialEq)]
pub(super) struct Limit<'a> {
    /// The condition for the mask to exist at all: a scalar of the kernel.
    pub(super) guard: Option<&'a Expr>,
    pub(super) text: String,
}

/// The edits that remove masks, and the bounds up to which that is right.
pub(super) struct Masks<'a> {
    pub(super) limits: Vec<Limit<'a>>,
    pub(super) edits: Vec<Edit>,
    /// Names of masks, once for each use that is removed.
    gone: Vec<&'a str>,
}

impl<'a> Masks<'a> {
    /// Finds the masks to remove; `None` where there is none, or where nothing would be left.
    pub(super) fn of(rounds: &Rounds<'a>) -> Option<Self> {
        let (limits, edits, gone) = Default::default();
        let mut masks = Self { limits, edits, gone };
        let is_empty = masks.block(rounds, rounds.body, None)?;
        masks.unused(rounds);
        (!is_empty && !masks.edits.is_empty()).then_some(masks)
    }

    /// Edits some statements. Returns whether all of them are removed.
    fn block(&mut self, rounds: &Rounds<'a>, body: &'a [Stmt], guard: Option<&'a Expr>) -> Option<bool> {
        let mut is_empty = true;
        for stmt in body {
            is_empty &= self.statement(rounds, stmt, guard)?;
        }
        Some(is_empty)
    }

    fn statement(&mut self, rounds: &Rounds<'a>, stmt: &'a Stmt, guard: Option<&'a Expr>) -> Option<bool> {
        if let StmtKind::If { branches, orelse } = &stmt.kind {
            let [(test, inner)] = branches.as_slice() else { return Some(false) };
            let param = test.as_name().and_then(|name| rounds.subject.kernel.param(name));
            if !orelse.is_empty() || guard.is_some() || !param.is_some_and(|param| param.constexpr) {
                return Some(false);
            }
            let before = self.edits.len();
            if !self.block(rounds, inner, Some(test))? {
                return Some(false);
            }
            self.edits.truncate(before);
            self.delete(rounds, stmt)?;
            return Some(true);
        }
        if let Some(mask) = selected(rounds, stmt)
            && let Some(limits) = rounds.limits(mask)
        {
            self.keep(guard, limits);
            self.gone(mask);
            self.delete(rounds, stmt)?;
            return Some(true);
        }
        if matches!(stmt.kind, StmtKind::Assign { .. } | StmtKind::AugAssign { .. } | StmtKind::Expr(_)) {
            walk_expressions(std::slice::from_ref(stmt), &mut |expr| {
                if let Some(call) = expr.as_call() {
                    self.access(rounds, call, guard);
                }
            });
        }
        Some(false)
    }

    /// `tl.load(…, mask=…, other=…)`
    fn access(&mut self, rounds: &Rounds<'a>, call: &'a Call, guard: Option<&'a Expr>) {
        let name = rounds.member(&call.func);
        if !matches!(name.as_deref(), Some("load" | "store")) || call.has_star() {
            return;
        }
        let at = |keyword: &str| {
            call.args.iter().position(|arg| arg.keyword.as_ref().is_some_and(|(name, _)| name == keyword))
        };
        let Some(mask) = at("mask").filter(|at| *at > 0) else { return };
        let (before, value) = (self.limits.len(), &call.args[mask].value);
        match self.rest(rounds, value, guard) {
            Some(_) if self.limits.len() == before => {}
            Some(rest) => {
                let rest = rest
                    .strip_prefix('(')
                    .and_then(|rest| rest.strip_suffix(')'))
                    .filter(|rest| !rest.contains(['(', ')']))
                    .unwrap_or(&rest);
                self.edits.push(Edit { span: call.args[mask].value.span, text: rest.to_owned() });
            }
            None => {
                for at in [Some(mask), at("other").filter(|at| *at > 0)].into_iter().flatten() {
                    let span = Span::new(call.args[at - 1].span.end, call.args[at].span.end);
                    self.edits.push(Edit { span, text: String::new() });
                }
            }
        }
    }

    /// The rest of a mask, in parentheses where it needs them.
    fn rest(&mut self, rounds: &Rounds<'a>, mask: &'a Expr, guard: Option<&'a Expr>) -> Option<String> {
        if let Some(limits) = rounds.limits(mask) {
            self.keep(guard, limits);
            self.gone(mask);
            return None;
        }
        if let ExprKind::Binary { op, left, right } = &mask.kind
            && op == "&"
        {
            return match (self.rest(rounds, left, guard), self.rest(rounds, right, guard)) {
                (Some(left), Some(right)) => Some(format!("{left} & {right}")),
                (left, right) => left.or(right),
            };
        }
        let text = &rounds.subject.candidate.text[mask.span.start..mask.span.end];
        let is_apart = matches!(mask.kind, ExprKind::Name(_) | ExprKind::Subscript { .. } | ExprKind::Call(_));
        Some(if is_apart { text.to_owned() } else { format!("({text})") })
    }

    fn keep(&mut self, guard: Option<&'a Expr>, limits: Vec<String>) {
        self.limits.extend(limits.into_iter().map(|text| Limit { guard, text }));
    }

    fn gone(&mut self, mask: &'a Expr) {
        mask.walk(&mut |expr| self.gone.extend(expr.as_name()));
    }

    fn delete(&mut self, rounds: &Rounds<'a>, stmt: &Stmt) -> Option<()> {
        let text = rounds.subject.candidate.text.as_str();
        let lines = lines_of(text, stmt)?;
        self.edits.push(Edit { span: Span::new(lines.start, (lines.end + 1).min(text.len())), text: String::new() });
        Some(())
    }

    /// Removes the assignments of masks that nothing uses any more.
    fn unused(&mut self, rounds: &Rounds<'a>) {
        for stmt in rounds.body {
            let StmtKind::Assign { targets, value: Some(value), .. } = &stmt.kind else { continue };
            let [target] = targets.as_slice() else { continue };
            let Some(name) = target.as_name().filter(|_| rounds.limits(value).is_some()) else { continue };
            let gone = self.gone.iter().filter(|gone| **gone == name).count();
            let (here, everywhere) = (uses(rounds.body, name), uses(&rounds.subject.kernel.body, name));
            // One occurrence is the target of the assignment.
            if gone > 0 && here == gone + 1 && everywhere == here {
                let _ = self.delete(rounds, stmt);
            }
        }
    }
}

/// The mask of `x = tl.where(mask, x, number)`.
fn selected<'a>(rounds: &Rounds<'a>, stmt: &'a Stmt) -> Option<&'a Expr> {
    let StmtKind::Assign { targets, annotation: None, value: Some(value) } = &stmt.kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let call = value.as_call().filter(|call| rounds.member(&call.func).as_deref() == Some("where"))?;
    let [mask, kept, other] = call.args.as_slice() else { return None };
    let is_plain = call.args.iter().all(|arg| arg.keyword.is_none()) && !call.has_star();
    let is_same = target.as_name().is_some() && kept.value.as_name() == target.as_name();
    (is_plain && is_same && is_number(&other.value)).then_some(&mask.value)
}

/// `0.0`, `-1e9`, `float("-inf")`: a value that does not change the type of a tile.
fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::Unary { operand, .. } => is_number(operand),
        ExprKind::Call(call) => call.func.as_name() == Some("float"),
        _ => false,
    }
}
