//! The skill memory while the user edits: refusals by Triton teach it rules, and kernels that Triton accepts
//! disprove them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tower_lsp::gen_lsp_types as lsp;

use compiler::{CompileQuestion, Guess, QuestionResult, StandaloneFile, error_of};
use model::api::{TritonTarget, Version};
use rules::RuleContext;
use rules::learned::{LearnedRule, LearnedRules, TritonError};
use store::{Accepted, RefusedKernel};

use super::memory_state::KernelKey;
use super::memory_writer::MemoryNote;
use super::owner::Owner;
use super::unit::Unit;

/// Number of refusals of one kernel that wait for a version that compiles.
const OPEN: usize = 4;

impl Owner {
    /// Reads the memory on another thread: at the start, and again when a file was saved, because another server or a
    /// command may have learned or forgotten something.
    pub(crate) fn read_memory_later(&mut self) {
        let (read, events) = (Arc::clone(&self.tools.memory), self.events.clone());
        let read = move || {
            // The owner waits for an answer in any case.
            let memory = catch_unwind(AssertUnwindSafe(|| read())).unwrap_or_else(|_| LearnedRules::empty().clone());
            events.run(|owner| owner.memory_was_read(memory));
        };
        if let Err(error) = std::thread::Builder::new().name("memory".to_owned()).spawn(read) {
            tracing::warn!(%error, "the skill memory cannot be read");
            self.waits_for_memory = false;
        }
    }

    fn memory_was_read(&mut self, memory: LearnedRules) {
        let was_awaited = std::mem::replace(&mut self.waits_for_memory, false);
        match (self.take_memory(memory), was_awaited) {
            (false, _) => {}
            // Nothing was shown yet.
            (true, true) => self.documents.forget_findings(),
            (true, false) => self.check_all_again(),
        }
    }

    /// Replaces the memory. Returns whether the set of rules in use has changed.
    fn take_memory(&mut self, memory: LearnedRules) -> bool {
        let memory = memory.reusing(&self.memory.rules);
        let shown = |memory: &LearnedRules| {
            let shown = memory.rules().filter(|rule| memory.shows(rule));
            shown.map(|rule| (rule.code.clone(), rule.pattern.clone())).collect::<Vec<_>>()
        };
        let has_changed = shown(&memory) != shown(&self.memory.rules);
        let ready = memory.clone();
        if let Err(error) = std::thread::Builder::new().name("patterns".to_owned()).spawn(move || ready.prepare()) {
            tracing::info!(%error, "patterns are compiled when they are needed");
        }
        self.memory.rules = memory;
        has_changed
    }

    /// Learns from a verdict about a kernel; `guess` holds the argument types and constants that the kernel was
    /// compiled with.
    pub(crate) fn learn(
        &mut self,
        uri: &lsp::Uri,
        question: &CompileQuestion,
        guess: Option<&Guess>,
        settled: &QuestionResult,
    ) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(triton) = self.compiler.of.as_ref().map(|of| of.triton) else { return };
        let settings = self.resolved(&unit).settings.memory.clone();
        if !settings.enabled {
            return;
        }
        self.quiet_learning.delay = Duration::from_secs(settings.learn_after);
        if matches!(settled, QuestionResult::Accepted(..)) {
            self.disprove(&unit, &question.kernel, triton);
        }
        let Some(program) = guess.filter(|_| settings.learn).and_then(|guess| StandaloneFile::of(question, guess))
        else {
            return;
        };
        let place = (uri.clone(), question.kernel.clone());
        match settled {
            QuestionResult::Accepted(..) => {
                let open = self.memory.open.remove(&place).unwrap_or_default();
                for failure in open.into_iter().filter(|failure| failure.nearest_passing.is_none()) {
                    self.store_failure(RefusedKernel { nearest_passing: Some(program.text.clone()), ..failure });
                }
                let kernel = Accepted {
                    text: program.text.clone(),
                    kernel: question.kernel.clone(),
                    triton: triton.to_string(),
                };
                (self.tools.remember)(MemoryNote::Compiled(kernel));
                self.memory.taken.insert(place, program.text);
            }
            QuestionResult::Refused(answer) => {
                let Some((kind, message)) = error_of(answer) else { return };
                let failure = RefusedKernel {
                    place: answer.error.as_ref().and_then(|error| program.place(error)),
                    text: program.text,
                    kernel: question.kernel.clone(),
                    nearest_passing: self.memory.taken.get(&place),
                    error: TritonError { kind: kind.to_owned(), message: message.to_owned() },
                    triton: triton.to_string(),
                    source: "editor".to_owned(),
                };
                self.refused(place, failure);
            }
            QuestionResult::Unknown(_) => {}
        }
    }

    /// Stores a refusal. While the user types, one mistake appears in many states of the text; one of them is kept.
    fn refused(&mut self, place: KernelKey, failure: RefusedKernel) {
        let open = self.memory.open.entry(place).or_default();
        let signature = failure.error.signature();
        if open.iter().any(|known| known.error.signature() == signature) || open.len() >= OPEN {
            return;
        }
        open.push(failure.clone());
        // A version that compiled earlier is enough, so it need not wait for a later one.
        if failure.nearest_passing.is_some() {
            self.store_failure(failure);
        }
    }

    /// Stores a refusal, from which rules are learned at a quiet moment.
    fn store_failure(&mut self, failure: RefusedKernel) {
        (self.tools.remember)(MemoryNote::Failed(Box::new(failure)));
        self.learn_when_quiet();
    }

    /// Drops the waiting refusals of a file that was closed; they are stored without a version that compiles.
    pub(crate) fn forget_kernels_of(&mut self, uri: &lsp::Uri) {
        let (of_file, others) = std::mem::take(&mut self.memory.open).into_iter().partition(|((of, _), _)| of == uri);
        self.memory.open = others;
        let of_file: HashMap<KernelKey, Vec<RefusedKernel>> = of_file;
        let left = of_file.into_values().flatten().filter(|failure| failure.nearest_passing.is_none());
        left.for_each(|failure| self.store_failure(failure));
        self.memory.taken.retain(|(of, _)| of != uri);
        self.memory.disputed.retain(|(of, _), _| of != uri);
    }

    /// Demotes the rules that flag a kernel that Triton has just accepted.
    fn disprove(&mut self, unit: &Unit, name: &str, triton: Version) {
        let module = &unit.module;
        let Some(index) = module.kernels.iter().position(|kernel| kernel.name == name) else { return };
        let context = RuleContext::new(&unit.source, module, TritonTarget::of(triton)).at(unit.path.as_deref());
        let found = self.memory.rules.proven_in(&context, index);
        if found.is_empty() || context.is_for_other_compiler() {
            return;
        }
        let mut rules: Vec<LearnedRule> = found.into_iter().map(|(rule, _)| rule.clone()).collect();
        rules.dedup_by(|one, other| one.code == other.code);
        let kernel = unit.source.slice(module.kernels[index].span);
        let mut was_shown = false;
        for rule in rules {
            tracing::warn!(
                code = rule.code,
                name = rule.name,
                "Triton compiles what a learned rule forbids: it is demoted"
            );
            was_shown |= self.memory.rules.shows(&rule);
            self.memory.rules = self.memory.rules.demoting(&rule.code);
            (self.tools.remember)(MemoryNote::Disproved {
                rule: Box::new(rule),
                kernel: kernel.to_owned(),
                triton: triton.to_string(),
            });
        }
        if was_shown {
            self.check_all_again();
        }
    }
}
