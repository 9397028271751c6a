//! The numbers of the search.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the tree of candidates grows. The defaults are those of AdaExplore's released configuration (arXiv 2604.16625),
/// which does not polish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SearchSettings {
    /// How much what was seldom visited is preferred to what has shown itself good.
    #[schemars(range(min = 0))]
    pub exploration: f64,
    /// The same for making new candidates instead of going on below the best; times `exploration`.
    #[schemars(range(min = 0))]
    pub expansion: f64,
    /// What a candidate is worth: 0 for the mean reward of it and what came of it, 1 for the greatest.
    #[schemars(range(min = 0, max = 1))]
    pub greatest: f64,
    /// So many small steps are made from one candidate; then large ones.
    pub small_steps: usize,
    /// The probability of a step from the fastest so far, or from the fastest that is built in another way, however many it has
    /// made: the rewards tell little of what sets apart candidates that are nearly as fast.
    #[schemars(range(min = 0, max = 1))]
    pub polish: f64,
    /// The probability that such a step is a large one, as long as there is a kind that was not made of anything like it.
    #[schemars(range(min = 0, max = 1))]
    pub polish_large: f64,
    /// The probability of a large step where a small one could be made.
    #[schemars(range(min = 0, max = 1))]
    pub large: f64,
    /// A small step sees so many of the last candidates of its branch.
    #[schemars(range(min = 1))]
    pub memory: usize,
    /// A large step sees at most so many candidates, each the fastest of its structure.
    #[schemars(range(min = 1))]
    pub pool: usize,
    /// So many of them may come from other branches, where there is room.
    pub pool_extra: usize,
    /// How many do is geometric: the probability of none more, each time.
    #[schemars(range(min = 0, max = 1))]
    pub pool_stop: f64,
    /// The smaller, the more of them are the fastest ones.
    #[schemars(range(min = 0.01))]
    pub temperature: f64,
    /// The reward of a candidate that compiles and is wrong; 0 is that of one that does not.
    pub reward_compiled: f64,
    /// The reward of one that is right and has the least speedup that counts.
    pub reward_right: f64,
    /// The reward of one that has the greatest speedup that counts.
    pub reward_most: f64,
    /// The least speedup that counts.
    #[schemars(range(min = 0.01))]
    pub least_speedup: f64,
    /// The greatest speedup that counts.
    #[schemars(range(min = 1))]
    pub most_speedup: f64,
    /// So many candidates of the built-in skills are judged by one process, one after the other; 1 gives each a process of its own, as a candidate of a model
    /// always has. What is offered is judged once more in a process of its own.
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
