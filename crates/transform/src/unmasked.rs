//! Tiles of launches whose accesses have no mask, and the sizes that they must divide.

use std::collections::BTreeSet;

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, walk_expressions, walk_statements};
use model::kernel::{Kernel, Launch, Module};

use super::grid_tiles::{axis, is_free, quotient};
use super::launched::all_passed;
use super::written::{bindings, grid_of, parts_of};

/// The greatest depth of nested calls that are followed.
const DEPTH: usize = 4;
/// Functions whose result is not one value for each element of their arguments, or is always in bounds.
const ELSEWHERE: [&str; 4] = ["load", "dot", "where", "minimum"];

/// The sizes that the tiles of a parameter divide, as expressions of the host function; empty where masks disable the
/// excess of the last tile.
pub(super) fn divided<'a>(
    module: &'a Module,
    kernel: &'a Kernel,
    launch: &'a Launch,
    param: &'a str,
    current: i64,
) -> Vec<&'a Expr> {
    let passed: Vec<(&str, &Expr)> =
        all_passed(kernel, launch).into_iter().map(|(name, arg)| (name, &arg.value)).collect();
    let name = passed.iter().find(|(name, _)| *name == param).and_then(|(_, value)| value.as_name());
    let mut found = UnmaskedSizes::default();
    let scope = Scope { module, kernel, tile: Some(param), across: BTreeSet::new(), passed };
    scope.look(DEPTH, &mut found);
    if !found.is_unmasked {
        return Vec::new();
    }
    if !is_free(module, kernel, param) {
        found.sizes.extend(of_grid(module, kernel, launch, &Tile { param, name, current }));
    }
    found.sizes
}

#[derive(Default)]
struct UnmaskedSizes<'a> {
    is_unmasked: bool,
    sizes: Vec<&'a Expr>,
}

/// A device function, as one call uses it.
struct Scope<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    /// The parameter that is the tile size, if the call passes it.
    tile: Option<&'a str>,
    /// Names of values with one element for each element of a tile: offsets, pointers and masks.
    across: BTreeSet<&'a str>,
    /// The arguments, by parameter.
    passed: Vec<(&'a str, &'a Expr)>,
}

impl<'a> Scope<'a> {
    fn look(mut self, depth: usize, found: &mut UnmaskedSizes<'a>) {
        // A value that a loop changes is known only after a first pass.
        for _ in 0..2 {
            walk_statements(&self.kernel.body, &mut |stmt| self.take(stmt));
        }
        let kernel = self.kernel;
        walk_expressions(&kernel.body, &mut |expr| {
            let of = quotient(expr).filter(|(_, by)| self.is_of_tile(by)).and_then(|(of, _)| self.size(of));
            found.sizes.extend(of);
            if let Some(call) = expr.as_call() {
                self.look_at(call, depth, found);
            }
        });
    }

    fn take(&mut self, stmt: &'a Stmt) {
        if stmt.exprs().iter().any(|expr| self.is_across(expr)) {
            for target in stmt.targets() {
                target.walk(&mut |part| self.across.extend(part.as_name()));
            }
        }
    }

    fn look_at(&self, call: &'a Call, depth: usize, found: &mut UnmaskedSizes<'a>) {
        let member = self.module.language_member(self.kernel, &call.func);
        match member.as_deref() {
            Some("load") => found.is_unmasked |= self.is_uncut(call, 1),
            Some(name) if name == "store" || name.starts_with("atomic_") => found.is_unmasked |= self.is_uncut(call, 2),
            _ if member.as_deref() == Some("range") || call.func.as_name() == Some("range") => {
                if call.args.get(2).is_some_and(|by| self.is_of_tile(&by.value)) {
                    found.sizes.extend(self.size(&call.args[1].value));
                }
            }
            Some(_) => {}
            None => {
                let called = call.func.as_name().and_then(|name| self.module.kernel(name));
                if let (Some(called), Some(depth)) = (called, depth.checked_sub(1)) {
                    self.within(called, call).look(depth, found);
                }
            }
        }
    }

    /// The scope of a called function, with its arguments.
    fn within(&self, called: &'a Kernel, call: &'a Call) -> Self {
        let mut scope =
            Scope { kernel: called, tile: None, across: BTreeSet::new(), passed: Vec::new(), module: self.module };
        for (at, param) in called.params.iter().enumerate() {
            let name = param.name.as_str();
            let Some(value) = call.argument(name, Some(at)) else { continue };
            if self.is_tile(value) {
                scope.tile = Some(name);
            } else if self.is_across(value) {
                scope.across.insert(name);
            }
            scope.passed.extend(self.size(value).map(|size| (name, size)));
        }
        scope
    }

    fn is_tile(&self, expr: &Expr) -> bool {
        self.tile.is_some() && expr.as_name() == self.tile
    }

    /// Whether an expression is the tile size, or a multiple of it: `BLOCK_K * SPLIT_K`.
    fn is_of_tile(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Binary { op, left, right } if op == "*" => self.is_of_tile(left) || self.is_of_tile(right),
            _ => self.is_tile(expr),
        }
    }

    /// The launch argument for a name that has no other value.
    fn size(&self, expr: &Expr) -> Option<&'a Expr> {
        let name = expr.as_name().filter(|name| bindings(&self.kernel.body, name).is_empty())?;
        self.passed.iter().find(|(param, _)| *param == name).map(|(_, value)| *value)
    }

    /// Whether a value has one element for each element of a tile, including those beyond the size.
    fn is_across(&self, expr: &Expr) -> bool {
        let any = |expr: &Expr| expr.children().into_iter().any(|child| self.is_across(child));
        match &expr.kind {
            ExprKind::Name(name) => self.across.contains(name.as_str()),
            // Wrapped indices never exceed the size.
            ExprKind::Binary { op, .. } if op == "%" => false,
            ExprKind::Call(call) => match self.module.language_member(self.kernel, &call.func).as_deref() {
                Some("arange" | "make_block_ptr") => self.tile.is_some_and(|tile| expr.mentions(tile)),
                Some(name) if ELSEWHERE.contains(&name) => false,
                _ => any(expr),
            },
            _ => any(expr),
        }
    }

    /// Whether an access has one element for each element of a tile, and no mask for them.
    fn is_uncut(&self, call: &Call, mask: usize) -> bool {
        let is_across = |name: &str, at: usize| call.argument(name, Some(at)).is_some_and(|expr| self.is_across(expr));
        let is_cut = call.has_star() || call.argument("boundary_check", None).is_some() || is_across("mask", mask);
        is_across("pointer", 0) && !is_cut
    }
}

/// The ways in which the host function may refer to a tile size.
struct Tile<'a> {
    param: &'a str,
    /// The name that it passes, if the argument is a name.
    name: Option<&'a str>,
    current: i64,
}

impl Tile<'_> {
    fn is(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.name == Some(name),
            ExprKind::Attribute { name, .. } => name == self.param,
            ExprKind::Subscript { index, .. } => {
                matches!(index.as_slice(), [Expr { kind: ExprKind::Str(name), .. }] if name == self.param)
            }
            _ => false,
        }
    }
}

/// The sizes that a grid divides by the tile; where the grid has only a number, the axis must be known.
fn of_grid<'a>(module: &'a Module, kernel: &Kernel, launch: &'a Launch, tile: &Tile<'_>) -> Vec<&'a Expr> {
    let Some(grid) = grid_of(module, launch) else { return Vec::new() };
    let axis = axis(module, kernel, tile.param);
    let is_tile = |expr: &Expr| tile.is(expr) || axis.is_some() && expr.as_int() == Some(i128::from(tile.current));
    let mut found = Vec::new();
    for (_, part) in parts_of(grid).iter().enumerate().filter(|(at, _)| axis.is_none_or(|axis| axis == *at)) {
        part.walk(&mut |expr| found.extend(quotient(expr).filter(|(_, by)| is_tile(by)).map(|(of, _)| of)));
    }
    found
}
