//! Which Python a project uses and which Triton is installed there, read off the file system: nothing is executed.

mod candidates;
mod managers;
mod packages;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use config::{Loaded, Settings};
use model::api::{Certainty, Target, Version, VersionError};

/// A Python interpreter with what is installed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The interpreter to start. For one named in the settings it need not exist.
    pub python: PathBuf,
    /// What named it.
    pub origin: Origin,
    /// The folders with its packages, in the order in which Python searches them.
    pub site_packages: Vec<PathBuf>,
    /// The Triton installed there.
    pub triton: Option<Version>,
    /// Whether that is a published release, not a snapshot such as `3.5.0+git1a2b3c` that may have other names.
    pub release: bool,
    /// When it was installed, as far as the file system knows.
    pub installed: Option<SystemTime>,
}

/// What named an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The setting `python`.
    Settings,
    /// What the user chose in the editor.
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
    /// What PDM notes beside the project's file.
    Pdm,
    /// The variable `PATH`.
    Path,
}

impl Origin {
    /// What named it, as it stands behind a path in brackets.
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

/// For what an interpreter is looked for, and what was said about it.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// A file or a folder.
    pub start: &'a Path,
    /// The root of its workspace.
    pub root: &'a Path,
    /// The setting `python`, relative to the root.
    pub settings: Option<&'a Path>,
    /// What the user chose in the editor.
    pub editor: Option<&'a Path>,
}

/// Looks up an environment variable; tests have their own.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Environment {
    /// The environment of a file or folder. The setting `python` is taken as it is. Else it is the first that has
    /// Triton, or the first, of: what was chosen in the editor, `VIRTUAL_ENV`, `.venv` or `venv` from `start` up to
    /// `root`, `CONDA_PREFIX`, those of uv, Poetry and PDM, `python3` and `python` on `PATH`.
    #[must_use]
    pub fn find(search: &Search<'_>, env: Variables<'_>) -> Option<Self> {
        if let Some(python) = search.settings {
            return Some(Self::of(candidates::named(python, search, env), Origin::Settings, env));
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

    /// The environment of `folder` under the settings that hold there, with the variables of this process.
    #[must_use]
    pub fn of_project(loaded: &Loaded, folder: &Path) -> Option<Self> {
        let root = loaded.project(folder);
        let settings = loaded.settings.python.as_deref();
        Self::find(&Search { start: folder, root: &root, settings, editor: None }, &|name| std::env::var_os(name))
    }

    /// The version of a distribution that is installed there.
    #[must_use]
    pub fn version_of(&self, distribution: &str) -> Option<String> {
        self.site_packages.iter().find_map(|folder| packages::installed(folder, distribution))
    }

    fn of(python: PathBuf, origin: Origin, env: Variables<'_>) -> Self {
        let site_packages = packages::site_packages(&python, env);
        let found = site_packages.iter().find_map(|folder| packages::installed_triton(folder)).unwrap_or_default();
        let (triton, release, installed) = (found.version, found.is_release, found.at);
        Self { python, origin, site_packages, triton, release, installed }
    }
}

/// The Triton version to check against: the one in the settings, else the installed one, else the newest, assumed.
///
/// # Errors
/// [`VersionError`] when the settings name something that is no version.
pub fn target_for(settings: &Settings, environment: Option<&Environment>) -> Result<Target, VersionError> {
    if let Some(version) = &settings.triton_version {
        return Ok(Target::of(version.parse()?));
    }
    let Some((environment, version)) = environment.and_then(|found| Some((found, found.triton?))) else {
        return Ok(Target::newest());
    };
    let target = Target::of(version);
    let snapshot = !environment.release && target.certainty == Certainty::Known;
    Ok(if snapshot { Target { certainty: Certainty::Assumed, ..target } } else { target })
}

#[cfg(test)]
mod tests;
