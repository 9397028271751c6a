//! What the server calls that is not its own: replaceable, so that tests can script it.

use std::fmt;
use std::sync::Arc;

use crate::evaluate::{self, Devices};
use crate::explore::{self, Observer, OptimizeError, Outcome, Request};
use crate::python::environment::{Environment, Search};
use crate::rules::{self, Context, Diagnostic, Selection};

type Check = dyn Fn(&Context<'_>, &Selection) -> Vec<Diagnostic> + Send + Sync;
type Optimize = dyn Fn(&Request, &dyn Observer) -> Result<Outcome, OptimizeError> + Send + Sync;
type FindEnvironment = dyn Fn(&Search<'_>) -> Option<Environment> + Send + Sync;

/// The features behind the server.
#[derive(Clone)]
pub struct Tools {
    /// Runs the rules over a file.
    pub check: Arc<Check>,
    /// Searches for a faster kernel; blocks.
    pub optimize: Arc<Optimize>,
    /// Looks for CUDA devices; may take a second.
    pub devices: Arc<dyn Fn() -> Devices + Send + Sync>,
    /// Finds the Python environment of files in a folder; may read the file system.
    pub environment: Arc<FindEnvironment>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            check: Arc::new(rules::check),
            optimize: Arc::new(explore::optimize),
            devices: Arc::new(evaluate::devices),
            environment: Arc::new(super::target::environment),
        }
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").finish_non_exhaustive()
    }
}
