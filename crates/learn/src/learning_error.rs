//! The reasons why learning ends without a result.

use model::api::VersionError;
use store::StoreError;

use super::oracle::OracleError;

/// The reason why nothing was learned or proven.
#[derive(Debug, thiserror::Error)]
pub enum LearningError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The oracle gives a version of Triton that cannot be read.
    #[error(transparent)]
    Release(#[from] VersionError),
    /// Triton cannot be started.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// The oracle was asked to stop. Nothing was written.
    #[error("learning was stopped")]
    Stopped,
}
