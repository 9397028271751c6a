//! The rule engine: runs the selected rules over one file.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use model::analysis::dialect;
use model::analysis::types::{self, KernelAnalysis};
use model::api::TritonTarget;
use model::kernel::{Kernel, Module};
use model::syntax::{Source, Span};

use super::RULES;
use super::declaration::{FAMILIES, Rule};
use super::diagnostic::Diagnostic;
use super::learned::{self, LearnedRules, SpanValues};
use super::reconcile::reconcile;
use super::suppression::Suppressions;

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
    memory: &'a LearnedRules,
    values: RefCell<FxHashMap<usize, Arc<SpanValues>>>,
    shallow: RefCell<FxHashMap<usize, bool>>,
    facts: OnceCell<Vec<Arc<KernelAnalysis>>>,
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
    /// The context of a file that is checked against a Triton version, with the learned rules that ship with Warpsmith.
    #[must_use]
    pub fn new(source: &'a Source, module: &'a Module, target: TritonTarget) -> Self {
        let (facts, dead, other_compiler) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (memory, values, shallow) = (LearnedRules::shipped(), RefCell::default(), RefCell::default());
        let asked = Cell::default();
        Self { source, module, target, path: None, memory, values, shallow, facts, dead, other_compiler, asked }
    }

    /// The same context with other learned rules.
    #[must_use]
    pub fn with_memory(mut self, memory: &'a LearnedRules) -> Self {
        self.memory = memory;
        self
    }

    /// The learned rules in use.
    #[must_use]
    pub fn memory(&self) -> &'a LearnedRules {
        self.memory
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
            let values = Arc::new(learned::joined(facts.types));
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

    /// Whether the kernel's text contains one of these words: a cheap test before an analysis.
    #[must_use]
    pub fn mentions(&self, kernel: &Kernel, words: &[&str]) -> bool {
        let text = self.source.slice(kernel.span).as_bytes();
        words.iter().any(|word| memchr::memmem::find(text, word.as_bytes()).is_some())
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

/// The list to which rules add their findings.
#[derive(Debug)]
pub struct Findings<'a> {
    out: &'a mut Vec<Diagnostic>,
}

impl Findings<'_> {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    /// Adds several findings.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.out.extend(diagnostics);
    }
}

/// The selection of rules, by codes, code prefixes (`L`, `L00`) or names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The rules to run; all rules when empty.
    pub select: Vec<String>,
    /// The rules to leave out, unless `select` names them by a longer match.
    pub ignore: Vec<String>,
}

impl Selection {
    /// Whether `rule` runs. The longer match among `select` and `ignore` decides; on a tie, `ignore` does.
    #[must_use]
    pub fn includes(&self, rule: &Rule) -> bool {
        self.includes_named(rule.declaration.code, rule.declaration.name)
    }

    /// Whether the rule with this code and name runs.
    #[must_use]
    pub fn includes_named(&self, code: &str, name: &str) -> bool {
        let strength = |patterns: &[String]| {
            patterns.iter().filter(|pattern| matches(pattern, code, name)).map(|pattern| pattern.len()).max()
        };
        let selected = if self.select.is_empty() { Some(0) } else { strength(&self.select) };
        match (selected, strength(&self.ignore)) {
            (Some(selected), Some(ignored)) => selected > ignored,
            (selected, None) => selected.is_some(),
            (None, _) => false,
        }
    }

    /// The entries that match no rule and no family.
    #[must_use]
    pub fn unknown(&self) -> Vec<&str> {
        let family = |pattern: &str| pattern.len() == 1 && FAMILIES.contains(&pattern.to_ascii_uppercase());
        let built_in =
            |pattern: &str| RULES.iter().any(|rule| matches(pattern, rule.declaration.code, rule.declaration.name));
        // The user's own learned rules are not known here, so every code of the family S counts as known, and so do the
        // names of the learned rules that ship with Warpsmith.
        let learned = |pattern: &str| {
            let digits = pattern.strip_prefix(['S', 's']).unwrap_or_default();
            let is_code = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_code || LearnedRules::shipped().rules().any(|rule| rule.name == pattern)
        };
        let unknown = |pattern: &&String| !family(pattern) && !built_in(pattern) && !learned(pattern);
        self.select.iter().chain(&self.ignore).filter(unknown).map(String::as_str).collect()
    }
}

/// Whether a pattern matches a rule; `all` matches every rule.
fn matches(pattern: &str, code: &str, name: &str) -> bool {
    pattern == name
        || pattern.eq_ignore_ascii_case("all")
        || (!pattern.is_empty() && code.to_ascii_lowercase().starts_with(&pattern.to_ascii_lowercase()))
}

/// The findings of the selected rules in one file, in source order, without the suppressed ones.
#[must_use]
pub fn check(context: &RuleContext<'_>, selection: &Selection) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if context.module.kernels.is_empty() && context.module.launches.is_empty() {
        return out;
    }
    for rule in RULES.iter().filter(|rule| selection.includes(rule)) {
        (rule.check)(context, &mut Findings { out: &mut out });
    }
    out.extend(learned::find(context, selection));
    if !out.is_empty() {
        let suppressions = Suppressions::read(context.source);
        out.retain(|diagnostic| !suppressions.cover(diagnostic, context.source));
        // Code that no kernel compiles cannot violate rules about the language.
        out.retain(|diagnostic| !diagnostic.code.starts_with(['L', 'S']) || !context.is_dead(diagnostic.span));
        reconcile(context, &mut out);
    }
    out.sort_by(|a, b| (a.span, a.code).cmp(&(b.span, b.code)));
    out.dedup();
    out
}
