//! The settings that apply to a folder, read once.

use learn::SkillMemory as _;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use compiler::CompileTarget;
use config::{Excludes, SettingsError};
use model::api::{TritonTarget, Version};
use rules::Selection;
use rules::learned::LearnedRules;
use runtime::python::environment::{self, PythonEnvironment};
use runtime::python::state_folder;
use store::Store;

use crate::cli::compiler_setup::interpreter;

/// The command-line options that override the settings.
pub(super) struct Overrides {
    pub(super) select: Vec<String>,
    pub(super) ignore: Vec<String>,
    pub(super) triton: Option<Version>,
    pub(super) device: Option<CompileTarget>,
}

/// The facts that the files below one settings file share.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) selection: Selection,
    pub(super) target: TritonTarget,
    pub(super) excludes: Excludes,
    /// The interpreter and its Triton version, if Triton is installed for it.
    pub(super) python: Option<(PathBuf, Version)>,
    /// The device to compile kernels for, if the user has named one.
    pub(super) device: Option<CompileTarget>,
    /// Whether files may be imported.
    pub(super) imports_files: bool,
    /// The learned rules of this user.
    pub(super) memory: Arc<LearnedRules>,
}

type ProjectResult = Result<Arc<Project>, SettingsError>;

/// The projects of the folders so far.
pub(super) struct Projects {
    overrides: Overrides,
    by_folder: Mutex<HashMap<PathBuf, ProjectResult>>,
    memory: LazyLock<Arc<LearnedRules>>,
}

impl Projects {
    pub(super) fn new(overrides: Overrides) -> Self {
        Self { overrides, by_folder: Mutex::default(), memory: LazyLock::new(memory) }
    }

    /// The project of the files in `folder`, an absolute path.
    pub(super) fn of(&self, folder: &Path) -> ProjectResult {
        let mut known = self.by_folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(folder) {
            return found.clone();
        }
        let found = self.read(folder);
        known.insert(folder.to_path_buf(), found.clone());
        found
    }

    fn read(&self, folder: &Path) -> ProjectResult {
        let loaded = crate::settings::load(folder)?;
        let mut selection = crate::settings::selection(&loaded.settings);
        if !self.overrides.select.is_empty() {
            selection.select.clone_from(&self.overrides.select);
        }
        selection.ignore.extend(self.overrides.ignore.iter().cloned());
        let environment = PythonEnvironment::of_project(&loaded, folder);
        let target = match self.overrides.triton {
            Some(version) => TritonTarget::of(version),
            None => environment::target_for(&loaded.settings, environment.as_ref())
                // Not reached: a version in the settings was checked when they were loaded.
                .unwrap_or_else(|_| TritonTarget::newest()),
        };
        let python = interpreter(environment);
        let device = self.overrides.device.clone().or_else(|| crate::settings::device(&loaded.settings.compiler));
        let imports_files = loaded.settings.compiler.import_files;
        let excludes = Excludes::new(&loaded, folder)?;
        let is_used = loaded.settings.memory.enabled;
        let memory = if is_used { Arc::clone(&self.memory) } else { Arc::new(LearnedRules::empty().clone()) };
        Ok(Arc::new(Project { selection, target, excludes, python, device, imports_files, memory }))
    }
}

/// The learned rules of this user, or the shipped ones where these cannot be read.
fn memory() -> Arc<LearnedRules> {
    Arc::new(Store::memory_in(&state_folder()).unwrap_or_else(|error| {
        eprintln!("warning: what was learned cannot be read: {error}");
        LearnedRules::shipped().clone()
    }))
}
