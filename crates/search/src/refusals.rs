//! Candidates that earlier searches saw refused, so that nobody judges them again.
//!
//! What is kept is only what lies in the text itself ([`Outcome::lasts`]), under a key of everything that the verdict depends
//! on. Candidates that were accepted are not kept: a speedup is worth nothing unless it is measured now, that takes loading,
//! compiling and calling them all the same, and what the search accepts is checked with contents that are drawn afresh.

use std::path::Path;

use serde::{Deserialize, Serialize};

use base::clock::now_milliseconds;
use judge::{Evaluator, Outcome, Reason, Verdict};
use learn::{SkillMemory as _, Suspect};
use model::api::Target;
use model::kernel::RecordedLaunch;
use model::syntax::normal_form;
use protocol::{Environment, Source, Workload};
use rules::learned::Memory;
use runtime::python::state_folder;
use store::Store;
use workload::recorded_launch;

use super::Request;
use super::elsewhere::other_files;

/// Milliseconds after which a refusal counts no more: packages outside of the workspace are not among what it is kept under.
const LASTS: i64 = 30 * 24 * 3600 * 1000;
/// Characters of evidence that are kept.
const EVIDENCE: usize = 600;
/// So many candidates that do not compile are shown to Triton's front end at the end of a search.
const TAUGHT: usize = 8;
/// Bytes of Python files in a workspace above which nothing is kept: reading them all would take longer than it saves.
const MOST_AROUND: u64 = 32 << 20;

/// Refusals of a workspace, for one original and one call.
pub(super) struct Refusals {
    /// `None` where nothing is to be kept.
    case: Option<String>,
    store: Option<Store>,
    /// What was learned of kernels that do not compile.
    memory: Memory,
    /// Candidates that did not compile, with what each was made of.
    uncompiled: Vec<(String, String)>,
    /// A launch that a comment describes, and the original: candidates say in comments how they are launched.
    launch: Option<(Workload, String)>,
}

/// A refusal as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    reason: Reason,
    evidence: String,
    /// Milliseconds since 1970.
    at: i64,
}

impl Refusals {
    pub(super) fn of(request: &Request, workloads: &[Workload]) -> Self {
        let case = if request.settings.optimize.remember { case(request, workloads) } else { None };
        let store = case.as_ref().and_then(|_| workload::existing(&request.workspace));
        let launch = workloads.first().filter(|workload| workload.source == Source::Launch);
        let launch = launch.map(|workload| (workload.clone(), request.text.clone()));
        let memory = Store::memory_in(&state_folder()).unwrap_or_else(|error| {
            tracing::warn!(%error, "learned rules of the user are not known");
            Memory::shipped().clone()
        });
        Self { case, store, launch, memory, uncompiled: Vec::new() }
    }

    /// Why Triton will refuse a candidate that was made of `original`, if a proven rule says so. It is not even compiled then.
    pub(super) fn foresee(&self, evaluator: &Evaluator, original: &str, text: &str) -> Option<(Reason, String)> {
        let target = Target::of(evaluator.environment().triton.parse().ok()?);
        let (rule, at) = learn::refusal(&self.memory, original, text, target)?;
        let line = text[..at.start].matches('\n').count() + 1;
        let what = text[at.start..at.end].lines().next().unwrap_or_default();
        Some((Reason::Compile, format!("line {line}, `{what}`: {} ({})", rule.plain_sentence(), rule.code)))
    }

    /// What a proposer should know for a text, in sentences, within so many tokens.
    pub(super) fn advice(&self, text: &str, target: Target, tokens: usize) -> Vec<String> {
        let sentences = self.memory.advice(text, target, tokens).into_iter().map(|rule| rule.plain_sentence());
        // Where one of several names stands for all, or for anything, the sentence tells who has not seen the pattern nothing.
        sentences.filter(|sentence| !sentence.contains(" it is ") && !sentence.contains("….…")).collect()
    }

    /// Why a candidate was refused, if it was.
    pub(super) fn find(&self, evaluator: &Evaluator, text: &str) -> Option<(Reason, String)> {
        let key = self.key(evaluator, text)?;
        let found = self.store.as_ref()?.evaluation(&key);
        let found = found.inspect_err(|error| tracing::warn!(%error, "no refusals are known")).ok()??;
        // What another release wrote may not be readable.
        let Kept { reason, evidence, at } = serde_json::from_str(&found).ok()?;
        (now_milliseconds() - at < LASTS).then_some((reason, evidence))
    }

    /// Keeps a verdict, if it is one that lasts.
    pub(super) fn keep(&mut self, request: &Request, evaluator: &Evaluator, text: &str, verdict: &Verdict) {
        let Outcome::Refused { reason, evidence, .. } = &verdict.outcome else { return };
        if !verdict.outcome.lasts() {
            return;
        }
        let Some(key) = self.key(evaluator, text) else { return };
        let evidence: String = evidence.chars().take(EVIDENCE).collect();
        let kept = serde_json::to_string(&Kept { reason: *reason, evidence, at: now_milliseconds() });
        if self.store.is_none() {
            self.store = workload::store(&request.workspace).ok();
        }
        if let (Some(store), Ok(kept)) = (&mut self.store, kept)
            && let Err(error) = store.keep_evaluation(&key, &kept)
        {
            tracing::warn!(%error, "a refusal is not kept");
        }
    }

    /// Notes that a candidate did not compile, and what it was made of.
    pub(super) fn note_uncompiled(&mut self, text: &str, parent: &str) {
        if self.uncompiled.len() < TAUGHT {
            self.uncompiled.push((text.to_owned(), parent.to_owned()));
        }
    }

    /// What rules may be learned from: the candidates that did not compile.
    pub(super) fn suspects(&self, workloads: &[Workload]) -> Vec<Suspect> {
        let launches = workloads.iter().flat_map(|workload| workload.launches.iter().cloned());
        let launches: Vec<RecordedLaunch> = launches.map(recorded_launch).collect();
        let suspect = |(text, parent): &(String, String)| Suspect {
            text: text.clone(),
            parent: Some(parent.clone()),
            launches: launches.clone(),
        };
        self.uncompiled.iter().map(suspect).collect()
    }

    /// The key of a candidate; the other end of a link may be another machine after it broke, so it is asked each time.
    fn key(&self, evaluator: &Evaluator, text: &str) -> Option<[u8; 32]> {
        key(self.case.as_ref()?, &evaluator.judge_version(), &evaluator.environment(), &self.candidate(text))
    }

    /// A candidate as far as it counts.
    fn candidate(&self, text: &str) -> String {
        let mut candidate = normal_form(text);
        if let Some((workload, original)) = &self.launch {
            let own = workload::launch_of_candidate(workload, original, text);
            candidate.push_str(&format!("\n{:?}{:?}", own.kwargs, own.launches));
        }
        candidate
    }
}

fn key(case: &str, judge: &str, environment: &Environment, candidate: &str) -> Option<[u8; 32]> {
    let parts = serde_json::to_vec(&(case, judge, environment, candidate)).ok()?;
    Some(*blake3::hash(&parts).as_bytes())
}

/// Everything but the candidate and where it is judged: the original, the calls, and what both may import.
fn case(request: &Request, workloads: &[Workload]) -> Option<String> {
    let mut calls = workloads.to_vec();
    for call in &mut calls {
        (call.count, call.environment) = (0, Environment::default());
        if call.source != Source::Launch {
            // What was launched when it was recorded says nothing about the call.
            call.launches.clear();
        }
    }
    let around = around(&request.workspace, &request.file)?;
    let parts = serde_json::to_vec(&(normal_form(&request.text), calls, around)).ok()?;
    Some(blake3::hash(&parts).to_hex().to_string())
}

/// The Python files of the workspace without `file`, whose text counts as the editor has it.
fn around(workspace: &Path, file: &Path) -> Option<Vec<(String, String)>> {
    let (mut found, mut size) = (Vec::new(), 0);
    for path in other_files(workspace, file) {
        size += path.metadata().map_or(0, |metadata| metadata.len());
        if size > MOST_AROUND {
            return None;
        }
        let text = std::fs::read(&path).unwrap_or_default();
        found.push((path.to_string_lossy().into_owned(), blake3::hash(&text).to_hex().to_string()));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Settings;

    const TEXT: &str = "import helper\n\n\ndef f(x):\n    return helper.g(x)\n";

    fn request(folder: &Path, text: &str) -> Request {
        Request {
            work: super::super::Work::Search,
            file: folder.join("f.py"),
            text: text.to_owned(),
            subject: crate::Subject::File,
            workspace: folder.to_owned(),
            python: "python".into(),
            settings: Settings::default(),
        }
    }

    /// A verdict holds for as long as nothing that it depends on is another.
    #[test]
    fn a_case_is_told_by_the_original_the_call_and_what_lies_around() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("f.py", TEXT);
        write("helper.py", "def g(x): return x\n");
        let call = Workload { entry: "f".to_owned(), count: 3, ..Workload::default() };
        let of = |text: &str, call: &Workload| case(&request(folder.path(), text), std::slice::from_ref(call)).unwrap();
        let first = of(TEXT, &call);
        // How often it was seen, on which device it was recorded, and what does not count in the text.
        let mut same = Workload { count: 9, ..call.clone() };
        same.environment.device = "H200".to_owned();
        assert_eq!(of(&format!("# a comment\n{TEXT}"), &same), first);
        write("f.py", "other = 'text on the disk'\n");
        write("notes.txt", "no Python");
        assert_eq!(of(TEXT, &call), first);
        let other = Workload { args: vec![protocol::Value::Int(1)], ..call.clone() };
        assert_ne!(of(TEXT, &other), first);
        assert_ne!(of(&TEXT.replace("g(x)", "g(x, x)"), &call), first);
        write("helper.py", "def g(x): return x + 1\n");
        assert_ne!(of(TEXT, &call), first);
    }

    #[test]
    fn a_key_is_told_by_judge_device_versions_and_candidate() {
        let here = Environment { device: "H200".to_owned(), triton: "3.6.0".to_owned(), ..Environment::default() };
        let with = |change: &dyn Fn(&mut Environment)| {
            let mut other = here.clone();
            change(&mut other);
            key("case", "1", &other, TEXT)
        };
        let keys = [
            key("case", "1", &here, TEXT),
            key("other", "1", &here, TEXT),
            key("case", "2", &here, TEXT),
            key("case", "1", &here, "x = 1\n"),
            with(&|it| "A100".clone_into(&mut it.device)),
            with(&|it| "3.7.0".clone_into(&mut it.triton)),
            with(&|it| "2.12".clone_into(&mut it.torch)),
            with(&|it| "13.1".clone_into(&mut it.driver)),
        ];
        assert_eq!(keys.iter().collect::<std::collections::HashSet<_>>().len(), keys.len());
    }

    #[test]
    fn comments_count_only_where_they_launch_the_kernel() {
        let comment = "# warpsmith: workload entry=k[1] x=f16[8] BLOCK=8";
        let text = format!("{comment}\ndef k(x, BLOCK: tl.constexpr): ...\n");
        let workload = workload::workloads_of_comments(Path::new("/f.py"), &text).unwrap().remove(0);
        let of = |workload: Option<Workload>| {
            let launch = workload.map(|workload| (workload, text.clone()));
            Refusals { case: None, store: None, launch, uncompiled: Vec::new(), memory: Memory::shipped().clone() }
        };
        let (end, other) = (format!("{text}# end\n"), text.replace("=8\n", "=16\n"));
        assert_ne!(text, other);
        assert_eq!(of(None).candidate(&text), of(None).candidate(&other));
        let launched = of(Some(workload));
        assert_eq!(launched.candidate(&text), launched.candidate(&end));
        assert_ne!(launched.candidate(&text), launched.candidate(&other));
    }
}
