//! The loads of which Triton's pipeliner keeps several copies in shared memory.
//!
//! In a loop that it pipelines, each tile that is loaded for a `tl.dot` is in shared memory at least `num_stages - 1`
//! times (`num_stages` times from Hopper on). Only loops without a known obstacle to pipelining are reported.

use rustc_hash::FxHashSet as HashSet;

use super::definitions::Definitions;
use super::types::KernelAnalysis;
use super::types::access::{AccessKind, MemoryAccess};
use crate::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// Maximum depth to which an expression is followed.
const DEEP: usize = 8;

/// Functions of `triton.language` that do not prevent pipelining.
const PLAIN: &[&str] = &[
    "abs",
    "arange",
    "cast",
    "cdiv",
    "dot",
    "exp",
    "exp2",
    "full",
    "load",
    "log",
    "log2",
    "math.exp",
    "math.exp2",
    "math.log",
    "math.log2",
    "max",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "multiple_of",
    "sum",
    "trans",
    "where",
    "zeros",
];

/// A pipelined loop with the loads that it stages.
#[derive(Clone, Debug)]
pub struct Staged<'a, 'f> {
    /// The expression that the loop iterates over.
    pub head: &'a Expr,
    /// The number of stages that the loop itself requests, if it does.
    pub stages: Option<&'a Expr>,
    /// The loads of operands of `tl.dot`.
    pub loads: Vec<&'f MemoryAccess>,
}

/// The loops of a kernel that stage loads.
#[must_use]
pub fn loops<'a, 'f>(module: &'a Module, kernel: &'a Kernel, facts: &'f KernelAnalysis) -> Vec<Staged<'a, 'f>> {
    let reader = Reader { module, kernel, facts, definitions: Definitions::of(kernel) };
    let mut found = Vec::new();
    reader.visit(&kernel.body, &mut found);
    found
}

struct Reader<'a, 'f> {
    module: &'a Module,
    kernel: &'a Kernel,
    facts: &'f KernelAnalysis,
    definitions: Definitions<'a>,
}

impl<'a, 'f> Reader<'a, 'f> {
    /// Skips branches, because they may not be compiled.
    fn visit(&self, body: &'a [Stmt], found: &mut Vec<Staged<'a, 'f>>) {
        for stmt in body {
            if let StmtKind::For { target, iter, body, .. } = &stmt.kind {
                match self.staged(stmt.span, target, iter, body) {
                    Some(staged) => found.push(staged),
                    None => self.visit(body, found),
                }
            }
        }
    }

    fn staged(&self, span: Span, target: &'a Expr, iter: &'a Expr, body: &'a [Stmt]) -> Option<Staged<'a, 'f>> {
        let stages = self.stages(iter)?;
        let is_open = self.mentions(iter, &|expr| {
            expr.as_name().and_then(|name| self.kernel.param(name)).is_some_and(|param| !param.constexpr)
        });
        // A loop with a single iteration is not pipelined.
        if !is_open || !body.iter().all(|stmt| self.is_plain(stmt)) {
            return None;
        }
        let moving = moving(target, body);
        let mut operands: Vec<&'a Call> = Vec::new();
        for expr in body.iter().flat_map(Stmt::exprs) {
            expr.walk(&mut |inner| {
                let dot = inner.as_call().filter(|call| self.member(call).as_deref() == Some("dot"));
                let sides =
                    dot.into_iter().flat_map(|dot| [dot.argument("input", Some(0)), dot.argument("other", Some(1))]);
                operands.extend(sides.flatten().filter_map(|side| self.loaded(side, 0)));
            });
        }
        let is_load = |expr: &'a Expr| {
            span.contains(expr.span) && expr.as_call().is_some_and(|call| self.member(call).as_deref() == Some("load"))
        };
        let is_moving = |expr: &'a Expr| expr.as_name().is_some_and(|name| moving.contains(name));
        let mut loads: Vec<&'f MemoryAccess> = Vec::new();
        for call in operands.into_iter().filter(|call| span.contains(call.func.span)) {
            let pointer = call.argument("pointer", Some(0))?;
            let mask = call.argument("mask", Some(1));
            if [Some(pointer), mask].into_iter().flatten().any(|part| self.mentions(part, &is_load)) {
                return None;
            }
            let access = self.access(call)?;
            if self.mentions(pointer, &is_moving) && !loads.iter().any(|known| known.span == access.span) {
                loads.push(access);
            }
        }
        (!loads.is_empty()).then_some(Staged { head: iter, stages, loads })
    }

    /// The `num_stages` of a loop over `range` or `tl.range`, if it has one; the outer `None` means another kind of
    /// loop.
    fn stages(&self, iter: &'a Expr) -> Option<Option<&'a Expr>> {
        let call = iter.as_call().filter(|call| !call.has_star())?;
        let is_range = call.func.as_name() == Some("range") && !self.kernel.locals.contains("range");
        if !is_range && self.member(call).as_deref() != Some("range") {
            return None;
        }
        let mut keywords = call.args.iter().filter_map(|arg| Some((arg.keyword.as_ref()?.0.as_str(), &arg.value)));
        match (keywords.next(), keywords.next()) {
            (None, _) => Some(None),
            (Some(("num_stages", value)), None) => Some(Some(value)),
            _ => None,
        }
    }

    fn member(&self, call: &Call) -> Option<String> {
        self.module.language_member(self.kernel, &call.func)
    }

    /// Whether a statement of a loop consists of arithmetic and loads only.
    fn is_plain(&self, stmt: &'a Stmt) -> bool {
        let is_simple = matches!(stmt.kind, StmtKind::Assign { .. } | StmtKind::AugAssign { .. } | StmtKind::Pass);
        is_simple
            && stmt.exprs().into_iter().all(|expr| {
                let mut plain = true;
                expr.walk(&mut |inner| {
                    let Some(call) = inner.as_call() else { return };
                    let method = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "to");
                    plain &= match self.member(call) {
                        Some(name) => PLAIN.contains(&name.as_str()),
                        None => method || call.func.as_name() == Some("float"),
                    };
                });
                plain
            })
    }

    /// The load that an operand comes from, followed through names, casts and transposition.
    fn loaded(&self, operand: &'a Expr, depth: usize) -> Option<&'a Call> {
        let found = self.definitions.behind(operand);
        match &found.kind {
            _ if depth > DEEP => None,
            ExprKind::Attribute { value, name, .. } if name == "T" => self.loaded(value, depth + 1),
            ExprKind::Call(call) => match (self.member(call).as_deref(), &call.func.kind) {
                (Some("load"), _) => Some(call),
                (Some("trans"), _) => match call.args.as_slice() {
                    [only] => self.loaded(&only.value, depth + 1),
                    _ => None,
                },
                (None, ExprKind::Attribute { value, name, .. }) if name == "to" => self.loaded(value, depth + 1),
                _ => None,
            },
            _ => None,
        }
    }

    fn access(&self, load: &Call) -> Option<&'f MemoryAccess> {
        let is_it = |access: &&MemoryAccess| {
            access.kind == AccessKind::Load
                && access.span.contains(load.args_span)
                && access.span.end == load.args_span.end
        };
        let mut all = self.facts.accesses.iter().filter(is_it);
        let access = all.next()?;
        let is_sure = !access.is_block_pointer && !access.is_uncertain && !access.is_after_return;
        (is_sure && all.all(|other| other.pointer.shape == access.pointer.shape)).then_some(access)
    }

    /// Whether some part of an expression, or of the definitions of its names, satisfies `wanted`.
    fn mentions(&self, expr: &'a Expr, wanted: &dyn Fn(&'a Expr) -> bool) -> bool {
        let (mut found, mut seen, mut waiting) = (false, HashSet::default(), vec![expr]);
        while let Some(expr) = waiting.pop() {
            expr.walk(&mut |part| {
                found |= wanted(part);
                if let Some(name) = part.as_name()
                    && seen.insert(name)
                {
                    waiting.extend(self.definitions.only(name));
                }
            });
        }
        found
    }
}

/// The names whose values change from one iteration of a loop to the next.
fn moving<'a>(target: &'a Expr, body: &'a [Stmt]) -> HashSet<&'a str> {
    let mut names: HashSet<&str> = target.as_name().into_iter().collect();
    for stmt in body {
        match &stmt.kind {
            StmtKind::AugAssign { target, .. } => names.extend(target.as_name()),
            StmtKind::Assign { targets, value: Some(value), .. } => {
                names.extend(targets.iter().filter_map(Expr::as_name).filter(|name| value.mentions(name)));
            }
            _ => {}
        }
    }
    names
}
