//! The folders into which commands that are being recorded write.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use protocol::{FailedLaunch, Workload};
use store::{Fate, Limits, Recording, Store, StoreError};

use super::touch;

/// What a command is recorded with when nobody says otherwise.
const LIMITS: Limits = Limits { size: 256 << 20, shapes: 16 };

/// A folder that a command writes to; while this lives, nobody else takes it for one that was left.
pub(super) struct Spool {
    pub(super) folder: PathBuf,
    _lock: File,
}

impl Spool {
    /// A new one below a workspace's state.
    pub(super) fn new(state: &Path) -> io::Result<Self> {
        let workloads = state.join("workloads");
        fs::create_dir_all(&workloads)?;
        let folder = tempfile::Builder::new().prefix("recording-").tempdir_in(&workloads)?.keep();
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    /// The launches that have raised.
    pub(super) fn failed(&self) -> Vec<FailedLaunch> {
        read_all(&self.folder, FailedLaunch::EXTENSION)
    }

    /// Moves what is in it into the store, as far as there is room.
    pub(super) fn import(
        self,
        store: &mut Store,
        recording: &Recording,
        limits: Limits,
    ) -> Result<Vec<(Workload, Fate)>, StoreError> {
        let workloads = read(&self.folder);
        let mut fates = Vec::new();
        if !workloads.is_empty() {
            fates = store.keep_recording(recording, &workloads, limits)?;
        }
        remove(&self.folder);
        Ok(workloads.into_iter().zip(fates).collect())
    }
}

/// Takes over what commands left whose recorder was killed, and what an earlier release kept in such folders.
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

/// Calls, most frequent first.
fn read(folder: &Path) -> Vec<Workload> {
    let mut found: Vec<Workload> = read_all(folder, "json");
    found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.entry.cmp(&b.entry)));
    found
}

/// What is in the files of a folder whose names end so, in the order of the names.
fn read_all<T: DeserializeOwned>(folder: &Path, extension: &str) -> Vec<T> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == extension));
    paths.sort();
    paths.into_iter().filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

/// Removes a folder, and the one around it when it was the last.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let _ = folder.parent().map(fs::remove_dir);
}
