//! The parameters of the search tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of the search tree. The defaults are those of AdaExplore's released configuration (arXiv 2604.16625),
/// which has no polishing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SearchSettings {
    /// The weight of the preference for rarely visited candidates over candidates with high rewards.
    #[schemars(range(min = 0))]
    pub exploration: f64,
    /// The weight of the preference for a new candidate over a continuation from the best existing one; it is
    /// multiplied by `exploration`.
    #[schemars(range(min = 0))]
    pub expansion: f64,
    /// The value of a candidate, as a mixture: 0 means the mean reward of the candidate and its descendants, 1 means
    /// their greatest reward.
    #[schemars(range(min = 0, max = 1))]
    pub greatest: f64,
    /// The maximum number of small steps from one candidate; further steps from it are large.
    pub small_steps: usize,
    /// The probability of a polishing step: a step from the fastest candidate so far, or from the fastest candidate of
    /// another structure that is nearly as fast, regardless of the number of steps already made from it. Rewards hardly
    /// distinguish candidates that are nearly as fast.
    #[schemars(range(min = 0, max = 1))]
    pub polish: f64,
    /// The probability that a polishing step is large, as long as there is a kind of change that was not yet tried on a
    /// similar candidate.
    #[schemars(range(min = 0, max = 1))]
    pub polish_large: f64,
    /// The probability of a large step where a small step is also possible.
    #[schemars(range(min = 0, max = 1))]
    pub large: f64,
    /// The maximum number of the latest candidates of its branch that a small step takes into account.
    #[schemars(range(min = 1))]
    pub memory: usize,
    /// The maximum number of base candidates of a large step, each of which is the fastest of its structure.
    #[schemars(range(min = 1))]
    pub pool: usize,
    /// The maximum number of base candidates from other branches, if the branch itself has fewer than `pool`.
    pub pool_extra: usize,
    /// The probability, after each base candidate from another branch, that no further one is taken.
    #[schemars(range(min = 0, max = 1))]
    pub pool_stop: f64,
    /// The temperature of the choice of base candidates from other branches; a smaller value prefers faster ones.
    #[schemars(range(min = 0.01))]
    pub temperature: f64,
    /// The reward of a candidate that compiles but has wrong results; the reward of one that does not compile is 0.
    pub reward_compiled: f64,
    /// The reward of a correct candidate with the speedup `least-speedup` or less.
    pub reward_right: f64,
    /// The reward of a correct candidate with the speedup `most-speedup` or more.
    pub reward_most: f64,
    /// The smallest speedup that the reward distinguishes.
    #[schemars(range(min = 0.01))]
    pub least_speedup: f64,
    /// The greatest speedup that the reward distinguishes.
    #[schemars(range(min = 1))]
    pub most_speedup: f64,
    /// The maximum number of candidates of the built-in skills that one process judges, one after the other; 1 means a
    /// separate process for each candidate, which candidates of language models always have. The offered candidate is
    /// judged again in a separate process.
    #[schemars(range(min = 1))]
    pub series: usize,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            exploration: 0.3,
            expansion: 1.0,
            greatest: 0.0,
            small_steps: 2,
            polish: 0.3,
            polish_large: 0.25,
            large: 0.2,
            memory: 5,
            pool: 5,
            pool_extra: 3,
            pool_stop: 0.6,
            temperature: 1.0,
            reward_compiled: 0.05,
            reward_right: 0.4,
            reward_most: 1.6,
            least_speedup: 0.1,
            most_speedup: 10.0,
            series: 32,
        }
    }
}
