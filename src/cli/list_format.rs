//! The format of lists, for all commands that write one.

use clap::ValueEnum;

/// How lists are written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// Lines to read
    #[default]
    Text,
    /// A JSON list
    Json,
}
