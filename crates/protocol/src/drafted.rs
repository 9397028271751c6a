//! Launches that were compiled and not made, for a model; and the GPU that is played where none is there.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::Value;

/// A GPU that runners compile for without having it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// Compute capability, `90` for 9.0.
    pub capability: u32,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a program can have.
    pub shared: u32,
}

/// The environment variable that tells runners of it, as JSON.
pub const PLAYED_ENV: &str = "WARPSMITH_PLAYED_GPU";

impl Played {
    /// The one that this process compiles for, if any; what it was when this was asked first.
    #[must_use]
    pub fn here() -> Option<Self> {
        static HERE: OnceLock<Option<Played>> = OnceLock::new();
        HERE.get_or_init(|| serde_json::from_str(&std::env::var(PLAYED_ENV).ok()?).ok()).clone()
    }
}

/// The launches of a call that were compiled and not made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drafts {
    /// The launches, in order.
    pub launches: Vec<Drafted>,
    /// What tells the memory of each tensor that the call was given from that of others.
    pub inputs: Vec<u64>,
    /// The same of each tensor that it returned.
    pub results: Vec<u64>,
}

/// A launch that was compiled and not made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drafted {
    /// The name of its function in [`Self::text`].
    pub kernel: String,
    /// Programs along each dimension.
    pub grid: Vec<i64>,
    /// What the compiled kernel is given, in its order: those that it was compiled for are none of them.
    pub parameters: Vec<Parameter>,
    /// What tells the memory of each of these from that of others, where it is a tensor; else 0.
    pub memories: Vec<u64>,
    /// Triton's own intermediate representation of the kernel.
    pub text: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// Bytes of shared memory of a program.
    pub shared: u32,
    /// Warps of a program.
    pub warps: u32,
    /// Rounds of a loop whose loads are under way at once; 1 where nothing is loaded ahead.
    pub stages: u32,
    /// Launches of one number are choices of a tuner, of which one is made.
    pub choice: Option<u64>,
    /// Its keywords: the options and constants of a launch.
    pub keywords: Vec<(String, Value)>,
}

/// What a compiled kernel is given for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Parameter {
    /// An integer.
    Int(i64),
    /// A tensor.
    Tensor {
        /// Bytes from the beginning of its memory.
        offset: i64,
        /// Bytes of that memory which it spans.
        bytes: f64,
    },
    /// Anything else.
    Other,
}
