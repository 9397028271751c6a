//! What autotuners choose.

use serde::{Deserialize, Serialize};

/// What an autotuner chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// The kernel, by its name.
    pub kernel: String,
    /// The configuration, as Triton writes it.
    pub config: String,
    /// Those that it could have chosen: they were slower.
    pub others: Vec<String>,
    /// Those of them that it nearly chose, the fastest first.
    #[serde(default)]
    pub near: Vec<String>,
}
