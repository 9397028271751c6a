//! The skill memory while the user edits: refusals by Triton teach it rules, and kernels that Triton accepts
//! disprove them.
//!
//! Commands: [`MUTE`] takes `{code}`, [`DISPUTE`] takes `{uri, kernel, code}`, [`REPRODUCER`] takes `{code}`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use compiler::{CompileQuestion, Guess, QuestionResult, StandaloneFile, error_of};
use model::analysis::verdict::{FrontEndOutcome, FrontEndVerdict};
use model::api::{TritonTarget, Version};
use rules::RuleContext;
use rules::learned::{LearnedRule, LearnedRules, TritonError};
use runtime::python::cache_folder;
use store::{Accepted, RefusedKernel};

use super::client::ClientCommand;
use super::event::ServerEvent;
use super::memory_writer::MemoryNote;
use super::optimize::{read, refused};
use super::owner::Owner;
use super::unit::Unit;

/// The command that mutes a rule.
pub(super) const MUTE: &str = "warpsmith.memory.mute";
/// The command that asks Triton whether a rule is right about a kernel.
pub(super) const DISPUTE: &str = "warpsmith.memory.dispute";
/// The command that opens the example that a rule was learned from.
pub(super) const REPRODUCER: &str = "warpsmith.memory.reproducer";

/// Number of kernels that are remembered.
const REMEMBERED: usize = 512;
/// Number of refusals of one kernel that wait for a version that compiles.
const OPEN: usize = 4;

/// A kernel: its file and its name.
type KernelKey = (lsp::Uri, String);

/// The rules in use and the kernels that they may be learned from.
pub(super) struct Skills {
    /// The rules in use.
    pub(super) memory: LearnedRules,
    /// The text of the last version of each kernel that compiled.
    taken: HashMap<KernelKey, String>,
    /// The refusals of each kernel since then.
    open: HashMap<KernelKey, Vec<RefusedKernel>>,
    /// The codes that the user has disputed, by kernel.
    disputed: HashMap<KernelKey, Vec<String>>,
}

impl Default for Skills {
    fn default() -> Self {
        // Until the store was read no rule is used, because it may have been disproved.
        let memory = LearnedRules::empty().clone();
        Self { memory, taken: HashMap::new(), open: HashMap::new(), disputed: HashMap::new() }
    }
}

#[derive(Deserialize)]
struct OfRule {
    code: String,
}

#[derive(Deserialize)]
struct OfKernel {
    uri: lsp::Uri,
    kernel: String,
    code: String,
}

impl Owner {
    /// Reads the memory again on another thread, because another server or a command may have learned or forgotten
    /// something.
    pub(super) fn read_memory_later(&self) {
        let (read, events) = (Arc::clone(&self.tools.memory), self.events.clone());
        let read = move || drop(events.send(ServerEvent::Memory(Box::new(read()))));
        if let Err(error) = std::thread::Builder::new().name("memory".to_owned()).spawn(read) {
            tracing::warn!(%error, "the skill memory is not read again");
        }
    }

    /// Replaces the memory. Returns whether the set of rules in use has changed.
    pub(super) fn take_memory(&mut self, memory: LearnedRules) -> bool {
        let memory = memory.reusing(&self.skills.memory);
        let shown = |memory: &LearnedRules| {
            let shown = memory.rules().filter(|rule| memory.shows(rule));
            shown.map(|rule| (rule.code.clone(), rule.pattern.clone())).collect::<Vec<_>>()
        };
        let has_changed = shown(&memory) != shown(&self.skills.memory);
        let ready = memory.clone();
        if let Err(error) = std::thread::Builder::new().name("patterns".to_owned()).spawn(move || ready.prepare()) {
            tracing::info!(%error, "patterns are compiled when they are needed");
        }
        self.skills.memory = memory;
        has_changed
    }

    /// Learns from a verdict about a kernel; `guess` holds the argument types and constants that the kernel was
    /// compiled with.
    pub(super) fn learn(
        &mut self,
        uri: &lsp::Uri,
        question: &CompileQuestion,
        guess: Option<&Guess>,
        settled: &QuestionResult,
    ) {
        let Some(unit) = self.documents.unit(uri) else { return };
        let Some(triton) = self.compile.of.as_ref().map(|of| of.triton) else { return };
        let settings = self.resolved(&unit).settings.memory.clone();
        if !settings.enabled {
            return;
        }
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
                let open = self.skills.open.remove(&place).unwrap_or_default();
                for failure in open.into_iter().filter(|failure| failure.nearest_passing.is_none()) {
                    (self.tools.remember)(MemoryNote::Failed(Box::new(RefusedKernel {
                        nearest_passing: Some(program.text.clone()),
                        ..failure
                    })));
                }
                let kernel = Accepted {
                    text: program.text.clone(),
                    kernel: question.kernel.clone(),
                    triton: triton.to_string(),
                };
                (self.tools.remember)(MemoryNote::Compiled(kernel));
                if self.skills.taken.len() >= REMEMBERED {
                    self.skills.taken.clear();
                }
                self.skills.taken.insert(place, program.text);
            }
            QuestionResult::Refused(answer) => {
                let Some((kind, message)) = error_of(answer) else { return };
                let failure = RefusedKernel {
                    place: answer.error.as_ref().and_then(|error| program.place(error)),
                    text: program.text,
                    kernel: question.kernel.clone(),
                    nearest_passing: self.skills.taken.get(&place).cloned(),
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
        let open = self.skills.open.entry(place).or_default();
        let signature = failure.error.signature();
        if open.iter().any(|known| known.error.signature() == signature) || open.len() >= OPEN {
            return;
        }
        // A version that compiled earlier is enough, so it need not wait for a later one.
        if failure.nearest_passing.is_some() {
            (self.tools.remember)(MemoryNote::Failed(Box::new(failure.clone())));
        }
        open.push(failure);
    }

    /// Drops the waiting refusals of a file that was closed; they are stored without a version that compiles.
    pub(super) fn forget_kernels_of(&mut self, uri: &lsp::Uri) {
        let (of_file, others) = std::mem::take(&mut self.skills.open).into_iter().partition(|((of, _), _)| of == uri);
        self.skills.open = others;
        let of_file: HashMap<KernelKey, Vec<RefusedKernel>> = of_file;
        let left = of_file.into_values().flatten().filter(|failure| failure.nearest_passing.is_none());
        left.for_each(|failure| (self.tools.remember)(MemoryNote::Failed(Box::new(failure))));
        self.skills.taken.retain(|(of, _), _| of != uri);
        self.skills.disputed.retain(|(of, _), _| of != uri);
    }

    /// Demotes the rules that flag a kernel that Triton has just accepted.
    fn disprove(&mut self, unit: &Unit, name: &str, triton: Version) {
        let module = &unit.module;
        let Some(index) = module.kernels.iter().position(|kernel| kernel.name == name) else { return };
        let context = RuleContext::new(&unit.source, module, TritonTarget::of(triton)).at(unit.path.as_deref());
        let found = self.skills.memory.proven_in(&context, index);
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
            was_shown |= self.skills.memory.shows(&rule);
            self.skills.memory = self.skills.memory.demoting(&rule.code);
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

    /// Tells the user the result of a dispute.
    pub(super) fn answer_disputes(&mut self, uri: &lsp::Uri, kernel: &str, said: &FrontEndOutcome) {
        let Some(codes) = self.skills.disputed.remove(&(uri.clone(), kernel.to_owned())) else { return };
        for code in codes {
            self.client.show(lsp::MessageType::Info, verdict(&code, kernel, said));
        }
    }

    /// Mutes a rule in all workspaces of the user.
    pub(super) fn mute_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfRule { code } = read(argument)?;
        let rule = self.skills.memory.find(&code).ok_or_else(|| unknown(&code))?;
        let code = rule.code.clone();
        self.skills.memory = self.skills.memory.muting(&code);
        (self.tools.remember)(MemoryNote::Muted(code.clone()));
        self.check_all_again();
        Ok(Some(json!({ "muted": code })))
    }

    /// Asks Triton whether a rule is right about a kernel.
    pub(super) fn dispute_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfKernel { uri, kernel: name, code } = read(argument)?;
        let unit = self.documents.unit(&uri).ok_or_else(|| refused("open the file first".to_owned()))?;
        let kernel = unit.module.kernel(&name).ok_or_else(|| refused(format!("there is no kernel `{name}`")))?;
        self.may_compile(&unit)?;
        self.interpreter_to_ask(&unit)?;
        match FrontEndVerdict::of(kernel) {
            Some(verdict_known) if !matches!(verdict_known.outcome, FrontEndOutcome::Unknown(_)) => {
                let text = verdict(&code, &name, &verdict_known.outcome);
                self.client.show(lsp::MessageType::Info, text);
            }
            _ => {
                // An undecided question is asked again.
                FrontEndVerdict::forget(kernel);
                self.skills.disputed.entry((uri.clone(), name.clone())).or_default().push(code);
                drop(unit);
                self.compile.first(uri, name);
                self.compile_next();
            }
        }
        Ok(None)
    }

    /// Opens the example that a rule was learned from.
    pub(super) fn reproducer_command(&mut self, argument: Value) -> Result<Option<Value>> {
        let OfRule { code } = read(argument)?;
        let rule = self.skills.memory.find(&code).ok_or_else(|| unknown(&code))?;
        let path = reproducer(rule).map_err(refused)?;
        match lsp::Uri::from_file_path(&path).ok().filter(|_| self.capabilities.shows_documents) {
            Some(uri) => self.client.send(ClientCommand::ShowDocument(uri)),
            None => self.client.show(lsp::MessageType::Info, format!("the reproducer is in {}", path.display())),
        }
        Ok(Some(json!({ "path": path })))
    }
}

/// Triton's verdict on a kernel that a rule has flagged, as a message.
fn verdict(code: &str, kernel: &str, said: &FrontEndOutcome) -> String {
    match said {
        FrontEndOutcome::Accepted { .. } => {
            format!("Triton takes `{kernel}`: {code} is wrong, and is not shown any more")
        }
        FrontEndOutcome::Refused { message, .. } => {
            let first = message.lines().next().unwrap_or_default();
            format!("Triton refuses `{kernel}` ({first}), so {code} stays")
        }
        FrontEndOutcome::Unknown(why) => format!("Triton cannot tell about `{kernel}` ({why}), so {code} stays"),
    }
}

fn unknown(code: &str) -> tower_lsp::jsonrpc::Error {
    refused(format!("there is no learned rule `{code}`; `warpsmith memory list` lists them"))
}

/// Writes the failing example and the one that compiles into a file.
fn reproducer(rule: &LearnedRule) -> std::result::Result<PathBuf, String> {
    let folder = cache_folder().join("reproducers");
    let path = folder.join(format!("{}.md", rule.code.to_ascii_lowercase()));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, rule.page()));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(path)
}
