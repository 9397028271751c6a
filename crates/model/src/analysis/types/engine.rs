//! The state of one abstract run of a kernel, and its results.

use rustc_hash::FxHashMap as HashMap;

use super::dtype::Dtype;
use super::index::{Atom, Lane};
use super::kernel_analysis::KernelAnalysis;
use super::roles::Roles;
use super::signature::{self, SignatureComment};
use super::value::{AbstractValue, Const, Problem, ProblemKind};
use crate::api::{Lookup, MemberKind, TritonTarget, VersionCertainty};
use crate::kernel::{Kernel, Links, Module};
use crate::syntax::Span;

/// The number of expressions that one run may evaluate, so that endless unrolling ends.
const BUDGET: u32 = 60_000;

/// Runs the kernel `module.kernels[index]` of the file `text`. With `trace`, the facts contain the types of all
/// expressions.
#[must_use]
pub fn infer<'a>(module: &'a Module, text: &'a str, target: TritonTarget, index: usize, trace: bool) -> KernelAnalysis {
    let Some(kernel) = module.kernels.get(index) else { return KernelAnalysis::default() };
    let traced = if trace { Trace::Likely } else { Trace::No };
    run(module, text, target, (index, kernel), traced, signature::of(module, kernel, text).as_ref(), false)
}

/// The same as [`infer`] with the types of all expressions, where they are certain: if the file does not launch the
/// function, nothing is assumed about its parameters.
#[must_use]
pub fn evaluate<'a>(module: &'a Module, text: &'a str, target: TritonTarget, index: usize) -> KernelAnalysis {
    let Some(kernel) = module.kernels.get(index) else { return KernelAnalysis::default() };
    run(module, text, target, (index, kernel), Trace::Certain, signature::of(module, kernel, text).as_ref(), false)
}

/// The same for parameters with the types and values of `signature`. Records which operations are computed in 32 bits.
#[must_use]
pub fn infer_as<'a>(
    module: &'a Module,
    text: &'a str,
    target: TritonTarget,
    index: usize,
    signature: &SignatureComment,
) -> KernelAnalysis {
    let Some(kernel) = module.kernels.get(index) else { return KernelAnalysis::default() };
    run(module, text, target, (index, kernel), Trace::No, Some(signature), true)
}

fn run<'a>(
    module: &'a Module,
    text: &'a str,
    target: TritonTarget,
    (index, kernel): (usize, &'a Kernel),
    trace: Trace,
    signature: Option<&SignatureComment>,
    notes_width: bool,
) -> KernelAnalysis {
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
        facts: KernelAnalysis::default(),
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
        roles: Roles::of(module, text, kernel),
    };
    let mut frame = Frame::new(kernel, true);
    engine.facts.coverage.signed = signature.is_some();
    for param in &kernel.params[engine.positional_only(kernel)..] {
        // Up to 3.8 the front end ignores keyword-only parameters.
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

/// Whether the types of expressions are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// They are not recorded.
    No,
    /// They are recorded for display: a kernel that the file does not launch is assumed to be launched.
    Likely,
    /// They are recorded where they are certain.
    Certain,
}

/// The range of minor releases of Triton 3 under which the file may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions {
    low: u32,
    high: u32,
}

impl Versions {
    fn of(target: TritonTarget) -> Self {
        let (major, minor) = target.table.version.series();
        match target.certainty {
            VersionCertainty::Known if major == 3 => Self { low: minor, high: minor },
            _ => Self { low: 0, high: u32::MAX },
        }
    }

    /// Whether the release is 3.`minor` or newer; `None` when it may be either.
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

/// The scope of one function while it runs.
pub(super) struct Frame<'a> {
    pub(super) kernel: &'a Kernel,
    /// Values of local names. A missing name is not bound; a name that may be bound is [`AbstractValue::Unknown`].
    pub(super) names: HashMap<&'a str, AbstractValue<'a>>,
    /// Variables of run-time loops that have ended, with the span of the loop's head.
    pub(super) stale: HashMap<&'a str, Span>,
    /// The number of run-time loops around the current statement.
    pub(super) loops: u32,
    /// The number of run-time branches and loops around the current statement.
    pub(super) regions: u32,
    /// The value that the function returns, once a `return` was reached.
    pub(super) returned: Option<AbstractValue<'a>>,
    /// Whether the host launches it.
    pub(super) is_launched: bool,
    /// Whether code that the analysis does not follow may have bound names.
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

/// A kernel, by the index of its file (`None` for the analysed file) and its index there.
pub(super) type KernelRef = (Option<usize>, usize);

/// The arguments of a call and its result.
pub(super) type CallTrace<'a> = (Vec<AbstractValue<'a>>, AbstractValue<'a>);

pub(super) struct Engine<'a> {
    /// The file of the current function.
    pub(super) module: &'a Module,
    /// The text of that file.
    pub(super) text: &'a str,
    /// The index of that file in `links`; `None` for the file of the kernel.
    pub(super) file: Option<usize>,
    /// The files that the kernel reaches through imports.
    pub(super) links: &'a Links,
    /// The file of the kernel, with its text.
    pub(super) root: (&'a Module, &'a str),
    /// The number of active functions of which only the result is used, and nothing is recorded.
    pub(super) silent: u32,
    /// The number of uses so far of a global that kernels cannot use.
    pub(super) refused: u32,
    pub(super) target: TritonTarget,
    pub(super) versions: Versions,
    pub(super) facts: KernelAnalysis,
    pub(super) trace: Trace,
    pub(super) budget: u32,
    /// The active kernels, by file and index, outermost first.
    pub(super) running: Vec<KernelRef>,
    /// The arguments of the active helpers.
    pub(super) calls: Vec<(KernelRef, Vec<AbstractValue<'a>>)>,
    /// Results of helpers by their arguments.
    pub(super) results: HashMap<KernelRef, Vec<CallTrace<'a>>>,
    /// The number of branches around the current statement that may not be compiled.
    pub(super) uncertain: u32,
    /// The number of run-time branches around the current statement.
    pub(super) branches: u32,
    /// The run-time loops around the current statement, by index.
    pub(super) around: Vec<u32>,
    /// The number of atoms [`Atom::Other`] so far.
    pub(super) others: u32,
    /// Whether a `return` was passed that only some programs reach.
    pub(super) has_left: bool,
    /// Whether indices record which parts of them are computed in 32 bits.
    pub(super) notes_width: bool,
    /// The uses of the kernel's parameters.
    pub(super) roles: Roles<'a>,
}

impl<'a> Engine<'a> {
    /// Reports a problem, unless it was reported before.
    pub(super) fn problem(&mut self, kind: ProblemKind, span: Span, message: impl Into<String>) {
        self.problem_with(kind, span, message, Vec::new());
    }

    /// Reports a problem with spans that explain it, unless it was reported before.
    pub(super) fn problem_with(
        &mut self,
        kind: ProblemKind,
        span: Span,
        message: impl Into<String>,
        related: Vec<(Span, String)>,
    ) {
        let is_new = |known: &Problem| known.kind != kind || known.span != span;
        if self.notes() && self.facts.problems.iter().all(is_new) {
            self.facts.problems.push(Problem { kind, span, message: message.into(), related });
        }
    }

    /// Records that Triton compiles a branch or an operand that it might have pruned.
    pub(super) fn enter(&mut self, span: Span) {
        if self.silent == 0 && self.facts.coverage.signed {
            self.facts.coverage.entered.insert(span);
        }
    }

    /// Records that Triton prunes a branch or an operand.
    pub(super) fn prune(&mut self, span: Span) {
        if self.silent == 0 && self.facts.coverage.signed && self.uncertain == 0 {
            self.facts.coverage.pruned.insert(span);
        }
    }

    /// Whether `path` is a builtin of the compiler, as opposed to a function written in Triton.
    pub(super) fn is_builtin(&self, path: &str) -> bool {
        matches!(self.target.lookup(path), Lookup::Found(member) if member.kind == MemberKind::Builtin)
    }

    /// Whether `path` is a function or a module of Triton.
    pub(super) fn is_function(&self, path: &str) -> bool {
        let kinds = [MemberKind::Builtin, MemberKind::Jit, MemberKind::Function, MemberKind::Module];
        path.starts_with("triton.language.")
            && matches!(self.target.lookup(path), Lookup::Found(member) if kinds.contains(&member.kind))
    }

    /// Whether findings are recorded.
    pub(super) fn notes(&self) -> bool {
        self.budget > 0 && self.silent == 0
    }

    /// Counts one step against the budget. Returns whether budget is left.
    pub(super) fn step(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    /// Whether the release is 3.`minor` or newer; `None` when it may be either.
    pub(super) fn since(&self, minor: u32) -> Option<bool> {
        self.versions.since(minor)
    }

    /// The index of a `tl.arange`, which is added if it is new.
    pub(super) fn lane(&mut self, span: Span, start: Option<i128>, size: &super::shape::Dim) -> u32 {
        let lane = Lane { span, start, size: size.clone() };
        let at = self.facts.lanes.iter().position(|known| *known == lane).unwrap_or_else(|| {
            self.facts.lanes.push(lane);
            self.facts.lanes.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// A new atom for an integer that cannot be expressed otherwise.
    pub(super) fn other(&mut self) -> Atom {
        self.others += 1;
        Atom::Other(self.others)
    }

    /// The number type of a value as an operand. A constant has the type that it would get at run time.
    pub(super) fn number_of(value: &AbstractValue<'a>) -> Option<Dtype> {
        match value {
            AbstractValue::Tile(tile) => tile.element.number(),
            AbstractValue::Const(Const::Bool(_)) => Some(Dtype::Int1),
            AbstractValue::Const(Const::Int(value)) => Dtype::of_int(*value),
            AbstractValue::Const(Const::Float(value)) => Some(Dtype::of_float(*value)),
            _ => None,
        }
    }
}
