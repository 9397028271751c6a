//! The messages between the server and the compiler process, one JSON object per line. `worker.py` is the other side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::extract::Assumed;

/// A request to lower a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoweringRequest {
    /// The id of the request, chosen by the sender.
    pub id: u64,
    /// The files that the kernel needs, its own first.
    pub files: Vec<SourceFile>,
    /// The name of the kernel's function.
    pub kernel: String,
    /// The types of run-time parameters: `*fp16`, `i32`.
    pub signature: BTreeMap<String, String>,
    /// The values of compile-time parameters, in the format of `constant` in `worker.py`.
    pub constexprs: BTreeMap<String, Json>,
    /// The parameters that are multiples of 16.
    pub aligned: Vec<String>,
    /// Back end, architecture and lanes per warp: `("cuda", 90, 32)`.
    pub target: (String, Json, u32),
    /// Options of the back end.
    pub options: BTreeMap<String, Json>,
    /// Whether the answer has the types of expressions.
    pub types: bool,
    /// The complete compilation after the front end, if requested.
    pub full: Option<FullCompilation>,
    /// The time limit in seconds.
    pub seconds: f64,
    /// Whether a process that has served other requests may serve this one. That requires a request without types,
    /// without a complete compilation and without files that are imported as they are.
    pub in_series: bool,
}

/// A complete compilation to machine code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FullCompilation {
    /// The stages whose texts are requested: `ttir`, `ttgir`, `llir`, `ptx`, `sass`, `amdgcn`.
    pub stages: Vec<String>,
    /// The limit of shared memory per program in bytes, if known.
    pub shared: Option<u32>,
}

/// The slice of a file that a kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceFile {
    /// The name of the file, without folder and extension.
    pub name: String,
    /// The text of the slice.
    pub text: String,
    /// Names that it imports from other files of the request: name, index of the file, member.
    pub imports: Vec<(String, usize, Option<String>)>,
    /// Names that have a value before the file runs.
    pub assumed: Vec<Assumed>,
    /// The path that Triton sees.
    pub path: Option<String>,
    /// Whether the file at `path` itself is imported instead of a slice. Its text must then be the same.
    pub is_imported: bool,
}

/// A message of the process.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum CompilerMessage {
    /// The process is ready for requests.
    Ready {
        /// Triton's version.
        ready: String,
        /// Python's version.
        python: String,
    },
    /// The process cannot work, and ends.
    Unfit {
        /// The reason, for the user.
        unfit: String,
    },
    /// The answer to a request.
    Answer(Box<LoweringReply>),
}

/// The answer to a request, with one of the five outcomes `accepted` to `cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct LoweringReply {
    /// The id of the request.
    pub id: u64,
    /// Triton's front end accepts the kernel.
    #[serde(default)]
    pub accepted: bool,
    /// Triton's front end rejects the kernel with this error.
    pub error: Option<FrontEndError>,
    /// The request was invalid, for this reason.
    #[serde(rename = "unable")]
    pub not_lowerable: Option<String>,
    /// The process that served the request died; how.
    pub crashed: Option<String>,
    /// The request was cancelled.
    #[serde(default)]
    pub cancelled: bool,
    /// The types of run-time values: place and types. There are several types if loops or helpers produce several.
    #[serde(default)]
    pub types: Vec<(usize, u32, u32, u32, u32, Vec<String>)>,
    /// The result of the complete compilation, if requested and if the front end accepts the kernel.
    pub compiled: Option<Box<Compiled>>,
}

/// A kernel compiled to machine code, or as far as compilation succeeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compiled {
    /// Registers per thread; on AMD devices the vector registers.
    pub registers: Option<u32>,
    /// Spilled registers per thread, in bytes of local memory. (`n_spills` of a launched kernel is all of its local
    /// memory in units of 4 bytes: a quarter of [`Self::stack`].)
    pub spills: Option<u32>,
    /// Local memory per thread in bytes: spills, arrays, arguments of calls.
    pub stack: Option<u32>,
    /// Shared memory per program in bytes; 0 also if no stage has reported it.
    pub shared: u32,
    /// Warps per program. These are more than requested if Triton adds some for warp specialization.
    pub warps: u32,
    /// The requested texts, as far as they exist.
    pub stages: BTreeMap<String, String>,
    /// Why compilation stopped, if it did.
    pub failed: Option<BackEndFailure>,
}

/// A failure of compilation after the front end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BackEndFailure {
    /// The stage that failed: Triton's name of it, `sass`, or `launch` if the device has too little memory for the
    /// kernel.
    pub stage: String,
    /// The message of Triton, MLIR or `ptxas`, or how the process died or that it timed out.
    pub message: String,
}

/// An error of Triton's front end.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FrontEndError {
    /// The type of the underlying exception; `verify` if the program did not pass the verifier.
    pub kind: String,
    /// The message of the exception.
    pub message: String,
    /// The places, from the kernel down into helpers: file, line from 1, column from 0 in bytes, end line, end column.
    pub places: Vec<(usize, u32, u32, u32, u32)>,
    /// The errors of the verifier: message, file, line from 1, column from 0.
    #[serde(default)]
    pub verifier: Vec<(String, usize, u32, u32)>,
}
