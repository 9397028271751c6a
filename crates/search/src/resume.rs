//! Continuation of a run that was stopped, and the entries that a run writes to its journal.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::clock::now_milliseconds;
use judge::{JudgedOn, Measured, Reason, title};
use model::syntax::normal_form;
use protocol::{RuntimeVersions, Workload};

use super::journal::{CandidateJudged, CandidateMade, Journal, JournalEntry, RunEnded, RunStarted, read};
use super::outcome::{OptimizeError, SearchOutcome, failed};
use super::prepare::SearchTarget;
use super::propose::SearchState;
use super::report::Report;
use super::request::{OptimizeScope, SearchAction, SearchRequest};
use super::run::SearchRun;
use super::speedup::{has_same_code, on_calls};
use super::tree::{CandidateId, CandidateResult};

/// Characters of evidence that are written to the journal.
const EVIDENCE: usize = 600;

/// Facts about a judged candidate besides its result.
#[derive(Default)]
pub(super) struct ResumedCandidate {
    /// Its measurements, call by call.
    pub(super) measured: Vec<Measured>,
    /// Whether the refusal was remembered from an earlier run.
    pub(super) remembered: bool,
    /// The machine of a pool on which it was judged.
    pub(super) judged_on: Option<JudgedOn>,
    /// Seconds that each stage of judging took.
    pub(super) stages: Vec<(String, f64)>,
}

/// The earlier part of a run that is continued.
pub(super) struct EarlierPart {
    entries: Vec<JournalEntry>,
    /// Seconds of the budget that it has spent.
    seconds: f64,
}

impl EarlierPart {
    /// The journal and the report: new ones, or those of the run to continue, with its earlier part.
    pub(super) fn journal(
        request: &SearchRequest,
        target: &SearchTarget,
        environment: &RuntimeVersions,
    ) -> Result<(Journal, Report, Option<Self>), OptimizeError> {
        let SearchAction::GoOn(run) = &request.work else {
            let begun = begun(request, target, environment);
            let journal = Journal::begin(&request.workspace, &target.name, begun.clone());
            let report = Report::from_entries(journal.run.clone(), &[JournalEntry::Begun(begun)]);
            return Ok((journal, report, None));
        };
        let (run, entries) = read(&request.workspace, run).map_err(|error| failed(error.to_string()))?;
        let Some(JournalEntry::Begun(first)) = entries.first() else { return Err(failed("the run has no beginning")) };
        if entries.iter().any(|entry| matches!(entry, JournalEntry::Ended(_))) {
            return Err(failed(format!("`{run}` has ended; `warpsmith report {run}` shows its results")));
        }
        let file = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if file(&first.file) != file(&request.file) || normal_form(&first.text) != normal_form(&request.text) {
            let name = first.file.display();
            return Err(failed(format!("{name} is not what it was when `{run}` began; begin a new run")));
        }
        if first.calls_hash != hash(&target.workloads) {
            return Err(failed(format!("other calls are recorded than when `{run}` began; begin a new run")));
        }
        let mut journal = Journal::append(&request.workspace, &run).map_err(|error| failed(error.to_string()))?;
        let seconds = entries.iter().filter_map(seconds).fold(0.0, f64::max);
        journal.write(&JournalEntry::Resumed { at: now_milliseconds(), seconds });
        let report = Report::from_entries(run, &entries);
        Ok((journal, report, Some(Self { entries, seconds })))
    }
}

/// The file of a run, the part of it that is optimized, and the budget in seconds.
///
/// # Errors
/// Returns a [`JournalError`](super::JournalError) when there is no such run, or it cannot be read.
pub fn resumable(workspace: &Path, run: &str) -> Result<(PathBuf, OptimizeScope, f64), super::JournalError> {
    let (_, entries) = read(workspace, run)?;
    let begun =
        entries.into_iter().find_map(|entry| if let JournalEntry::Begun(begun) = entry { Some(begun) } else { None });
    Ok(begun.map(|begun| (begun.file, begun.subject, begun.budget)).unwrap_or_default())
}

fn seconds(entry: &JournalEntry) -> Option<f64> {
    match entry {
        JournalEntry::Judged(CandidateJudged { seconds, .. }) | JournalEntry::Resumed { seconds, .. } => Some(*seconds),
        JournalEntry::Confirmed(confirmed) => Some(confirmed.seconds),
        _ => None,
    }
}

fn begun(request: &SearchRequest, target: &SearchTarget, environment: &RuntimeVersions) -> RunStarted {
    RunStarted {
        form: RunStarted::FORM,
        at: now_milliseconds(),
        file: request.file.clone(),
        subject: request.subject.clone(),
        name: target.name.clone(),
        text: request.text.clone(),
        calls: target.workloads.iter().map(title).collect(),
        calls_hash: hash(&target.workloads),
        budget: request.settings.optimize.budget,
        seed: request.settings.optimize.seed,
        environment: format!("{}, Triton {}, torch {}", environment.device, environment.triton, environment.torch),
    }
}

/// A hash of the properties that distinguish calls.
fn hash(workloads: &[Workload]) -> String {
    let mut hasher = blake3::Hasher::new();
    for workload in workloads {
        let parts = (&workload.entry, &workload.args, &workload.kwargs, workload.gradients);
        hasher.update(&serde_json::to_vec(&parts).unwrap_or_default());
    }
    hasher.finalize().to_hex().to_string()
}

/// The start time of a search that has spent `seconds` by now.
fn begin_of(seconds: f64) -> Option<Instant> {
    Instant::now().checked_sub(Duration::from_secs_f64(seconds))
}

impl SearchRun<'_> {
    /// Restores what the earlier part of the run has found. Candidates that were being judged then are judged
    /// first.
    pub(super) fn restore(&mut self, earlier: EarlierPart, search: &mut SearchState<'_>) -> Result<(), OptimizeError> {
        let other = || failed("the run cannot be resumed with this release of Warpsmith; start a new one");
        let mut open: HashSet<CandidateId> = HashSet::new();
        let mut made: Vec<CandidateMade> = Vec::new();
        for entry in earlier.entries {
            match entry {
                JournalEntry::Made(one) => {
                    open.insert(one.id);
                    made.push(one.clone());
                    search.recreate(one).ok_or_else(other)?;
                }
                JournalEntry::Judged(came) if open.remove(&came.id) => {
                    self.remember(&came);
                    search.finish(came.id, came.result);
                    if matches!(came.refused, Some((Reason::Screen, _))) {
                        search.tree.close(came.id);
                    }
                    search.measured(came.id, came.calls, came.same_code);
                }
                JournalEntry::GivenUp { id } if open.remove(&id) => search.forget(id),
                _ => {}
            }
        }
        made.retain(|one| open.contains(&one.id));
        self.queued = made
            .into_iter()
            .map(|CandidateMade { id, text, .. }| super::propose::PendingCandidate { id, text })
            .collect();
        self.started = begin_of(earlier.seconds).unwrap_or(self.started);
        Ok(())
    }

    /// Writes an entry to the journal and reports it to the observer.
    pub(super) fn record(&mut self, entry: &JournalEntry) {
        self.journal.write(entry);
        if let Some(changed) = self.report.note(entry) {
            self.observer.noted(&self.report, changed);
        }
    }

    fn remember(&mut self, came: &CandidateJudged) {
        if came.remembered {
            self.remembered += 1;
        } else {
            self.evaluated += 1;
            self.twins += usize::from(came.same_code);
        }
        if let Some((reason, evidence)) = &came.refused {
            self.refused.entry(*reason).or_insert((0, evidence.clone())).0 += 1;
        }
        match came.result {
            CandidateResult::Right(speedup) => self.better(speedup, came.same_code),
            CandidateResult::Uncompiled | CandidateResult::Wrong => self.since_improvement += 1,
        }
    }

    /// Writes the result of a candidate to the journal.
    pub(super) fn record_judged(
        &mut self,
        id: CandidateId,
        result: CandidateResult,
        refused: Option<(Reason, String)>,
        seen: ResumedCandidate,
    ) {
        let refused = refused.map(|(reason, evidence)| (reason, evidence.chars().take(EVIDENCE).collect()));
        let ResumedCandidate { measured, remembered, judged_on, stages } = seen;
        let (seconds, calls) = (self.seconds(), on_calls(&measured));
        let times = (!measured.is_empty()).then(|| Measured::sum_of_times(&measured));
        let same_code = has_same_code(&measured);
        self.twins += usize::from(same_code);
        self.record(&JournalEntry::Judged(CandidateJudged {
            id,
            seconds,
            result,
            refused,
            times,
            calls,
            remembered,
            same_code,
            judged_on,
            stages,
        }));
    }

    /// Writes the end of the run to the journal.
    pub(super) fn end(&mut self, outcome: &SearchOutcome) {
        let offer = outcome.offer.as_ref();
        let ended = RunEnded {
            seconds: self.seconds(),
            summary: outcome.summary.clone(),
            text: offer.map(|offer| offer.text.clone()),
            change: offer.map(|offer| offer.change.clone()),
            speedup: offer.map(|offer| offer.speedup.clone()),
        };
        for id in std::mem::take(&mut self.left_over) {
            self.record(&JournalEntry::GivenUp { id });
        }
        self.record(&JournalEntry::Ended(ended));
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_has_spent_its_seconds() {
        let spent = begin_of(40.0).expect("the machine runs longer").elapsed();
        assert!((40.0..60.0).contains(&spent.as_secs_f64()), "{spent:?}");
    }
}
