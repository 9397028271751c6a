//! Refusals of earlier searches, so that the same candidates are not judged again.
//!
//! Only refusals that lie in the text itself are stored ([`Outcome::is_cacheable`]), under a hash of everything that the
//! verdict depends on. Accepted candidates are not stored: a speedup must be measured anew, which requires loading,
//! compiling and calling the candidate anyway, and an accepted candidate is checked with newly drawn inputs.

use std::path::Path;

use serde::{Deserialize, Serialize};

use base::clock::now_milliseconds;
use judge::{Evaluator, Outcome, Reason, Verdict};
use learn::{SkillMemory as _, Suspect};
use model::api::TritonTarget;
use model::kernel::RecordedLaunch;
use model::syntax::normal_form;
use protocol::{RuntimeVersions, Workload, WorkloadSource};
use rules::learned::LearnedRules;
use runtime::python::state_folder;
use store::Store;
use workload::recorded_launch;

use super::external_uses::other_files;
use super::request::SearchRequest;

/// Milliseconds after which a refusal expires, because packages outside of the workspace are not part of its key.
const LASTS: i64 = 30 * 24 * 3600 * 1000;
/// Characters of evidence that are stored.
const EVIDENCE: usize = 600;
/// Number of candidates that do not compile that are shown to Triton's front end at the end of a search.
const TAUGHT: usize = 8;
/// Bytes of Python files in a workspace above which nothing is stored, because reading them all would take longer
/// than it saves.
const MOST_AROUND: u64 = 32 << 20;

/// Whether a refusal that was found at `at` holds at `now`, both in milliseconds since 1970.
fn still_holds(at: i64, now: i64) -> bool {
    now - at < LASTS
}

/// The refusals of a workspace, for one original and its calls.
pub(super) struct RefusalCache {
    /// `None` where nothing is to be stored.
    case: Option<String>,
    store: Option<Store>,
    /// The learned rules about kernels that do not compile.
    memory: LearnedRules,
    /// Candidates that did not compile, each with the text of its base.
    uncompiled: Vec<(String, String)>,
    /// A launch that a comment describes, and the original: the comments of candidates say how they are launched.
    launch: Option<(Workload, String)>,
}

/// A stored refusal.
#[derive(Serialize, Deserialize)]
struct CachedRefusal {
    reason: Reason,
    evidence: String,
    /// Milliseconds since 1970.
    at: i64,
}

impl RefusalCache {
    pub(super) fn of(request: &SearchRequest, workloads: &[Workload]) -> Self {
        let case = if request.settings.optimize.remember { case(request, workloads) } else { None };
        let store = case.as_ref().and_then(|_| workload::existing(&request.workspace));
        let launch = workloads.first().filter(|workload| workload.source == WorkloadSource::Launch);
        let launch = launch.map(|workload| (workload.clone(), request.text.clone()));
        let memory = match request.settings.memory.enabled {
            true => Store::memory_or_shipped(&state_folder()),
            false => LearnedRules::empty().clone(),
        };
        Self { case, store, launch, memory, uncompiled: Vec::new() }
    }

    /// The reason for which Triton will refuse a candidate made from `original`, if a proven rule predicts it. The
    /// candidate is then not compiled.
    pub(super) fn predict(&self, evaluator: &Evaluator, original: &str, text: &str) -> Option<(Reason, String)> {
        let target = TritonTarget::of(evaluator.environment().triton.parse().ok()?);
        let (rule, at) = learn::refusal(&self.memory, original, text, target)?;
        let line = text[..at.start].matches('\n').count() + 1;
        let what = text[at.start..at.end].lines().next().unwrap_or_default();
        Some((Reason::Compile, format!("line {line}, `{what}`: {} ({})", rule.plain_sentence(), rule.code)))
    }

    /// Rules that matter for a text, in sentences, within a number of tokens.
    pub(super) fn advice(&self, text: &str, target: TritonTarget, tokens: usize) -> Vec<String> {
        let sentences = self.memory.advice(text, target, tokens).into_iter().map(|rule| rule.plain_sentence());
        // A sentence in which one name is an example for several, or for any, is useless without the pattern.
        sentences.filter(|sentence| !sentence.contains(" it is ") && !sentence.contains("….…")).collect()
    }

    /// The reason for which an earlier search refused a candidate.
    pub(super) fn find(&self, evaluator: &Evaluator, text: &str) -> Option<(Reason, String)> {
        let key = self.key(evaluator, text)?;
        let found = self.store.as_ref()?.evaluation(&key);
        let found = found.inspect_err(|error| tracing::warn!(%error, "stored refusals cannot be read")).ok()??;
        // An entry of another release may not be readable.
        let CachedRefusal { reason, evidence, at } = serde_json::from_str(&found).ok()?;
        still_holds(at, now_milliseconds()).then_some((reason, evidence))
    }

    /// Stores a verdict, if it is a refusal that lasts.
    pub(super) fn keep(&mut self, request: &SearchRequest, evaluator: &Evaluator, text: &str, verdict: &Verdict) {
        let Outcome::Refused { reason, evidence, .. } = &verdict.outcome else { return };
        if !verdict.outcome.is_cacheable() {
            return;
        }
        let Some(key) = self.key(evaluator, text) else { return };
        let evidence: String = evidence.chars().take(EVIDENCE).collect();
        let kept = serde_json::to_string(&CachedRefusal { reason: *reason, evidence, at: now_milliseconds() });
        if self.store.is_none() {
            self.store = workload::store(&request.workspace).ok();
        }
        if let (Some(store), Ok(kept)) = (&mut self.store, kept)
            && let Err(error) = store.keep_evaluation(&key, &kept)
        {
            tracing::warn!(%error, "a refusal cannot be stored");
        }
    }

    /// Notes that a candidate did not compile, with the text of its base.
    pub(super) fn note_uncompiled(&mut self, text: &str, parent: &str) {
        if self.uncompiled.len() < TAUGHT {
            self.uncompiled.push((text.to_owned(), parent.to_owned()));
        }
    }

    /// The candidates that did not compile, from which rules may be learned.
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

    /// The key of a candidate. After a broken connection the remote side may be another machine, so the environment
    /// is asked for each time.
    fn key(&self, evaluator: &Evaluator, text: &str) -> Option<[u8; 32]> {
        key(self.case.as_ref()?, &evaluator.judge_version(), &evaluator.environment(), &self.candidate(text))
    }

    /// The part of a candidate that its verdict depends on.
    fn candidate(&self, text: &str) -> String {
        let mut candidate = normal_form(text);
        if let Some((workload, original)) = &self.launch {
            let own = workload::launch_of_candidate(workload, original, text);
            candidate.push_str(&format!("\n{:?}{:?}", own.kwargs, own.launches));
        }
        candidate
    }
}

fn key(case: &str, judge: &str, environment: &RuntimeVersions, candidate: &str) -> Option<[u8; 32]> {
    let parts = serde_json::to_vec(&(case, judge, environment, candidate)).ok()?;
    Some(*blake3::hash(&parts).as_bytes())
}

/// The part of the key besides the candidate and the environment: the original, the calls, and the files that both
/// may import.
fn case(request: &SearchRequest, workloads: &[Workload]) -> Option<String> {
    let mut calls = workloads.to_vec();
    for call in &mut calls {
        (call.count, call.environment) = (0, RuntimeVersions::default());
        if call.source != WorkloadSource::Launch {
            // The launches at the time of recording say nothing about the call.
            call.launches.clear();
        }
    }
    let around = around(&request.workspace, &request.file)?;
    let parts =
        serde_json::to_vec(&(normal_form(&request.text), calls, around, request.settings.optimize.grade)).ok()?;
    Some(blake3::hash(&parts).to_hex().to_string())
}

/// The Python files of the workspace except `file`, whose text is that of the editor.
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

    fn request(folder: &Path, text: &str) -> SearchRequest {
        SearchRequest {
            work: super::super::SearchAction::Search,
            file: folder.join("f.py"),
            text: text.to_owned(),
            subject: crate::OptimizeScope::File,
            workspace: folder.to_owned(),
            python: "python".into(),
            settings: Settings::default(),
        }
    }

    /// A verdict holds as long as nothing that it depends on has changed.
    #[test]
    fn a_refusal_holds_for_a_month() {
        const DAY: i64 = 24 * 3600 * 1000;
        let now = now_milliseconds();
        assert!(still_holds(now - 29 * DAY, now));
        assert!(!still_holds(now - 31 * DAY, now));
    }

    #[test]
    fn learned_rules_are_not_used_where_the_memory_is_off() {
        let text = "@triton.jit\ndef k(x, B: tl.constexpr):\n    y = tl.zeros((B,), tl.float32)\n    tl.store(x, tl.sum(y, axis=0))\n";
        let mut request = request(Path::new("/nowhere"), text);
        request.settings.optimize.remember = false;
        let target = TritonTarget::of("3.6.0".parse().unwrap());
        let advice = |request: &SearchRequest| RefusalCache::of(request, &[]).advice(text, target, 1000);
        assert_ne!(advice(&request), [""; 0]);
        request.settings.memory.enabled = false;
        assert_eq!(advice(&request), [""; 0]);
    }

    #[test]
    fn the_case_key_depends_on_original_call_and_workspace_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("f.py", TEXT);
        write("helper.py", "def g(x): return x\n");
        let call = Workload { entry: "f".to_owned(), count: 3, ..Workload::default() };
        let of = |text: &str, call: &Workload| case(&request(folder.path(), text), std::slice::from_ref(call)).unwrap();
        let first = of(TEXT, &call);
        // The number of calls, the device of the recording and irrelevant parts of the text do not matter.
        let mut same = Workload { count: 9, ..call.clone() };
        same.environment.device = "H200".to_owned();
        assert_eq!(of(&format!("# a comment\n{TEXT}"), &same), first);
        write("f.py", "other = 'text on the disk'\n");
        write("notes.txt", "no Python");
        assert_eq!(of(TEXT, &call), first);
        let other = Workload { args: vec![protocol::ArgumentValue::Int(1)], ..call.clone() };
        assert_ne!(of(TEXT, &other), first);
        assert_ne!(of(&TEXT.replace("g(x)", "g(x, x)"), &call), first);
        write("helper.py", "def g(x): return x + 1\n");
        assert_ne!(of(TEXT, &call), first);
    }

    #[test]
    fn the_key_depends_on_judge_device_versions_and_candidate() {
        let here =
            RuntimeVersions { device: "H200".to_owned(), triton: "3.6.0".to_owned(), ..RuntimeVersions::default() };
        let with = |change: &dyn Fn(&mut RuntimeVersions)| {
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
    fn comments_affect_the_key_only_if_they_launch_the_kernel() {
        let comment = "# warpsmith: workload entry=k[1] x=f16[8] BLOCK=8";
        let text = format!("{comment}\ndef k(x, BLOCK: tl.constexpr): ...\n");
        let workload = workload::workloads_of_comments(Path::new("/f.py"), &text).unwrap().remove(0);
        let of = |workload: Option<Workload>| {
            let launch = workload.map(|workload| (workload, text.clone()));
            RefusalCache {
                case: None,
                store: None,
                launch,
                uncompiled: Vec::new(),
                memory: LearnedRules::shipped().clone(),
            }
        };
        let (end, other) = (format!("{text}# end\n"), text.replace("=8\n", "=16\n"));
        assert_ne!(text, other);
        assert_eq!(of(None).candidate(&text), of(None).candidate(&other));
        let launched = of(Some(workload));
        assert_eq!(launched.candidate(&text), launched.candidate(&end));
        assert_ne!(launched.candidate(&text), launched.candidate(&other));
    }
}
