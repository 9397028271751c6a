//! Recorded calls: what to run to exercise a kernel, and where it is kept.
//!
//! A command that is being recorded writes a JSON file for each call into `.warpsmith/workloads/RECORDING`, at once, so
//! that one that is killed keeps what was recorded. From there they go into the store of the workspace. The file
//! `.warpsmith/recorded` changes whenever the recordings do.

mod calls;
mod comment;
mod kernel_bench;
mod launches;
mod reach;
mod record;
#[cfg(unix)]
mod signals;
mod signature;
mod spool;
mod turned;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use calls::{NoCall, Of, Running, Sought, Unusable};
pub use comment::{place_of_comment, workloads_of_comments};
pub use launches::{Seen, of_file, recorded_launch, run_of};
pub use reach::{identifiers, reaches};
pub use record::{LeftOut, Recorded, RecordingError, ToRecord, describe, last_lines, record};
pub use turned::{Numbers, launch_of_candidate, numbers_of_comment};

pub use store::Run;
use store::{Store, StoreError};

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
#[must_use]
pub fn existing(workspace: &Path) -> Option<Store> {
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

#[cfg(test)]
mod tests;
