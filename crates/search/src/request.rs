//! A request for a search.

use std::path::PathBuf;

use config::Settings;
use serde::{Deserialize, Serialize};

/// The part of a file that is optimized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizeScope {
    /// All kernels that one call of the file launches.
    #[default]
    File,
    /// One kernel, by its name.
    Kernel(String),
    /// All kernels that a function launches, by the function's qualified name.
    Function(String),
}

impl OptimizeScope {
    /// The name of the kernel or function; `None` for the whole file.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Kernel(name) | Self::Function(name) => Some(name),
        }
    }
}

/// What to do: search, continue a run, or measure again. A run is given by its name; `last` is the latest.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SearchAction {
    /// Start a new search.
    #[default]
    Search,
    /// Continue the search of this run.
    GoOn(String),
    /// Measure the file against its text at the beginning of this run.
    Measure(String),
}

/// A request: what to optimize, where, and under which settings.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// The path of the file that holds the kernel.
    pub file: PathBuf,
    /// The file's text in the editor, which may not be saved yet.
    pub text: String,
    /// The part of the file to optimize.
    pub subject: OptimizeScope,
    /// The workspace's root, which holds `.warpsmith/`.
    pub workspace: PathBuf,
    /// The path of the user's Python interpreter.
    pub python: PathBuf,
    /// The user's settings: budget, parallelism and seed among others.
    pub settings: Settings,
    /// What to do with the file.
    pub work: SearchAction,
}
