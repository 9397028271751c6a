//! The journal of a run, written as the search proceeds, from which the run can be continued after a crash and its
//! report is made.
//!
//! Each run has a file of JSON lines, `.warpsmith/runs/RUN.jsonl`. An incomplete line is ignored.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use judge::{JudgedOn, Reason};
use transform::StepSize;
use transform::candidate::Change;
use workload::state_folder;

use super::call_measurements::CallMeasurements;
use super::model_costs::ModelCosts;
use super::operators::transcript;
use super::request::OptimizeScope;
use super::speedup::Speedup;
use super::tree::{CandidateId, CandidateResult};

/// Number of runs that are kept per workspace.
const KEPT: usize = 50;
/// Version of the line format.
const FORM: u32 = 2;

/// The beginning of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunStarted {
    pub(super) form: u32,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    pub(super) file: PathBuf,
    /// The part of the file that was asked for.
    pub(super) subject: OptimizeScope,
    /// The name of the kernel, or of the function that launches several.
    pub(super) name: String,
    /// The file's text at the beginning.
    pub(super) text: String,
    /// The calls in words, and a hash of their arguments.
    pub(super) calls: Vec<String>,
    pub(super) calls_hash: String,
    /// The budget in seconds.
    pub(super) budget: f64,
    pub(super) seed: u64,
    /// Device and versions, in words.
    pub(super) environment: String,
}

/// A candidate that is about to be judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CandidateMade {
    pub(super) id: CandidateId,
    pub(super) parent: CandidateId,
    pub(super) step: StepSize,
    /// The candidate that it was made from.
    pub(super) base: CandidateId,
    /// The kind of change that made it.
    pub(super) kind: String,
    pub(super) changes: Vec<Change>,
    pub(super) text: String,
}

/// The result of judging a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CandidateJudged {
    pub(super) id: CandidateId,
    /// Seconds of the budget that were spent by then.
    pub(super) seconds: f64,
    #[serde(rename = "fate")]
    pub(super) result: CandidateResult,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<(Reason, String)>,
    /// Milliseconds of original and candidate from rough timings; for several calls the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) times: Option<(f64, f64)>,
    /// For each call that was measured, the milliseconds of the original and the speedup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: CallMeasurements,
    /// Whether the refusal was remembered from an earlier run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) remembered: bool,
    /// Whether its times are those of another candidate with the same machine code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "twin")]
    pub(super) same_code: bool,
    /// The machine of a pool on which it was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judged_on: Option<JudgedOn>,
    /// Seconds that each stage of judging took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stages: Vec<(String, f64)>,
}

#[cfg(test)]
impl CandidateJudged {
    /// A result for which nothing was measured.
    pub(super) fn unmeasured(
        id: CandidateId,
        seconds: f64,
        result: CandidateResult,
        refused: Option<(Reason, String)>,
    ) -> Self {
        let (times, calls, remembered, same_code, judged_on, stages) = Default::default();
        Self { id, seconds, result, refused, times, calls, remembered, same_code, judged_on, stages }
    }
}

/// The result of confirming one of the best candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ConfirmationMade {
    pub(super) seconds: f64,
    /// The changes in words.
    pub(super) change: String,
    /// `None` where it is no offer.
    pub(super) speedup: Option<Speedup>,
    pub(super) refused: Option<(Reason, String)>,
    /// The checks in words, with their evidence.
    pub(super) checks: Vec<(String, String)>,
    /// Further notes for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Seconds that each stage took.
    #[serde(default)]
    pub(super) stages: Vec<(String, f64)>,
}

/// A question to a model, with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelQuery {
    pub(super) seconds: f64,
    /// `small`, `large`, `repair` or `write`.
    pub(super) operator: String,
    pub(super) model: String,
    /// Number of replies that the question took.
    pub(super) replies: u32,
    pub(super) outcome: String,
    /// The model's explanation of its change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "said")]
    pub(super) explanation: Option<String>,
    /// The candidate that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<CandidateId>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunEnded {
    pub(super) seconds: f64,
    pub(super) summary: String,
    /// The whole text that is offered.
    pub(super) text: Option<String>,
    pub(super) change: Option<String>,
    pub(super) speedup: Option<Speedup>,
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(super) enum JournalEntry {
    Begun(RunStarted),
    Made(CandidateMade),
    #[serde(rename = "came")]
    Judged(CandidateJudged),
    /// The candidate could not be judged, and is not tried again.
    GivenUp {
        id: CandidateId,
    },
    Confirmed(ConfirmationMade),
    Asked(ModelQuery),
    /// The costs of models since the run began or was continued.
    Costs {
        models: Vec<ModelCosts>,
    },
    /// The run was continued after this many seconds of the budget.
    Resumed {
        at: i64,
        seconds: f64,
    },
    Ended(RunEnded),
}

/// The journal of a run in progress. It locks its file.
pub(super) struct Journal {
    /// The run's name: `softmax-3`.
    pub(super) run: String,
    file: Option<File>,
}

/// The reason why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no run of this name.
    #[error("there is no run `{0}`{1}")]
    Missing(String, String),
    /// The file cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, io::Error),
    /// The run is in progress in another process.
    #[error("`{0}` is still running, in another process")]
    Busy(String),
    /// The file was written by another release of Warpsmith.
    #[error("{0} was written by another release of Warpsmith")]
    Foreign(PathBuf),
}

impl Journal {
    /// Creates a journal under a new name. If it cannot be written, the search continues without a journal.
    pub(super) fn begin(workspace: &Path, name: &str, begun: RunStarted) -> Self {
        let made = folder(workspace).and_then(|folder| create(&folder, name));
        let (run, file) = match made {
            Ok((run, file)) => (run, Some(file)),
            Err(error) => {
                tracing::warn!(%error, "the journal of the run cannot be written");
                (String::new(), None)
            }
        };
        let mut journal = Self { run, file };
        journal.write(&JournalEntry::Begun(begun));
        journal
    }

    /// Opens the journal of a run to continue it.
    pub(super) fn append(workspace: &Path, run: &str) -> Result<Self, JournalError> {
        let path = path(workspace, run);
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).append(true).open(&path)?;
            // An incomplete last line is closed here.
            let mut last = [b'\n'];
            if file.metadata()?.len() > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
            Ok(file)
        };
        let file = open().map_err(|error| JournalError::Unreadable(path.clone(), error))?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(JournalError::Busy(run.to_owned()));
        }
        Ok(Self { run: run.to_owned(), file: Some(file) })
    }

    pub(super) fn write(&mut self, entry: &JournalEntry) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            // One write per line, so that a process that is killed leaves no interleaved parts of lines.
            file.write_all(&line)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the journal of the run can no longer be written");
            self.file = None;
        }
    }
}

/// All lines of a run, with its full name; `last` is the latest run.
pub(super) fn read(workspace: &Path, run: &str) -> Result<(String, Vec<JournalEntry>), JournalError> {
    let known = runs(workspace);
    let run = if run == "last" { known.first().cloned().unwrap_or_default() } else { run.to_owned() };
    if !known.contains(&run) {
        let what = match known.first() {
            Some(last) => format!("; the latest is `{last}`"),
            None => " in this workspace".to_owned(),
        };
        return Err(JournalError::Missing(run, what));
    }
    let path = path(workspace, &run);
    let unreadable = |error| JournalError::Unreadable(path.clone(), error);
    let mut entries: Vec<JournalEntry> = Vec::new();
    for line in BufReader::new(File::open(&path).map_err(unreadable)?).lines() {
        entries.extend(serde_json::from_str::<JournalEntry>(&line.map_err(unreadable)?).ok());
    }
    match entries.first() {
        Some(JournalEntry::Begun(begun)) if begun.form == FORM => Ok((run, entries)),
        _ => Err(JournalError::Foreign(path)),
    }
}

/// The names of a workspace's runs, the latest first.
#[must_use]
pub fn runs(workspace: &Path) -> Vec<String> {
    let Ok(folder) = fs::read_dir(workspace.join(".warpsmith/runs")) else { return Vec::new() };
    let mut found: Vec<_> = folder
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let at = entry.metadata().ok()?.modified().ok()?;
            Some((at, name.strip_suffix(".jsonl")?.to_owned()))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, run)| run).collect()
}

impl RunStarted {
    pub(super) const FORM: u32 = FORM;
}

pub(super) fn path(workspace: &Path, run: &str) -> PathBuf {
    workspace.join(".warpsmith/runs").join(format!("{run}.jsonl"))
}

/// Whether a process is writing this journal.
pub(super) fn is_locked(journal: &File) -> bool {
    matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The folder of the journals, after the oldest ones have been removed.
fn folder(workspace: &Path) -> io::Result<PathBuf> {
    let folder = state_folder(workspace)?.join("runs");
    fs::create_dir_all(&folder)?;
    for old in runs(workspace).into_iter().skip(KEPT - 1) {
        let journal = path(workspace, &old);
        // One that is in progress is removed later, when it is among the oldest again.
        if File::open(&journal).is_ok_and(|file| is_locked(&file)) {
            continue;
        }
        fs::remove_file(journal)?;
        let _ = fs::remove_file(transcript::path(workspace, &old));
    }
    Ok(folder)
}

/// Creates a file with the first free name: `softmax-3.jsonl`.
fn create(folder: &Path, name: &str) -> io::Result<(String, File)> {
    let name: String = name.chars().map(|it| if it.is_alphanumeric() || it == '_' { it } else { '-' }).collect();
    let mut number = 1;
    loop {
        let run = format!("{name}-{number}");
        match OpenOptions::new().append(true).create_new(true).open(folder.join(format!("{run}.jsonl"))) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => {
                let file = opened?;
                // The lock tells other processes that the run is in progress.
                let _ = file.try_lock();
                return Ok((run, file));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> RunStarted {
        RunStarted {
            form: FORM,
            at: 7,
            file: PathBuf::from("/k.py"),
            subject: OptimizeScope::File,
            name: "k".to_owned(),
            text: "x = 1\n".to_owned(),
            calls: Vec::new(),
            calls_hash: String::new(),
            budget: 60.0,
            seed: 1,
            environment: String::new(),
        }
    }

    #[test]
    fn the_journal_of_a_run_in_progress_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let running = Journal::begin(folder.path(), "running", begun());
        let ended = Journal::begin(folder.path(), "ended", begun()).run;
        for _ in 0..KEPT {
            drop(Journal::begin(folder.path(), "later", begun()));
        }
        let left = runs(folder.path());
        assert!(left.contains(&running.run) && !left.contains(&ended), "{left:?}");
    }

    #[test]
    fn journals_are_read_without_an_incomplete_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(folder.path(), "Op.forward", begun());
        assert_eq!(journal.run, "Op-forward-1");
        let came = |id| {
            let refused = Some((Reason::Output, "differs".to_owned()));
            JournalEntry::Judged(CandidateJudged::unmeasured(id, 0.5, CandidateResult::Wrong, refused))
        };
        journal.write(&came(2));
        drop(journal);
        let path = path(folder.path(), "Op-forward-1");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"what\":\"came\",\"id\":3")).unwrap();
        Journal::append(folder.path(), "Op-forward-1").unwrap().write(&came(4));
        let (run, entries) = read(folder.path(), "last").unwrap();
        assert_eq!((run.as_str(), entries), ("Op-forward-1", vec![JournalEntry::Begun(begun()), came(2), came(4)]));
        let without_calls = r#"{"what":"came","id":2,"seconds":0.5,"fate":"wrong","refused":["output","differs"]}"#;
        assert_eq!(
            serde_json::from_str::<JournalEntry>(without_calls).unwrap(),
            came(2),
            "as earlier releases wrote it"
        );
        assert_eq!(Journal::begin(folder.path(), "Op.forward", begun()).run, "Op-forward-2");
        let error = read(folder.path(), "k-1").unwrap_err().to_string();
        assert!(error.starts_with("there is no run `k-1`; the latest is `Op-forward-"), "{error}");
    }
}
