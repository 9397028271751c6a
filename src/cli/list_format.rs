//! The list formats that all commands share.

use clap::ValueEnum;

/// The format of a list.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// Lines to read
    #[default]
    Text,
    /// A JSON list
    Json,
}
