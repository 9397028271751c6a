//! The kinds of calls in a kernel.

use model::kernel::ast::{Call, Expr, ExprKind, walk_expressions};

use super::{ACROSS, EITHER, Proof, REDUCTIONS};
use crate::autotuned::kind::{At, Kind, Tiles};
use crate::names::BUILTINS;

impl<'a> Proof<'a> {
    pub(super) fn call(&mut self, call: &'a Call, is_joined: bool) -> Option<Kind> {
        if call.has_star() {
            return None;
        }
        let member = self.subject.member(call);
        match (member.as_deref(), call.func.as_name()) {
            (Some(axis @ ("program_id" | "num_programs")), _) => {
                let at = usize::try_from(call.argument("axis", Some(0))?.as_int()?).ok()?;
                Some(match self.axes.get(at).copied().unwrap_or_default() {
                    0 => Kind::At(At::default()),
                    tiles if axis == "program_id" => Kind::Index(tiles),
                    _ => Kind::Count(None),
                })
            }
            (Some("arange"), _) => self.lanes(call),
            (Some("cdiv"), _) => {
                let (of, by) = (call.argument("x", Some(0))?, call.argument("div", Some(1))?);
                match self.tile(by) {
                    Some(tile) => self.count(of, tile),
                    None => self.expr(of)?.and(self.expr(by)?),
                }
            }
            (Some("zeros" | "full"), _) => self.filled(call),
            (Some("load"), _) => self.load(call),
            (Some("store"), _) => self.store(call),
            (Some("dot"), _) => self.dot(call, is_joined),
            (Some(name), _) if REDUCTIONS.contains(&name) => self.reduction(call, is_joined),
            (Some(name), _) | (None, Some(name)) if EITHER.contains(&name) => {
                let mut all = Kind::Constant;
                for arg in &call.args {
                    self.is_joined = true;
                    all = all.and(self.expr(&arg.value)?)?;
                }
                Some(all)
            }
            (Some(name), _) => self.is_known(name).then(|| self.values(call).map(Kind::At))?,
            (None, _) => self.other(call),
        }
    }

    /// Whether a function does the same for each element, however often it is called.
    fn is_known(&self, name: &str) -> bool {
        let is_refused = ["atomic", "device_", "debug", "inline_asm"].iter().any(|start| name.starts_with(start))
            || ["globaltimer", "num_threads", "num_warps", "smid"].iter().any(|end| name.ends_with(end));
        let is_across = ACROSS.contains(&name) && !self.tiles.is_empty();
        !is_refused && !is_across && !name.contains("descriptor")
    }

    /// The joined kind of all arguments, each of which must be the same for all tiles.
    fn values(&mut self, call: &'a Call) -> Option<At> {
        call.args.iter().try_fold(At::default(), |all, arg| Some(all.and(self.value(&arg.value)?)))
    }

    fn value(&mut self, expr: &'a Expr) -> Option<At> {
        self.expr(expr)?.at().filter(|at| at.is_whole(self.of_grid))
    }

    /// The kind of a call of a method or of a function of the file, which must take no pointers and treat each element
    /// by itself.
    fn other(&mut self, call: &'a Call) -> Option<Kind> {
        let is_local = call.func.first_name().is_none_or(|name| self.subject.kernel.locals.contains(name));
        let passed = self.values(call)?;
        match &call.func.kind {
            ExprKind::Attribute { value, name, .. } if is_local => {
                let kind = self.expr(value)?;
                if name == "to" {
                    return Some(kind);
                }
                let at = kind.at().filter(|_| self.is_known(name) && !REDUCTIONS.contains(&name.as_str()))?.and(passed);
                (at.roots == 0).then_some(Kind::At(at))
            }
            ExprKind::Name(name) if BUILTINS.contains(&name.as_str()) || self.is_elementwise(name) => {
                (passed.roots == 0).then_some(Kind::At(passed))
            }
            _ => None,
        }
    }

    /// Whether a helper of the file treats each element by itself.
    fn is_elementwise(&self, helper: &str) -> bool {
        let module = &self.subject.candidate.module;
        let Some(helper) = module.kernel(helper) else { return false };
        let mut is_so = !helper.has_error;
        walk_expressions(&helper.body, &mut |expr| {
            let Some(call) = expr.as_call() else { return };
            let is_cast = matches!(&call.func.kind, ExprKind::Attribute { name, .. } if name == "to");
            let member = module.language_member(helper, &call.func);
            let is_plain = |name: &str| {
                let is_of_program = ["arange", "dot", "load", "num_programs", "program_id", "store"].contains(&name);
                self.is_known(name) && !REDUCTIONS.contains(&name) && !is_of_program
            };
            is_so &= member.as_deref().map_or(is_cast, is_plain);
        });
        is_so
    }

    fn lanes(&mut self, call: &'a Call) -> Option<Kind> {
        let (start, end) = (call.argument("start", Some(0))?, call.argument("end", Some(1))?);
        match self.tile(end) {
            Some(tile) => {
                let lanes: Tiles = 1 << tile;
                (start.as_int() == Some(0)).then_some(Kind::At(At { lanes, free: lanes, ..At::default() }))
            }
            None => self.expr(start)?.and(self.expr(end)?)?.and(Kind::At(At::default())),
        }
    }

    fn filled(&mut self, call: &'a Call) -> Option<Kind> {
        let shape = call.argument("shape", Some(0))?;
        let parts = match &shape.kind {
            ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.as_slice(),
            _ => std::slice::from_ref(shape),
        };
        for part in parts {
            if self.tile(part).is_none() {
                self.value(part)?;
            }
        }
        for arg in call.args.iter().filter(|arg| arg.value.span != shape.span) {
            self.value(&arg.value)?;
        }
        Some(Kind::At(At::default()))
    }

    fn load(&mut self, call: &'a Call) -> Option<Kind> {
        let at = self.access(call)?;
        self.found.loaded |= at.roots;
        Some(Kind::At(At { roots: 0, is_data: true, free: at.lanes, ..at }))
    }

    fn store(&mut self, call: &'a Call) -> Option<Kind> {
        let at = self.access(call)?;
        self.found.stored |= at.roots;
        Some(Kind::Constant)
    }

    /// The kind of a load or store. An address from an unknown pointer is refused, because it may be anywhere.
    fn access(&mut self, call: &'a Call) -> Option<At> {
        self.values(call)?;
        let at = self.value(call.argument("pointer", Some(0))?)?;
        let is_store = self.subject.member(call).as_deref() == Some("store");
        let mask = match call.argument("mask", Some(if is_store { 2 } else { 1 })) {
            Some(mask) => self.value(mask)?,
            None => At::default(),
        };
        self.found.may_grow &= !(at.free & !mask.lanes);
        (at.roots != 0).then_some(at)
    }

    /// The kind of a product. Along the common axis it multiplies and adds: the tiles there must be all iterations of a
    /// loop that accumulates.
    fn dot(&mut self, call: &'a Call, is_joined: bool) -> Option<Kind> {
        let (left, right) = (call.argument("input", Some(0))?, call.argument("other", Some(1))?);
        let (left, right) = (self.value(left)?, self.value(right)?);
        let all = self.values(call)?;
        let common = left.lanes & right.lanes;
        let is_added = is_joined || call.argument("acc", Some(2)).is_some();
        (common & self.of_grid == 0 && (common & self.open == 0 || is_added)).then_some(())?;
        let kept = all.lanes & !common;
        Some(Kind::At(At { starts: all.starts & kept, lanes: kept, free: kept, ..all }))
    }

    fn reduction(&mut self, call: &'a Call, is_joined: bool) -> Option<Kind> {
        let all = self.values(call)?;
        // The sum of a single iteration depends on the tile size.
        (all.lanes & self.of_grid == 0 && (all.lanes & self.open == 0 || is_joined)).then_some(())?;
        Some(Kind::At(At { starts: 0, lanes: 0, free: 0, ..all }))
    }
}
