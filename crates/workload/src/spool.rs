//! Spool folders, into which commands under the recorder write their calls.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use protocol::{FailedLaunch, Workload};
use store::{Recording, Retention, RetentionLimits, Store, StoreError};

use super::touch;

/// The limits for the import of folders that a killed recorder left.
const LIMITS: RetentionLimits = RetentionLimits { size: 256 << 20, shapes: 16 };

/// A spool folder with its lock; while it exists, no other process imports the folder as left over.
pub(super) struct Spool {
    pub(super) folder: PathBuf,
    _lock: File,
}

impl Spool {
    /// Creates a spool folder in the folder of a workspace's state.
    pub(super) fn new(state: &Path) -> io::Result<Self> {
        let workloads = state.join("workloads");
        fs::create_dir_all(&workloads)?;
        let folder = tempfile::Builder::new().prefix("recording-").tempdir_in(&workloads)?.keep();
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    /// The launches that raised an exception.
    pub(super) fn failed(&self) -> Vec<FailedLaunch> {
        read_all(&self.folder, FailedLaunch::EXTENSION)
    }

    /// Moves the calls into the store, within its limits, and removes the folder.
    pub(super) fn import(
        self,
        store: &mut Store,
        recording: &Recording,
        limits: RetentionLimits,
    ) -> Result<Vec<(Workload, Retention)>, StoreError> {
        let workloads = read(&self.folder);
        let mut fates = Vec::new();
        if !workloads.is_empty() {
            fates = store.keep_recording(recording, &workloads, limits)?;
        }
        remove(&self.folder);
        Ok(workloads.into_iter().zip(fates).collect())
    }
}

/// Imports the folders that killed recorders left, and those in which an earlier release kept recordings.
pub(super) fn import_left(state: &Path, store: &mut Store) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(state.join("workloads")) else { return Ok(()) };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    for folder in folders {
        let lock = File::open(folder.join("lock"));
        if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
            continue;
        }
        let workloads = read(&folder);
        if !workloads.is_empty() {
            store.keep_recording(&Recording::now(""), &workloads, LIMITS)?;
            let _ = state.parent().map(touch);
        }
        remove(&folder);
    }
    Ok(())
}

/// The calls in a folder, the most frequent first.
fn read(folder: &Path) -> Vec<Workload> {
    let mut found: Vec<Workload> = read_all(folder, "json");
    found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.entry.cmp(&b.entry)));
    found
}

/// The contents of a folder's files with this extension, in the order of their names.
fn read_all<T: DeserializeOwned>(folder: &Path, extension: &str) -> Vec<T> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == extension));
    paths.sort();
    paths.into_iter().filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

/// Removes a folder, and its parent folder if that is then empty.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let _ = folder.parent().map(fs::remove_dir);
}
