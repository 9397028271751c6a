//! A dataflow analysis of the expressions in a kernel: the pointers that an address starts from, the pointers that are
//! loaded from, and the parameters that are used.

use std::collections::{BTreeSet, HashMap, HashSet};

use model::kernel::Kernel;
use model::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_statements};

/// The sources of an expression's value.
#[derive(Default)]
pub(super) struct Parts<'a> {
    /// Pointers whose elements are loaded.
    pub(super) loaded: BTreeSet<&'a str>,
    /// Parameters themselves.
    pub(super) scalars: BTreeSet<&'a str>,
}

/// The assignments in the text of a kernel.
pub(super) struct Assigned<'a> {
    kernel: &'a Kernel,
    values: HashMap<&'a str, Vec<&'a Expr>>,
    /// The values of augmented assignments such as `name += …`, which turn no name into a pointer.
    added: HashMap<&'a str, Vec<&'a Expr>>,
}

impl<'a> Assigned<'a> {
    pub(super) fn of(kernel: &'a Kernel) -> Self {
        let mut all = Self { kernel, values: HashMap::new(), added: HashMap::new() };
        walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { targets, value: Some(value), .. } => {
                targets.iter().for_each(|target| all.assign(target, value));
            }
            StmtKind::AugAssign { target, value, .. } => {
                let added = target.as_name().map(|name| all.added.entry(name).or_default());
                added.into_iter().for_each(|added| added.push(value));
            }
            _ => {}
        });
        all
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        match (&target.kind, &value.kind) {
            (ExprKind::Name(name), _) => self.values.entry(name).or_default().push(value),
            (ExprKind::Tuple(targets), ExprKind::Tuple(values)) => {
                targets.iter().zip(values).for_each(|(target, value)| self.assign(target, value));
            }
            _ => {}
        }
    }

    /// The values that are assigned to a name.
    pub(super) fn values(&self, name: &str) -> &[&'a Expr] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The run-time parameter that has this name, if any.
    pub(super) fn param(&self, name: &str) -> Option<&'a str> {
        let kernel = self.kernel;
        kernel.param(name).filter(|param| !param.constexpr).map(|param| param.name.as_str())
    }

    /// The parameters that an address may start from.
    pub(super) fn roots(&self, expr: &'a Expr) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        self.roots_into(expr, &mut HashSet::new(), &mut found);
        found
    }

    fn roots_into(&self, expr: &'a Expr, seen: &mut HashSet<&'a str>, found: &mut BTreeSet<&'a str>) {
        match &expr.kind {
            ExprKind::Name(name) => {
                if self.kernel.param(name).is_some() {
                    found.extend(self.param(name));
                } else if seen.insert(name) {
                    let before = found.len();
                    for value in self.values.get(name.as_str()).into_iter().flatten() {
                        self.roots_into(value, seen, found);
                    }
                    // The first assignment may be an offset, to which a pointer is added later.
                    let added = self.added.get(name.as_str()).filter(|_| found.len() == before);
                    for value in added.into_iter().flatten() {
                        self.roots_into(value, seen, found);
                    }
                }
            }
            ExprKind::Binary { op, left, right } if op == "+" || op == "-" => {
                let before = found.len();
                self.roots_into(left, seen, found);
                if found.len() == before {
                    self.roots_into(right, seen, found);
                }
            }
            ExprKind::IfExp { body, orelse, .. } => {
                self.roots_into(body, seen, found);
                self.roots_into(orelse, seen, found);
            }
            ExprKind::Subscript { value, .. } => self.roots_into(value, seen, found),
            ExprKind::Call(call) => match (last_name(&call.func), &call.func.kind) {
                ("to", ExprKind::Attribute { value, .. }) => self.roots_into(value, seen, found),
                ("where", _) => call.args.iter().skip(1).for_each(|arg| self.roots_into(&arg.value, seen, found)),
                ("multiple_of" | "max_contiguous" | "advance" | "make_block_ptr" | "make_tensor_descriptor", _) => {
                    if let Some(base) = call.argument("base", Some(0)) {
                        self.roots_into(base, seen, found);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The sources of an expression's value.
    pub(super) fn parts(&self, expr: &'a Expr) -> Parts<'a> {
        let mut parts = Parts::default();
        self.parts_into(expr, &mut HashSet::new(), &mut parts);
        parts
    }

    fn parts_into(&self, expr: &'a Expr, seen: &mut HashSet<&'a str>, parts: &mut Parts<'a>) {
        match &expr.kind {
            ExprKind::Call(call) if last_name(&call.func) == "load" => {
                parts.loaded.extend(call.args.first().map(|address| self.roots(&address.value)).unwrap_or_default());
            }
            ExprKind::Name(name) if seen.insert(name) => {
                parts.scalars.extend(self.param(name));
                let assigned = self.values.get(name.as_str()).filter(|_| self.kernel.param(name).is_none());
                for value in assigned.into_iter().chain(self.added.get(name.as_str())).flatten() {
                    self.parts_into(value, seen, parts);
                }
            }
            ExprKind::Call(call) if is_fractional(call) => {}
            ExprKind::Binary { op, .. } if op == "/" => {}
            // A comparison is a number, whatever its operands are.
            ExprKind::Compare { .. } | ExprKind::Attribute { .. } => {}
            ExprKind::Call(call) => {
                // The object of a method call is a source, too.
                if let ExprKind::Attribute { value, .. } = &call.func.kind {
                    self.parts_into(value, seen, parts);
                }
                call.args.iter().for_each(|arg| self.parts_into(&arg.value, seen, parts));
            }
            _ => expr.each_child(&mut |child| self.parts_into(child, seen, parts)),
        }
    }
}

/// The name of a called function, without the part before the last dot.
pub(super) fn last_name(func: &Expr) -> &str {
    match &func.kind {
        ExprKind::Attribute { name, .. } | ExprKind::Name(name) => name,
        _ => "",
    }
}

/// Whether a function returns fractional numbers.
fn is_fractional(call: &Call) -> bool {
    const NAMES: &[&str] = &[
        "dot",
        "dot_scaled",
        "exp",
        "exp2",
        "log",
        "log2",
        "sigmoid",
        "softmax",
        "sqrt",
        "sqrt_rn",
        "rsqrt",
        "sin",
        "cos",
        "tanh",
        "erf",
        "div_rn",
        "fdiv",
        "rand",
        "randn",
    ];
    let name = last_name(&call.func);
    let to = call.args.first().filter(|_| name == "to").map_or("", |arg| last_name(&arg.value));
    NAMES.contains(&name) || to.starts_with("float") || to == "bfloat16"
}
