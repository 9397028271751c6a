//! The uses of parameters in the text of a kernel: which are pointers, and to what, and which are flags. The analysis
//! includes helpers, also those of other files.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use model::kernel::ast::{Call, Expr, ExprKind, Stmt, StmtKind, argument, walk_statements};
use model::kernel::{Kernel, Link, Module};

use super::expression_parts::{Assigned, last_name};

/// The greatest depth to which names and calls are followed.
const DEEP: usize = 32;

/// A kernel: the index of its file in [`Links`](model::kernel::Links), and its index in the file.
type KernelLocation = (Option<usize>, usize);

/// The uses of the parameters of a kernel.
#[derive(Debug, Default)]
pub(super) struct ParameterUsage<'a> {
    /// Parameters from which the addresses of loads and stores start.
    pub(super) pointers: BTreeSet<&'a str>,
    /// Pointers to values that become part of an address or the bound of a loop.
    pub(super) indices: BTreeSet<&'a str>,
    /// Pointers to pointers.
    pub(super) addresses: BTreeSet<&'a str>,
    /// Numbers that are part of an address or the bound of a loop.
    pub(super) whole: BTreeSet<&'a str>,
    /// Parameters that are tested.
    pub(super) flags: BTreeSet<&'a str>,
    /// Parameters that are compared with strings, with these strings.
    pub(super) strings: HashMap<&'a str, Vec<&'a str>>,
    /// Parameters that are compared with several numbers, with these numbers.
    pub(super) numbers: HashMap<&'a str, Vec<i64>>,
    /// Pointers to values that may be fractional: a load has a fractional `other`, or their element type is used.
    pub(super) floats: BTreeSet<&'a str>,
    /// Parameters that are neither pointers nor numbers: descriptors, tuples.
    pub(super) others: BTreeSet<&'a str>,
    /// Parameters that are used as the type of a conversion.
    pub(super) dtypes: BTreeSet<&'a str>,
}

/// The analysis of kernels, which analyzes each kernel once.
#[derive(Debug)]
pub(super) struct UsageReader<'a> {
    module: &'a Module,
    known: HashMap<KernelLocation, Rc<ParameterUsage<'a>>>,
    /// The depth of nested calls that are being analyzed.
    depth: usize,
}

impl<'a> UsageReader<'a> {
    pub(super) fn new(module: &'a Module) -> Self {
        Self { module, known: HashMap::new(), depth: 0 }
    }

    /// The uses of parameters in a kernel of the file itself.
    pub(super) fn of(&mut self, kernel: &Kernel) -> Rc<ParameterUsage<'a>> {
        let index = self.module.kernels.iter().position(|known| known.span == kernel.span);
        index.map_or_else(Rc::default, |index| self.at((None, index)))
    }

    fn at(&mut self, place: KernelLocation) -> Rc<ParameterUsage<'a>> {
        if let Some(known) = self.known.get(&place) {
            return Rc::clone(known);
        }
        let Some(kernel) = self.file(place.0).and_then(|module| module.kernels.get(place.1)) else {
            return Rc::default();
        };
        if self.depth > DEEP {
            return Rc::default();
        }
        // Recursive calls get this empty result.
        self.known.insert(place, Rc::default());
        self.depth += 1;
        let usage = Rc::new(Body::new(self, place, kernel).read());
        self.depth -= 1;
        self.known.insert(place, Rc::clone(&usage));
        usage
    }

    fn file(&self, at: Option<usize>) -> Option<&'a Module> {
        let module = self.module;
        match at {
            None => Some(module),
            Some(at) => module.links().files().get(at).map(|file| &file.module),
        }
    }

    /// The kernel to which `func` refers in a file.
    fn callee(&self, mut at: Option<usize>, func: &Expr) -> Option<KernelLocation> {
        let parts = func.dotted()?;
        let (first, mut rest) = parts.split_first()?;
        let mut name: &str = first;
        for _ in 0..DEEP {
            match self.module.links().get(at, name) {
                Some(Link::Member { file, name: there }) => (at, name) = (Some(*file), there),
                Some(Link::File(file)) => {
                    let (first, after) = rest.split_first()?;
                    (at, name, rest) = (Some(*file), first, after);
                }
                None => {
                    let is_it = |kernel: &Kernel| kernel.name == name && (!kernel.nested || kernel.conditional);
                    let index = self.file(at)?.kernels.iter().rposition(is_it)?;
                    return rest.is_empty().then_some((at, index));
                }
            }
        }
        None
    }
}

struct Body<'r, 'a> {
    reader: &'r mut UsageReader<'a>,
    place: KernelLocation,
    kernel: &'a Kernel,
    assigned: Assigned<'a>,
    usage: ParameterUsage<'a>,
}

impl<'r, 'a> Body<'r, 'a> {
    fn new(reader: &'r mut UsageReader<'a>, place: KernelLocation, kernel: &'a Kernel) -> Self {
        Self { reader, place, kernel, assigned: Assigned::of(kernel), usage: ParameterUsage::default() }
    }

    fn read(mut self) -> ParameterUsage<'a> {
        let kernel = self.kernel;
        walk_statements(&kernel.body, &mut |stmt| {
            if let StmtKind::If { .. } | StmtKind::While { .. } = stmt.kind {
                stmt.exprs().into_iter().for_each(|test| self.test(test));
            }
            if let StmtKind::For { iter, body, .. } = &stmt.kind {
                let bounds = iter.as_call().map_or(&[][..], |call| &call.args);
                bounds.iter().for_each(|bound| self.index(&bound.value));
                if iter.as_call().is_none_or(|call| last_name(&call.func) != "static_range") {
                    self.look_at_sums(body);
                }
            }
            stmt.exprs().into_iter().for_each(|expr| expr.walk(&mut |expr| self.look(expr)));
        });
        self.usage
    }

    /// A sum in a loop that starts with an integer stays an integer.
    fn look_at_sums(&mut self, body: &'a [Stmt]) {
        walk_statements(body, &mut |stmt| {
            let StmtKind::AugAssign { target, value, .. } = &stmt.kind else { return };
            let values = target.as_name().map_or(&[][..], |name| self.assigned.values(name));
            if values.iter().any(|value| matches!(value.kind, ExprKind::Int(_))) {
                self.index(value);
            }
        });
    }

    /// An expression is part of an address, or bounds something.
    fn index(&mut self, expr: &'a Expr) {
        let parts = self.assigned.parts(expr);
        self.usage.indices.extend(parts.loaded);
        self.usage.whole.extend(parts.scalars);
    }

    fn look(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Call(call) => self.look_at_call(call),
            ExprKind::Attribute { value, name, .. } if name == "element_ty" => {
                let base = match &value.kind {
                    ExprKind::Attribute { value, .. } => value,
                    _ => value,
                };
                let roots = self.assigned.roots(base);
                self.usage.floats.extend(&roots);
                self.usage.pointers.extend(roots);
            }
            ExprKind::IfExp { test, .. } => self.test(test),
            ExprKind::Binary { op, left, right } if matches!(op.as_str(), "<<" | ">>" | "&" | "|" | "^") => {
                self.index(left);
                self.index(right);
            }
            ExprKind::Subscript { value, index } => {
                // The only subscript of a scalar is `x[None]`.
                let is_item =
                    matches!(index.as_slice(), [at] if !matches!(at.kind, ExprKind::None | ExprKind::Slice(_)));
                self.usage
                    .others
                    .extend(value.as_name().filter(|_| is_item).and_then(|name| self.assigned.param(name)));
            }
            ExprKind::Compare { left, rest } => {
                let Some(name) = left.as_name() else { return };
                for (_, other) in rest {
                    let number = other.as_int().and_then(|number| i64::try_from(number).ok());
                    if let (Some(number), true) = (number, rest.iter().all(|(op, _)| op == "==" || op == "!=")) {
                        let known = self.usage.numbers.entry(name).or_default();
                        known.extend((!known.contains(&number)).then_some(number));
                    }
                    let strings: Vec<&'a str> = match &other.kind {
                        ExprKind::Str(text) => vec![text],
                        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().filter_map(string).collect(),
                        _ => continue,
                    };
                    if !strings.is_empty() {
                        self.usage.strings.entry(name).or_default().extend(strings);
                    }
                }
            }
            _ => {}
        }
    }

    fn look_at_call(&mut self, call: &'a Call) {
        if let Some(place) = self.reader.callee(self.place.0, &call.func) {
            return self.look_through(call, place);
        }
        let name = last_name(&call.func);
        let is_access = matches!(name, "load" | "store" | "make_block_ptr" | "make_tensor_descriptor" | "advance")
            || name.starts_with("atomic_");
        if is_access {
            self.look_at_access(call, name);
        }
        match (name, &call.func.kind) {
            ("to", ExprKind::Attribute { value, .. }) => {
                let Some(to) = call.args.first().map(|arg| &arg.value) else { return };
                self.usage.dtypes.extend(to.as_name());
                if to.as_call().is_some_and(|kind| last_name(&kind.func) == "pointer_type") {
                    let parts = self.assigned.parts(value);
                    self.usage.addresses.extend(parts.loaded);
                }
                let is_integer = matches!(last_name(to), "int32" | "int64" | "uint32" | "uint64");
                if is_integer && value.as_call().is_some_and(|load| last_name(&load.func) == "load") {
                    self.index(value);
                }
            }
            ("range" | "static_range", _) => call.args.iter().for_each(|bound| self.index(&bound.value)),
            ("cdiv", _) => call.args.iter().for_each(|part| self.index(&part.value)),
            _ => {}
        }
        if let Some(name) = call.argument("input_precision", None).and_then(Expr::as_name) {
            self.usage.strings.entry(name).or_default().extend(["ieee", "tf32"]);
        }
        let dtype = call.args.iter().find(|arg| arg.keyword.as_ref().is_some_and(|(word, _)| word == "dtype"));
        self.usage.dtypes.extend(dtype.and_then(|arg| arg.value.as_name()));
    }

    fn look_at_access(&mut self, call: &'a Call, name: &str) {
        if let ExprKind::Attribute { value, .. } = &call.func.kind
            && let Some(param) = value.as_name().and_then(|name| self.assigned.param(name))
        {
            self.usage.others.insert(param);
            return;
        }
        let Some(address) = argument(&call.args, "base", Some(0)).or_else(|| call.argument("pointer", None)) else {
            return;
        };
        let roots = self.assigned.roots(address);
        let parts = self.assigned.parts(address);
        let other = call.argument("other", None).map(|other| &other.kind);
        if name == "load" && other.is_some_and(is_float) {
            self.usage.floats.extend(&roots);
        }
        self.usage.indices.extend(parts.loaded.difference(&roots));
        self.usage.whole.extend(parts.scalars.difference(&roots));
        self.usage.pointers.extend(roots);
        if name.starts_with("make_") || name == "advance" {
            call.args.iter().skip(1).for_each(|part| self.index(&part.value));
        }
    }

    /// Applies the uses of a helper's parameters to the arguments of its call.
    fn look_through(&mut self, call: &'a Call, place: KernelLocation) {
        let Some(callee) = self.reader.file(place.0).and_then(|module| module.kernels.get(place.1)) else { return };
        let usage = self.reader.at(place);
        for (at, param) in callee.params.iter().enumerate() {
            let name = param.name.as_str();
            let Some(value) = argument(&call.args, name, Some(at)) else { continue };
            let roots = self.assigned.roots(value);
            if usage.pointers.contains(name) {
                self.usage.pointers.extend(&roots);
            }
            if usage.indices.contains(name) {
                self.usage.indices.extend(&roots);
            }
            if usage.addresses.contains(name) {
                self.usage.addresses.extend(&roots);
            }
            if usage.whole.contains(name) {
                self.index(value);
            }
            if usage.flags.contains(name) {
                self.test(value);
            }
            if let (Some(strings), Some(name)) = (usage.strings.get(name), value.as_name()) {
                self.usage.strings.entry(name).or_default().extend(strings);
            }
            if usage.floats.contains(name) {
                self.usage.floats.extend(&roots);
            }
            if let (Some(numbers), Some(name)) = (usage.numbers.get(name), value.as_name()) {
                self.usage.numbers.entry(name).or_default().extend(numbers);
            }
            if let (true, Some(param)) = (usage.others.contains(name), value.as_name()) {
                self.usage.others.extend(self.assigned.param(param));
            }
            if usage.dtypes.contains(name) {
                self.usage.dtypes.extend(value.as_name());
            }
        }
    }

    fn test(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.usage.flags.extend(self.kernel.param(name).map(|param| param.name.as_str())),
            ExprKind::Unary { operand, .. } => self.test(operand),
            ExprKind::BoolOp { left, right, .. } => {
                self.test(left);
                self.test(right);
            }
            _ => {}
        }
    }
}

/// Whether a value is a float: `0.0`, `-float("inf")`.
fn is_float(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Float(_) => true,
        ExprKind::Unary { operand, .. } => is_float(&operand.kind),
        ExprKind::Call(call) => call.func.as_name() == Some("float"),
        _ => false,
    }
}

fn string(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Str(text) => Some(text),
        _ => None,
    }
}
