//! The learned rules in use and the kernels that they may be learned from.

use std::collections::HashMap;

use tower_lsp::gen_lsp_types as lsp;

use rules::learned::LearnedRules;
use store::RefusedKernel;

use super::bounded_cache::BoundedCache;

/// Number of kernels that are remembered.
const REMEMBERED: usize = 512;

/// A kernel: its file and its name.
pub(crate) type KernelKey = (lsp::Uri, String);

/// The rules in use and the kernels that they may be learned from.
pub(crate) struct MemoryState {
    /// The rules in use.
    pub(crate) rules: LearnedRules,
    /// The text of the last version of each kernel that compiled.
    pub(crate) taken: BoundedCache<KernelKey, String, REMEMBERED>,
    /// The refusals of each kernel since then.
    pub(crate) open: HashMap<KernelKey, Vec<RefusedKernel>>,
    /// The codes that the user has disputed, by kernel.
    pub(crate) disputed: HashMap<KernelKey, Vec<String>>,
}

impl Default for MemoryState {
    fn default() -> Self {
        // Until the store was read no rule is used, because it may have been disproved.
        let rules = LearnedRules::empty().clone();
        Self { rules, taken: BoundedCache::default(), open: HashMap::new(), disputed: HashMap::new() }
    }
}
