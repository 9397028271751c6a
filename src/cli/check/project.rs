//! The settings that hold for a folder, read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::{Target, Version};
use crate::rules::Selection;
use crate::settings::{self, Excludes, SettingsError};

/// What the command line says over the settings.
pub(super) struct Overrides {
    pub(super) select: Vec<String>,
    pub(super) ignore: Vec<String>,
    pub(super) triton: Option<Version>,
}

/// What files below one settings file have in common.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) selection: Selection,
    pub(super) target: Target,
    pub(super) excludes: Excludes,
}

type Found = Result<Arc<Project>, SettingsError>;

/// The projects of the folders that were met.
pub(super) struct Projects {
    overrides: Overrides,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_folder: HashMap<PathBuf, Found>,
    /// By settings file; `None` for the defaults.
    by_settings: HashMap<Option<PathBuf>, Found>,
}

impl Projects {
    pub(super) fn new(overrides: Overrides) -> Self {
        Self { overrides, known: Mutex::default() }
    }

    /// The project that holds for files in `folder`, an absolute path.
    pub(super) fn of(&self, folder: &Path) -> Found {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.by_folder.get(folder) {
            return found.clone();
        }
        let found = settings::load(folder).and_then(|loaded| {
            let path = loaded.path.clone();
            known.by_settings.entry(path).or_insert_with(|| self.build(loaded, folder)).clone()
        });
        known.by_folder.insert(folder.to_path_buf(), found.clone());
        found
    }

    fn build(&self, loaded: settings::Loaded, folder: &Path) -> Found {
        let excludes = Excludes::new(&loaded, folder)?;
        let target = self.target(&loaded, folder);
        let mut selection = loaded.settings.selection();
        if !self.overrides.select.is_empty() {
            selection.select.clone_from(&self.overrides.select);
        }
        selection.ignore.extend(self.overrides.ignore.iter().cloned());
        Ok(Arc::new(Project { selection, target, excludes }))
    }

    fn target(&self, loaded: &settings::Loaded, _folder: &Path) -> Target {
        let named = self.overrides.triton.or_else(|| loaded.settings.triton());
        named.map_or_else(Target::newest, Target::of)
    }
}
