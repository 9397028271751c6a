//! The report of a run, for people and programs, made from its journal alone. While the run is in progress, the
//! report grows with each line.

mod charts;
mod detail;
mod html;
mod markdown;
mod roofline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::TextDiff;

use base::clock::day;
use judge::JudgedOn;
use judge::statistics::median;
use transform::StepSize;
use transform::candidate::describe;

use super::journal::{
    CandidateJudged, CandidateMade, ConfirmationMade, JournalEntry, JournalError, ModelQuery, RunEnded, RunStarted,
    read,
};
use super::model_costs::ModelCosts;
use super::request::OptimizeScope;
use super::speedup::Speedup;
use super::tree::CandidateResult;

pub use detail::{CallTimes, Detail};

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The run's name: `softmax-3`.
    pub run: String,
    /// The name of the kernel, or of the function that launches several.
    pub name: String,
    /// The path of the file.
    pub file: PathBuf,
    /// The part of the file that was asked for.
    pub subject: OptimizeScope,
    /// The date on which the run began.
    pub date: String,
    /// Device and versions, in words.
    pub environment: String,
    /// The calls that were measured, in words.
    pub calls: Vec<String>,
    /// The budget in seconds.
    pub budget: f64,
    /// Seconds of the budget that were spent.
    pub seconds: f64,
    /// The summary for the user; `None` until the run has ended.
    pub summary: Option<String>,
    /// The changes of the offer in words; `None` without an offer.
    pub change: Option<String>,
    /// The measured speedup of the offer; `None` without an offer.
    pub speedup: Option<Speedup>,
    /// The offer as a unified diff.
    pub diff: Option<String>,
    /// The attempts to confirm the best candidates.
    pub confirmations: Vec<Confirmation>,
    /// All candidates, in the order in which they were made.
    pub candidates: Vec<TriedCandidate>,
    /// Why candidates were refused, the most frequent reason first.
    pub refusals: Vec<RefusalSummary>,
    /// Statistics of the questions to models, by the name of the operator.
    pub asked: BTreeMap<String, OperatorStats>,
    /// The costs of each model.
    pub models: Vec<ModelCosts>,
    /// The progress of the best rough speedup, as pairs of seconds and speedup.
    pub best: Vec<(f64, f64)>,
    /// The file's text at the beginning.
    #[serde(skip)]
    text: String,
    /// A model's explanation of the candidate that comes next.
    #[serde(skip)]
    #[serde(rename = "said")]
    explanation: Option<(usize, String)>,
}

/// The part of a report that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportChange {
    /// Everything.
    All,
    /// A candidate, by its index in [`Report::candidates`]: it is new, or it was judged.
    Candidate(usize),
    /// A best candidate was confirmed, or an attempt to do so has ended.
    Confirmed,
    /// The run has ended.
    Ended,
}

/// A candidate of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedCandidate {
    /// Its number. 0 is the root, which holds no candidate, and 1 is the original.
    pub id: usize,
    /// The number of its parent in the tree.
    pub parent: usize,
    /// Whether it comes from a large step, which may restructure the kernel.
    pub large: bool,
    /// The kind of change that made it.
    pub kind: String,
    /// The changes in words.
    pub change: String,
    /// `right`, `wrong`, `uncompiled`, or `open` when it was not judged.
    #[serde(rename = "fate")]
    pub result: &'static str,
    /// The speedup from rough timings, if it is correct.
    pub speedup: Option<f64>,
    /// Seconds of the budget that were spent when it was judged.
    pub seconds: Option<f64>,
    /// The reason of a refusal.
    pub reason: Option<String>,
    /// The explanation of the model that made it, which is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "said")]
    pub explanation: Option<String>,
    /// The machine of a pool on which it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
    /// Seconds that each stage of judging took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<(String, f64)>,
}

/// Statistics of one operator of models.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OperatorStats {
    /// Number of questions.
    pub questions: usize,
    /// Number of replies.
    pub replies: u32,
    /// Number of new candidates.
    pub candidates: usize,
    /// Number of those candidates that were correct.
    pub right: usize,
    /// Number of questions without a usable reply.
    pub failed: usize,
    /// The reason for which the last of those failed.
    pub why: Option<String>,
}

/// An attempt to confirm one of the best candidates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confirmation {
    /// The changes in words.
    pub change: String,
    /// The measured speedup, if it is an offer.
    pub speedup: Option<Speedup>,
    /// The reason of a refusal.
    pub refused: Option<String>,
    /// The checks, with their evidence.
    pub checks: Vec<(String, String)>,
    /// Further notes for the user.
    pub notes: Vec<String>,
    /// Seconds that each stage took.
    pub stages: Vec<(String, f64)>,
}

/// A reason for which candidates were refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusalSummary {
    /// The reason, in words.
    pub reason: String,
    /// Number of candidates that were refused for it.
    pub count: usize,
    /// The evidence from one of them.
    pub example: String,
}

impl Report {
    /// Reads the report of a run of a workspace; `last` is the latest.
    ///
    /// # Errors
    /// Returns a [`JournalError`] when there is no such run, or it cannot be read.
    pub fn of(workspace: &Path, run: &str) -> Result<Self, JournalError> {
        let (run, entries) = read(workspace, run)?;
        Ok(Self::from_entries(run, &entries))
    }

    /// Number of candidates that were judged on each machine of a pool.
    fn places(&self) -> BTreeMap<String, usize> {
        let mut places = BTreeMap::new();
        for judged_on in self.candidates.iter().filter_map(|tried| tried.judged_on.as_ref()) {
            *places.entry(format!("{}, {}", judged_on.gpu, judged_on.place())).or_default() += 1;
        }
        places
    }

    /// Median seconds of each stage of judging, over the candidates that went through it, in the order of the
    /// stages.
    fn stages(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
        for (stage, seconds) in self.candidates.iter().flat_map(|tried| &tried.stages) {
            match all.iter_mut().find(|(name, _)| name == stage) {
                Some((_, taken)) => taken.push(*seconds),
                None => all.push((stage, vec![*seconds])),
            }
        }
        all.into_iter().map(|(name, taken)| (name, median(taken))).collect()
    }

    pub(super) fn from_entries(run: String, entries: &[JournalEntry]) -> Self {
        let mut report = Self::new(run);
        for entry in entries {
            report.note(entry);
        }
        report
    }

    fn new(run: String) -> Self {
        Self { run, best: vec![(0.0, 1.0)], ..Self::default() }
    }

    /// Adds the next line of the journal. Returns what it has changed.
    pub(super) fn note(&mut self, entry: &JournalEntry) -> Option<ReportChange> {
        match entry {
            JournalEntry::Begun(begun) => {
                self.begun(begun);
                Some(ReportChange::All)
            }
            JournalEntry::Made(made) => {
                let said = self.explanation.take().filter(|(id, _)| *id == made.id).map(|(_, said)| said);
                self.candidates.push(TriedCandidate { explanation: said, ..TriedCandidate::of(made) });
                Some(ReportChange::Candidate(self.candidates.len() - 1))
            }
            JournalEntry::Judged(came) => self.came(came).map(ReportChange::Candidate),
            JournalEntry::Confirmed(confirmed) => {
                self.confirmations.push(Confirmation::of(confirmed));
                Some(ReportChange::Confirmed)
            }
            JournalEntry::Asked(asked) => {
                self.asked(asked);
                None
            }
            JournalEntry::Costs { models } => {
                models.iter().for_each(|costs| self.cost(costs));
                None
            }
            JournalEntry::Ended(ended) => {
                self.ended(ended);
                Some(ReportChange::Ended)
            }
            JournalEntry::GivenUp { .. } | JournalEntry::Resumed { .. } => None,
        }
    }

    fn begun(&mut self, begun: &RunStarted) {
        let RunStarted { name, file, subject, text, at, environment, calls, budget, .. } = begun;
        (self.name, self.file, self.subject) = (name.clone(), file.clone(), subject.clone());
        (self.text, self.environment, self.calls) = (text.clone(), environment.clone(), calls.clone());
        self.budget = *budget;
        self.date = day(u64::try_from(at / 1000).unwrap_or(0));
    }

    /// Records a result. Returns the index of the candidate, if it is known.
    fn came(&mut self, came: &CandidateJudged) -> Option<usize> {
        self.seconds = self.seconds.max(came.seconds);
        // It is one of the last.
        let place = self.candidates.iter().rposition(|tried| tried.id == came.id)?;
        self.candidates[place].came(came);
        if let Some((reason, evidence)) = &came.refused {
            self.refused(format!("{reason:?}"), evidence);
        }
        let operator = self.candidates[place].kind.strip_prefix("model ").map(str::to_owned);
        if let (Some(asked), CandidateResult::Right(_)) =
            (operator.and_then(|name| self.asked.get_mut(&name)), came.result)
        {
            asked.right += 1;
        }
        let best = self.best.last().map_or(1.0, |(_, best)| *best);
        if let CandidateResult::Right(speedup) = came.result
            && speedup > best
        {
            self.best.push((came.seconds, speedup));
        }
        Some(place)
    }

    fn asked(&mut self, asked: &ModelQuery) {
        let ModelQuery { operator, replies, outcome, explanation: said, id, .. } = asked;
        let sum = self.asked.entry(operator.clone()).or_default();
        (sum.questions, sum.replies) = (sum.questions + 1, sum.replies + replies);
        match id {
            Some(id) => {
                sum.candidates += 1;
                self.explanation = said.clone().map(|said| (*id, said));
            }
            None => {
                sum.failed += 1;
                sum.why = Some(outcome.clone());
            }
        }
    }

    fn cost(&mut self, costs: &ModelCosts) {
        match self.models.iter_mut().find(|known| known.model == costs.model) {
            Some(known) => {
                known.requests += costs.requests;
                known.input += costs.input;
                known.cached += costs.cached;
                known.output += costs.output;
                known.dollars += costs.dollars;
                known.estimated |= costs.estimated;
            }
            None => self.models.push(costs.clone()),
        }
    }

    fn refused(&mut self, reason: String, example: &str) {
        match self.refusals.iter_mut().find(|refusal| refusal.reason == reason) {
            Some(known) => known.count += 1,
            None => self.refusals.push(RefusalSummary { reason, count: 1, example: example.to_owned() }),
        }
        self.refusals.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.reason.cmp(&other.reason)));
    }

    fn ended(&mut self, ended: &RunEnded) {
        self.seconds = ended.seconds;
        self.summary = Some(ended.summary.clone());
        (self.change, self.speedup) = (ended.change.clone(), ended.speedup.clone());
        self.diff = ended.text.as_ref().map(|text| self.diff_to(text));
    }

    fn diff_to(&self, text: &str) -> String {
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        TextDiff::from_lines(self.text.as_str(), text).unified_diff().header(&name, &name).to_string()
    }

    /// Number of candidates with this result: `right`, `wrong`, `uncompiled`, `open`.
    #[must_use]
    pub fn count(&self, fate: &str) -> usize {
        self.candidates.iter().filter(|tried| tried.result == fate).count()
    }

    /// The commands that repeat the measurement.
    fn again(&self) -> [String; 2] {
        let file = self.file.display();
        [format!("warpsmith optimize {file} --budget {:.0}s", self.budget), format!("warpsmith report {}", self.run)]
    }
}

impl TriedCandidate {
    fn of(made: &CandidateMade) -> Self {
        Self {
            id: made.id,
            parent: made.parent,
            large: made.step == StepSize::Large,
            kind: made.kind.clone(),
            change: describe(&made.changes),
            result: "open",
            speedup: None,
            seconds: None,
            reason: None,
            explanation: None,
            judged_on: None,
            stages: Vec::new(),
        }
    }

    fn came(&mut self, came: &CandidateJudged) {
        self.seconds = Some(came.seconds);
        self.judged_on.clone_from(&came.judged_on);
        self.stages.clone_from(&came.stages);
        self.reason = came.refused.as_ref().map(|(reason, evidence)| format!("{reason:?}: {evidence}"));
        (self.result, self.speedup) = match came.result {
            CandidateResult::Right(speedup) => ("right", Some(speedup)),
            CandidateResult::Wrong => ("wrong", None),
            CandidateResult::Uncompiled => ("uncompiled", None),
        };
    }
}

impl Confirmation {
    fn of(confirmed: &ConfirmationMade) -> Self {
        Self {
            change: confirmed.change.clone(),
            speedup: confirmed.speedup.clone(),
            refused: confirmed.refused.as_ref().map(|(reason, evidence)| format!("{reason:?}: {evidence}")),
            checks: confirmed.checks.clone(),
            notes: confirmed.notes.clone(),
            stages: confirmed.stages.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
