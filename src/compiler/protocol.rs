//! What is asked of the compiler's process and what it answers: one JSON object a line. `worker.py` is the other side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

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
    /// How long it may take.
    pub seconds: f64,
}

/// A file, cut down to what is needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceFile {
    /// What it is called, without folder and ending.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Names that it takes from other files of the request: name, number of the file, member.
    pub imports: Vec<(String, usize, Option<String>)>,
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
