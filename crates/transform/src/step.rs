//! How far a candidate is from what it was made of.

use serde::{Deserialize, Serialize};

/// How a candidate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// By a change of one that keeps its structure.
    Small,
    /// Anew, from the best of several structures.
    Large,
}
