//! State of one run over a kernel, and what comes out of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::access::{Access, Division, NamedMask, Product};
use super::coverage::Coverage;
use super::dtype::Number;
use super::index::{About, Atom, Index, Lane, Loop, Poly};
use super::signature::{self, Signature};
use super::value::{Const, Element, Kind, Problem, Tile, Value};
use crate::analysis::launches;
use crate::api::{Certainty, Lookup, MemberKind, Target};
use crate::kernel::ast::Expr;
use crate::kernel::{Kernel, Module, Param};
use crate::syntax::Span;

/// How many expressions one run may look at: what is unrolled without end must end.
const BUDGET: u32 = 60_000;

/// What a run over a kernel found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What Triton will say no to, in the order in which its front end would come by.
    pub problems: Vec<Problem>,
    /// Each expression that was looked at, with what it stands for, in the order of evaluation; kept on demand only. An
    /// expression that is evaluated several times (loops, helpers) is there several times.
    pub types: Vec<(Span, Value<'static>)>,
    /// Loads, stores and atomic operations, in the order of evaluation, each place once for each set of arguments.
    pub accesses: Vec<Access>,
    /// Uses of `tl.dot`.
    pub products: Vec<Product>,
    /// Names that are given a mask.
    pub masks: Vec<NamedMask>,
    /// Uses of `//` and `%` on run-time integers.
    pub divisions: Vec<Division>,
    /// Where the variable of a loop at run time is read behind the loop, with the head of the loop.
    pub stale: Vec<(Span, Span)>,
    /// Each `tl.arange`, by the number in [`Atom::Lane`](super::index::Atom::Lane).
    pub lanes: Vec<Lane>,
    /// Each loop at run time, by the number in [`Atom::Loop`](super::index::Atom::Loop).
    pub loops: Vec<Loop>,
    /// Which code was compiled.
    pub coverage: Coverage,
}

/// Runs over the kernel `module.kernels[index]` of the file `text`. With `trace`, the facts hold the types of all
/// expressions.
#[must_use]
pub fn infer<'a>(module: &'a Module, text: &'a str, target: Target, index: usize, trace: bool) -> Facts {
    let Some(kernel) = module.kernels.get(index) else { return Facts::default() };
    run(module, text, target, (index, kernel), trace, signature::of(module, kernel, text).as_ref(), false)
}

/// The same for parameters of the types and values that `signature` says, noting what is computed in 32 bits.
#[must_use]
pub fn infer_as<'a>(module: &'a Module, text: &'a str, target: Target, index: usize, signature: &Signature) -> Facts {
    let Some(kernel) = module.kernels.get(index) else { return Facts::default() };
    run(module, text, target, (index, kernel), false, Some(signature), true)
}

fn run<'a>(
    module: &'a Module,
    text: &'a str,
    target: Target,
    (index, kernel): (usize, &'a Kernel),
    trace: bool,
    signature: Option<&Signature>,
    notes_width: bool,
) -> Facts {
    let mut engine = Engine {
        module,
        text,
        target,
        versions: Versions::of(target),
        facts: Facts::default(),
        trace,
        budget: BUDGET,
        running: vec![index],
        calls: Vec::new(),
        results: HashMap::new(),
        uncertain: 0,
        branches: 0,
        around: Vec::new(),
        others: 0,
        has_left: false,
        notes_width,
        pointers: super::access::pointers(module, kernel),
    };
    let mut frame = Frame::new(kernel, true);
    engine.facts.coverage.signed = signature.is_some();
    for param in &kernel.params[engine.positional_only(kernel)..] {
        // Up to 3.8 the front end does not see these at all.
        if param.keyword_only && engine.since(9) == Some(false) {
            continue;
        }
        let value = engine.parameter(kernel, param, signature);
        frame.names.insert(&param.name, value);
    }
    engine.header(kernel);
    engine.body(&kernel.body, &mut frame);
    engine.facts
}

/// The minor releases of Triton 3 that the file may meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions {
    low: u32,
    high: u32,
}

impl Versions {
    fn of(target: Target) -> Self {
        let (major, minor) = target.table.version.series();
        match target.certainty {
            Certainty::Known if major == 3 => Self { low: minor, high: minor },
            _ => Self { low: 0, high: u32::MAX },
        }
    }

    /// Whether the release is 3.`minor` or newer; `None` when that is not known.
    pub(super) fn since(self, minor: u32) -> Option<bool> {
        if self.low >= minor {
            Some(true)
        } else if self.high < minor {
            Some(false)
        } else {
            None
        }
    }
}

/// The names of one function while it runs.
pub(super) struct Frame<'a> {
    pub(super) kernel: &'a Kernel,
    /// Values of local names. A name that is not there is not bound; one that may be bound is [`Value::Unknown`].
    pub(super) names: HashMap<&'a str, Value<'a>>,
    /// Variables of loops at run time that have ended, with the head of the loop.
    pub(super) stale: HashMap<&'a str, Span>,
    /// How many run-time loops are around.
    pub(super) loops: u32,
    /// How many branches and loops whose condition is known at run time only are around.
    pub(super) regions: u32,
    /// What is returned, once something is.
    pub(super) returned: Option<Value<'a>>,
    /// Whether the host launches it.
    pub(super) is_launched: bool,
    /// Whether something that the analysis does not follow may have bound names.
    pub(super) is_opaque: bool,
}

impl<'a> Frame<'a> {
    pub(super) fn new(kernel: &'a Kernel, is_launched: bool) -> Self {
        Self {
            kernel,
            names: HashMap::new(),
            stale: HashMap::new(),
            loops: 0,
            regions: 0,
            returned: None,
            is_launched,
            is_opaque: kernel.has_error,
        }
    }
}

pub(super) struct Engine<'a> {
    pub(super) module: &'a Module,
    pub(super) text: &'a str,
    pub(super) target: Target,
    pub(super) versions: Versions,
    pub(super) facts: Facts,
    pub(super) trace: bool,
    pub(super) budget: u32,
    /// The kernels that are being run, by index, outermost first.
    pub(super) running: Vec<usize>,
    /// What the helpers that are being run were called with.
    pub(super) calls: Vec<(usize, Vec<Value<'a>>)>,
    /// What helpers gave for arguments that they were called with.
    pub(super) results: HashMap<usize, Vec<(Vec<Value<'a>>, Value<'a>)>>,
    /// How many branches are around that may or may not be compiled.
    pub(super) uncertain: u32,
    /// How many branches at run time are around.
    pub(super) branches: u32,
    /// The loops at run time that are around, by number.
    pub(super) around: Vec<u32>,
    /// How many integers have no other name.
    pub(super) others: u32,
    /// Whether a `return` that only some programs reach was passed.
    pub(super) has_left: bool,
    /// Whether indices note which parts of them are computed in 32 bits.
    pub(super) notes_width: bool,
    /// Parameters that are, or become by adding offsets, pointers of loads and stores.
    pub(super) pointers: HashSet<&'a str>,
}

impl<'a> Engine<'a> {
    /// Reports a problem, once.
    pub(super) fn problem(&mut self, kind: Kind, span: Span, message: impl Into<String>) {
        self.problem_with(kind, span, message, Vec::new());
    }

    /// Reports a problem with places that explain it, once.
    pub(super) fn problem_with(
        &mut self,
        kind: Kind,
        span: Span,
        message: impl Into<String>,
        related: Vec<(Span, String)>,
    ) {
        let is_new = |known: &Problem| known.kind != kind || known.span != span;
        if self.budget > 0 && self.facts.problems.iter().all(is_new) {
            self.facts.problems.push(Problem { kind, span, message: message.into(), related });
        }
    }

    /// Notes that Triton compiles a branch or an operand that it might have skipped.
    pub(super) fn enter(&mut self, span: Span) {
        if self.facts.coverage.signed {
            self.facts.coverage.entered.insert(span);
        }
    }

    /// Notes that Triton skips a branch or an operand.
    pub(super) fn prune(&mut self, span: Span) {
        if self.facts.coverage.signed && self.uncertain == 0 {
            self.facts.coverage.pruned.insert(span);
        }
    }

    /// Whether a member of Triton is a function of the compiler, which is not written in Triton.
    pub(super) fn is_builtin(&self, path: &str) -> bool {
        matches!(self.target.lookup(path), Lookup::Found(member) if member.kind == MemberKind::Builtin)
    }

    /// Whether a member of Triton is a function or a module.
    pub(super) fn is_function(&self, path: &str) -> bool {
        let kinds = [MemberKind::Builtin, MemberKind::Jit, MemberKind::Function, MemberKind::Module];
        path.starts_with("triton.language.")
            && matches!(self.target.lookup(path), Lookup::Found(member) if kinds.contains(&member.kind))
    }

    /// Counts one step. Returns whether there is budget left.
    pub(super) fn step(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    /// Whether a name of the release may be asked for: `Some(true)` from 3.`minor` on.
    pub(super) fn since(&self, minor: u32) -> Option<bool> {
        self.versions.since(minor)
    }

    /// What a parameter of the kernel itself stands for.
    fn parameter(&mut self, kernel: &'a Kernel, param: &'a Param, signature: Option<&Signature>) -> Value<'a> {
        if param.variadic {
            return Value::Unknown;
        }
        if let Some(value) = signature.and_then(|signature| signature.value(&param.name)) {
            return match value {
                Value::Tile(tile) => Value::Tile(tile.knowing(self.about_parameter(&param.name))),
                value => value,
            };
        }
        // What a signature leaves out has its default, if that is there.
        if signature.is_some()
            && let Some(default) = &param.default
            && let Some(value) = signature::literal(default)
        {
            return Value::Const(value);
        }
        // A helper may get a tile for it all the same: the annotation alone is no promise there.
        if param.constexpr && self.module.called_in_kernels().contains(&kernel.name) {
            return Value::Unknown;
        }
        if param.constexpr {
            return self.constant_parameter(kernel, param);
        }
        if !self.trace && !launches::certainly_launched(self.module, kernel) {
            return Value::Unknown;
        }
        let about = self.about_parameter(&param.name);
        if self.is_dereferenced(kernel, &param.name) {
            return Value::Tile(Tile::new(Element::Pointer(None), Some(Arc::default())).knowing(about));
        }
        Value::Opaque(about)
    }

    /// A parameter as an integer, or as the start of a pointer.
    fn about_parameter(&self, name: &str) -> About {
        let name: Arc<str> = name.into();
        if self.pointers.contains(&*name) {
            return About::Index(Arc::new(Index {
                base: Some(name),
                poly: Poly::default(),
                axes: Vec::new(),
                narrow: Vec::new(),
            }));
        }
        About::scalar(Poly::atom(Atom::Param(name)))
    }

    /// The number of a `tl.arange`.
    pub(super) fn lane(&mut self, span: Span, start: Option<i128>, size: &super::shape::Dim) -> u32 {
        let lane = Lane { span, start, size: size.clone() };
        let at = self.facts.lanes.iter().position(|known| *known == lane).unwrap_or_else(|| {
            self.facts.lanes.push(lane);
            self.facts.lanes.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// An integer without another name.
    pub(super) fn other(&mut self) -> Atom {
        self.others += 1;
        Atom::Other(self.others)
    }

    /// A constant that all launches of the file agree on, else a symbol.
    fn constant_parameter(&self, kernel: &'a Kernel, param: &'a Param) -> Value<'a> {
        let used_as_size = param.name.chars().any(|c| c.is_ascii_uppercase());
        let settings = launches::settings(self.module, kernel);
        let mut values = settings.iter().map(|setting| setting.value(&param.name).map(|(value, _)| value));
        if let Some(Some(first)) = values.next()
            && values.all(|value| value == Some(first))
            && used_as_size
        {
            return Value::int(first);
        }
        if super::access::is_size(self.module, kernel, &param.name) {
            return Value::Const(Const::Symbol(super::shape::Symbol::of(&param.name)));
        }
        // A helper may get a tile for what it calls `offsets: tl.constexpr`.
        if !used_as_size && !launches::certainly_launched(self.module, kernel) {
            return Value::Unknown;
        }
        // It may be a flag, a dtype, a name.
        Value::Opaque(About::scalar(Poly::atom(Atom::Param(param.name.as_str().into()))))
    }

    /// Whether the kernel passes this parameter itself, or a sum with it, as the pointer of a load or store.
    fn is_dereferenced(&self, kernel: &'a Kernel, name: &str) -> bool {
        fn leftmost(expr: &Expr) -> Option<&str> {
            use crate::kernel::ast::ExprKind;
            match &expr.kind {
                ExprKind::Name(name) => Some(name),
                ExprKind::Binary { op, left, .. } if op == "+" => leftmost(left),
                _ => None,
            }
        }
        let mut found = false;
        // In a branch it may be one for some calls only.
        let unconditional = kernel.body.iter().filter(|stmt| stmt.bodies().is_empty());
        let values = unconditional.flat_map(crate::kernel::ast::Stmt::exprs);
        let mut look = |expr: &'a Expr| {
            if let Some(call) = expr.as_call()
                && let Some(member) = self.module.language_member(kernel, &call.func)
                && (matches!(member.as_str(), "load" | "store") || member.starts_with("atomic_"))
                && let Some(pointer) = call.args.first()
            {
                found |= leftmost(&pointer.value) == Some(name);
            }
        };
        values.for_each(|expr| expr.walk(&mut look));
        found
    }

    /// The number type of a value as an operand; a constant has the type that it gets at run time.
    pub(super) fn number_of(value: &Value<'a>) -> Option<Number> {
        match value {
            Value::Tile(tile) => tile.element.number(),
            Value::Const(Const::Bool(_)) => Some(Number::Int1),
            Value::Const(Const::Int(value)) => Number::of_int(*value),
            Value::Const(Const::Float(value)) => Some(Number::of_float(*value)),
            _ => None,
        }
    }
}
