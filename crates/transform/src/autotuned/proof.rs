//! Proves that a kernel gives the same results with other tile sizes, and when it runs several times.

mod calls;

use std::collections::BTreeMap;

use model::analysis::types::access::pointers;
use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, walk_expressions};

use super::kind::{At, Kind, Tiles};
use crate::subject::Subject;

/// Operations that combine the lanes of a tile in another way than a sum does, or that hide pointers.
const ACROSS: [&str; 15] = [
    "advance",
    "argmax",
    "argmin",
    "associative_scan",
    "cumprod",
    "cumsum",
    "flip",
    "gather",
    "histogram",
    "make_block_ptr",
    "reduce",
    "softmax",
    "sort",
    "topk",
    "xor_sum",
];
const REDUCTIONS: [&str; 3] = ["sum", "max", "min"];
/// Functions whose result is one of their arguments at each element.
const EITHER: [&str; 4] = ["min", "max", "minimum", "maximum"];

/// The result of the proof.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TileProof {
    /// The tiles that may be larger, because all lanes beyond the sizes are masked.
    pub(super) may_grow: Tiles,
    /// The parameters that hold sizes.
    pub(super) sizes: Vec<String>,
    /// Parameters that are loaded from and stored to, one bit for each.
    pub(super) loaded: u64,
    pub(super) stored: u64,
}

/// Walks a kernel in source order and follows how tile indices are used. Each must become the position of an element:
/// multiplied with its tile size, with the lanes of the tile added.
pub(super) struct Proof<'a> {
    subject: &'a Subject<'a>,
    tiles: &'a [&'a str],
    /// The tiles in which the programs along each axis are counted.
    axes: &'a [Tiles],
    of_grid: Tiles,
    pointers: u64,
    names: BTreeMap<&'a str, Kind>,
    /// The tiles of the enclosing loops, and of all loops.
    open: Tiles,
    counted: Tiles,
    /// The number of enclosing loops and conditions.
    depth: usize,
    /// Whether the expression that is read next is added to something, or is an operand of a maximum.
    is_joined: bool,
    found: TileProof,
}

/// Proves that the kernel computes the same with other tile sizes; `None` where it may not.
pub(super) fn prove<'a>(subject: &'a Subject<'a>, tiles: &'a [&'a str], axes: &'a [Tiles]) -> Option<TileProof> {
    let kernel = subject.kernel;
    let known = pointers(&subject.candidate.module, kernel);
    let bits = kernel.params.iter().enumerate().filter(|(_, param)| known.contains(param.name.as_str()));
    let pointers = bits.filter(|(at, _)| *at < 64).fold(0, |all, (at, _)| all | 1 << at);
    let of_grid = axes.iter().fold(0, |all, axis| all | axis);
    let (names, found) = (BTreeMap::new(), TileProof { may_grow: Tiles::MAX, ..TileProof::default() });
    let (open, counted, depth, is_joined) = (0, 0, 0, false);
    let mut proof = Proof { subject, tiles, axes, of_grid, pointers, names, open, counted, depth, is_joined, found };
    proof.block(&kernel.body)?;
    let is_counted = (0..tiles.len()).all(|tile| (of_grid | proof.counted) & 1 << tile != 0);
    (is_counted && proof.found.loaded & proof.found.stored == 0).then_some(proof.found)
}

/// Whether a kernel divides something into tiles of this size.
pub(super) fn counts(subject: &Subject<'_>, tile: &str) -> bool {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let is_tile = |expr: &Expr| expr.as_name() == Some(tile);
    let mut found = false;
    walk_expressions(&kernel.body, &mut |expr| match &expr.kind {
        ExprKind::Binary { op, right, .. } => found |= op == "//" && is_tile(right),
        ExprKind::Call(call) => {
            let member = module.language_member(kernel, &call.func);
            let by = match member.as_deref().or_else(|| call.func.as_name()) {
                Some("cdiv") => call.argument("div", Some(1)),
                Some("range" | "static_range") => call.argument("step", Some(2)),
                _ => None,
            };
            found |= by.is_some_and(is_tile);
        }
        _ => {}
    });
    found
}

impl<'a> Proof<'a> {
    fn block(&mut self, body: &'a [Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let [target] = targets.as_slice() else { return None };
                self.assign(target, value)
            }
            StmtKind::AugAssign { target, op, value } => self.add(target, op, value),
            StmtKind::Expr(value) => self.expr(value).map(drop),
            StmtKind::If { branches, orelse } => self.branches(branches, orelse),
            StmtKind::For { target, iter, body, orelse } if orelse.is_empty() => self.rounds(target, iter, body),
            StmtKind::Return(None) | StmtKind::Pass => Some(()),
            _ => None,
        }
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr) -> Option<()> {
        match (&target.kind, &value.kind) {
            (ExprKind::Tuple(targets), ExprKind::Tuple(values)) if targets.len() == values.len() => {
                targets.iter().zip(values).try_for_each(|(target, value)| self.assign(target, value))
            }
            (ExprKind::Tuple(targets), _) => {
                let at = self.expr(value)?.at()?;
                targets.iter().try_for_each(|target| self.bind(target.as_name()?, Kind::At(at)))
            }
            _ => {
                let kind = self.expr(value)?;
                self.bind(target.as_name()?, kind)
            }
        }
    }

    /// Binds a name. In a branch or a loop the name may also keep its former value.
    fn bind(&mut self, name: &'a str, kind: Kind) -> Option<()> {
        let kind = match self.names.get(name) {
            Some(before) if self.depth > 0 => before.and(kind)?,
            _ => kind,
        };
        self.names.insert(name, kind);
        Some(())
    }

    fn add(&mut self, target: &'a Expr, op: &str, value: &'a Expr) -> Option<()> {
        let name = target.as_name()?;
        let before = self.expr(target)?;
        if let Some(tile) = self.step(value).filter(|_| op == "+") {
            // `pointers += B * stride`, once per iteration.
            let at = before.at()?;
            return (self.open & at.lanes & 1 << tile != 0).then_some(());
        }
        self.is_joined = op == "+";
        let kind = before.and(self.expr(value)?)?;
        self.bind(name, kind)
    }

    /// `B`, or `B * stride`
    fn step(&self, value: &Expr) -> Option<usize> {
        let is_param = |expr: &Expr| expr.as_int().is_some() || self.runtime(expr).is_some();
        match &value.kind {
            ExprKind::Binary { op, left, right } if op == "*" => {
                let (left, right) = (left.as_ref(), right.as_ref());
                [(left, right), (right, left)]
                    .into_iter()
                    .find_map(|(tile, by)| self.tile(tile).filter(|_| is_param(by)))
            }
            _ => self.tile(value),
        }
    }

    fn branches(&mut self, branches: &'a [(Expr, Vec<Stmt>)], orelse: &'a [Stmt]) -> Option<()> {
        self.depth += 1;
        for (test, body) in branches {
            let kind = self.expr(test)?;
            let is_same = kind.at().is_some_and(|at| at.is_whole(self.of_grid));
            // A program beyond the last tile may return early; nothing else may depend on the program's index.
            let ends = matches!(body.as_slice(), [Stmt { kind: StmtKind::Return(None), .. }]) && orelse.is_empty();
            (is_same || ends).then_some(())?;
            self.block(body)?;
        }
        self.block(orelse)?;
        self.depth -= 1;
        Some(())
    }

    fn rounds(&mut self, target: &'a Expr, iter: &'a Expr, body: &'a [Stmt]) -> Option<()> {
        let call = iter.as_call().filter(|call| !call.has_star())?;
        let member = self.subject.member(call);
        let is_range =
            call.func.as_name() == Some("range") || matches!(member.as_deref(), Some("range" | "static_range"));
        let parts: Vec<&Expr> = call.args.iter().filter(|arg| arg.keyword.is_none()).map(|arg| &arg.value).collect();
        let (kind, tile) = match parts.as_slice() {
            [end] => self.round(None, end)?,
            [start, end] => self.round(Some(start), end)?,
            [start, end, step] => match self.tile(step) {
                Some(tile) if start.as_int() == Some(0) => {
                    let end = self.expr(end)?.at().filter(|at| at.starts | at.lanes == 0 && !at.is_data)?;
                    (Kind::At(At { starts: 1 << tile, ..end }), Some(tile))
                }
                Some(_) => return None,
                None => (self.expr(start)?.and(self.expr(end)?)?.and(self.expr(step)?)?, None),
            },
            _ => return None,
        };
        parts.iter().for_each(|part| self.note_sizes(part));
        let around = self.open;
        let tile = tile.map_or(0, |tile| 1 << tile);
        (is_range && around & tile == 0).then_some(())?;
        (self.open, self.counted, self.depth) = (around | tile, self.counted | tile, self.depth + 1);
        self.names.insert(target.as_name()?, kind);
        // The second pass sees the values that one iteration leaves to the next.
        self.block(body)?;
        self.block(body)?;
        (self.open, self.depth) = (around, self.depth - 1);
        Some(())
    }

    /// The kind of a loop variable, and the tile by which the loop advances.
    fn round(&mut self, start: Option<&'a Expr>, end: &'a Expr) -> Option<(Kind, Option<usize>)> {
        let is_first = start.is_none_or(|start| start.as_int() == Some(0));
        match self.expr(end)? {
            Kind::Count(tile) => tile.filter(|_| is_first).map(|tile| (Kind::Index(1 << tile), Some(tile))),
            end => {
                let start = start.map_or(Some(Kind::Constant), |start| self.expr(start))?;
                // The loop variable is not a constant.
                Some((start.and(end)?.and(Kind::At(At::default()))?, None))
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr) -> Option<Kind> {
        let is_joined = std::mem::take(&mut self.is_joined);
        match &expr.kind {
            ExprKind::Name(name) => self.name(name),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::None | ExprKind::Str(_) => {
                Some(Kind::Constant)
            }
            ExprKind::Attribute { value, .. } => {
                let is_member = self.subject.candidate.module.resolve_in(self.subject.kernel, expr).is_some();
                if is_member { Some(Kind::Constant) } else { Some(Kind::At(self.expr(value)?.at()?)) }
            }
            ExprKind::Unary { operand, .. } => Some(Kind::At(self.expr(operand)?.at()?)),
            ExprKind::Binary { op, left, right } => self.binary(op, left, right),
            ExprKind::Compare { left, rest } => self.compare(left, rest),
            ExprKind::BoolOp { left, right, .. } => self.expr(left)?.and(self.expr(right)?),
            ExprKind::IfExp { test, body, orelse } => {
                let test = Kind::At(self.expr(test)?.at().filter(|at| at.is_whole(self.of_grid))?);
                test.and(self.expr(body)?)?.and(self.expr(orelse)?)
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => {
                parts.iter().try_fold(Kind::Constant, |all, part| all.and(self.expr(part)?))
            }
            ExprKind::Subscript { value, index } => {
                let is_plain = |index: &Expr| {
                    matches!(index.kind, ExprKind::None | ExprKind::Int(_))
                        || matches!(&index.kind, ExprKind::Slice(parts) if parts.is_empty())
                };
                index.iter().all(is_plain).then(|| self.expr(value))?
            }
            ExprKind::Call(call) => self.call(call, is_joined),
            _ => None,
        }
    }

    fn name(&self, name: &str) -> Option<Kind> {
        if self.tiles.contains(&name) {
            return None;
        }
        if let Some(kind) = self.names.get(name) {
            return Some(*kind);
        }
        match self.subject.kernel.params.iter().position(|param| param.name == name) {
            Some(at) if self.subject.kernel.params[at].constexpr => Some(Kind::Constant),
            Some(at) => {
                let bit = 1_u64.checked_shl(u32::try_from(at).ok()?)?;
                Some(Kind::At(At { roots: self.pointers & bit, ..At::default() }))
            }
            // The name is a constant of the file.
            None => (!self.subject.kernel.locals.contains(name)).then_some(Kind::Constant),
        }
    }

    fn binary(&mut self, op: &str, left: &'a Expr, right: &'a Expr) -> Option<Kind> {
        if op == "*" {
            for (tile, other) in [(left, right), (right, left)] {
                if let Some(tile) = self.tile(tile) {
                    return self.start(other, tile);
                }
            }
        }
        if let Some((of, tile)) =
            self.tile(right).filter(|_| op == "//").and_then(|tile| Some((self.rounded(left, right)?, tile)))
        {
            return self.count(of, tile);
        }
        self.is_joined = op == "+";
        let one = self.expr(left)?;
        self.is_joined = op == "+";
        let kind = one.and(self.expr(right)?)?;
        match kind {
            // Division rounds the start of a tile differently from its elements.
            Kind::At(at) if matches!(op, "//" | "%") => {
                let free = if op == "%" { 0 } else { at.free };
                at.is_whole(self.of_grid).then_some(Kind::At(At { free, ..at }))
            }
            Kind::At(at) if op == "|" && self.is_told(left, right) => Some(Kind::At(At { lanes: 0, starts: 0, ..at })),
            kind => Some(kind),
        }
    }

    /// Whether one of the operands is a constexpr flag by which the mask is skipped for all elements: the host computes
    /// it with the current tile size.
    fn is_told(&self, left: &Expr, right: &Expr) -> bool {
        let heuristics = self.subject.kernel.heuristics.as_deref().unwrap_or_default();
        let constant = |expr: &Expr| {
            let name = expr.as_name()?;
            self.subject.kernel.param(name).filter(|param| param.constexpr && !heuristics.contains(&param.name))
        };
        constant(left).is_some() || constant(right).is_some()
    }

    /// `n` of `(n + B - 1) // B`
    fn rounded(&self, sum: &'a Expr, tile: &Expr) -> Option<&'a Expr> {
        let is_tile = |expr: &Expr| expr.as_name() == tile.as_name();
        let sides = |expr: &'a Expr, sign: &str| match &expr.kind {
            ExprKind::Binary { op, left, right } if op == sign => Some((left.as_ref(), right.as_ref())),
            _ => None,
        };
        if let Some((of, less)) = sides(sum, "+") {
            let (by, one) = sides(less, "-")?;
            return (is_tile(by) && one.as_int() == Some(1)).then_some(of);
        }
        let (more, one) = sides(sum, "-")?;
        let (of, by) = sides(more, "+")?;
        (is_tile(by) && one.as_int() == Some(1)).then_some(of)
    }

    fn count(&mut self, of: &'a Expr, tile: usize) -> Option<Kind> {
        self.note_sizes(of);
        let at = self.expr(of)?.at()?;
        (at.starts | at.lanes == 0 && !at.is_data).then_some(Kind::Count(Some(tile)))
    }

    /// The offset of a tile's first element.
    fn start(&mut self, number: &'a Expr, tile: usize) -> Option<Kind> {
        match self.expr(number)? {
            Kind::Index(tiles) if tiles & 1 << tile != 0 => Some(Kind::At(At { starts: 1 << tile, ..At::default() })),
            _ => None,
        }
    }

    fn compare(&mut self, left: &'a Expr, rest: &'a [(String, Expr)]) -> Option<Kind> {
        let mut kind = self.expr(left)?;
        for (_, right) in rest {
            kind = kind.and(self.expr(right)?)?;
        }
        // Loaded data is not compared with sizes only.
        if kind.at().is_some_and(|at| !at.is_data) {
            self.note_sizes(left);
            rest.iter().for_each(|(_, right)| self.note_sizes(right));
        }
        Some(kind)
    }

    /// Records the parameters by which elements are counted.
    fn note_sizes(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        expr.walk(&mut |part| found.extend(self.runtime(part).map(str::to_owned)));
        for name in found {
            if !self.found.sizes.contains(&name) {
                self.found.sizes.push(name);
            }
        }
    }

    /// A parameter that is neither a constant nor a pointer.
    fn runtime<'b>(&self, expr: &'b Expr) -> Option<&'b str> {
        let name = expr.as_name().filter(|name| !self.names.contains_key(name))?;
        let at = self.subject.kernel.params.iter().position(|param| param.name == name && !param.constexpr)?;
        (at < 64 && self.pointers & 1 << at == 0).then_some(name)
    }

    fn tile(&self, expr: &Expr) -> Option<usize> {
        let name = expr.as_name()?;
        self.tiles.iter().position(|tile| *tile == name)
    }
}
