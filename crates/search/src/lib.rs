//! The search for a faster version of a kernel: it proposes candidates, has them judged and measured, and offers
//! the best.

mod bandit;
mod confirm;
mod external_uses;
mod history;
mod idle_wait;
mod journal;
mod kernel_regression;
mod operators;
mod prepare;
mod propose;
mod refusal_cache;
mod remeasure;
mod report;
mod representative_pool;
mod resume;
mod run;
mod search_lessons;
mod search_queue;
mod search_space;
mod size_dispatch;
mod speedup;
mod stopping;
mod stragglers;
mod tree;
mod verdict_handling;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use history::{PastRun, RunState, history};
pub use journal::{JournalError, runs};
pub use operators::{delete_transcripts, key_source, recipient, transcript_path};
pub use report::{
    CallTimes, Confirmation, Detail, ModelCosts, OperatorStats, RefusalSummary, Report, ReportChange, TriedCandidate,
};
pub use resume::resumable;
pub use speedup::{CallSpeedup, Speedup};

use config::Settings;
use rules::Edit;
use runtime::python::ForkerError;

/// A built-in skill (source transformation), as listings show it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SkillFacts {
    /// Its identifier, which is also the name of its source file: `rows_per_program`.
    pub name: &'static str,
    /// Whether it restructures the kernel or draws all launch parameters anew; a small skill changes one thing.
    pub is_large: bool,
    /// What the skill does and why that may be faster, in Markdown.
    pub about: &'static str,
}

/// All skills, in the order in which the search asks them.
pub fn skills() -> impl Iterator<Item = SkillFacts> {
    let facts = |skill: &&dyn transform::Skill| SkillFacts {
        name: skill.name(),
        is_large: skill.step() == transform::StepSize::Large,
        about: skill.about(),
    };
    transform::SKILLS.iter().map(facts)
}

/// The part of a file that is optimized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizeScope {
    /// All kernels that one call of the file launches.
    #[default]
    File,
    /// One kernel, by its name.
    Kernel(String),
    /// All kernels that a function launches, by the function's qualified name.
    Function(String),
}

impl OptimizeScope {
    /// The name of the kernel or function; `None` for the whole file.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Kernel(name) | Self::Function(name) => Some(name),
        }
    }
}

/// What to do: search, continue a run, or measure again. A run is given by its name; `last` is the latest.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SearchAction {
    /// Start a new search.
    #[default]
    Search,
    /// Continue the search of this run.
    GoOn(String),
    /// Measure the file against its text at the beginning of this run.
    Measure(String),
}

/// A request: what to optimize, where, and under which settings.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The path of the file that holds the kernel.
    pub file: PathBuf,
    /// The file's text in the editor, which may not be saved yet.
    pub text: String,
    /// The part of the file to optimize.
    pub subject: OptimizeScope,
    /// The workspace's root, which holds `.warpsmith/`.
    pub workspace: PathBuf,
    /// The path of the user's Python interpreter.
    pub python: PathBuf,
    /// The user's settings: budget, parallelism and seed among others.
    pub settings: Settings,
    /// What to do with the file.
    pub work: SearchAction,
}

/// The progress of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The present activity, for a status line.
    pub message: String,
    /// Share of the budget that is spent, 0 to 1.
    pub fraction: f64,
    /// Best speedup of a correct candidate so far (1 is the speed of the original).
    pub best: Option<f64>,
    /// Seconds of the budget that are spent, and the whole budget in seconds; `None` before the budget counts.
    pub seconds: Option<(f64, f64)>,
    /// Number of candidates that were judged.
    pub candidates: usize,
}

impl Progress {
    /// Progress of a step that comes before the budget counts.
    #[must_use]
    pub fn before(message: impl Into<String>) -> Self {
        Self { message: message.into(), fraction: 0.0, best: None, seconds: None, candidates: 0 }
    }
}

impl fmt::Display for Progress {
    /// One status line, as far as the parts are known: `exploring · 12/60 s · 1.40× · 14 candidates`
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

/// A listener that receives the progress of a search, answers its questions and may stop it. The thread that runs
/// the search calls it.
pub trait Observer: Sync {
    /// Receives the search's progress.
    fn progress(&self, progress: &Progress);
    /// Receives the report of the run whenever it has changed, for views that draw the search.
    fn noted(&self, _report: &Report, _changed: ReportChange) {}
    /// Whether the search should stop. The search asks often, so this must be cheap.
    fn cancelled(&self) -> bool;
    /// Asks the user `question`: whether their program may be run once to record a workload.
    fn confirm(&self, question: &str) -> bool;
    /// Asks the user `question`: whether something, named with its recipient, may be sent to a language model. The
    /// default is no, so that no implementation consents on the user's behalf.
    fn may_send(&self, _question: &str) -> bool {
        false
    }
    /// The language models of the editor in which the search was started, if the editor offers any.
    fn editor_model(&self) -> Option<Arc<dyn llm::EditorModel>> {
        None
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchOutcome {
    /// The kernel's name; for several kernels, the name of the function that launches them.
    pub kernel: String,
    /// Number of candidates that were evaluated.
    pub evaluated: usize,
    /// Number of candidates that were skipped because an earlier search had seen them refused.
    pub remembered: usize,
    /// The offer; `None` when no candidate is certainly faster.
    pub offer: Option<Offer>,
    /// The result for the user, in a few sentences.
    pub summary: String,
    /// The run's name. After a new search it is empty if the journal could not be created; after a measurement it
    /// is the name of the run compared with.
    pub run: String,
}

/// A faster version of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// Edits of the text that the request carried; they do not overlap.
    #[serde(skip)]
    pub edits: Vec<Edit>,
    /// The whole text after the edits.
    #[serde(skip)]
    pub text: String,
    /// The changes in words: `num_warps 4 → 8, BLOCK_M 64 → 128`.
    pub change: String,
    /// The speedup with its confidence interval and conditions; a prediction when no device was used.
    pub speedup: Speedup,
}

/// The reason why a search could not run or finish.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// The user stopped the search.
    #[error("stopped")]
    Cancelled,
    /// The user did not allow their file to be run; the text says what to do instead.
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

/// Searches for a faster version, or measures one again. Blocks until done; call it on a thread of its own.
///
/// # Errors
/// Returns an [`OptimizeError`] when the search was cancelled, was not allowed to run the user's program, or could
/// not run.
pub fn optimize(request: &SearchRequest, observer: &dyn Observer) -> Result<SearchOutcome, OptimizeError> {
    match &request.work {
        SearchAction::Measure(run) => remeasure::remeasure(request, run, observer),
        SearchAction::Search | SearchAction::GoOn(_) => run::optimize(request, observer),
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
