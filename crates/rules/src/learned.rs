//! Family S: rules that were learned from failures. Each rule is data: a sentence, a pattern, the error that it
//! predicts, and the Triton releases on which a reproducer was run.
//!
//! - [`LearnedRule`]: a rule; [`parse`], [`write`]: memory files,
//! - [`Pattern`]: a tree-sitter query with [`predicates`] over the kernel model,
//! - [`LearnedRules`]: the rules that are in use; their patterns run as one query.
//!
//! The rules that ship with Warpsmith are in `config/skill-memory.toml`, with their patterns in `queries/learned/`; the
//! user's own rules are in the store.

mod advice;
mod compiled_branches;
mod file;
mod kernel_view;
mod page;
mod pattern;
mod predicates;
mod prefilter;
mod probe;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

pub use file::{MemoryError, Patterns, check, parse, write};
use pattern::PatternSet;
pub use pattern::{Match, Pattern, PatternError};
pub use probe::Probe;
use rule::fill;
pub use rule::{FIRST_OWN, LearnedRule, Releases, RuleOrigin, RuleState, number};

pub use model::api::TritonError;

use super::context::RuleContext;
use super::declaration::Severity;
use super::diagnostic::Diagnostic;
use super::selection::Selection;

/// The memory file that ships with Warpsmith.
const SHIPPED: &str = include_str!("../../../config/skill-memory.toml");

// `SHIPPED_PATTERNS`: names and texts of the files in `queries/learned`.
include!(concat!(env!("OUT_DIR"), "/learned_patterns.rs"));

/// The learned rules in use.
#[derive(Clone, Debug)]
pub struct LearnedRules {
    entries: Arc<[Entry]>,
    /// Codes of rules that are not shown, whatever their state: muted, or disproved on this machine.
    hidden: BTreeSet<String>,
    /// A hash of the rules that may be shown, for the cache of findings.
    key: u64,
    shown: Arc<OnceLock<Option<Matcher>>>,
    proven: Arc<OnceLock<Option<Matcher>>>,
}

#[derive(Debug)]
struct Entry {
    rule: LearnedRule,
    code: &'static str,
    name: &'static str,
}

/// The patterns of some rules as one query.
#[derive(Debug)]
struct Matcher {
    set: PatternSet,
    /// For each text of the query, the index of its rule.
    rules: Vec<usize>,
}

impl LearnedRules {
    /// The rules that ship with Warpsmith.
    #[must_use]
    pub fn shipped() -> &'static Self {
        static MEMORY: LazyLock<LearnedRules> = LazyLock::new(|| {
            let pattern = |name: &str| {
                SHIPPED_PATTERNS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
            };
            LearnedRules::of_sound(file::read(SHIPPED, &pattern).expect("what is shipped is tested"))
        });
        &MEMORY
    }

    /// A memory of these rules. The last rule of each code counts; rules that fail [`check`] are left out.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = LearnedRule>) -> Self {
        Self::of_sound(rules.into_iter().filter(|rule| check(rule).is_ok()))
    }

    /// The same for rules that were checked before, which saves the time to compile each pattern.
    pub fn of_sound(rules: impl IntoIterator<Item = LearnedRule>) -> Self {
        let rules = rules.into_iter();
        let by_code: BTreeMap<u32, LearnedRule> = rules.filter_map(|rule| Some((number(&rule.code)?, rule))).collect();
        let mut hasher = DefaultHasher::new();
        for rule in by_code.values().filter(|rule| rule.is_shown()) {
            (&rule.code, &rule.name, &rule.pattern, &rule.sentence, &rule.error.message).hash(&mut hasher);
        }
        let entry = |rule: LearnedRule| Entry { code: interned(&rule.code), name: interned(&rule.name), rule };
        Self {
            entries: by_code.into_values().map(entry).collect(),
            hidden: BTreeSet::new(),
            key: hasher.finish(),
            shown: Arc::default(),
            proven: Arc::default(),
        }
    }

    /// The same memory, which hides the rules of these codes, and no others.
    #[must_use]
    pub fn hiding(&self, codes: impl IntoIterator<Item = String>) -> Self {
        Self { hidden: codes.into_iter().collect(), ..self.clone() }
    }

    /// The same memory, which hides one more rule.
    #[must_use]
    pub fn muting(&self, code: &str) -> Self {
        let mut muted = self.clone();
        muted.hidden.insert(code.to_owned());
        muted
    }

    /// The same memory with a rule demoted, because a kernel that it flags compiles.
    #[must_use]
    pub fn demoting(&self, code: &str) -> Self {
        let demoted = |rule: &LearnedRule| {
            let is_it = rule.code == code && rule.state == RuleState::Promoted;
            LearnedRule { state: if is_it { RuleState::Demoted } else { rule.state }, ..rule.clone() }
        };
        Self::of_sound(self.rules().map(demoted)).hiding(self.hidden.clone())
    }

    /// The same memory with the compiled patterns of another one, if that has the same rules.
    #[must_use]
    pub fn reusing(mut self, other: &Self) -> Self {
        if self.rules().eq(other.rules()) {
            self.shown = Arc::clone(&other.shown);
            self.proven = Arc::clone(&other.proven);
        }
        self
    }

    /// A memory without rules.
    #[must_use]
    pub fn empty() -> &'static Self {
        static EMPTY: LazyLock<LearnedRules> = LazyLock::new(|| LearnedRules::new([]));
        &EMPTY
    }

    /// Compiles the patterns of all rules that may be shown into one query, so that the first kernel need not wait.
    pub fn prepare(&self) {
        self.shown.get_or_init(|| Matcher::of(&self.entries, LearnedRule::is_shown));
    }

    /// All rules, in the order of their codes.
    pub fn rules(&self) -> impl Iterator<Item = &LearnedRule> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// The rule with this code or name.
    #[must_use]
    pub fn find(&self, code_or_name: &str) -> Option<&LearnedRule> {
        self.rules().find(|rule| rule.code.eq_ignore_ascii_case(code_or_name) || rule.name == code_or_name)
    }

    /// Whether the findings of a rule are shown, on a release to which it applies.
    #[must_use]
    pub fn shows(&self, rule: &LearnedRule) -> bool {
        rule.is_shown() && !self.hidden.contains(&rule.code)
    }

    /// The matches of the promoted rules in the kernel `context.module.kernels[index]` on the release of the context,
    /// whether or not they are shown.
    #[must_use]
    pub fn proven_in(&self, context: &RuleContext<'_>, index: usize) -> Vec<(&LearnedRule, Match)> {
        let is_wanted = |rule: &LearnedRule| rule.state == RuleState::Promoted;
        let matcher = self.proven.get_or_init(|| Matcher::of(&self.entries, is_wanted));
        let found = matcher.iter().flat_map(|matcher| matcher.run(context, index));
        let found = found.map(|(at, found)| (&self.entries[at].rule, found));
        found.filter(|(rule, _)| rule.triton.hold_for(context.target)).collect()
    }

    /// The findings of the rules that may be shown in a kernel, whatever the release.
    fn shown_in(&self, context: &RuleContext<'_>, index: usize) -> Vec<Diagnostic> {
        let matcher = self.shown.get_or_init(|| Matcher::of(&self.entries, LearnedRule::is_shown));
        let found = matcher.iter().flat_map(|matcher| matcher.run(context, index));
        found.map(|(at, found)| self.entries[at].diagnostic(context, &found)).collect()
    }
}

impl Matcher {
    fn of(entries: &[Entry], is_wanted: impl Fn(&LearnedRule) -> bool) -> Option<Self> {
        let rules: Vec<usize> = (0..entries.len())
            .filter(|&at| is_wanted(&entries[at].rule) && !entries[at].rule.pattern.is_empty())
            .collect();
        let texts: Vec<&str> = rules.iter().map(|&at| entries[at].rule.pattern.as_str()).collect();
        // Each pattern was compiled by itself when the rule was checked.
        let set = PatternSet::compile(&texts).ok().filter(|_| !texts.is_empty())?;
        Some(Self { set, rules })
    }

    fn run(&self, context: &RuleContext<'_>, index: usize) -> Vec<(usize, Match)> {
        self.set.run(context, index).into_iter().map(|(text, found)| (self.rules[text], found)).collect()
    }
}

impl Entry {
    fn diagnostic(&self, context: &RuleContext<'_>, found: &Match) -> Diagnostic {
        let mut caught = |name: &str| {
            let (_, span) = found.captures.iter().find(|(known, _)| known == name)?;
            Some(shortened(context.source.slice(*span)))
        };
        let sentence = fill(&self.rule.sentence, &mut caught);
        let says = fill(&self.rule.error.message, &mut caught);
        let says = says.lines().next().unwrap_or_default();
        let kind = if self.rule.error.kind.is_empty() { "an error" } else { &self.rule.error.kind };
        let message = if says.is_empty() {
            format!("{sentence} Triton refuses it with {kind}")
        } else {
            format!("{sentence} Triton refuses it with {kind}: {says}")
        };
        Diagnostic {
            code: self.code,
            name: self.name,
            severity: Severity::Warning,
            span: found.span,
            message,
            related: Vec::new(),
            fix: None,
        }
    }
}

/// The text of a capture for a message: its first line, cut to 60 bytes.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let is_whole = line.len() == text.len() && text.len() <= LONGEST;
    if is_whole { text.to_owned() } else { format!("{}…", &line[..line.floor_char_boundary(LONGEST)]) }
}

/// The findings of the learned rules in one file.
pub(super) fn find(context: &RuleContext<'_>, selection: &Selection, memory: &LearnedRules) -> Vec<Diagnostic> {
    if !memory.rules().any(|rule| memory.shows(rule)) {
        return Vec::new();
    }
    let mut found = context.kept_in_kernels(("learned", memory.key), |index| memory.shown_in(context, index));
    found.retain(|finding| {
        let rule = memory.find(finding.code);
        rule.is_some_and(|rule| memory.shows(rule) && rule.triton.hold_for(context.target))
            && selection.includes_named(finding.code, finding.name)
    });
    if !found.is_empty() && context.is_for_other_compiler() {
        found.clear();
    }
    found
}

/// Whether a code is that of a learned rule.
#[must_use]
pub fn is_learned(code: &str) -> bool {
    number(code).is_some()
}

/// Interns a code or name for the life of the program, since findings refer to rules by `&'static str`. The leak is
/// bounded by the number of rules that were ever loaded.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&known) = known.get(text) {
        return known;
    }
    let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(leaked);
    leaked
}
