//! Recorded calls: what to run to exercise a kernel, and where it is kept.
//!
//! A command that is being recorded writes a JSON file for each call into `.warpsmith/workloads/RECORDING`, at once, so that
//! one that is killed keeps what was recorded. From there they go into the store of the workspace. The file
//! `.warpsmith/recorded` changes whenever the recordings do.

mod comment;
mod kernel_bench;
mod launches;
mod record;
mod spool;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use comment::workloads_of_comments;
pub use launches::{Seen, of_file};
pub use record::{Recorded, RecordingError, record};

use crate::protocol::Workload;
use crate::store::{Store, StoreError};

/// The folder of a workspace's state, with a file in it that keeps it out of Git.
///
/// # Errors
/// When it cannot be made.
pub fn state_folder(workspace: &Path) -> io::Result<PathBuf> {
    let folder = workspace.join(".warpsmith");
    fs::create_dir_all(&folder)?;
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    Ok(folder)
}

/// The store of a workspace, with everything that was recorded in it.
///
/// # Errors
/// When it cannot be made or read.
pub fn store(workspace: &Path) -> Result<Store, StoreError> {
    let folder = state_folder(workspace).map_err(|source| StoreError::Io { path: workspace.to_owned(), source })?;
    let mut store = Store::open(&folder.join("store.db"))?;
    spool::import_left(&folder, &mut store)?;
    Ok(store)
}

/// The store of a workspace; `None` when nothing was kept yet.
fn existing(workspace: &Path) -> Option<Store> {
    let folder = workspace.join(".warpsmith");
    if !folder.join("store.db").exists() && !folder.join("workloads").exists() {
        return None;
    }
    store(workspace).inspect_err(|error| tracing::warn!(%error, "recordings cannot be read")).ok()
}

/// Says that the recordings have changed.
///
/// # Errors
/// When the file cannot be written.
pub fn touch(workspace: &Path) -> io::Result<()> {
    let folder = state_folder(workspace)?;
    // A new file each time: its number changes though the clock may not.
    let new = tempfile::NamedTempFile::new_in(&folder)?;
    new.persist(folder.join("recorded"))?;
    Ok(())
}

/// Why no call can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is none.
    NotRecorded,
    /// There is one, and this stands in the way of running it.
    Obstacle(String),
}

/// The newest recorded call in `file` that launches `kernel` on `device` and can be replayed; of those of one
/// recording, the most frequent.
///
/// # Errors
/// [`Unusable`] says why there is none.
pub fn find(workspace: &Path, file: &Path, kernel: &str, device: &str) -> Result<Workload, Unusable> {
    let fits = |workload: &Workload| {
        workload.launches.iter().any(|launch| launch.kernel == kernel) && workload.environment.device == device
    };
    let recorded = recorded(workspace, file, None)?.into_iter().filter(fits).collect();
    Ok(usable(recorded)?.swap_remove(0))
}

/// The calls that exercise `file`, or one entry of it: all that were recorded, the most frequent first; else what comments
/// say; else its own inputs, if it has the form of `KernelBench`.
///
/// # Errors
/// [`Unusable`] says why there is none.
pub fn for_file(workspace: &Path, file: &Path, entry: Option<&str>) -> Result<Vec<Workload>, Unusable> {
    let mut found = recorded(workspace, file, entry).and_then(usable);
    if let Ok(recorded) = &mut found {
        recorded.sort_by_key(|workload| std::cmp::Reverse(workload.count));
        return found;
    }
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let Ok(text) = fs::read_to_string(file) else { return found };
    let is_wanted = |workload: &Workload| entry.is_none_or(|entry| workload.entry == entry);
    let mut said = workloads_of_comments(file, &text).map_err(Unusable::Obstacle)?;
    said.retain(is_wanted);
    said.sort_by_key(|workload| std::cmp::Reverse(workload.count));
    if said.is_empty() {
        let is_class = |entry: &str| entry == "Model";
        said.extend(kernel_bench::workload(file, &text).filter(|it| is_wanted(it) || entry.is_some_and(is_class)));
    }
    if said.is_empty() { found } else { usable(said) }
}

/// Newest first.
fn recorded(workspace: &Path, file: &Path, entry: Option<&str>) -> Result<Vec<Workload>, Unusable> {
    let Some(store) = existing(workspace) else { return Err(Unusable::NotRecorded) };
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let rows = store.workloads(Some(&file), entry).map_err(|error| Unusable::Obstacle(error.to_string()))?;
    Ok(rows.into_iter().map(|row| row.workload).collect())
}

/// Those that can be replayed; at least one.
fn usable(workloads: Vec<Workload>) -> Result<Vec<Workload>, Unusable> {
    let mut first = None;
    let mut usable = Vec::new();
    for workload in workloads {
        match workload.obstacle() {
            None => usable.push(workload),
            Some(what) => _ = first.get_or_insert(format!("`{}` cannot be run again: {what}", workload.entry)),
        }
    }
    if usable.is_empty() { Err(first.map_or(Unusable::NotRecorded, Unusable::Obstacle)) } else { Ok(usable) }
}

#[cfg(test)]
mod tests;
