//! What is wrong with templates, and what does not fit.

use std::path::PathBuf;

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A template cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A template is for another version of Warpsmith.
    #[error(
        "the prompt `{name}.md` must begin with the line `version: {version}`, which says what it may refer to; compare it with the one that is shipped"
    )]
    Version {
        /// Its name.
        name: &'static str,
        /// The version of what is shipped.
        version: u32,
    },
    /// A template is wrong.
    #[error("the prompt `{name}.md` is wrong: {error}; without that file the one that is shipped is taken")]
    Template {
        /// Its name.
        name: &'static str,
        /// What the engine says, with the line.
        error: minijinja::Error,
    },
    /// Not even what cannot be left out fits.
    #[error(
        "the prompt takes about {needed} tokens without anything that could be left out, and may take {budget}; allow more, or send less of the file (`model.send = \"kernel\"`)"
    )]
    TooLong {
        /// What it takes.
        needed: usize,
        /// What it may take.
        budget: usize,
    },
}
