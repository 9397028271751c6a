//! Launches that were compiled but not run, for performance prediction, and the GPU that they are compiled for.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::ArgumentValue;

/// A GPU that runners compile for although the machine does not have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedGpu {
    /// The name of the GPU.
    pub name: String,
    /// Compute capability, `90` for 9.0.
    pub capability: u32,
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The greatest amount of shared memory of a program, in bytes.
    pub shared: u32,
}

/// The environment variable that holds a [`SimulatedGpu`] for runners, as JSON.
pub const PLAYED_ENV: &str = "WARPSMITH_PLAYED_GPU";

impl SimulatedGpu {
    /// The GPU in this process's [`PLAYED_ENV`], if any. The variable is read once, at the first call.
    #[must_use]
    pub fn here() -> Option<Self> {
        static HERE: OnceLock<Option<SimulatedGpu>> = OnceLock::new();
        HERE.get_or_init(|| serde_json::from_str(&std::env::var(PLAYED_ENV).ok()?).ok()).clone()
    }
}

/// The launches of a call, compiled but not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompiledLaunches {
    /// The launches, in order.
    pub launches: Vec<CompiledLaunch>,
    /// An identifier of the storage of each tensor argument of the call.
    pub inputs: Vec<u64>,
    /// An identifier of the storage of each tensor that the call returned.
    pub results: Vec<u64>,
}

/// A launch that was compiled but not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompiledLaunch {
    /// The name of the kernel's function in [`Self::text`].
    pub kernel: String,
    /// The number of programs along each dimension.
    pub grid: Vec<i64>,
    /// The arguments of the compiled kernel, in its order, without those that it was specialized for.
    pub parameters: Vec<KernelArgument>,
    /// An identifier of the storage of each of [`Self::parameters`] that is a tensor; 0 for the others.
    pub memories: Vec<u64>,
    /// The kernel in Triton's intermediate representation (TTIR).
    pub text: String,
    /// Registers per thread.
    pub registers: u32,
    /// Stack per thread, in bytes.
    pub stack: u32,
    /// Shared memory per program, in bytes.
    pub shared: u32,
    /// Warps per program.
    pub warps: u32,
    /// Iterations of a loop whose loads are in flight at the same time; 1 without prefetching.
    pub stages: u32,
    /// Launches with the same number are the configurations of one autotuned launch; only one of them runs.
    pub choice: Option<u64>,
    /// The keyword arguments of the launch: its options and constants.
    pub keywords: Vec<(String, ArgumentValue)>,
}

/// An argument of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum KernelArgument {
    /// An integer.
    Int(i64),
    /// A tensor.
    Tensor {
        /// Offset into its storage, in bytes.
        offset: i64,
        /// The length of the part of its storage that it spans, in bytes.
        bytes: f64,
    },
    /// Anything else.
    Other,
}
