//! The input of a rule: a file with its model, and the analyses of its kernels.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use model::analysis::dialect;
use model::analysis::types::{self, AbstractValue, KernelAnalysis};
use model::api::TritonTarget;
use model::host::{Callers, HostRun};
use model::kernel::ast::walk_expressions;
use model::kernel::{Kernel, Module};
use model::syntax::{Source, Span};

use super::known_launch::{AnalysedLaunch, KnownLaunch};

/// The values of a kernel's expressions by span, joined over all iterations of loops and all calls.
pub(super) type SpanValues = FxHashMap<Span, AbstractValue<'static>>;

/// The launches of kernels of the file in some runs of its host code.
fn known_launches<'c, 'a>(
    module: &'a Module,
    runs: impl Iterator<Item = &'c HostRun>,
) -> impl Iterator<Item = KnownLaunch<'c, 'a>> {
    runs.flat_map(|run| run.launches.iter().map(move |passed| (run, passed))).filter_map(|(run, passed)| {
        let launch = module.launches.get(passed.launch).filter(|launch| !launch.has_error)?;
        let kernel = module.kernel(launch.kernel.as_deref()?).filter(|kernel| !kernel.has_error)?;
        Some(KnownLaunch { module, kernel, launch, run, passed })
    })
}

/// The input of a rule: a file with its model, and the analyses of its kernels, which are computed on demand.
#[derive(Clone, Debug)]
pub struct RuleContext<'a> {
    /// The source of the file.
    pub source: &'a Source,
    /// The model of the file.
    pub module: &'a Module,
    /// The Triton version that the file is checked against.
    pub target: TritonTarget,
    path: Option<&'a Path>,
    values: RefCell<FxHashMap<usize, Arc<SpanValues>>>,
    shallow: RefCell<FxHashMap<usize, bool>>,
    facts: OnceCell<Vec<Arc<KernelAnalysis>>>,
    runs: OnceCell<Vec<Arc<HostRun>>>,
    called: OnceCell<Vec<HostRun>>,
    dead: OnceCell<Vec<Span>>,
    other_compiler: OnceCell<bool>,
    asked: Cell<ContextDependencies>,
}

/// Which facts a rule has read that an edit outside of the kernel may change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ContextDependencies {
    /// A line number.
    pub(super) lines: bool,
    /// A fact about the whole file.
    pub(super) everything: bool,
}

impl<'a> RuleContext<'a> {
    /// The context of a file that is checked against a Triton version.
    #[must_use]
    pub fn new(source: &'a Source, module: &'a Module, target: TritonTarget) -> Self {
        let (facts, dead, other_compiler) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (values, shallow) = (RefCell::default(), RefCell::default());
        let (asked, runs, called) = (Cell::default(), OnceCell::new(), OnceCell::new());
        Self { source, module, target, path: None, values, shallow, facts, runs, called, dead, other_compiler, asked }
    }

    /// The certain values of the expressions in the kernel `module.kernels[index]`, by span. Computed on first use.
    pub(super) fn values(&self, index: usize) -> Arc<SpanValues> {
        if types::signature::may_be_in(self.source.text()) {
            // The positions in the file decide which signature comment belongs to which kernel.
            self.ask_everything();
        }
        let known = self.values.borrow().get(&index).cloned();
        known.unwrap_or_else(|| {
            let facts = types::evaluate(self.module, self.source.text(), self.target, index);
            let values = Arc::new(joined(facts.types));
            self.values.borrow_mut().insert(index, Arc::clone(&values));
            values
        })
    }

    /// Whether the kernel `module.kernels[index]` is shallow enough to run patterns on. `find` computes that on first
    /// use.
    pub(super) fn is_shallow(&self, index: usize, find: impl FnOnce() -> bool) -> bool {
        *self.shallow.borrow_mut().entry(index).or_insert_with(find)
    }

    /// The same context with the path of the file, which may show that the file is written for another compiler.
    #[must_use]
    pub fn at(mut self, path: Option<&'a Path>) -> Self {
        self.path = path;
        self
    }

    /// The facts of the type analysis for each kernel, in the order of [`Module::kernels`]. Computed on first use.
    #[must_use]
    pub fn facts(&self) -> &[Arc<KernelAnalysis>] {
        self.ask_everything();
        self.facts.get_or_init(|| {
            let (module, text) = (self.module, self.source.text());
            (0..module.kernels.len()).map(|at| types::facts(module, text, self.target, at)).collect()
        })
    }

    /// The facts of the type analysis for the kernel `module.kernels[index]`.
    #[must_use]
    pub fn facts_of(&self, index: usize) -> Arc<KernelAnalysis> {
        if types::signature::may_be_in(self.source.text()) {
            // The positions in the file decide which signature comment belongs to which kernel.
            self.ask_everything();
        }
        match self.facts.get() {
            Some(facts) => Arc::clone(&facts[index]),
            None => types::facts(self.module, self.source.text(), self.target, index),
        }
    }

    /// The runs of the functions that launch kernels, in the order of [`Module::hosts`], and of the top level where it
    /// launches some. Computed on first use.
    #[must_use]
    pub fn runs(&self) -> &[Arc<HostRun>] {
        self.ask_everything();
        self.all_runs()
    }

    /// The runs of the file's own callers (see [`HostRun::of_callers`]): what its tests and examples pass. Computed on
    /// first use.
    pub(super) fn called_runs(&self) -> &[HostRun] {
        self.ask_everything();
        self.called.get_or_init(|| {
            let (module, source) = (self.module, self.source);
            HostRun::of_callers(module, source.text(), &Callers::of(module, source))
        })
    }

    fn all_runs(&self) -> &[Arc<HostRun>] {
        self.runs.get_or_init(|| HostRun::all(self.module, self.source))
    }

    /// Each launch of a kernel of this file, with the kernel, the kernel's facts and the run of the function around it.
    /// Kernels with syntax errors are left out.
    pub(super) fn launches(&self) -> impl Iterator<Item = AnalysedLaunch<'_, 'a>> {
        self.ask_everything();
        self.analysed(self.all_runs().iter().map(AsRef::as_ref))
    }

    /// The same for the launches that the file's own callers make, with what they pass.
    pub(super) fn called_launches(&self) -> impl Iterator<Item = AnalysedLaunch<'_, 'a>> {
        self.analysed(self.called_runs().iter())
    }

    fn analysed<'c>(&'c self, runs: impl Iterator<Item = &'c HostRun>) -> impl Iterator<Item = AnalysedLaunch<'c, 'a>> {
        known_launches(self.module, runs).filter_map(|known| {
            let at = self.module.kernels.iter().position(|other| other.span == known.kernel.span)?;
            Some(AnalysedLaunch { known, facts: &self.facts()[at], at })
        })
    }

    /// The launches of a kernel of this file.
    pub(super) fn launches_of(&self, kernel: &Kernel) -> impl Iterator<Item = KnownLaunch<'_, 'a>> {
        if self.module.launches.iter().any(|launch| launch.host.is_none()) {
            // The run of the top level depends on all of its statements.
            self.ask_everything();
        }
        let runs = self.all_runs().iter().map(AsRef::as_ref);
        known_launches(self.module, runs).filter(move |known| known.kernel.span == kernel.span)
    }

    /// Whether Triton compiles nothing in this span, under the signatures that comments of the file give.
    #[must_use]
    pub fn is_dead(&self, span: Span) -> bool {
        let dead = self.dead.get_or_init(|| types::dead_code(self.module, self.facts()));
        dead.iter().any(|dead| dead.start <= span.start && span.end <= dead.end)
    }

    /// Whether the text or the path of the file shows that it is written for a compiler other than Triton's own.
    #[must_use]
    pub fn is_for_other_compiler(&self) -> bool {
        self.ask_everything();
        *self.other_compiler.get_or_init(|| {
            // The folders around the file: `_cambricon/ops/all.py`.
            let near = |path: &Path| {
                let parts = path.iter().rev().take(4);
                parts.filter_map(|part| part.to_str()).any(dialect::names_other_compiler)
            };
            self.path.is_some_and(near) || dialect::names_other_compiler(self.source.text())
        })
    }

    /// Whether the file contains one of these words: a cheap test before an analysis.
    #[must_use]
    pub fn file_mentions(&self, words: &[&str]) -> bool {
        let text = self.source.text().as_bytes();
        words.iter().any(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
    }

    /// Whether the kernel's text contains one of these words: a cheap test before an analysis.
    #[must_use]
    pub fn mentions(&self, kernel: &Kernel, words: &[&str]) -> bool {
        let text = self.source.slice(kernel.span).as_bytes();
        words.iter().any(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
    }

    /// A kernel and the helpers of the file that it calls, directly or through others.
    #[must_use]
    pub fn with_helpers(&self, kernel: &'a Kernel) -> Vec<&'a Kernel> {
        let mut all = vec![kernel];
        let mut at = 0;
        while let Some(&current) = all.get(at) {
            at += 1;
            walk_expressions(&current.body, &mut |expr| {
                let callee =
                    expr.as_call().and_then(|call| call.func.as_name()).and_then(|name| self.module.kernel(name));
                all.extend(callee.filter(|callee| all.iter().all(|known| known.span != callee.span)));
            });
        }
        all
    }

    /// The line in which `span` begins, counted from 1.
    #[must_use]
    pub fn line_of(&self, span: Span) -> usize {
        self.asked.set(ContextDependencies { lines: true, ..self.asked.get() });
        self.source.lines().line_of(span.start) + 1
    }

    /// Runs a closure, and returns its result and the facts that it read.
    pub(super) fn asking<T>(&self, run: impl FnOnce() -> T) -> (T, ContextDependencies) {
        let before = self.asked.take();
        let value = run();
        (value, self.asked.replace(before))
    }

    /// Records that a fact about the whole file was read.
    pub(crate) fn ask_everything(&self) {
        self.asked.set(ContextDependencies { everything: true, ..self.asked.get() });
    }
}

/// The value at each span of a kernel, joined over all iterations of loops.
fn joined(types: Vec<(Span, AbstractValue<'static>)>) -> SpanValues {
    let mut values = SpanValues::default();
    for (span, value) in types {
        values.entry(span).and_modify(|known| *known = known.either(&value)).or_insert(value);
    }
    values
}
