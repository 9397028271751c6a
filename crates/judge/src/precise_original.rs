//! The original with higher precision, as a reference.

use std::sync::Arc;

use super::original::Original;

/// The reason for trials on which it is unknown whether original or candidate is wrong.
pub(super) const NO_REFERENCE: &str = "no run at a higher precision shows how exact the original is";

/// A run of the original at a higher precision.
#[derive(Clone, Copy)]
pub(super) struct Finer {
    /// The type of its inputs.
    pub(super) wide: &'static str,
    /// The slot of its results.
    pub(super) slot: u32,
}

/// The original with its arithmetic lifted to double precision, beside the original itself.
#[derive(Clone, Default)]
pub(super) enum PreciseOriginal {
    /// It has not been looked for.
    #[default]
    Unknown,
    /// It cannot be used, or is not needed.
    None,
    /// This file is used for runs at a higher precision.
    Some(Arc<Original>),
}
