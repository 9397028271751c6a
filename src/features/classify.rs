//! What kind of thing each variable of a kernel is: constexpr, pointer, tile.
//!
//! [`classes`] is all that others use. It goes by how values are used, not by types: a parameter is a pointer when its
//! address is loaded from or stored to, and what nothing tells apart is left out.

use std::collections::{HashMap, HashSet};

use crate::analysis::launches::certainly_launched;
use crate::kernel::ast::{Call, Expr, ExprKind, StmtKind, walk_expressions, walk_statements};
use crate::kernel::{Kernel, Module};

/// What is known about a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// It is known when the kernel is compiled.
    pub constexpr: bool,
    /// It is a pointer, or a tile of pointers.
    pub pointer: bool,
    /// It is a tile.
    pub tile: bool,
}

/// Functions of `triton.language` whose first argument is a pointer.
const ACCESSES: &[&str] = &[
    "load",
    "store",
    "make_block_ptr",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
];

/// Functions of `triton.language` whose result is always a tile.
const TILES: &[&str] = &["arange", "zeros", "full", "dot", "expand_dims", "broadcast_to"];

/// Functions of `triton.language` whose result has the shape that all of their arguments have together.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "cast",
    "ceil",
    "cos",
    "exp",
    "exp2",
    "floor",
    "log",
    "log2",
    "maximum",
    "minimum",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "where",
    "zeros_like",
    "max_contiguous",
    "multiple_of",
];

/// What is known about the variables of `kernel`, by name.
#[must_use]
pub fn classes<'a>(module: &'a Module, kernel: &'a Kernel) -> HashMap<&'a str, Class> {
    let assigned = assignments(kernel);
    let mut uses = Uses { module, kernel, assigned: &assigned, numbers: HashSet::new(), pointers: HashSet::new() };
    uses.read();
    let Uses { pointers, numbers, .. } = uses;
    // Only what the host passes is certainly no tile.
    let launched = certainly_launched(module, kernel);
    let mut classes: HashMap<&str, Class> = HashMap::new();
    for param in &kernel.params {
        let pointer = !param.constexpr && pointers.contains(param.name.as_str());
        let number = launched && numbers.contains(param.name.as_str());
        if param.constexpr || pointer || number {
            classes.insert(&param.name, Class { constexpr: param.constexpr, pointer, tile: false });
        }
    }
    for name in super::complete::constexpr_locals(kernel) {
        classes.entry(name).or_default().constexpr = true;
    }
    // What a variable is follows from what it is assigned; chains of assignments are short.
    for _ in 0..4 {
        let before = classes.clone();
        for (name, values) in &assigned {
            if kernel.param(name).is_some() || before.get(name).is_some_and(|class| class.constexpr) {
                continue;
            }
            let shape = |value: &Option<&Expr>| value.and_then(|value| Shape::of(value, module, kernel, &before));
            if let Some(shape) = values.iter().map(shape).reduce(|a, b| if a == b { a } else { None }).flatten() {
                let class = Class { constexpr: false, pointer: shape.pointer, tile: shape.tile };
                classes.insert(name, class);
            } else {
                classes.remove(name);
            }
        }
        if classes == before {
            break;
        }
    }
    for name in pointers {
        classes.entry(name).or_insert(Class { pointer: true, ..Class::default() });
    }
    classes
}

type Assigned<'a> = HashMap<&'a str, Vec<Option<&'a Expr>>>;

/// What is assigned to each name; `None` for what the model does not say. A change in place counts for its name's shape.
fn assignments(kernel: &Kernel) -> Assigned<'_> {
    let mut assigned: Assigned<'_> = HashMap::new();
    walk_statements(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value, .. } => {
            for target in targets {
                match &target.kind {
                    ExprKind::Name(name) => assigned.entry(name).or_default().push(value.as_ref()),
                    _ => target.walk(&mut |part| {
                        if let ExprKind::Name(name) = &part.kind {
                            assigned.entry(name).or_default().push(None);
                        }
                    }),
                }
            }
        }
        StmtKind::For { target, .. } => target.walk(&mut |part| {
            if let ExprKind::Name(name) = &part.kind {
                assigned.entry(name).or_default().push(None);
            }
        }),
        _ => {}
    });
    assigned
}

/// How the names of a kernel are used.
struct Uses<'a, 'm> {
    module: &'a Module,
    kernel: &'a Kernel,
    assigned: &'m Assigned<'a>,
    /// Names that are multiplied or compared: no pointers.
    numbers: HashSet<&'a str>,
    /// Names that are addresses.
    pointers: HashSet<&'a str>,
}

impl<'a> Uses<'a, '_> {
    fn read(&mut self) {
        let mut addresses = Vec::new();
        let (module, kernel) = (self.module, self.kernel);
        let mut numbers = HashSet::new();
        walk_expressions(&kernel.body, &mut |expr| match &expr.kind {
            ExprKind::Binary { op, left, right } if op != "+" && op != "-" => {
                numbers.extend([left, right].into_iter().filter_map(|side| side.as_name()));
            }
            ExprKind::Compare { left, rest } => {
                let right = rest.iter().map(|(_, right)| right);
                let sides = std::iter::once(left.as_ref()).chain(right);
                // `p is None` and `p == None` ask for a pointer that may be left out.
                if !rest.iter().any(|(op, right)| op.starts_with("is") || matches!(right.kind, ExprKind::None)) {
                    numbers.extend(sides.filter_map(Expr::as_name));
                }
            }
            ExprKind::Call(call) if member(module, kernel, call).is_some_and(|name| ACCESSES.contains(&&*name)) => {
                addresses.extend(call.args.first().map(|arg| &arg.value));
            }
            _ => {}
        });
        self.numbers = numbers;
        addresses.into_iter().for_each(|address| self.address(address));
    }

    /// Notes whose address `expr` is.
    fn address(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Name(name) => {
                if !self.pointers.insert(name) {
                    return;
                }
                let values = self.assigned.get(name.as_str()).cloned().unwrap_or_default();
                values.into_iter().flatten().for_each(|value| self.address(value));
            }
            ExprKind::Binary { op, left, right } if op == "+" || op == "-" => {
                let (on_left, on_right) = (self.may_be_pointer(left, 0), self.may_be_pointer(right, 0));
                match (on_left, on_right) {
                    (true, false) => self.address(left),
                    (false, true) => self.address(right),
                    _ => {}
                }
            }
            ExprKind::IfExp { body, orelse, .. } => {
                self.address(body);
                self.address(orelse);
            }
            ExprKind::Call(call) => {
                let is_same = matches!(member(self.module, self.kernel, call).as_deref(), Some("advance" | "where"));
                if is_same {
                    call.args.iter().for_each(|arg| {
                        if self.may_be_pointer(&arg.value, 0) {
                            self.address(&arg.value);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    fn may_be_pointer(&self, expr: &Expr, depth: usize) -> bool {
        match &expr.kind {
            ExprKind::Name(name) if self.numbers.contains(name.as_str()) || depth > 8 => false,
            ExprKind::Name(name) if self.pointers.contains(name.as_str()) => true,
            ExprKind::Name(name) => match self.kernel.param(name) {
                Some(param) => !param.constexpr,
                None => self.assigned.get(name.as_str()).is_some_and(|values| {
                    values.iter().any(|value| value.is_some_and(|value| self.may_be_pointer(value, depth + 1)))
                }),
            },
            ExprKind::Binary { op, left, right } if op == "+" || op == "-" => {
                self.may_be_pointer(left, depth + 1) || self.may_be_pointer(right, depth + 1)
            }
            ExprKind::IfExp { body, orelse, .. } => {
                self.may_be_pointer(body, depth + 1) || self.may_be_pointer(orelse, depth + 1)
            }
            ExprKind::Subscript { value, .. } => self.may_be_pointer(value, depth + 1),
            _ => false,
        }
    }
}

/// What an expression is, as far as its shape tells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    pointer: bool,
    tile: bool,
}

impl Shape {
    fn of(expr: &Expr, module: &Module, kernel: &Kernel, classes: &HashMap<&str, Class>) -> Option<Self> {
        let of = |expr: &Expr| Self::of(expr, module, kernel, classes);
        let number = Some(Self { pointer: false, tile: false });
        match &expr.kind {
            ExprKind::Name(name) => {
                let class = classes.get(name.as_str())?;
                Some(Self { pointer: class.pointer, tile: class.tile })
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => number,
            ExprKind::Binary { op, left, right } => match (of(left), of(right)) {
                (Some(left), Some(right)) => Some(left.with(right)),
                // A tile stays one, whatever it meets; only sums may be pointers.
                (Some(one), None) | (None, Some(one)) => Some(one).filter(|one| one.tile && op != "+" && op != "-"),
                (None, None) => None,
            },
            ExprKind::Compare { left, rest } => {
                let right = rest.iter().map(|(_, right)| right);
                let sides: Vec<Self> = std::iter::once(left.as_ref()).chain(right).filter_map(of).collect();
                let tile = sides.iter().any(|side| side.tile);
                (tile || sides.len() == rest.len() + 1).then_some(Self { pointer: false, tile })
            }
            ExprKind::Unary { operand, .. } => of(operand),
            ExprKind::Subscript { value, index } => {
                let adds_axes = index.iter().any(|index| matches!(index.kind, ExprKind::None));
                of(value).filter(|shape| shape.tile && adds_axes)
            }
            ExprKind::Call(call) => Self::of_call(call, module, kernel, classes),
            _ => None,
        }
    }

    fn of_call(call: &Call, module: &Module, kernel: &Kernel, classes: &HashMap<&str, Class>) -> Option<Self> {
        let of = |expr: &Expr| Self::of(expr, module, kernel, classes);
        if let ExprKind::Attribute { value, name, .. } = &call.func.kind
            && name == "to"
        {
            return of(value).filter(|shape| !shape.pointer);
        }
        let name = member(module, kernel, call)?;
        let first = || call.args.first().and_then(|arg| of(&arg.value));
        match name.as_str() {
            "program_id" | "num_programs" | "cdiv" => Some(Self { pointer: false, tile: false }),
            "load" => first().filter(|shape| shape.pointer).map(|shape| Self { pointer: false, ..shape }),
            name if TILES.contains(&name) => Some(Self { pointer: false, tile: true }),
            name if ELEMENTWISE.contains(&name) => {
                let values = call.args.iter().filter(|arg| arg.keyword.is_none());
                let known: Vec<Self> = values.filter_map(|arg| of(&arg.value)).collect();
                // One tile among the arguments is enough: the result is as large.
                let tile = known.iter().any(|shape| shape.tile);
                tile.then_some(Self { pointer: known.iter().any(|shape| shape.pointer), tile })
            }
            _ => None,
        }
    }

    fn with(self, other: Self) -> Self {
        Self { pointer: self.pointer || other.pointer, tile: self.tile || other.tile }
    }
}

/// The member of `triton.language` that is called.
fn member(module: &Module, kernel: &Kernel, call: &Call) -> Option<String> {
    module.language_member(kernel, &call.func)
}
