//! The history of a workspace's runs, with what is needed to find one again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::journal::{self, JournalEntry, RunStarted, path, runs};
use super::request::OptimizeScope;

/// Number of runs that are read, the latest ones.
const MOST: usize = 20;
/// Bytes at the end of a journal in which its last line is looked for.
const TAIL: u64 = 1 << 20;

/// A run of this workspace, which may be in progress.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// The run's name: `softmax-3`.
    pub run: String,
    /// The file that it optimizes.
    pub file: PathBuf,
    /// The part of the file that it optimizes.
    pub subject: OptimizeScope,
    /// Whether the run has ended, was stopped, or is in progress.
    pub state: RunState,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has ended normally.
    Over,
    /// It was stopped or its process died; it can be continued.
    Stopped,
    /// A process is still working on it.
    Running,
}

/// The latest runs, the latest first. Reads the first and the last line of each journal; runs that cannot be read
/// are left out.
#[must_use]
pub fn history(workspace: &Path) -> Vec<PastRun> {
    runs(workspace).into_iter().take(MOST).filter_map(|run| past(workspace, run)).collect()
}

fn past(workspace: &Path, run: String) -> Option<PastRun> {
    let mut file = File::open(path(workspace, &run)).ok()?;
    let mut first = String::new();
    BufReader::new(&file).read_line(&mut first).ok()?;
    let Ok(JournalEntry::Begun(RunStarted { file: of, subject, .. })) = serde_json::from_str(&first) else {
        return None;
    };
    let state = if has_ended(&mut file) {
        RunState::Over
    } else if journal::is_locked(&file) {
        RunState::Running
    } else {
        RunState::Stopped
    };
    Some(PastRun { run, file: of, subject, state })
}

/// Whether the last line records the end of the run.
fn has_ended(file: &mut File) -> bool {
    let mut tail = Vec::new();
    let read = file.metadata().and_then(|meta| {
        file.seek(SeekFrom::Start(meta.len().saturating_sub(TAIL)))?;
        file.read_to_end(&mut tail)
    });
    let lines = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let last = lines.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && matches!(serde_json::from_slice(last), Ok(JournalEntry::Ended(_)))
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Journal, RunEnded};
    use super::*;

    #[test]
    fn runs_are_listed_as_running_stopped_or_ended() {
        let folder = tempfile::tempdir().unwrap();
        let begun = RunStarted {
            form: RunStarted::FORM,
            at: 7,
            file: PathBuf::from("/k.py"),
            subject: OptimizeScope::Kernel("k".to_owned()),
            name: "k".to_owned(),
            text: "x = 1\n".to_owned(),
            calls: Vec::new(),
            calls_hash: String::new(),
            budget: 60.0,
            seed: 1,
            environment: String::new(),
        };
        let mut journal = Journal::begin(folder.path(), "k", begun.clone());
        let state = || history(folder.path())[0].state;
        assert_eq!(state(), RunState::Running);
        drop(journal);
        assert_eq!(state(), RunState::Stopped);
        journal = Journal::append(folder.path(), "k-1").unwrap();
        assert!(Journal::append(folder.path(), "k-1").is_err_and(|error| error.to_string().contains("still running")));
        let ended = RunEnded { seconds: 1.0, summary: "done".to_owned(), text: None, change: None, speedup: None };
        journal.write(&JournalEntry::Ended(ended));
        assert_eq!(state(), RunState::Over);
        assert_eq!(history(folder.path())[0].subject, begun.subject);
    }
}
