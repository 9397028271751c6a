//! Requests beyond the results of a call: which memory a call reads and writes, very large calls, and calls under a
//! checking or profiling tool.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Workload;
use super::runner::{Fence, Inputs, Tuned};

/// A request to find out which parts of its arguments a call reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryProbe {
    /// The inputs of the calls, used in rotation.
    pub inputs: Vec<Inputs>,
    /// The number of parts of each argument that get other contents, one part per call.
    pub parts: usize,
    /// Gradients are computed in each call.
    pub gradients: bool,
    /// The time limit in milliseconds, after which the reply has what is known by then.
    pub milliseconds: u64,
}

/// How a call uses the memory of a tensor argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArgumentUse {
    /// The index of the tensor.
    pub argument: usize,
    /// The size of its elements, in bytes.
    pub bytes: u64,
    /// The number of parts that got other contents.
    pub tried: u32,
    /// The number of those parts that changed the results.
    pub needed: u32,
    /// The number of bytes that differ after a call.
    pub written: u64,
}

/// A request for the last part of the results of a call on large tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// The size that was enlarged; no other dimension has the same size.
    pub size: i64,
    /// The number of steps at the end of that dimension that are compared.
    pub last: i64,
    /// Whether the call gets only the last part of its arguments.
    pub alone: bool,
    /// The device memory that must be free, in bytes.
    pub room: u64,
}

/// A tool that runs a call under observation, such as a sanitizer or profiler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedProgram {
    /// The limits of the tool. The call is sandboxed; the tool itself is not.
    pub fence: Fence,
    /// The tool's program and its arguments.
    pub command: Vec<String>,
    /// Additional environment variables of the tool.
    pub variables: Vec<(String, String)>,
}

/// A call in a process of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IsolatedCall {
    /// The sandbox and limits of the process.
    pub fence: Fence,
    /// The file to load.
    pub file: PathBuf,
    /// The folder of the user's file, for its imports.
    pub folder: PathBuf,
    /// The call to make.
    pub workload: Workload,
    /// The inputs of the call.
    pub inputs: Inputs,
    /// Whether the file is a candidate, as in [`super::runner::RunnerRequest::Load`].
    pub is_candidate: bool,
    /// Runs the call without a sandbox, because the tool needs more access. This is only for a file of the user's own.
    pub unfenced: bool,
    /// The lock file of the device. The process takes a shared lock on it just before it first uses the device; until
    /// then it does not block a process that wants the device exclusively.
    pub device: PathBuf,
    /// The configurations that autotuners launch. Autotuners that are not listed launch each configuration once,
    /// because measuring them under a tool takes long and gives no valid times.
    pub chosen: Vec<Tuned>,
}

impl IsolatedCall {
    /// The same call for a process that has no supervisor: no limit on processes, which a supervisor would check, and
    /// no token.
    #[must_use]
    pub fn unasked(mut self) -> Self {
        (self.fence.processes, self.fence.token) = (0, 0);
        self
    }
}
