//! State of one run over a kernel, and what comes out of it.

use rustc_hash::FxHashMap as HashMap;

use super::access::{Access, Division, NamedMask, Product};
use super::coverage::Coverage;
use super::dtype::Number;
use super::index::{Atom, Lane, Loop};
use super::parameters::Roles;
use super::signature::{self, Signature};
use super::value::{Const, Kind, Problem, Value};
use crate::api::{Certainty, Lookup, MemberKind, Target};
use crate::kernel::{Kernel, Links, Module};
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
    let traced = if trace { Trace::Likely } else { Trace::No };
    run(module, text, target, (index, kernel), traced, signature::of(module, kernel, text).as_ref(), false)
}

/// The same as [`infer`] with the types of all expressions, where they are certain: for a function that nobody launches, nothing is
/// taken for granted about its parameters.
#[must_use]
pub fn evaluate<'a>(module: &'a Module, text: &'a str, target: Target, index: usize) -> Facts {
    let Some(kernel) = module.kernels.get(index) else { return Facts::default() };
    run(module, text, target, (index, kernel), Trace::Certain, signature::of(module, kernel, text).as_ref(), false)
}

/// The same for parameters of the types and values that `signature` says, noting what is computed in 32 bits.
#[must_use]
pub fn infer_as<'a>(module: &'a Module, text: &'a str, target: Target, index: usize, signature: &Signature) -> Facts {
    let Some(kernel) = module.kernels.get(index) else { return Facts::default() };
    run(module, text, target, (index, kernel), Trace::No, Some(signature), true)
}

fn run<'a>(
    module: &'a Module,
    text: &'a str,
    target: Target,
    (index, kernel): (usize, &'a Kernel),
    trace: Trace,
    signature: Option<&Signature>,
    notes_width: bool,
) -> Facts {
    let mut engine = Engine {
        module,
        text,
        links: module.links(),
        root: (module, text),
        file: None,
        silent: 0,
        refused: 0,
        target,
        versions: Versions::of(target),
        facts: Facts::default(),
        trace,
        budget: BUDGET,
        running: vec![(None, index)],
        calls: Vec::new(),
        results: HashMap::default(),
        uncertain: 0,
        branches: 0,
        around: Vec::new(),
        others: 0,
        has_left: false,
        notes_width,
        roles: Roles::of(module, kernel),
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

/// Whether the types of expressions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// They are not.
    No,
    /// They are, to be shown: a kernel that nobody launches is taken to be launched.
    Likely,
    /// They are, as far as they are certain.
    Certain,
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
            names: HashMap::default(),
            stale: HashMap::default(),
            loops: 0,
            regions: 0,
            returned: None,
            is_launched,
            is_opaque: kernel.has_error,
        }
    }
}

/// A kernel by the number of its file (`None` for the one that is looked at) and its index there.
pub(super) type Place = (Option<usize>, usize);

/// The arguments of a call, and what came of it.
pub(super) type Call<'a> = (Vec<Value<'a>>, Value<'a>);

pub(super) struct Engine<'a> {
    /// The file of the function that is being run.
    pub(super) module: &'a Module,
    /// Its text.
    pub(super) text: &'a str,
    /// Its number in `links`; `None` for the file of the kernel.
    pub(super) file: Option<usize>,
    /// What is imported.
    pub(super) links: &'a Links,
    /// The file of the kernel.
    pub(super) root: (&'a Module, &'a str),
    /// How many functions are being run of which nothing is noted but what they return.
    pub(super) silent: u32,
    /// How often a global was met that kernels cannot use.
    pub(super) refused: u32,
    pub(super) target: Target,
    pub(super) versions: Versions,
    pub(super) facts: Facts,
    pub(super) trace: Trace,
    pub(super) budget: u32,
    /// The kernels that are being run, by file and index, outermost first.
    pub(super) running: Vec<Place>,
    /// What the helpers that are being run were called with.
    pub(super) calls: Vec<(Place, Vec<Value<'a>>)>,
    /// What helpers gave for arguments that they were called with.
    pub(super) results: HashMap<Place, Vec<Call<'a>>>,
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
    /// What the parameters of the kernel are used for.
    pub(super) roles: Roles<'a>,
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
        if self.notes() && self.facts.problems.iter().all(is_new) {
            self.facts.problems.push(Problem { kind, span, message: message.into(), related });
        }
    }

    /// Notes that Triton compiles a branch or an operand that it might have skipped.
    pub(super) fn enter(&mut self, span: Span) {
        if self.silent == 0 && self.facts.coverage.signed {
            self.facts.coverage.entered.insert(span);
        }
    }

    /// Notes that Triton skips a branch or an operand.
    pub(super) fn prune(&mut self, span: Span) {
        if self.silent == 0 && self.facts.coverage.signed && self.uncertain == 0 {
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

    /// Whether what is found is noted.
    pub(super) fn notes(&self) -> bool {
        self.budget > 0 && self.silent == 0
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
