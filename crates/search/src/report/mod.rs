//! What a run did, for people and programs: from its journal alone. While it goes on, the report grows with each line of it.

mod detail;
mod html;
mod markdown;
mod pictures;
mod roofline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use similar::TextDiff;

use base::clock::day;
use judge::JudgedOn;
use judge::statistics::median;
use transform::Step;
use transform::candidate::describe;

use super::Subject;
use super::journal::{Asked, Begun, Came, Confirmed, Ended, Entry, JournalError, Made, read};
use super::speedup::Speedup;
use super::tree::Fate;

pub use detail::{CallTimes, Detail};

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Its name: `softmax-3`.
    pub run: String,
    /// The kernel, or the function that launches several.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// What of it was asked for.
    pub subject: Subject,
    /// The day on which it began.
    pub date: String,
    /// Device and versions.
    pub environment: String,
    /// The calls that it was measured with.
    pub calls: Vec<String>,
    /// Seconds that were allowed, and that were spent.
    pub budget: f64,
    /// Seconds that were spent.
    pub seconds: f64,
    /// How it ended; `None` when it did not.
    pub summary: Option<String>,
    /// What was changed, in words.
    pub change: Option<String>,
    /// What was measured of the offer.
    pub speedup: Option<Speedup>,
    /// The change as a diff.
    pub diff: Option<String>,
    /// What was seen when the best were confirmed.
    pub confirmations: Vec<Confirmation>,
    /// All candidates, in the order in which they were made.
    pub candidates: Vec<Tried>,
    /// Why candidates were refused, the most frequent reason first.
    pub refusals: Vec<Refusal>,
    /// What models were asked, by the name of the operator.
    pub asked: BTreeMap<String, AskedOf>,
    /// What models have cost.
    pub models: Vec<ModelCosts>,
    /// Best speedup so far, by a few timings, after so many seconds.
    pub best: Vec<(f64, f64)>,
    /// The file's text as it was.
    #[serde(skip)]
    text: String,
    /// What a model has said of the candidate that comes next.
    #[serde(skip)]
    said: Option<(usize, String)>,
}

/// What of a report has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// All of it.
    All,
    /// A candidate, by its place in [`Report::candidates`]: it is new, or it was judged.
    Candidate(usize),
    /// One of the best was measured again.
    Confirmed,
    /// It is over.
    Ended,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// Its number. 0 is the root, which holds none, and 1 the original.
    pub id: usize,
    /// The node that it is below.
    pub parent: usize,
    /// Whether it has another structure than what it was made of.
    pub large: bool,
    /// The kind of turn that made it.
    pub kind: String,
    /// What was changed, in words.
    pub change: String,
    /// `right`, `wrong`, `uncompiled`, or `open` when it was not judged.
    pub fate: &'static str,
    /// How much faster it was, by a few timings.
    pub speedup: Option<f64>,
    /// After so many seconds.
    pub seconds: Option<f64>,
    /// Why it was refused.
    pub reason: Option<String>,
    /// What the model said of it that made it; nobody has looked whether that is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Where it was judged, of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
    /// Seconds that each part of judging it took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<(String, f64)>,
}

/// What came of one operator of models.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AskedOf {
    /// Questions.
    pub questions: usize,
    /// Replies to them.
    pub replies: u32,
    /// Candidates that nobody had tried.
    pub candidates: usize,
    /// Those of them that were right.
    pub right: usize,
    /// Questions of which nothing came; the last reason.
    pub failed: usize,
    /// Why the last of those failed.
    pub why: Option<String>,
}

/// What a model has cost in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCosts {
    /// Its name.
    pub model: String,
    /// Requests.
    pub requests: u64,
    /// Tokens that were sent.
    pub input: u64,
    /// Those of them that the provider had kept.
    pub cached: u64,
    /// Tokens that came back.
    pub output: u64,
    /// Dollars, where `model.prices` are set.
    pub dollars: f64,
    /// Whether some tokens are an estimate.
    pub estimated: bool,
}

/// A measurement of one of the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confirmation {
    /// What was changed, in words.
    pub change: String,
    /// What was measured, if it is an offer.
    pub speedup: Option<Speedup>,
    /// Why it was refused.
    pub refused: Option<String>,
    /// What was looked at, and what was seen.
    pub checks: Vec<(String, String)>,
    /// What should be known of it beside that.
    pub notes: Vec<String>,
    /// Seconds that each part of it took.
    pub stages: Vec<(String, f64)>,
}

/// Why some candidates were refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// What was seen of one of them.
    pub example: String,
}

impl Report {
    /// That of a run of a workspace; `last` is the latest.
    ///
    /// # Errors
    /// [`JournalError`] when there is no such run, or it cannot be read.
    pub fn of(workspace: &Path, run: &str) -> Result<Self, JournalError> {
        let (run, entries) = read(workspace, run)?;
        Ok(Self::from_entries(run, &entries))
    }

    /// How many candidates were judged where, of a pool.
    fn places(&self) -> BTreeMap<String, usize> {
        let mut places = BTreeMap::new();
        for judged_on in self.candidates.iter().filter_map(|tried| tried.judged_on.as_ref()) {
            *places.entry(format!("{}, {}", judged_on.gpu, judged_on.place())).or_default() += 1;
        }
        places
    }

    /// Seconds that each part of judging a candidate took at the median of those that had it, in the order in which they come.
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

    pub(super) fn from_entries(run: String, entries: &[Entry]) -> Self {
        let mut report = Self::new(run);
        for entry in entries {
            report.note(entry);
        }
        report
    }

    fn new(run: String) -> Self {
        Self { run, best: vec![(0.0, 1.0)], ..Self::default() }
    }

    /// Takes in the next line of the journal. Says what it has changed.
    pub(super) fn note(&mut self, entry: &Entry) -> Option<Changed> {
        match entry {
            Entry::Begun(begun) => {
                self.begun(begun);
                Some(Changed::All)
            }
            Entry::Made(made) => {
                let said = self.said.take().filter(|(id, _)| *id == made.id).map(|(_, said)| said);
                self.candidates.push(Tried { said, ..Tried::of(made) });
                Some(Changed::Candidate(self.candidates.len() - 1))
            }
            Entry::Came(came) => self.came(came).map(Changed::Candidate),
            Entry::Confirmed(confirmed) => {
                self.confirmations.push(Confirmation::of(confirmed));
                Some(Changed::Confirmed)
            }
            Entry::Asked(asked) => {
                self.asked(asked);
                None
            }
            Entry::Costs { models } => {
                models.iter().for_each(|costs| self.cost(costs));
                None
            }
            Entry::Ended(ended) => {
                self.ended(ended);
                Some(Changed::Ended)
            }
            Entry::GivenUp { .. } | Entry::Resumed { .. } => None,
        }
    }

    fn begun(&mut self, begun: &Begun) {
        let Begun { name, file, subject, text, at, environment, calls, budget, .. } = begun;
        (self.name, self.file, self.subject) = (name.clone(), file.clone(), subject.clone());
        (self.text, self.environment, self.calls) = (text.clone(), environment.clone(), calls.clone());
        self.budget = *budget;
        self.date = day(u64::try_from(at / 1000).unwrap_or(0));
    }

    /// Gives the place of the candidate, if it is known.
    fn came(&mut self, came: &Came) -> Option<usize> {
        self.seconds = self.seconds.max(came.seconds);
        // It is one of the last.
        let place = self.candidates.iter().rposition(|tried| tried.id == came.id)?;
        self.candidates[place].came(came);
        if let Some((reason, evidence)) = &came.refused {
            self.refused(format!("{reason:?}"), evidence);
        }
        let operator = self.candidates[place].kind.strip_prefix("model ").map(str::to_owned);
        if let (Some(asked), Fate::Right(_)) = (operator.and_then(|name| self.asked.get_mut(&name)), came.fate) {
            asked.right += 1;
        }
        let best = self.best.last().map_or(1.0, |(_, best)| *best);
        if let Fate::Right(speedup) = came.fate
            && speedup > best
        {
            self.best.push((came.seconds, speedup));
        }
        Some(place)
    }

    fn asked(&mut self, asked: &Asked) {
        let Asked { operator, replies, outcome, said, id, .. } = asked;
        let sum = self.asked.entry(operator.clone()).or_default();
        (sum.questions, sum.replies) = (sum.questions + 1, sum.replies + replies);
        match id {
            Some(id) => {
                sum.candidates += 1;
                self.said = said.clone().map(|said| (*id, said));
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
            None => self.refusals.push(Refusal { reason, count: 1, example: example.to_owned() }),
        }
        self.refusals.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.reason.cmp(&other.reason)));
    }

    fn ended(&mut self, ended: &Ended) {
        self.seconds = ended.seconds;
        self.summary = Some(ended.summary.clone());
        (self.change, self.speedup) = (ended.change.clone(), ended.speedup.clone());
        self.diff = ended.text.as_ref().map(|text| self.diff_to(text));
    }

    fn diff_to(&self, text: &str) -> String {
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        TextDiff::from_lines(self.text.as_str(), text).unified_diff().header(&name, &name).to_string()
    }

    /// How many candidates came so far: `right`, `wrong`, `uncompiled`, `open`.
    #[must_use]
    pub fn count(&self, fate: &str) -> usize {
        self.candidates.iter().filter(|tried| tried.fate == fate).count()
    }

    /// One page that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// The parts of that page that are of measurements: calls, bounds, refusals, checks. For pages that draw the rest themselves.
    #[must_use]
    pub fn sections(&self) -> String {
        html::sections(self)
    }

    /// The same in Markdown, without pictures.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::text(self)
    }

    /// The commands that measure the same again.
    fn again(&self) -> [String; 2] {
        let file = self.file.display();
        [format!("warpsmith optimize {file} --budget {:.0}s", self.budget), format!("warpsmith report {}", self.run)]
    }
}

impl Tried {
    fn of(made: &Made) -> Self {
        Self {
            id: made.id,
            parent: made.parent,
            large: made.step == Step::Large,
            kind: made.kind.clone(),
            change: describe(&made.changes),
            fate: "open",
            speedup: None,
            seconds: None,
            reason: None,
            said: None,
            judged_on: None,
            stages: Vec::new(),
        }
    }

    fn came(&mut self, came: &Came) {
        self.seconds = Some(came.seconds);
        self.judged_on.clone_from(&came.judged_on);
        self.stages.clone_from(&came.stages);
        self.reason = came.refused.as_ref().map(|(reason, evidence)| format!("{reason:?}: {evidence}"));
        (self.fate, self.speedup) = match came.fate {
            Fate::Right(speedup) => ("right", Some(speedup)),
            Fate::Wrong => ("wrong", None),
            Fate::Uncompiled => ("uncompiled", None),
        };
    }
}

impl Confirmation {
    fn of(confirmed: &Confirmed) -> Self {
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
