//! The Python environment of a project and its version of Triton, found in the file system without running anything.

mod candidates;
mod managers;
mod packages;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use config::{LoadedSettings, Settings};
use model::api::{TritonTarget, Version, VersionCertainty, VersionError};

/// A Python interpreter and its installed packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// The interpreter to start. If the settings name it, it may not exist.
    pub python: PathBuf,
    /// Where the interpreter was found.
    pub origin: InterpreterOrigin,
    /// The folders of its packages, in the order in which Python searches them.
    pub site_packages: Vec<PathBuf>,
    /// The installed version of Triton, if any.
    pub triton: Option<Version>,
    /// Whether that is a published release. A snapshot such as `3.5.0+git1a2b3c` may have another API.
    pub release: bool,
    /// When Triton was installed, from the modification time of its metadata.
    pub installed: Option<SystemTime>,
}

/// Where an interpreter was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpreterOrigin {
    /// The setting `python`.
    Settings,
    /// The interpreter that the user chose in the editor.
    Editor,
    /// The variable `VIRTUAL_ENV`.
    VirtualEnv,
    /// A folder `.venv` or `venv` beside the file or above it.
    Workspace,
    /// The variable `CONDA_PREFIX`.
    Conda,
    /// uv's environment of the project.
    Uv,
    /// Poetry's environment of the project.
    Poetry,
    /// The path in PDM's file `.pdm-python`.
    Pdm,
    /// The variable `PATH`.
    Path,
}

impl InterpreterOrigin {
    /// The origin as text, to be shown in brackets after a path.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Settings => "from the settings",
            Self::Editor => "chosen in the editor",
            Self::VirtualEnv => "from VIRTUAL_ENV",
            Self::Workspace => "in the project",
            Self::Conda => "from CONDA_PREFIX",
            Self::Uv => "uv's for the project",
            Self::Poetry => "Poetry's for the project",
            Self::Pdm => "PDM's for the project",
            Self::Path => "from PATH",
        }
    }
}

/// The parameters of a search for an interpreter.
#[derive(Clone, Copy, Debug)]
pub struct InterpreterSearch<'a> {
    /// The file or folder whose interpreter is sought.
    pub start: &'a Path,
    /// The root of the workspace.
    pub root: &'a Path,
    /// The setting `python`, relative to the root.
    pub settings: Option<&'a Path>,
    /// The interpreter that the user chose in the editor.
    pub editor: Option<&'a Path>,
}

/// A function that looks up an environment variable; tests pass their own.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl PythonEnvironment {
    /// Finds the environment of a file or folder. The setting `python` is used without a check. Otherwise the
    /// candidates are, in this order: the editor's choice, `VIRTUAL_ENV`, `.venv` or `venv` from `start` up to `root`,
    /// `CONDA_PREFIX`, the environments of uv, Poetry and PDM, `python3` and `python` on `PATH`. The first with Triton
    /// wins, else the first.
    #[must_use]
    pub fn find(search: &InterpreterSearch<'_>, env: VariableLookup<'_>) -> Option<Self> {
        if let Some(python) = search.settings {
            return Some(Self::of(candidates::named(python, search, env), InterpreterOrigin::Settings, env));
        }
        let mut first = None;
        for (origin, look) in candidates::PLACES {
            for python in look(search, env) {
                let found = Self::of(python, origin, env);
                if found.triton.is_some() {
                    return Some(found);
                }
                first.get_or_insert(found);
            }
        }
        first
    }

    /// The environment of `folder` by its settings and this process's environment variables.
    #[must_use]
    pub fn of_project(loaded: &LoadedSettings, folder: &Path) -> Option<Self> {
        let root = loaded.project(folder);
        let settings = loaded.settings.python.as_deref();
        Self::find(&InterpreterSearch { start: folder, root: &root, settings, editor: None }, &|name| {
            std::env::var_os(name)
        })
    }

    /// The installed version of a distribution, if any.
    #[must_use]
    pub fn version_of(&self, distribution: &str) -> Option<String> {
        self.site_packages.iter().find_map(|folder| packages::installed(folder, distribution))
    }

    fn of(python: PathBuf, origin: InterpreterOrigin, env: VariableLookup<'_>) -> Self {
        let site_packages = packages::site_packages(&python, env);
        let found = site_packages.iter().find_map(|folder| packages::installed_triton(folder)).unwrap_or_default();
        let (triton, release, installed) = (found.version, found.is_release, found.at);
        Self { python, origin, site_packages, triton, release, installed }
    }
}

/// The version of Triton to check against: the one in the settings, else the installed one, else the newest as an
/// assumption.
///
/// # Errors
/// Returns [`VersionError`] when the setting is no valid version.
pub fn target_for(settings: &Settings, environment: Option<&PythonEnvironment>) -> Result<TritonTarget, VersionError> {
    if let Some(version) = &settings.triton_version {
        return Ok(TritonTarget::of(version.parse()?));
    }
    let Some((environment, version)) = environment.and_then(|found| Some((found, found.triton?))) else {
        return Ok(TritonTarget::newest());
    };
    let target = TritonTarget::of(version);
    let snapshot = !environment.release && target.certainty == VersionCertainty::Known;
    Ok(if snapshot { TritonTarget { certainty: VersionCertainty::Assumed, ..target } } else { target })
}

#[cfg(test)]
mod tests;
