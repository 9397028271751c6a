//! The interpreters whose Triton is asked, and what is wrong with them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use tower_lsp::gen_lsp_types as lsp;

use model::api::Version;

/// An interpreter with its Triton, and the limits under which it may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub(crate) python: PathBuf,
    pub(crate) triton: Version,
    pub(crate) installed: Option<SystemTime>,
    /// Number of processor cores that it may use.
    pub(crate) cores: usize,
}

/// The interpreters in use and their problems.
#[derive(Default)]
pub(crate) struct Interpreters {
    pub(crate) looked: Option<Instant>,
    /// The interpreter that gave the verdicts about a file's kernels.
    pub(crate) of: HashMap<lsp::Uri, Interpreter>,
    /// Interpreters whose unfitness was reported to the user; `None` is for a missing interpreter.
    pub(crate) told: Vec<Option<PathBuf>>,
    /// The reason why the file that was looked at last cannot be asked about: its interpreter, and what that lacks.
    pub(crate) missing: Option<(Option<PathBuf>, String)>,
    /// The times of the package folders when the interpreter turned out to be unfit.
    pub(crate) unfit: Option<Vec<Option<SystemTime>>>,
}
