//! The result of a search, or why there is none.

use rules::Edit;
use runtime::python::ForkerError;
use serde::Serialize;

use super::speedup::Speedup;

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

pub(super) fn failed(message: impl Into<String>) -> OptimizeError {
    OptimizeError::Failed(message.into())
}
