//! What is asked of originals and of winners beside their results: what a call needs, very large calls, calls under a
//! checker.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Workload;
use super::runner::{Fence, Inputs, Tuned};

/// What to find out about the arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// One call after the other begins with each of these.
    pub inputs: Vec<Inputs>,
    /// So many parts of each argument are given other contents, one a call.
    pub parts: usize,
    /// Gradients are computed in each call.
    pub gradients: bool,
    /// After so many milliseconds what is known by then is told.
    pub milliseconds: u64,
}

/// What a call does with the memory of a tensor argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// Number of the tensor.
    pub argument: usize,
    /// Bytes of its elements.
    pub bytes: u64,
    /// So many parts were given other contents.
    pub tried: u32,
    /// After so many of them the results were others.
    pub needed: u32,
    /// Bytes that hold something else after a call.
    pub written: u64,
}

/// The last part of a call on large tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// The size that was made large; no other size is the same.
    pub size: i64,
    /// So many steps along it are looked at, the last ones.
    pub last: i64,
    /// The call is made with the last part of its arguments alone, not with all of them.
    pub alone: bool,
    /// So many bytes of the device must be free.
    pub room: u64,
}

/// A program that watches a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Its limits; it is not fenced in itself, the call is.
    pub fence: Fence,
    /// The program with its arguments.
    pub command: Vec<String>,
    /// Environment variables that it has besides.
    pub variables: Vec<(String, String)>,
}

/// A call in a process of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// What it may do.
    pub fence: Fence,
    /// The file.
    pub file: PathBuf,
    /// The folder of the user's file, for its imports.
    pub folder: PathBuf,
    /// The call.
    pub workload: Workload,
    /// With what.
    pub inputs: Inputs,
    /// As in [`super::runner::RunnerRequest::Load`].
    pub is_candidate: bool,
    /// What looks on needs more than a fence leaves: only for a file of the user's own.
    pub unfenced: bool,
    /// The file that stands for the device. The process has it, beside others, from where it uses the device first:
    /// until then it keeps nobody from having the device alone.
    pub device: PathBuf,
    /// What autotuners launch. Those that are not named launch each of their configurations once: to measure under a
    /// tool takes long and says nothing.
    pub chosen: Vec<Tuned>,
}

impl Alone {
    /// Nobody answers when it asks for a process, and nobody waits for its token.
    #[must_use]
    pub fn unasked(mut self) -> Self {
        (self.fence.processes, self.fence.token) = (0, 0);
        self
    }
}
