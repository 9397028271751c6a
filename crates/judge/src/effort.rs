//! How thoroughly a candidate is judged.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::grade::{Grade, ModelWeights};
use super::memory_checker;

/// How thoroughly to judge a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Run all trials instead of only the recorded call.
    pub thorough: bool,
    /// Run a candidate that would be offered under the device memory checker, where one is installed, for at most this
    /// long.
    pub sanitizer: Option<Duration>,
    /// Call the candidate with more elements than 32 bits can count, even if it would not be offered.
    #[serde(rename = "beyond")]
    pub large_tensors: bool,
    /// The number of timing pairs that are measured first; 0 for no timing.
    #[serde(rename = "rough")]
    pub first_pairs: usize,
    /// The number of further pairs that are measured when the first ones suggest a ratio above [`Self::contender`].
    /// Fewer are measured where more could not make the candidate an offer.
    pub full: usize,
    /// The ratio of original time to candidate time above which all pairs are measured.
    pub contender: f64,
    /// Use the measurement of a candidate with the same machine code instead of measuring again.
    #[serde(default)]
    #[serde(rename = "twins")]
    pub reuse_timings: bool,
    /// Check only candidates near [`Self::contender`] for races and for kernels that do not compute the results. A
    /// search may rely on that, an offer may not.
    #[serde(default)]
    pub brief: bool,
    /// How many candidates may share a process, one after the other, unless they are judged thoroughly. Only for
    /// callers that made all of the candidates themselves.
    #[serde(default)]
    pub series: usize,
    /// Refuse a candidate that launches no Triton kernel, even where the original launches none.
    #[serde(default)]
    pub kernel: bool,
    /// How far the candidate must be right.
    #[serde(default)]
    pub grade: Grade,
    /// Find out how far a candidate is right that is refused for what it returns on some values.
    #[serde(default)]
    pub finds_grade: bool,
    /// Where the weights of models come from.
    #[serde(default)]
    pub weights: ModelWeights,
    /// Judge nothing, but compute what the original does in a thorough judgement. Only sent over a link.
    #[serde(default)]
    #[serde(rename = "ahead")]
    pub prefetch_only: bool,
}

impl Effort {
    /// Whether the checks that only an offer needs are limited to candidates near the best.
    pub(super) fn is_brief(&self) -> bool {
        self.brief && !self.thorough && self.first_pairs > 0
    }

    /// Whether the candidate is measured in full whatever its first pairs show. That holds for one that is about to be
    /// offered, while nothing else is judged.
    pub(super) fn is_last(&self) -> bool {
        self.contender <= 0.0
    }
}

impl Default for Effort {
    fn default() -> Self {
        let sanitizer = Some(memory_checker::LIMIT);
        Self {
            thorough: true,
            sanitizer,
            large_tensors: false,
            first_pairs: 12,
            full: 68,
            contender: 0.9,
            reuse_timings: false,
            brief: false,
            series: 1,
            kernel: false,
            grade: Grade::Strict,
            finds_grade: false,
            weights: ModelWeights::Copied,
            prefetch_only: false,
        }
    }
}
