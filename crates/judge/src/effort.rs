//! How much of the judgement is done of a candidate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::sanitizer;

/// How much of the judgement to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Try all trials, not the recorded call alone.
    pub thorough: bool,
    /// Run what would be offered under a checker of the device's memory, where there is one, for so long at most.
    pub sanitizer: Option<Duration>,
    /// Call it with more elements than 32 bits count, even if it is no offer.
    pub beyond: bool,
    /// Pairs of timings at first; 0 for none.
    pub rough: usize,
    /// Further pairs, when the ratio may be above [`Self::contender`], by the rough ones; fewer where they could not make it an offer.
    pub full: usize,
    /// The ratio, original over candidate, above which all pairs are measured.
    pub contender: f64,
    /// Take what was measured of a candidate with the same machine code instead of measuring again.
    #[serde(default)]
    pub twins: bool,
    /// Ask only of what comes near [`Self::contender`] that it neither races nor deceives. That is enough to search by, not to offer.
    #[serde(default)]
    pub brief: bool,
    /// So many candidates may share a process, one after the other, unless they are thoroughly judged. Only for whoever made them all.
    #[serde(default)]
    pub series: usize,
    /// Refuse what launches no kernel of Triton's, also where the original launches none.
    #[serde(default)]
    pub kernel: bool,
    /// Judge nothing: find out of the original what a thorough judgement of a candidate will ask. Only over a link.
    #[serde(default)]
    pub ahead: bool,
}

impl Effort {
    /// Whether what only an offer has to be is asked of what comes near the best alone.
    pub(super) fn is_brief(&self) -> bool {
        self.brief && !self.thorough && self.rough > 0
    }

    /// Whether it is measured in full whatever comes of it: what is about to be offered, while nothing else is judged.
    pub(super) fn is_last(&self) -> bool {
        self.contender <= 0.0
    }
}

impl Default for Effort {
    fn default() -> Self {
        let sanitizer = Some(sanitizer::LIMIT);
        Self {
            thorough: true,
            sanitizer,
            beyond: false,
            rough: 12,
            full: 68,
            contender: 0.9,
            twins: false,
            brief: false,
            series: 1,
            kernel: false,
            ahead: false,
        }
    }
}
