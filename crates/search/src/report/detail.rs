//! The details of one candidate of a run.

use std::path::Path;

use serde::Serialize;

use super::{Report, TriedCandidate};
use crate::journal::{JournalEntry, JournalError, read};

/// Greatest length of a diff that is shown, in bytes.
const SHOWN: usize = 1 << 16;

/// A candidate with its diff to the original and its times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detail {
    /// Its origin and its result.
    #[serde(flatten)]
    pub tried: TriedCandidate,
    /// The unified diff to the original file.
    pub diff: String,
    /// Milliseconds of the original and of the candidate from rough timings; for several calls the sum.
    pub times: Option<(f64, f64)>,
    /// The times of each call.
    pub calls: Vec<CallTimes>,
    /// Whether the refusal was remembered from an earlier run.
    pub remembered: bool,
    /// Whether its times are those of another candidate with the same machine code.
    #[serde(rename = "twin")]
    pub same_code: bool,
}

/// The rough timings of one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallTimes {
    /// The call, in words.
    pub call: String,
    /// Milliseconds of the original.
    pub before_ms: f64,
    /// The candidate's speedup on this call.
    pub ratio: f64,
}

impl Detail {
    /// Reads the details of a candidate; `None` when the run has none of this number.
    ///
    /// # Errors
    /// Returns a [`JournalError`] when there is no such run, or it cannot be read.
    pub fn of(workspace: &Path, run: &str, id: usize) -> Result<Option<Self>, JournalError> {
        let (run, entries) = read(workspace, run)?;
        Ok(Self::from_entries(run, &entries, id))
    }

    pub(super) fn from_entries(run: String, entries: &[JournalEntry], id: usize) -> Option<Self> {
        let report = Report::from_entries(run, entries);
        let tried = report.candidates.iter().find(|tried| tried.id == id)?.clone();
        let text = entries.iter().find_map(|entry| match entry {
            JournalEntry::Made(made) if made.id == id => Some(made.text.as_str()),
            _ => None,
        })?;
        let came = entries.iter().rev().find_map(|entry| match entry {
            JournalEntry::Judged(came) if came.id == id => Some(came),
            _ => None,
        });
        let calls = came.map(|came| came.calls.as_slice()).unwrap_or_default().iter().enumerate();
        let calls = calls.map(|(at, &(before_ms, ratio))| {
            let call = report.calls.get(at).cloned().unwrap_or_default();
            CallTimes { call, before_ms, ratio }
        });
        Some(Self {
            calls: calls.collect(),
            diff: shown(report.diff_to(text)),
            times: came.and_then(|came| came.times),
            remembered: came.is_some_and(|came| came.remembered),
            same_code: came.is_some_and(|came| came.same_code),
            tried,
        })
    }
}

/// A diff, cut to the maximum length with a note in the last line.
fn shown(mut diff: String) -> String {
    if diff.len() > SHOWN {
        let end = diff[..diff.floor_char_boundary(SHOWN)].rfind('\n').map_or(0, |at| at + 1);
        diff.truncate(end);
        diff.push_str("… the rest is not shown\n");
    }
    diff
}
