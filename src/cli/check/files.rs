//! The selection of the files to check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use ignore::{DirEntry, WalkBuilder};

use super::project::Projects;

/// A file to check.
#[derive(Debug)]
pub(super) struct InputFile {
    /// The absolute path.
    pub(super) path: PathBuf,
    /// The path as it was named, for output.
    pub(super) shown: String,
}

impl InputFile {
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// `path` with forward slashes, without a leading `./`.
pub(super) fn shown(path: &Path) -> String {
    let path = path.strip_prefix("./").unwrap_or(path).to_string_lossy();
    if cfg!(windows) { path.replace('\\', "/") } else { path.into_owned() }
}

/// The files that `paths` name, each once, in the order of their paths.
pub(super) fn collect(paths: &[PathBuf], projects: &Arc<Projects>) -> anyhow::Result<Vec<InputFile>> {
    let mut found = BTreeMap::new();
    for path in paths {
        let kind = std::fs::metadata(path).with_context(|| format!("{}", path.display()))?;
        if !kind.is_dir() {
            add(&mut found, path)?;
            continue;
        }
        for entry in walk(path, projects) {
            match entry {
                Ok(entry) if is_python(&entry) => add(&mut found, entry.path())?,
                Ok(_) => {}
                Err(error) => eprintln!("warning: {error}; skipped"),
            }
        }
    }
    Ok(found.into_values().collect())
}

fn add(found: &mut BTreeMap<PathBuf, InputFile>, path: &Path) -> anyhow::Result<()> {
    let absolute = config::absolute(path)?;
    if absolute.file_name().is_none() {
        bail!("{}: is not a file", path.display());
    }
    found.entry(absolute.clone()).or_insert_with(|| InputFile { path: absolute, shown: shown(path) });
    Ok(())
}

fn walk(folder: &Path, projects: &Arc<Projects>) -> ignore::Walk {
    let projects = Arc::clone(projects);
    WalkBuilder::new(folder)
        // A .gitignore also applies outside of a repository.
        .require_git(false)
        .filter_entry(move |entry| entry.depth() == 0 || !is_left_out(entry, &projects))
        .build()
}

fn is_python(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file()) && entry.path().extension().is_some_and(|end| end == "py")
}

/// Whether the settings exclude the entry, or it is a virtual environment.
fn is_left_out(entry: &DirEntry, projects: &Projects) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    if !is_folder && !is_python(entry) {
        return true;
    }
    if is_folder && entry.path().join("pyvenv.cfg").is_file() {
        return true;
    }
    let Ok(path) = config::absolute(entry.path()) else { return false };
    // Settings that cannot be read are reported when a file asks for them.
    path.parent().and_then(|parent| projects.of(parent).ok()).is_some_and(|it| it.excludes.cover(&path, is_folder))
}
