//! The search: from the user's kernel to a faster one, measured.

mod choice;
mod confirm;
mod elsewhere;
mod ends;
mod gains;
mod history;
mod journal;
mod judged;
mod memory;
mod operators;
mod pace;
mod pause;
mod pool;
mod prepare;
mod propose;
mod queue;
mod refusals;
mod remeasure;
mod report;
mod resume;
mod run;
mod speedup;
mod surrogate;
mod tree;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use history::{Past, State, history};
pub use journal::{JournalError, runs};
pub use operators::{delete_transcripts, recipient, transcript_path, way_to_key};
pub use report::{AskedOf, CallTimes, Changed, Confirmation, Detail, ModelCosts, Refusal, Report, Tried};
pub use resume::resumable;
pub use speedup::{CallSpeedup, Speedup};

use config::Settings;
use rules::Edit;
use runtime::python::ForkerError;

/// A skill, for those who want to know what is tried.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SkillFacts {
    /// The name of its file: `rows_per_program`
    pub name: &'static str,
    /// Whether it builds the kernel otherwise, or draws all numbers anew; else it changes one thing.
    pub is_large: bool,
    /// What it does, and why that may be faster; Markdown.
    pub about: &'static str,
}

/// All skills, in the order in which they are asked.
pub fn skills() -> impl Iterator<Item = SkillFacts> {
    let facts = |skill: &&dyn transform::Skill| SkillFacts {
        name: skill.name(),
        is_large: skill.step() == transform::Step::Large,
        about: skill.about(),
    };
    transform::SKILLS.iter().map(facts)
}

/// What of a file is optimized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// All kernels that one call of the file launches.
    #[default]
    File,
    /// One kernel.
    Kernel(String),
    /// All kernels that a function launches, by its qualified name.
    Function(String),
}

impl Subject {
    /// The kernel or the function.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Kernel(name) | Self::Function(name) => Some(name),
        }
    }
}

/// What is to be done. Runs are known by their names; `last` is the latest.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Work {
    /// A new search.
    #[default]
    Search,
    /// To go on with the search of a run.
    GoOn(String),
    /// To measure the file against what it was when a run began.
    Measure(String),
}

/// What to optimize, and with what.
#[derive(Clone, Debug)]
pub struct Request {
    /// The file that holds the kernel.
    pub file: PathBuf,
    /// Its text, as the editor has it.
    pub text: String,
    /// What of it.
    pub subject: Subject,
    /// The workspace's root, which holds `.warpsmith/`.
    pub workspace: PathBuf,
    /// The user's interpreter.
    pub python: PathBuf,
    /// Budget, parallelism, seed.
    pub settings: Settings,
    /// What is to be done.
    pub work: Work,
}

/// How far a search is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What happens now, for a status line.
    pub message: String,
    /// Share of the budget that is spent, 0 to 1.
    pub fraction: f64,
    /// Best verified speedup so far.
    pub best: Option<f64>,
    /// Seconds of the budget that are spent, and that there are, once they count.
    pub seconds: Option<(f64, f64)>,
    /// Candidates that were judged.
    pub candidates: usize,
}

impl Progress {
    /// Something before the budget counts.
    #[must_use]
    pub fn before(message: impl Into<String>) -> Self {
        Self { message: message.into(), fraction: 0.0, best: None, seconds: None, candidates: 0 }
    }
}

impl fmt::Display for Progress {
    /// `exploring · 12/60 s · 1.40× · 14 candidates`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((spent, budget)) = self.seconds {
            write!(f, " · {:.0}/{budget:.0} s", spent.floor())?;
        }
        if let Some(best) = self.best {
            write!(f, " · {best:.2}×")?;
        }
        match self.candidates {
            0 => Ok(()),
            1 => f.write_str(" · 1 candidate"),
            more => write!(f, " · {more} candidates"),
        }
    }
}

/// Who watches a search and may stop it. Called from the thread that runs it.
pub trait Observer: Sync {
    /// Something happened.
    fn progress(&self, progress: &Progress);
    /// The report of a run that goes on has changed, for those who draw it.
    fn noted(&self, _report: &Report, _changed: Changed) {}
    /// Whether to stop; asked often.
    fn cancelled(&self) -> bool;
    /// Whether the user's program may be run once to record a workload; the question is for them.
    fn confirm(&self, question: &str) -> bool;
    /// Whether something may be sent to a language model; the question says what and to whom. Nobody agrees for the user.
    fn may_send(&self, _question: &str) -> bool {
        false
    }
    /// The language models of the editor that the search is made in, if it has any for us.
    fn editor_model(&self) -> Option<Arc<dyn llm::EditorModel>> {
        None
    }
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The kernel; of several the function that launches them.
    pub kernel: String,
    /// Candidates evaluated.
    pub evaluated: usize,
    /// Candidates that were not, since an earlier search saw them refused.
    pub remembered: usize,
    /// The offer; absent when nothing is certainly faster.
    pub offer: Option<Offer>,
    /// One or two sentences for the user.
    pub summary: String,
    /// The name under which it was written down.
    pub run: String,
}

/// A faster version of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// The edits of the text that the request carried; they do not overlap.
    #[serde(skip)]
    pub edits: Vec<Edit>,
    /// The whole text with the edits made.
    #[serde(skip)]
    pub text: String,
    /// What was changed, in words: `num_warps 4 → 8, BLOCK_M 64 → 128`.
    pub change: String,
    /// The measured speedup.
    pub speedup: Speedup,
}

/// Why a search could not run or finish.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// The user stopped it.
    #[error("stopped")]
    Cancelled,
    /// The user did not want their file to be run; the text says what to do instead.
    #[error("{0}")]
    Declined(String),
    /// Something is missing or failed; the text says what to do.
    #[error("{0}")]
    Failed(String),
}

impl From<ForkerError> for OptimizeError {
    fn from(error: ForkerError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Searches for a faster version, or measures one again. Blocks until done; run it on a thread of its own.
///
/// # Errors
/// [`OptimizeError`] when it was cancelled or could not run.
pub fn optimize(request: &Request, observer: &dyn Observer) -> Result<Outcome, OptimizeError> {
    match &request.work {
        Work::Measure(run) => remeasure::remeasure(request, run, observer),
        Work::Search | Work::GoOn(_) => run::optimize(request, observer),
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn progress_is_said_as_far_as_it_is_known() {
        let mut progress = Progress::before("starting Python");
        assert_eq!(progress.to_string(), "starting Python");
        (progress.message, progress.seconds, progress.candidates) = ("exploring".to_owned(), Some((12.9, 60.0)), 1);
        assert_eq!(progress.to_string(), "exploring · 12/60 s · 1 candidate");
        (progress.best, progress.candidates) = (Some(1.4), 14);
        assert_eq!(progress.to_string(), "exploring · 12/60 s · 1.40× · 14 candidates");
    }
}
