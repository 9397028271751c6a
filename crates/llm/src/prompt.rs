//! Prompts: templates that are filled with what is known, as far as it fits into a token budget.
//!
//! Foreign text is data. A template receives it only inside a fence that is longer than any fence in it, or on one
//! line; it is never parsed as a template.

mod budget;
mod error;
mod quoting;
mod templates;

pub use error::PromptError;
pub use templates::Templates;

/// The assumed number of bytes of a token, for English and code.
const BYTES_OF_TOKEN: usize = 3;

/// The operator that a prompt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Edits of a candidate.
    Small,
    /// A new file, with the best earlier versions shown.
    Large,
    /// A repair of a version that does not run.
    Repair,
    /// Kernels for PyTorch code.
    Write,
}

/// The data that templates are filled with.
#[derive(Clone, Debug, Default)]
pub struct PromptContext<'a> {
    /// The name of the user's file, without its folder.
    pub file_name: &'a str,
    /// The kernels that the search optimizes.
    pub kernels: &'a [String],
    /// The function or method that is called: `softmax`, `Op.forward`.
    pub entry: &'a str,
    /// One line per recorded call: `x: fp16[4096,4096], n=4096 (3 times)`.
    pub workload: Vec<String>,
    /// The name of the device.
    pub device: &'a str,
    /// The version of Triton.
    pub triton: &'a str,
    /// The version of torch, if it is installed.
    pub torch: Option<&'a str>,
    /// The part of the user's file that may be sent.
    pub original: &'a str,
    /// The candidate that is changed.
    pub base: &'a str,
    /// For a small step: the edits since the last large step, the oldest first.
    pub branch: Vec<Attempt>,
    /// For a large step: the versions of the pool that are shown, the fastest first.
    pub pool: Vec<Pooled>,
    /// Facts about the base, one line each.
    pub facts: Vec<String>,
    /// Methods that may help, the most promising first.
    pub skills: Vec<String>,
    /// Rules about what Triton rejects, the most relevant first: `You cannot …`.
    pub rules: Vec<String>,
    /// The speedup to beat.
    pub goal: f64,
    /// The error of the base, or of the last reply.
    pub mistake: Option<&'a str>,
}

/// An edit that was tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The change, as a diff or a description.
    pub change: String,
    /// The outcome of the change.
    pub outcome: String,
}

/// A version with correct results.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The text of the file.
    pub text: String,
    /// Its speedup over the original.
    pub speedup: f64,
}

/// A complete prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// The user's message.
    pub user: String,
    /// Descriptions of the parts that did not fit.
    pub left_out: Vec<String>,
}

/// An estimate of the tokens of a text: a third of its bytes, which is no less than what vendors count for English and
/// code. Letters of other scripts have several bytes and count more.
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_OF_TOKEN)
}

#[cfg(test)]
mod tests;
