//! What a run did, for people and programs: from its journal alone.

mod html;
mod markdown;
mod pictures;
mod roofline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::TextDiff;

use super::candidate::describe;
use super::journal::{Begun, Came, Confirmed, Entry, JournalError, Made, read};
use super::speedup::Speedup;
use super::tree::{Fate, Id, Step};
use crate::clock::day;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its name: `softmax-3`.
    pub run: String,
    /// The kernel, or the function that launches several.
    pub name: String,
    /// The file.
    pub file: PathBuf,
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
    /// Best speedup so far, by a few timings, after so many seconds.
    pub best: Vec<(f64, f64)>,
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

    fn from_entries(run: String, entries: &[Entry]) -> Self {
        let mut report = Self::begun(run, entries);
        let mut places: BTreeMap<Id, usize> = BTreeMap::new();
        let mut refusals: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for entry in entries {
            match entry {
                Entry::Made(made) => {
                    places.insert(made.id, report.candidates.len());
                    report.candidates.push(Tried::of(made));
                }
                Entry::Came(came) => {
                    report.seconds = report.seconds.max(came.seconds);
                    let Some(tried) = places.get(&came.id).and_then(|&at| report.candidates.get_mut(at)) else {
                        continue;
                    };
                    tried.came(came);
                    if let Some((reason, evidence)) = &came.refused {
                        refusals.entry(format!("{reason:?}")).or_insert((0, evidence.clone())).0 += 1;
                    }
                    report.gained(came);
                }
                Entry::Confirmed(confirmed) => report.confirmations.push(Confirmation::of(confirmed)),
                Entry::Ended(ended) => {
                    report.seconds = ended.seconds;
                    report.summary = Some(ended.summary.clone());
                    (report.change, report.speedup) = (ended.change.clone(), ended.speedup.clone());
                    report.diff = ended.text.as_ref().map(|text| report.diff_to(entries, text));
                }
                _ => {}
            }
        }
        report.refusals =
            refusals.into_iter().map(|(reason, (count, example))| Refusal { reason, count, example }).collect();
        report.refusals.sort_by_key(|refusal| std::cmp::Reverse(refusal.count));
        report
    }

    fn begun(run: String, entries: &[Entry]) -> Self {
        let mut report = Self {
            run,
            name: String::new(),
            file: PathBuf::new(),
            date: String::new(),
            environment: String::new(),
            calls: Vec::new(),
            budget: 0.0,
            seconds: 0.0,
            summary: None,
            change: None,
            speedup: None,
            diff: None,
            confirmations: Vec::new(),
            candidates: Vec::new(),
            refusals: Vec::new(),
            best: vec![(0.0, 1.0)],
        };
        if let Some(Entry::Begun(Begun { name, file, at, environment, calls, budget, .. })) = entries.first() {
            (report.name, report.file, report.calls) = (name.clone(), file.clone(), calls.clone());
            (report.environment, report.budget) = (environment.clone(), *budget);
            report.date = day(u64::try_from(at / 1000).unwrap_or(0));
        }
        report
    }

    fn gained(&mut self, came: &Came) {
        let best = self.best.last().map_or(1.0, |(_, best)| *best);
        if let Fate::Right(speedup) = came.fate
            && speedup > best
        {
            self.best.push((came.seconds, speedup));
        }
    }

    fn diff_to(&self, entries: &[Entry], text: &str) -> String {
        let Some(Entry::Begun(begun)) = entries.first() else { return String::new() };
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        TextDiff::from_lines(&begun.text, text).unified_diff().header(&name, &name).to_string()
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
        }
    }

    fn came(&mut self, came: &Came) {
        self.seconds = Some(came.seconds);
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
        }
    }
}

#[cfg(test)]
mod tests;
