//! The project around a file.

use std::path::{Path, PathBuf};

/// The folder that a file in `folder` may import from: the project around it.
pub(super) fn project(folder: &Path) -> PathBuf {
    let is_root =
        |folder: &&Path| [".git", "pyproject.toml", "warpsmith.toml"].iter().any(|name| folder.join(name).exists());
    folder.ancestors().find(is_root).unwrap_or(folder).to_owned()
}
