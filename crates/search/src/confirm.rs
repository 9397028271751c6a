//! The last part of a search: the best candidates are measured again, and one is offered if it holds up.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use judge::{CREDIBLE, Effort, LEAST_SPEEDUP, Outcome, Reason, Verdict};
use protocol::WorkloadSource;
use transform::candidate::{Candidate, edits_between};
use transform::one_configuration::with_the_others;
use workload::last_lines;

use super::journal::{ConfirmationMade, JournalEntry};
use super::outcome::{Offer, OptimizeError, SearchOutcome, failed};
use super::propose::SearchState;
use super::remeasure::judge;
use super::run::{ROUGH_PAIRS, SearchRun};
use super::speedup::Speedup;
use super::tree::CandidateId;

/// Timing pairs of the confirming measurement, beyond the rough ones.
const CONFIRM_PAIRS: usize = 188;
/// A candidate counts as equally fast as the best if its rough speedup is at least this share of the best one's.
const AS_FAST: f64 = 0.99;
/// A confirmed speedup below this share of the rough one did not hold. Possible causes are an autotuner that was
/// disturbed and chose another configuration, or calls that were left out of the search and are the slow ones.
const HELD: f64 = 0.8;
/// Number of candidates to confirm. For each refused one, another is tried, up to `REFUSED` more.
const CONFIRMED: usize = 3;
const REFUSED: usize = 3;
/// Share of the budget at which the runs under the memory checker should be done. One run may take the time that is
/// left until then, but at least `LEAST_CHECKED` and at most `MOST_CHECKED` seconds.
const CHECKED_AT: f64 = 0.9;
const LEAST_CHECKED: f64 = 15.0;
const MOST_CHECKED: f64 = 60.0;

/// The correct candidates, the fastest first; among those that are as fast as the best, the one that changes least
/// comes first.
fn simplest_first(search: &SearchState<'_>) -> Vec<(CandidateId, f64)> {
    let mut ranked = search.tree.ranked();
    let best = ranked.first().map_or(1.0, |(_, speedup)| *speedup);
    let as_fast = ranked.iter().take_while(|(_, speedup)| *speedup >= best * AS_FAST).count();
    ranked[..as_fast].sort_by(|(one, _), (other, _)| {
        let [one, other] = [one, other].map(|id| search.candidate(*id).distance());
        one.total_cmp(&other)
    });
    ranked
}

/// The index of the next candidate to confirm, given the changes of each: the first that does not contain all
/// changes of a refused one; if there is none, the first.
fn next(left: &[BTreeSet<String>], refused: &[BTreeSet<String>]) -> Option<usize> {
    let is_alike = |turned: &BTreeSet<String>| refused.iter().any(|refused| refused.is_subset(turned));
    left.iter().position(|turned| !is_alike(turned)).or((!left.is_empty()).then_some(0))
}

/// Whether a candidate, by its rough speedup, is likely to be faster than the confirmed one.
fn is_worth(rough: f64, confirmed: Option<f64>) -> bool {
    confirmed.is_none_or(|confirmed| rough * HELD > confirmed)
}

/// The result of an attempt to confirm a candidate.
enum Answer {
    Confirmed(Speedup),
    /// The candidate is wrong.
    Refused(Reason, String),
    /// The candidate is correct, but not certainly faster, or too fast to be believed.
    Objected(String),
    /// The judge could not decide; the text is the reason.
    Undecided(String),
}

impl Answer {
    fn of(outcome: Outcome, believed: impl FnOnce() -> Result<Speedup, String>) -> Self {
        match outcome {
            Outcome::Accepted | Outcome::Predicted => believed().map_or_else(Self::Objected, Self::Confirmed),
            Outcome::Refused { reason, evidence, .. } => Self::Refused(reason, evidence),
            Outcome::Undecided { why, .. } => Self::Undecided(why),
        }
    }

    /// The reason why a candidate that was not refused is no offer, for the journal and the reports.
    fn reservation(&self) -> Option<String> {
        match self {
            Self::Undecided(why) => Some(format!("whether it is correct and faster cannot be determined: {why}")),
            Self::Objected(why) => Some(format!("not offered: {why}")),
            Self::Confirmed(_) | Self::Refused(..) => None,
        }
    }
}

/// Whether a speedup is greater than the greatest that was confirmed before.
fn is_fastest(ratio: f64, confirmed: Option<f64>) -> bool {
    confirmed.is_none_or(|before| before < ratio)
}

impl SearchRun<'_> {
    /// Judges one candidate on all calls and waits for the verdict.
    fn judge(&mut self, original: &Path, text: &str, effort: Effort) -> Result<Verdict, OptimizeError> {
        let task = self.task(original, text, effort, usize::MAX)?;
        judge(&Arc::clone(&self.bench), &task, self.observer)
    }

    /// Measures the best candidates again, alone, on inputs and sizes that the search has not seen.
    pub(super) fn confirm_best(
        &mut self,
        original: &Path,
        search: &SearchState<'_>,
    ) -> Result<Option<Offer>, OptimizeError> {
        if let (Some(why), 0) = (&self.undecided, self.evaluated) {
            return Err(failed(why.clone()));
        }
        if self.is_late && self.evaluated + self.remembered == 0 {
            return Err(failed("the budget was used up before a candidate was judged; raise `optimize.budget`"));
        }
        let is_likely = |(id, speedup): &(CandidateId, f64)| *id != SearchState::FIRST && *speedup >= LEAST_SPEEDUP;
        let mut left: Vec<_> = simplest_first(search).into_iter().filter(is_likely).collect();
        let (mut tried, mut refused) = (0, Vec::new());
        let mut best: Option<Offer> = None;
        while tried < CONFIRMED + refused.len().min(REFUSED) {
            // After an objection, candidates that are too fast to be believed are left out: one that can be offered
            // is of more use.
            left.retain(|(_, speedup)| *speedup <= CREDIBLE || self.objections.is_empty());
            let turned: Vec<_> = left.iter().map(|(id, _)| search.candidate(*id).changed_names()).collect();
            let Some(at) = next(&turned, &refused) else { break };
            let (id, rough) = left.remove(at);
            let candidate = search.candidate(id);
            tried += 1;
            let tuned = with_the_others(search.candidate(SearchState::FIRST), candidate);
            for candidate in tuned.iter().chain([candidate]) {
                let confirmed = best.as_ref().map(|offer| offer.speedup.ratio);
                if !is_worth(rough, confirmed) {
                    return Ok(best);
                }
                match self.confirm(original, candidate)? {
                    Answer::Confirmed(speedup) if is_fastest(speedup.ratio, confirmed) => {
                        best = Some(self.offer(candidate, speedup));
                    }
                    Answer::Refused(..) => refused.push(candidate.changed_names()),
                    Answer::Confirmed(_) | Answer::Objected(_) | Answer::Undecided(_) => {}
                }
            }
        }
        Ok(best)
    }

    /// Time limit of one run under the memory checker. It may extend past the end of the budget.
    fn left_for_checks(&self) -> Duration {
        let left = self.request.settings.optimize.budget * (CHECKED_AT - self.spent());
        Duration::from_secs_f64(left.clamp(LEAST_CHECKED, MOST_CHECKED))
    }

    /// Judges a candidate with all checks on all calls, and writes the result to the journal.
    fn confirm(&mut self, original: &Path, candidate: &Candidate) -> Result<Answer, OptimizeError> {
        self.report_message(format!("confirming {}", candidate.describe()));
        let effort = Effort {
            sanitizer: Some(self.left_for_checks()),
            first_pairs: ROUGH_PAIRS,
            full: CONFIRM_PAIRS,
            contender: 0.0,
            kernel: self.target.is_new(),
            grade: self.request.settings.optimize.grade,
            ..Effort::default()
        };
        let mut verdict = self.judge(original, &candidate.text, effort)?;
        if matches!(verdict.outcome, Outcome::Undecided { .. }) && self.restart_dead_processes() {
            verdict = self.judge(original, &candidate.text, effort)?;
        }
        self.refusals.keep(self.request, &self.bench, &candidate.text, &verdict);
        let answer = Answer::of(verdict.outcome, || {
            let speedup = Speedup::credible(&verdict.measured, &self.bench.environment())?;
            Ok(speedup.judged_on(verdict.judged_on.as_ref()).right_on(verdict.grade.as_ref()))
        });
        let (seconds, change) = (self.seconds(), candidate.describe());
        let (mut speedup, mut refused) = (None, None);
        match &answer {
            Answer::Confirmed(confirmed) => speedup = Some(confirmed.clone()),
            Answer::Refused(reason, evidence) => {
                self.refused.entry(*reason).or_insert((0, evidence.clone())).0 += 1;
                refused = Some((*reason, evidence.clone()));
            }
            Answer::Objected(why) => self.objections.push((change.clone(), why.clone())),
            Answer::Undecided(_) => {}
        }
        let checks = verdict.checks.into_iter().map(|check| (check.name, check.evidence)).collect();
        let notes = verdict.notes.into_iter().chain(answer.reservation()).collect();
        let stages = verdict.stages;
        self.record(&JournalEntry::Confirmed(ConfirmationMade {
            seconds,
            change,
            speedup,
            refused,
            checks,
            notes,
            stages,
        }));
        Ok(answer)
    }

    fn offer(&self, candidate: &Candidate, speedup: Speedup) -> Offer {
        let text = candidate.text.clone();
        Offer { edits: edits_between(&self.request.text, &text), text, change: candidate.describe(), speedup }
    }

    pub(super) fn outcome(&self, offer: Option<Offer>, search: &SearchState<'_>) -> SearchOutcome {
        let mut summary = match &offer {
            Some(offer) => {
                let by_comment = if self.target.workloads[0].source == WorkloadSource::Launch {
                    " The comment is changed; launches elsewhere are not."
                } else {
                    ""
                };
                format!(
                    "`{}` is {}: {}. {} candidates{}.{by_comment}",
                    self.target.name,
                    offer.speedup.label(),
                    offer.change,
                    self.evaluated,
                    self.before()
                )
            }
            None => self.no_offer(search),
        };
        for (kernel, who) in &self.target.shared {
            summary += &format!(" {who} uses `{kernel}`, too, so it was not restructured.");
        }
        summary += &self.of_models();
        SearchOutcome {
            kernel: self.target.name.clone(),
            evaluated: self.evaluated,
            remembered: self.remembered,
            offer,
            summary,
            run: self.journal.run.clone(),
        }
    }

    /// The part of the summary that counts the candidates that were not run or were not judged again.
    fn before(&self) -> String {
        let twins = match self.twins {
            0 => String::new(),
            some => format!(" ({some} of them with the machine code of another one)"),
        };
        let before = match self.remembered {
            0 => String::new(),
            1 => "; 1 more was refused before".to_owned(),
            more => format!("; {more} more were refused before"),
        };
        let screened = match self.screened {
            0 => String::new(),
            1 => "; 1 of a model's was not run for what it does".to_owned(),
            more => format!("; {more} of models' were not run for what they do"),
        };
        twins + &before + &screened
    }

    fn no_offer(&self, search: &SearchState<'_>) -> String {
        let verified = search.tree.ranked().len() - 1;
        let mut text = format!(
            "Nothing certainly faster than `{}` as written: {} candidates, {verified} of them correct{}.",
            self.target.name,
            self.evaluated,
            self.before()
        );
        if let Some((change, why)) = self.objections.first() {
            text.push_str(&format!(" The best was not offered ({change}): {why}."));
        }
        if let Some(share) = self.at_floor {
            text.push_str(&format!(" The memory takes {:.0} % of its time: it is as fast as it gets.", 100.0 * share));
        }
        if verified == 0
            && let Some((reason, (count, evidence))) = self.refused.iter().max_by_key(|(_, (count, _))| *count)
        {
            text.push_str(&format!(" Most common refusal ({count}, {reason:?}): {}", last_lines(evidence)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_confirmed_is_offered() {
        assert!(is_fastest(1.2, None));
        assert!(is_fastest(1.3, Some(1.2)));
        assert!(!is_fastest(1.1, Some(1.2)));
    }

    #[test]
    fn a_failed_confirmation_does_not_stop_further_ones() {
        assert!(is_worth(1.1, None) && is_worth(1.63, Some(1.06)));
        // It held up in the confirming measurement, or the next one is no faster by its rough speedup.
        assert!(!is_worth(1.63, Some(1.6)) && !is_worth(1.3, Some(1.06)));
    }

    #[test]
    fn undecided_and_held_back_candidates_have_a_reservation() {
        let undecided = Outcome::Undecided { cause: judge::UndecidedCause::Process, why: "the GPU is gone".to_owned() };
        let said = |outcome, objection: &str| Answer::of(outcome, || Err(objection.to_owned())).reservation();
        let reservation = said(undecided, "it was not timed often enough").unwrap();
        assert!(reservation.ends_with("cannot be determined: the GPU is gone"), "{reservation}");
        assert_eq!(said(Outcome::Accepted, "its times moved").unwrap(), "not offered: its times moved");
        assert_eq!(Answer::of(Outcome::Accepted, || Ok(Speedup::default())).reservation(), None);
        assert_eq!(Answer::Refused(Reason::Output, "differs".to_owned()).reservation(), None);
    }

    #[test]
    fn candidates_with_the_changes_of_a_refused_one_come_later() {
        let turned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>();
        let all = [turned(&["SPLIT", "unrolled"]), turned(&["SPLIT", "unrolled", "num_stages"]), turned(&["SPLIT"])];
        assert_eq!(next(&all, &[]), Some(0));
        assert_eq!(next(&all[1..], &all[..1]), Some(1));
        assert_eq!(next(&all[1..2], &all[..1]), Some(0));
        assert_eq!(next(&[], &all), None);
    }
}
