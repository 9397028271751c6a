//! Recorded calls: what to run to exercise a kernel, and where it is kept.
//!
//! `.warpsmith/workloads/RECORDING/ENTRY-N.json`, one folder a recording, newest name last.

mod launches;
mod record;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use launches::{Seen, of_file};
pub use record::{Recorded, RecordingError, record};

use crate::protocol::Workload;

/// Recordings that are kept.
const KEPT: usize = 20;

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

/// All recordings of a workspace, newest first.
fn recordings(workspace: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(workspace.join(".warpsmith/workloads")) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.reverse();
    folders
}

/// The calls of one recording, most frequent first.
#[must_use]
pub fn read(recording: &Path) -> Vec<Workload> {
    let Ok(entries) = fs::read_dir(recording) else { return Vec::new() };
    let parse = |path: PathBuf| serde_json::from_slice::<Workload>(&fs::read(path).ok()?).ok();
    let json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut found: Vec<Workload> = entries.flatten().map(|entry| entry.path()).filter(json).filter_map(parse).collect();
    found.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.entry.cmp(&b.entry)));
    found
}

/// Why no recorded call can be used for a kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Nothing recorded on this device launches it.
    NotRecorded,
    /// It was recorded, and this stands in the way of running it again.
    Obstacle(String),
}

/// The newest recorded call in `file` that launches `kernel` on `device` and can be replayed; of those of one
/// recording, the most frequent.
///
/// # Errors
/// [`Unusable`] says why there is none.
pub fn find(workspace: &Path, file: &Path, kernel: &str, device: &str) -> Result<Workload, Unusable> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut obstacle = None;
    for recording in recordings(workspace) {
        for workload in read(&recording) {
            let launches = workload.launches.iter().any(|launch| launch.kernel == kernel);
            if workload.file != file || !launches || workload.environment.device != device {
                continue;
            }
            match workload.obstacle() {
                None => return Ok(workload),
                Some(what) => _ = obstacle.get_or_insert(format!("`{}` cannot be run again: {what}", workload.entry)),
            }
        }
    }
    Err(obstacle.map_or(Unusable::NotRecorded, Unusable::Obstacle))
}

/// Removes all but the newest recordings.
fn prune(workspace: &Path) {
    for old in recordings(workspace).into_iter().skip(KEPT) {
        let _ = fs::remove_dir_all(old);
    }
}
