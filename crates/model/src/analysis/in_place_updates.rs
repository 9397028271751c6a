//! The tensors that a kernel modifies in place, by writing back a changed value or by atomic additions. Running such a
//! kernel twice gives another result than running it once.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::expressions::alike;
use crate::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, walk_expressions, walk_statements};
use crate::kernel::{Kernel, Module};
use crate::syntax::Span;

/// An update of the tensor that a pointer parameter points to.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<'a> {
    /// The parameter.
    pub param: &'a str,
    /// Span of the store or the atomic addition.
    pub span: Span,
    /// Span of the load whose value is written back; `None` for an atomic addition.
    pub load: Option<Span>,
}

/// The certain updates of `kernel`, at most one for each parameter, in source order.
#[must_use]
pub fn updates<'a>(module: &'a Module, kernel: &'a Kernel) -> Vec<Update<'a>> {
    updates_through(module, kernel, 0)
}

/// The same for a helper that is called by `depth` others.
fn updates_through<'a>(module: &'a Module, kernel: &'a Kernel, depth: usize) -> Vec<Update<'a>> {
    let mut walk = Walk {
        module,
        kernel,
        depth,
        roots: Roots::new(module, kernel),
        versions: HashMap::default(),
        carried: HashMap::default(),
        loads: Vec::new(),
        touched: HashSet::default(),
        guards: Vec::new(),
        found: Vec::new(),
    };
    walk.block(&kernel.body);
    let mut found = walk.found;
    found.extend(additions(module, kernel, &walk.roots));
    let mut seen = HashSet::default();
    found.sort_by_key(|update| update.span);
    found.retain(|update| seen.insert(update.param));
    found
}

/// Atomic additions whose results are unused, to tensors that the kernel writes in no other way on the same path.
fn additions<'a>(module: &'a Module, kernel: &'a Kernel, roots: &Roots<'a>) -> Vec<Update<'a>> {
    let (mut added, mut written) = (Vec::new(), Vec::new());
    let mut unused = HashSet::default();
    walk_statements(&kernel.body, &mut |stmt| {
        if let StmtKind::Expr(expr) = &stmt.kind {
            unused.insert(expr.span);
        }
    });
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let Some(root) = call.argument("pointer", Some(0)).and_then(|pointer| roots.of(pointer, 0)) else { return };
        match module.language_member(kernel, &call.func).as_deref() {
            Some("atomic_add") if unused.contains(&expr.span) => added.push((root, expr.span)),
            Some("load") | None => {}
            Some(_) => written.push((root, expr.span)),
        }
    });
    added.retain(|(root, span)| {
        written.iter().all(|(other, at)| other != root || are_exclusive(&kernel.body, *span, *at))
    });
    added.into_iter().map(|(param, span)| Update { param, span, load: None }).collect()
}

/// Whether two places are in different branches of one `if`, so that a program runs one of them at most.
fn are_exclusive(body: &[Stmt], one: Span, other: Span) -> bool {
    let mut found = false;
    walk_statements(body, &mut |stmt| {
        if let StmtKind::If { branches, orelse } = &stmt.kind {
            let of = |span: Span| {
                let holds = |body: &[Stmt]| body.iter().any(|stmt| stmt.span.contains(span));
                branches.iter().map(|(_, body)| body).chain([orelse]).position(|body| holds(body))
            };
            found |= matches!((of(one), of(other)), (Some(one), Some(other)) if one != other);
        }
    });
    found
}

/// The pointer parameters from which pointers are computed.
struct Roots<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    values: HashMap<&'a str, Vec<&'a Expr>>,
    /// Names that are bound in another way, such as by loops and tuples.
    unclear: HashSet<String>,
}

impl<'a> Roots<'a> {
    fn new(module: &'a Module, kernel: &'a Kernel) -> Self {
        let (mut values, mut unclear): (HashMap<&str, Vec<&Expr>>, _) = (HashMap::default(), HashSet::default());
        let mut obscure = |target: &Expr| {
            target.walk(&mut |inner| {
                if let Some(name) = inner.as_name() {
                    unclear.insert(name.to_owned());
                }
            });
        };
        walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, value, .. } => {
                for target in targets {
                    match (target.as_name(), value) {
                        (Some(name), Some(value)) => values.entry(name).or_default().push(value),
                        (None, Some(_)) if matches!(target.kind, ExprKind::Tuple(_) | ExprKind::List(_)) => {
                            obscure(target);
                        }
                        _ => {}
                    }
                }
            }
            StmtKind::For { target, .. } => obscure(target),
            _ => {}
        });
        Self { module, kernel, values, unclear }
    }

    fn of(&self, pointer: &'a Expr, depth: usize) -> Option<&'a str> {
        if depth > 12 {
            return None;
        }
        match &pointer.kind {
            ExprKind::Name(name) => self.of_name(name, depth),
            ExprKind::Binary { op, left, right } if op == "+" => {
                self.of(left, depth + 1).or_else(|| self.of(right, depth + 1))
            }
            ExprKind::Binary { op, left, .. } if op == "-" => self.of(left, depth + 1),
            ExprKind::Call(call) => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if name == "to" => self.of(value, depth + 1),
                _ => {
                    let same = ["advance", "cast", "make_block_ptr", "max_contiguous", "multiple_of", "broadcast_to"];
                    let member = self.module.language_member(self.kernel, &call.func)?;
                    same.contains(&member.as_str()).then(|| self.of(&call.args.first()?.value, depth + 1))?
                }
            },
            _ => None,
        }
    }

    fn of_name(&self, name: &'a str, depth: usize) -> Option<&'a str> {
        if self.unclear.contains(name) {
            return None;
        }
        let is_param = self.kernel.param(name).is_some_and(|param| !param.constexpr && !param.variadic);
        let mut root = is_param.then_some(name);
        for value in self.values.get(name).into_iter().flatten() {
            // `p = p + step` still points into the same tensor.
            if value.mentions(name) {
                continue;
            }
            let found = self.of(value, depth + 1)?;
            if root.is_some_and(|root| root != found) {
                return None;
            }
            root = Some(found);
        }
        root
    }
}

/// A load from a tensor that the kernel has not written before.
struct Load<'a> {
    root: &'a str,
    address: &'a Expr,
    /// For each name in the address, how often it had been bound.
    versions: Vec<(&'a str, usize)>,
    span: Span,
    /// The conditions around the load.
    guards: Vec<Span>,
}

/// The largest number of loads that a value is followed to. More of them hide an update.
const MOST: usize = 16;

/// Helpers that call each other deeper than this are not followed.
const MAX_CALLS: usize = 3;

/// The loads from which a value comes, each with whether arithmetic has changed it since.
type Carried = Vec<(usize, bool)>;

/// Walks a kernel in source order. Where branches join, the last one is taken, which can only hide an update.
struct Walk<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    /// The number of calls around the kernel.
    depth: usize,
    roots: Roots<'a>,
    versions: HashMap<&'a str, usize>,
    carried: HashMap<&'a str, Carried>,
    loads: Vec<Load<'a>>,
    /// Tensors that were written so far, or passed to a function that may write them.
    touched: HashSet<&'a str>,
    guards: Vec<Span>,
    found: Vec<Update<'a>>,
}

impl<'a> Walk<'a> {
    fn block(&mut self, body: &'a [Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                let carried = self.eval(value);
                targets.iter().for_each(|target| self.bind(target, &carried));
            }
            StmtKind::AugAssign { target, op, value } => {
                let (left, right) = (self.eval(target), self.eval(value));
                let carried = combine(op, left, right, is_condition(value));
                self.bind(target, &carried);
            }
            StmtKind::If { branches, orelse } => {
                // What one branch writes, another does not see.
                let before = self.touched.clone();
                let mut after = before.clone();
                for (test, body) in branches {
                    self.eval(test);
                    self.guarded(test, body);
                    after.extend(std::mem::replace(&mut self.touched, before.clone()));
                }
                if let Some((test, _)) = branches.last() {
                    self.guarded(test, orelse);
                }
                self.touched.extend(after);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.eval(iter);
                self.bind(target, &Vec::new());
                self.block(body);
                self.block(orelse);
            }
            StmtKind::While { test, body, orelse } => {
                self.eval(test);
                self.block(body);
                self.block(orelse);
            }
            _ => {
                for expr in stmt.exprs() {
                    self.eval(expr);
                }
                for body in stmt.bodies() {
                    self.guards.push(stmt.span);
                    self.block(body);
                    self.guards.pop();
                }
            }
        }
    }

    /// Visits a branch. Under a condition on parameters alone, a launch runs either all of the branch or nothing.
    fn guarded(&mut self, test: &'a Expr, body: &'a [Stmt]) {
        let mut by_params = true;
        test.walk(&mut |inner| {
            by_params &= inner
                .as_name()
                .is_none_or(|name| self.kernel.param(name).is_some() && !self.versions.contains_key(name))
                && !matches!(inner.kind, ExprKind::Call(_));
        });
        if !by_params {
            let span = body.first().map_or(test.span, |first| first.span);
            self.guards.push(span);
        }
        self.block(body);
        if !by_params {
            self.guards.pop();
        }
    }

    fn bind(&mut self, target: &'a Expr, carried: &Carried) {
        target.walk(&mut |inner| {
            if let Some(name) = inner.as_name() {
                *self.versions.entry(name).or_default() += 1;
                self.carried.insert(name, carried.clone());
            }
        });
    }

    fn eval(&mut self, expr: &'a Expr) -> Carried {
        match &expr.kind {
            ExprKind::Name(name) => self.carried.get(name.as_str()).cloned().unwrap_or_default(),
            ExprKind::Binary { op, left, right } => {
                let condition = is_condition(left) || is_condition(right);
                let (left, right) = (self.eval(left), self.eval(right));
                combine(op, left, right, condition)
            }
            ExprKind::Compare { .. } | ExprKind::BoolOp { .. } => {
                expr.children().into_iter().for_each(|child| drop(self.eval(child)));
                Vec::new()
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::Lambda { .. } | ExprKind::Comprehension { .. } => Vec::new(),
            _ => {
                let parts: Vec<_> = expr.children().into_iter().map(|child| self.eval(child)).collect();
                join(parts, false)
            }
        }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Carried {
        let member = self.module.language_member(self.kernel, &call.func);
        let pointer = call.argument("pointer", Some(0));
        match (member.as_deref(), pointer) {
            (Some("load"), Some(pointer)) => {
                call.args.iter().for_each(|arg| drop(self.eval(&arg.value)));
                return self.load(expr, pointer).map_or_else(Vec::new, |load| vec![(load, false)]);
            }
            (Some("store"), Some(pointer)) => {
                let value = call.argument("value", Some(1)).map(|value| self.eval(value)).unwrap_or_default();
                self.store(expr, pointer, &value);
                return Vec::new();
            }
            _ => {}
        }
        self.helper(expr, call);
        let receiver = match &call.func.kind {
            ExprKind::Attribute { value, .. } if member.is_none() => self.eval(value),
            _ => Vec::new(),
        };
        let mut parts = vec![receiver];
        parts.extend(call.args.iter().map(|arg| self.eval(&arg.value)));
        let reads_only = member.as_deref().is_some_and(|name| !name.starts_with("atomic"));
        if !reads_only {
            let roots: Vec<_> = call.args.iter().filter_map(|arg| self.roots.of(&arg.value, 0)).collect();
            self.touched.extend(roots);
        }
        if matches!(member.as_deref(), Some("arange" | "zeros" | "zeros_like" | "full" | "program_id")) {
            return Vec::new();
        }
        join(parts, matches!(member.as_deref(), Some("dot" | "exp" | "exp2" | "log" | "log2" | "sqrt" | "rsqrt")))
    }

    /// Adds what a helper of the file updates through the pointers that it gets.
    fn helper(&mut self, expr: &'a Expr, call: &'a Call) {
        let callee = call.func.as_name().and_then(|name| self.module.kernel(name)).filter(|_| self.depth < MAX_CALLS);
        let Some(callee) = callee.filter(|callee| !callee.has_error && callee.span != self.kernel.span) else { return };
        for update in updates_through(self.module, callee, self.depth + 1) {
            let at = callee.params.iter().position(|param| param.name == update.param);
            let root = call.argument(update.param, at).and_then(|pointer| self.roots.of(pointer, 0));
            if let Some(root) = root.filter(|root| !self.touched.contains(root)) {
                self.found.push(Update { param: root, span: expr.span, load: None });
            }
        }
    }

    fn load(&mut self, expr: &'a Expr, address: &'a Expr) -> Option<usize> {
        let root = self.roots.of(address, 0).filter(|root| !self.touched.contains(root))?;
        let versions = self.versions_of(address);
        self.loads.push(Load { root, address, versions, span: expr.span, guards: self.guards.clone() });
        Some(self.loads.len() - 1)
    }

    fn store(&mut self, expr: &'a Expr, address: &'a Expr, value: &Carried) {
        let Some(root) = self.roots.of(address, 0) else { return };
        let versions = self.versions_of(address);
        let update = value.iter().filter(|(_, changed)| *changed).map(|(load, _)| &self.loads[*load]).find(|load| {
            load.root == root
                && alike(load.address, address)
                && load.versions == versions
                && self.guards.starts_with(&load.guards)
        });
        if let Some(load) = update {
            self.found.push(Update { param: root, span: expr.span, load: Some(load.span) });
        }
        self.touched.insert(root);
    }

    fn versions_of(&self, address: &'a Expr) -> Vec<(&'a str, usize)> {
        let mut versions = Vec::new();
        address.walk(&mut |inner| {
            if let Some(name) = inner.as_name() {
                versions.push((name, self.versions.get(name).copied().unwrap_or(0)));
            }
        });
        versions
    }
}

fn combine(op: &str, left: Carried, right: Carried, condition: bool) -> Carried {
    // `x * (x > 0)` selects; `x / sum(x)` of something normalized changes nothing.
    let changes =
        matches!(op, "+" | "-" | "*" | "/") && !condition && !(op == "/" && !left.is_empty() && !right.is_empty());
    join(vec![left, right], changes)
}

fn is_condition(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Compare { .. } | ExprKind::BoolOp { .. })
}

fn join(parts: Vec<Carried>, changes: bool) -> Carried {
    let mut joined: Carried = Vec::new();
    for (load, changed) in parts.into_iter().flatten() {
        let changed = changed || changes;
        match joined.iter().position(|(known, _)| *known == load) {
            Some(at) => joined[at].1 |= changed,
            None if joined.len() < MOST => joined.push((load, changed)),
            None => {}
        }
    }
    joined
}

#[cfg(test)]
mod tests;
