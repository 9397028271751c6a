//! What a model is asked: templates, filled with what is known, as far as it fits into a budget.
//!
//! What comes from others is data. A template is only given it between fences that are longer than any in it, or on one line; it is never
//! read as a template itself.

mod budget;
mod error;
mod shown;
mod templates;

pub use error::PromptError;
pub use templates::Templates;

/// So many bytes of English and code are a token, about.
const BYTES_OF_TOKEN: usize = 3;

/// What a model is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// To edit a candidate.
    Small,
    /// To write the file anew, with the best versions before it.
    Large,
    /// To make a version run that does not.
    Repair,
    /// To write kernels for code in PyTorch.
    Write,
}

/// What the templates are filled with.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// The name of the user's file, without its folder.
    pub file_name: &'a str,
    /// The kernels that are searched for.
    pub kernels: &'a [String],
    /// What is called: `softmax`, `Op.forward`
    pub entry: &'a str,
    /// One line for each recorded call: `x: fp16[4096,4096], n=4096 (3 times)`
    pub workload: Vec<String>,
    /// The device's name.
    pub device: &'a str,
    /// The release of Triton.
    pub triton: &'a str,
    /// The release of torch, if there is one.
    pub torch: Option<&'a str>,
    /// What may be sent of the user's file.
    pub original: &'a str,
    /// The candidate that is changed.
    pub base: &'a str,
    /// Of a small step: the edits since the last large step, the oldest first.
    pub branch: Vec<Attempt>,
    /// Of a large step: what is shown of the pool, the fastest first.
    pub pool: Vec<Pooled>,
    /// What is known of the base, one line each.
    pub facts: Vec<String>,
    /// Methods that may help, the likeliest first.
    pub skills: Vec<String>,
    /// What Triton refuses, the most relevant first: `You cannot …`
    pub rules: Vec<String>,
    /// The speedup to beat.
    pub goal: f64,
    /// What is wrong with the base, or with the last reply.
    pub mistake: Option<&'a str>,
}

/// An edit that was tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What was changed, as a diff or in words.
    pub change: String,
    /// What came of it.
    pub outcome: String,
}

/// A version that is right.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The file.
    pub text: String,
    /// How many times as fast as the original it is.
    pub speedup: f64,
}

/// What is sent to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// What holds for the whole conversation.
    pub system: String,
    /// The question.
    pub user: String,
    /// What had no room, in words.
    pub left_out: Vec<String>,
}

/// How many tokens a text takes, about: a third of its bytes, which is no less than what vendors count for English and code.
/// Letters of other scripts have several bytes, and count more.
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_OF_TOKEN)
}

#[cfg(test)]
mod tests;
