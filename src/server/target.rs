//! The Python environment and the Triton version that a document is checked against.

use config::Settings;
use model::api::TritonTarget;
use runtime::python::environment::{self, InterpreterSearch, PythonEnvironment};

/// Finds the Python environment. Reads the file system, runs nothing.
pub(crate) fn environment(search: &InterpreterSearch<'_>) -> Option<PythonEnvironment> {
    PythonEnvironment::find(search, &|name| std::env::var_os(name))
}

/// The Triton version to check against.
pub(crate) fn target_for(settings: &Settings, environment: Option<&PythonEnvironment>) -> TritonTarget {
    environment::target_for(settings, environment).unwrap_or_else(|error| {
        // Settings are checked when they are read, so this does not happen.
        tracing::error!(%error, "the version of Triton in the settings cannot be read");
        TritonTarget::newest()
    })
}
