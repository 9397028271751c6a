//! The Python of the project.

use std::path::PathBuf;

use serde::Serialize;

use runtime::python::environment::PythonEnvironment;

/// The project's interpreter and its packages.
#[derive(Debug, Serialize)]
pub(super) struct PythonFacts {
    pub(super) executable: PathBuf,
    /// Whether the interpreter exists; the settings may name one that does not.
    pub(super) exists: bool,
    /// How the interpreter was found.
    pub(super) source: &'static str,
    pub(super) triton: Option<String>,
    /// Whether this version is a published release, not a snapshot.
    pub(super) release: bool,
    pub(super) torch: bool,
}

impl PythonFacts {
    pub(super) fn of(environment: PythonEnvironment) -> Self {
        Self {
            exists: environment.python.exists(),
            executable: environment.python,
            source: environment.origin.text(),
            triton: environment.triton.map(|version| version.to_string()),
            release: environment.release,
            torch: environment.site_packages.iter().any(|folder| folder.join("torch").is_dir()),
        }
    }
}
