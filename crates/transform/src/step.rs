//! The size of the step from a candidate to the next one.

use serde::{Deserialize, Serialize};

/// How a candidate was made from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepSize {
    /// A change that keeps the structure of the candidate.
    Small,
    /// A new structure, from the best of several structures.
    Large,
}
