//! The choices of autotuners.

use serde::{Deserialize, Serialize};

/// The configuration that an autotuner chose for a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// The name of the kernel.
    pub kernel: String,
    /// The chosen configuration, as Triton prints it.
    pub config: String,
    /// The other configurations, which were slower.
    pub others: Vec<String>,
    /// Those of [`Self::others`] that were nearly as fast, the fastest first.
    #[serde(default)]
    pub near: Vec<String>,
}

/// Launches of all kernels of a call with other numbers of warps or other tile sizes than the file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchVariant {
    /// The power of two by which numbers of warps are multiplied.
    pub warps: i8,
    /// The power of two by which tile sizes are multiplied.
    pub tiles: i8,
}
