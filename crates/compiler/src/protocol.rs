//! What is asked of the compiler's process and what it answers: one JSON object a line. `worker.py` is the other side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::extract::Assumed;

/// A kernel to lower.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// Chosen by who asks.
    pub id: u64,
    /// The files that it needs, its own first.
    pub files: Vec<SourceFile>,
    /// Its name.
    pub kernel: String,
    /// The types of run-time parameters: `*fp16`, `i32`.
    pub signature: BTreeMap<String, String>,
    /// The values of compile-time parameters; see `constant` in `worker.py`.
    pub constexprs: BTreeMap<String, Json>,
    /// Parameters that are multiples of 16.
    pub aligned: Vec<String>,
    /// Back end, architecture and lanes of a warp: `("cuda", 90, 32)`.
    pub target: (String, Json, u32),
    /// Options of the back end.
    pub options: BTreeMap<String, Json>,
    /// Whether the types of expressions are wanted.
    pub types: bool,
    /// What is wanted beyond the front end.
    pub full: Option<Full>,
    /// How long it may take.
    pub seconds: f64,
    /// Whether a process may serve it that has served others: only without types, without the whole compile, and
    /// without files that are imported as they are.
    pub in_series: bool,
}

/// The whole compile, down to the machine's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Full {
    /// The stages whose texts are wanted: `ttir`, `ttgir`, `llir`, `ptx`, `sass`, `amdgcn`.
    pub stages: Vec<String>,
    /// Bytes of shared memory that a program may have, where that is known.
    pub shared: Option<u32>,
}

/// A file, cut down to what is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceFile {
    /// What it is called, without folder and ending.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Names that it takes from other files of the request: name, number of the file, member.
    pub imports: Vec<(String, usize, Option<String>)>,
    /// Names that have a value before the file runs.
    pub assumed: Vec<Assumed>,
    /// Where Triton is to believe that it stands.
    pub path: Option<String>,
    /// Whether it is not cut down: the file at `path` itself is imported, if it has this text.
    pub is_imported: bool,
}

/// What the process says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// It can be asked.
    Ready {
        /// Triton's version.
        ready: String,
        /// Python's version.
        python: String,
    },
    /// It cannot work, and ends.
    Unfit {
        /// Why.
        unfit: String,
    },
    /// An answer.
    Answer(Box<Answer>),
}

/// The answer to a request: one of the first five.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Answer {
    /// That of the request.
    pub id: u64,
    /// Triton takes it.
    #[serde(default)]
    pub accepted: bool,
    /// Triton says no.
    pub error: Option<Refusal>,
    /// It could not be asked: what was sent does not fit together.
    pub unable: Option<String>,
    /// The process that asked died.
    pub crashed: Option<String>,
    /// Nobody wants to know any more.
    #[serde(default)]
    pub cancelled: bool,
    /// The types of run-time values: place and type, several where loops or helpers make it several.
    #[serde(default)]
    pub types: Vec<(usize, u32, u32, u32, u32, Vec<String>)>,
    /// What came after the front end, when it was asked for and the front end takes the kernel.
    pub compiled: Option<Box<Compiled>>,
}

/// A kernel compiled down to the machine's code, or as far as that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compiled {
    /// Registers of a thread; on AMD's devices the vector registers.
    pub registers: Option<u32>,
    /// Bytes of local memory that a thread needs because registers ran out. (`n_spills` of a launched kernel is all its
    /// local memory in units of 4 bytes: a quarter of [`Self::stack`].)
    pub spills: Option<u32>,
    /// Bytes of local memory of a thread: what is spilled, arrays, arguments of calls.
    pub stack: Option<u32>,
    /// Bytes of shared memory of a program; 0 also where no stage has told.
    pub shared: u32,
    /// Warps of a program. More than asked for, where Triton adds some for specialized work.
    pub warps: u32,
    /// The texts that were asked for, as far as there are any.
    pub stages: BTreeMap<String, String>,
    /// Why it went no further.
    pub failed: Option<Failed>,
}

/// What stands against a kernel behind the front end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Failed {
    /// In which stage: a name of Triton's, `sass`, or `launch` when the device has too little memory for it.
    pub stage: String,
    /// What Triton, MLIR or `ptxas` says; of a process that died or took too long, how.
    pub message: String,
}

/// Why Triton says no.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Refusal {
    /// The type of the exception behind it; `verify` when the program did not pass the verifier.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// Where, from the kernel down into helpers: file, line from 1, column from 0 in bytes, end line, end column.
    pub places: Vec<(usize, u32, u32, u32, u32)>,
    /// What the verifier says: message, file, line from 1, column from 0.
    #[serde(default)]
    pub verifier: Vec<(String, usize, u32, u32)>,
}
