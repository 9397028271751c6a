//! Handling of verdicts: what happens to a candidate once it is judged, or refused without being judged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use judge::{Evaluator, Outcome, Reason, Verdict};

use super::journal::JournalEntry;
use super::propose::{PendingCandidate, SearchState};
use super::resume::ResumedCandidate;
use super::run::{SearchRun, result_of};
use super::speedup::{has_same_code, on_calls, rough};
use super::tree::{CandidateId, CandidateResult};

/// Number of times that the judge's processes are restarted.
const RESTARTS: usize = 3;
/// After a restart, time does not count against the budget until something is judged again, but for no longer than
/// this.
const RECOVERING: Duration = Duration::from_secs(30);

impl SearchRun<'_> {
    /// The result of a candidate that an earlier search saw refused for a reason that still holds, or that a
    /// learned rule flags.
    pub(super) fn earlier_refusal(&mut self, text: &str) -> Option<(CandidateResult, Option<(Reason, String)>)> {
        let known = self.refusals.find(&self.bench, text);
        let known = known.or_else(|| self.refusals.predict(&self.bench, &self.request.text, text));
        let (reason, evidence) = known?;
        self.refused.entry(reason).or_insert((0, evidence.clone())).0 += 1;
        self.remembered += 1;
        Some((result_of(reason), Some((reason, evidence))))
    }

    /// Records a verdict.
    pub(super) fn judged(&mut self, search: &mut SearchState<'_>, id: CandidateId, verdict: Verdict) {
        let is_recalled = self.is_recalled(id);
        self.in_flight.remove(&id);
        self.refusals.keep(self.request, &self.bench, &search.candidate(id).text, &verdict);
        let (fate, refused, measured) = match verdict.outcome {
            Outcome::Accepted | Outcome::Predicted => {
                let speedup = rough(&verdict.measured);
                search.memory.measured(&verdict.measured);
                self.check_time_floor(&verdict.measured);
                self.better(speedup, has_same_code(&verdict.measured));
                (CandidateResult::Right(speedup), None, verdict.measured)
            }
            Outcome::Refused { reason, evidence, .. } => {
                self.refused.entry(reason).or_insert((0, evidence.clone())).0 += 1;
                if matches!(reason, Reason::Load | Reason::Compile) {
                    self.queue_repair(search, id, &evidence);
                }
                if reason == Reason::Compile {
                    self.refusals.note_uncompiled(&search.candidate(id).text, search.base(id));
                }
                (result_of(reason), Some((reason, evidence)), Vec::new())
            }
            Outcome::Undecided { .. } if is_recalled => return self.give_up(search, id),
            Outcome::Undecided { why, .. } => return self.undecided(search, id, why),
        };
        self.recovers = None;
        // A candidate that was proposed ahead of its base's verdict says nothing about what is left to find.
        if !matches!(fate, CandidateResult::Right(_)) && !search.is_ahead(id) {
            self.since_improvement += 1;
        }
        self.finish(search, id, fate);
        search.learn(id);
        search.measured(id, on_calls(&measured), has_same_code(&measured));
        let (judged_on, stages) = (verdict.judged_on, verdict.stages);
        self.record_judged(
            id,
            fate,
            refused,
            ResumedCandidate { measured, judged_on, stages, ..ResumedCandidate::default() },
        );
        self.evaluated += 1;
        self.report_message("exploring".to_owned());
    }

    /// Whether the candidate has lost its point while it was judged.
    pub(super) fn is_recalled(&self, id: CandidateId) -> bool {
        self.in_flight.get(&id).is_some_and(|unwanted| unwanted.load(Ordering::Relaxed))
    }

    /// Handles a candidate that could not be judged through no fault of its own: it is judged once more.
    fn undecided(&mut self, search: &mut SearchState<'_>, id: CandidateId, why: String) {
        if self.is_late {
            // A candidate that was abandoned is judged if the run is continued.
            self.left_over.push(id);
            return search.forget(id);
        }
        self.restart_dead_processes();
        if self.retried.insert(id) {
            let text = search.candidate(id).text.clone();
            return self.queued.push_back(PendingCandidate { id, text });
        }
        self.give_up(search, id);
        self.undecided.get_or_insert(why);
    }

    fn give_up(&mut self, search: &mut SearchState<'_>, id: CandidateId) {
        search.forget(id);
        self.record(&JournalEntry::GivenUp { id });
    }

    /// Records the result of a candidate. If it is not correct, candidates that were made from it ahead of the
    /// verdict are recalled.
    pub(super) fn finish(&mut self, search: &mut SearchState<'_>, id: CandidateId, fate: CandidateResult) {
        search.finish(id, fate);
        for lost in search.tree.pending_descendants(id) {
            match self.in_flight.get(&lost) {
                Some(unwanted) => unwanted.store(true, Ordering::Relaxed),
                // It was to be judged once more.
                None => {
                    self.queued.retain(|again| again.id != lost);
                    self.give_up(search, lost);
                }
            }
        }
    }

    /// Restarts the judge's processes when they have died, so that their end does not end the search. Returns
    /// whether they run again.
    pub(super) fn restart_dead_processes(&mut self) -> bool {
        if !self.bench.is_gone() || self.restarts >= RESTARTS {
            return false;
        }
        self.restarts += 1;
        // Nothing can be judged meanwhile.
        self.started += self.pause.idle_time(true);
        let evaluator = &self.request.settings.evaluator;
        let waiting = || !self.observer.cancelled();
        let within = (&judge::RemoteJudges::from(evaluator), &judge::CandidateLimits::from(&evaluator.limits));
        match Evaluator::start(&self.request.python, within.0, within.1, &waiting) {
            Ok(bench) => {
                self.bench = Arc::new(bench);
                self.started += self.pause.idle_time(true);
                self.recovers = Some(Instant::now() + RECOVERING);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the judge has ended and cannot be restarted");
                false
            }
        }
    }
}
