//! Which Python and which Triton a document is for.

use std::path::Path;

use crate::api::Target;
use crate::python::environment::{self, Environment};
use crate::settings::Settings;

/// The Python environment of files in `folder`, in the workspace `root`. Reads the file system, runs nothing.
pub(super) fn environment(folder: &Path, root: &Path, settings: &Settings) -> Option<Environment> {
    Environment::find(folder, root, settings.python.as_deref(), &|name| std::env::var_os(name))
}

/// The Triton version to check against.
pub(super) fn target_for(settings: &Settings, environment: Option<&Environment>) -> Target {
    environment::target_for(settings, environment).unwrap_or_else(|error| {
        // Settings are checked when they are read: this does not happen.
        tracing::error!(%error, "the version of Triton in the settings cannot be read");
        Target::newest()
    })
}
