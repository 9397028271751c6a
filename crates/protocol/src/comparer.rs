//! The messages between the judge and the comparer, which holds results and compares them.

use serde::{Deserialize, Serialize};

use super::results::ExportedResults;

/// A request of the judge to the comparer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ComparerRequest {
    /// Store the results of several calls, each under a slot number. The reply is [`ComparerReply::Done`].
    Keep {
        /// The number of the runner that made them. Its buffer stays open.
        owner: u64,
        /// The slots with their results; earlier results in the same slot are dropped.
        kept: Vec<(u32, ExportedResults)>,
    },
    /// Close the buffers of runners that have ended. The reply is [`ComparerReply::Done`].
    Leave {
        /// The numbers of the runners.
        owners: Vec<u64>,
    },
    /// Drop stored results.
    Drop {
        /// The slots.
        slots: Vec<u32>,
    },
    /// Compare a candidate's results with the original's. The reply is [`ComparerReply::Differences`].
    Compare {
        /// The slot of the original's results.
        original: u32,
        /// The slot of the candidate's results.
        candidate: u32,
        /// The slot of a run of the original at a higher precision, if any.
        reference: Option<u32>,
        /// The slots of runs of the original on inputs perturbed by their rounding error.
        jittered: Vec<u32>,
        /// Whether inputs hold NaN; the candidate's results must then be NaN where the original's are.
        holds_nan: bool,
        /// Whether results must be equal bit by bit (exact inputs).
        exact: bool,
        /// Slots of the original's results on other inputs, which show its rounding error: its run, its run at a higher
        /// precision, and its runs on perturbed inputs. Used if there is neither a reference nor a jittered run.
        level: Option<(u32, Option<u32>, Vec<u32>)>,
        /// The slots of runs of the original with its kernels launched otherwise. Where these differ from its own
        /// results, these are not compared.
        variants: Vec<u32>,
        /// The slots of runs of the original with [`Terms::Doubled`] and [`Terms::Absolute`], if any. Where it is a sum
        /// of products, results may differ by the rounding of terms of these magnitudes.
        ///
        /// [`Terms::Doubled`]: crate::runner::Terms::Doubled
        /// [`Terms::Absolute`]: crate::runner::Terms::Absolute
        terms: Option<[u32; 2]>,
    },
    /// Judge whether a run of the original can serve as a reference. The reply is [`ComparerReply::Standing`].
    Stand {
        /// The slot of the original's results.
        original: u32,
        /// The slot of a run at a higher precision, if any.
        reference: Option<u32>,
        /// The slots of runs on perturbed inputs.
        jittered: Vec<u32>,
        /// The slot of a run on equal inputs in another layout or beside other memory, if any; its results must be the
        /// same.
        alike: Option<u32>,
    },
    /// Compare results on inputs with infinities and NaN. Infinities and NaN that the candidate makes of numbers that
    /// it multiplies by zero are allowed, as the original makes some elsewhere. The reply is
    /// [`ComparerReply::Differences`].
    Spilled {
        /// The slot of the original's results on inputs with infinities and NaN.
        original: u32,
        /// The slots of the original's results with usual and with great finite numbers in their places: in all
        /// tensors, and in some of them alone.
        finite: Vec<[u32; 2]>,
        /// The slot of the candidate's results on inputs with infinities and NaN.
        candidate: u32,
        /// The slots of the candidate's results, as in `finite`.
        candidate_finite: Vec<[u32; 2]>,
        /// As in [`Self::Compare`], on inputs with infinities and NaN.
        reference: Option<u32>,
        /// As in [`Self::Compare`].
        jittered: Vec<u32>,
    },
    /// Find leaves that are not the same bit by bit (NaN equals NaN), or differ in type, shape or layout.
    Changed {
        /// The slot of one side.
        one: u32,
        /// The slot of the other side.
        other: u32,
    },
    /// Find leaves that still hold the value with which uninitialized memory was filled.
    Unwritten {
        /// The slot to search.
        slot: u32,
    },
}

/// A reply of the comparer, with its memory use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The reply.
    pub reply: ComparerReply,
    /// The device memory in bytes that its torch held when results were last dropped, for the log.
    pub held: u64,
}

/// A reply of the comparer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ComparerReply {
    /// The request is done.
    Done,
    /// The differences; empty if there are none.
    Differences(Vec<Difference>),
    /// Whether a run of the original can serve as a reference.
    Standing {
        /// Whether it agrees with the run at a higher precision, if any, and with the runs on perturbed inputs.
        is_credible: bool,
        /// Whether it is equal to the run at a higher precision.
        is_exact: bool,
        /// Whether that run has results that the original's type cannot represent.
        is_finer: bool,
        /// Whether all results are integers that are not large.
        is_whole: bool,
    },
    /// The request failed.
    Failed {
        /// What caused it.
        cause: ComparerFailure,
        /// Why it failed, as text.
        why: String,
    },
}

/// Why the comparer cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparerFailure {
    /// Its own device memory ran out.
    DeviceMemory,
    /// It holds no results in a slot that the request names.
    MissingSlot,
    /// Another error, such as results that cannot be read.
    Other,
}

/// A difference of one leaf between two results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The path of the leaf.
    pub path: String,
    /// What differs, as text with numbers.
    pub what: String,
    /// Whether values differ, rather than type, shape or layout.
    pub is_value: bool,
    /// The number of elements that differ.
    pub count: u64,
    /// The greatest ratio of an element's error to its tolerance.
    pub excess: Option<f64>,
}
