//! Errors of prompt templates, and of prompts that do not fit.

use std::path::PathBuf;

/// The reason why no prompt could be written.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The file of a template cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        error: std::io::Error,
    },
    /// A template is for another version of Warpsmith.
    #[error(
        "the prompt `{name}.md` must begin with the line `version: {version}`, which says what it may refer to; compare it with the one that is shipped"
    )]
    Version {
        /// The name of the template.
        name: &'static str,
        /// The version of the shipped templates.
        version: u32,
    },
    /// A template is invalid.
    #[error("the prompt `{name}.md` is wrong: {error}; without that file the one that is shipped is taken")]
    Template {
        /// The name of the template.
        name: &'static str,
        /// The error of the template engine, with the line.
        error: minijinja::Error,
    },
    /// Not even the parts that cannot be left out fit.
    #[error(
        "the prompt needs about {needed} tokens even without its optional parts, and the limit is {budget}; raise the limit, or send less of the file (`model.send = \"kernel\"`)"
    )]
    TooLong {
        /// The number of tokens that they need.
        needed: usize,
        /// The budget, in tokens.
        budget: usize,
    },
}
