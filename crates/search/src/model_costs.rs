//! What a language model cost in a run.

use serde::{Deserialize, Serialize};

/// The costs of a model in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCosts {
    /// The model's name.
    pub model: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of input tokens.
    pub input: u64,
    /// Number of input tokens that the provider had cached.
    pub cached: u64,
    /// Number of output tokens.
    pub output: u64,
    /// Cost in dollars, where `model.prices` are set.
    pub dollars: f64,
    /// Whether some token counts are estimates.
    pub estimated: bool,
}
