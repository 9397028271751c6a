//! Workloads, the calls that exercise a kernel: how they are recorded, described and stored.
//!
//! A command under the recorder writes each call immediately, as a JSON file in `.warpsmith/workloads/RECORDING`, so
//! that a killed command keeps what was recorded. The calls are then moved into the store of the workspace. The file
//! `.warpsmith/recorded` is replaced whenever the recordings change.

mod calls;
mod comment;
mod described_launches;
mod kernel_bench;
mod launches;
mod reachability;
mod record;
#[cfg(unix)]
mod signals;
mod signature;
mod spool;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use calls::{CallQuery, CallRecorder, CallSubject, NoCallReason, UnusableCall};
pub use comment::{place_of_comment, workloads_of_comments};
pub use described_launches::{LaunchConstants, launch_of_candidate, numbers_of_comment};
pub use launches::{RecordingsVersion, of_file, recorded_launch, run_of};
pub use reachability::{identifiers, reaches};
pub use record::{RecordRequest, RecordingError, RecordingResult, SkippedCall, describe, last_lines, record};

pub use store::RecordedCommand;
use store::{Store, StoreError};

/// Creates `.warpsmith`, the folder of a workspace's state, with a `.gitignore` that keeps it out of Git.
///
/// # Errors
/// Returns an error when the folder cannot be created.
pub fn state_folder(workspace: &Path) -> io::Result<PathBuf> {
    let folder = workspace.join(".warpsmith");
    fs::create_dir_all(&folder)?;
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        fs::write(ignore, "*\n")?;
    }
    Ok(folder)
}

/// Opens the store of a workspace and imports the recordings that killed commands left.
///
/// # Errors
/// Returns an error when the store cannot be created or read.
pub fn store(workspace: &Path) -> Result<Store, StoreError> {
    let folder = state_folder(workspace).map_err(|source| StoreError::Io { path: workspace.to_owned(), source })?;
    let mut store = Store::open(&folder.join("store.db"))?;
    spool::import_left(&folder, &mut store)?;
    Ok(store)
}

/// The store of a workspace; `None` if nothing was stored yet or it cannot be read.
#[must_use]
pub fn existing(workspace: &Path) -> Option<Store> {
    let folder = workspace.join(".warpsmith");
    if !folder.join("store.db").exists() && !folder.join("workloads").exists() {
        return None;
    }
    store(workspace).inspect_err(|error| tracing::warn!(%error, "recordings cannot be read")).ok()
}

/// Replaces the file `.warpsmith/recorded`, which signals that the recordings have changed.
///
/// # Errors
/// Returns an error when the file cannot be written.
pub fn touch(workspace: &Path) -> io::Result<()> {
    let folder = state_folder(workspace)?;
    // A new file each time: its inode changes even if the clock does not.
    let new = tempfile::NamedTempFile::new_in(&folder)?;
    new.persist(folder.join("recorded"))?;
    Ok(())
}

#[cfg(test)]
mod tests;
