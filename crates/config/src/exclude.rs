//! The files that settings leave out.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{LoadedSettings, SettingsError};

/// The patterns of `exclude`, compiled.
#[derive(Clone, Debug)]
pub struct Excludes {
    root: PathBuf,
    patterns: Gitignore,
}

impl Excludes {
    /// Compiles the patterns of `loaded`. They are relative to the settings file, or to `start` when there is none.
    ///
    /// # Errors
    /// [`SettingsError`] when a pattern cannot be read.
    pub fn new(loaded: &LoadedSettings, start: &Path) -> Result<Self, SettingsError> {
        let root = loaded.root().unwrap_or(start).to_path_buf();
        let mut builder = GitignoreBuilder::new(&root);
        let error = |error: ignore::Error| SettingsError::of_file(loaded.path.as_deref(), error.to_string());
        for pattern in &loaded.settings.exclude {
            builder.add_line(None, pattern).map_err(error)?;
        }
        Ok(Self { patterns: builder.build().map_err(error)?, root })
    }

    /// Whether the file or folder at the absolute `path`, or a folder that holds it, is left out.
    #[must_use]
    pub fn cover(&self, path: &Path, is_folder: bool) -> bool {
        // Outside of its root the matcher panics; nothing is left out there.
        path.strip_prefix(&self.root)
            .is_ok_and(|inner| self.patterns.matched_path_or_any_parents(inner, is_folder).is_ignore())
    }
}
