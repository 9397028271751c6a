//! Recorded launches, converted to the form that rules use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use model::analysis::types::dtype::Dtype;
use model::kernel::{RecordedArgument, RecordedLaunch};
use protocol::{ArgumentValue, LaunchRecord};
use store::RecordedCommand;

use super::existing;

/// The version of a workspace's recordings, by which new recordings are noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingsVersion(Option<(PathBuf, Stamp)>);

/// The version of the file that is replaced with each change of the recordings: modification time and inode.
type Stamp = (Option<SystemTime>, u64);

impl RecordingsVersion {
    /// The recordings of the nearest folder above `file` that has any.
    #[must_use]
    pub fn around(file: &Path) -> Self {
        let stamp = |folder: &Path| {
            let meta = std::fs::metadata(folder.join(".warpsmith/recorded"));
            let left = || std::fs::metadata(folder.join(".warpsmith/workloads"));
            let meta = meta.or_else(|_| left()).ok()?;
            Some((folder.to_owned(), (meta.modified().ok(), number(&meta))))
        };
        Self(file.ancestors().skip(1).find_map(stamp))
    }
}

#[cfg(unix)]
fn number(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

/// The distinct launches inside recorded calls of functions of `file`, from its newest recording alone.
#[must_use]
pub fn of_file(seen: &RecordingsVersion, file: &Path) -> Arc<[RecordedLaunch]> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let Some(store) = seen.0.as_ref().and_then(|(workspace, _)| existing(workspace)) else { return Arc::default() };
    let launches = store.launches(&file).unwrap_or_default();
    let mut found: Vec<RecordedLaunch> = Vec::new();
    for launch in launches.into_iter().map(recorded_launch).filter(|launch| !launch.arguments.is_empty()) {
        if !found.contains(&launch) {
            found.push(launch);
        }
    }
    found.into()
}

/// The newest command that called functions of `file` and can be run again.
#[must_use]
pub fn run_of(seen: &RecordingsVersion, file: &Path) -> Option<RecordedCommand> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let store = seen.0.as_ref().and_then(|(workspace, _)| existing(workspace))?;
    store.run_of(&file).inspect_err(|error| tracing::warn!(%error, "recordings cannot be read")).ok()?
}

/// Converts a recorded launch to the form that rules use.
#[must_use]
pub fn recorded_launch(record: LaunchRecord) -> RecordedLaunch {
    let arguments: Vec<_> = record.arguments.into_iter().map(|(name, value)| (name, passed(value))).collect();
    let option = |(name, value): (String, ArgumentValue)| match value {
        ArgumentValue::Int(value) if arguments.iter().all(|(param, _)| *param != name) => Some((name, value)),
        _ => None,
    };
    let options = record.keywords.into_iter().filter_map(option).collect();
    let grid = record.grid.into_iter().map(i128::from).collect();
    RecordedLaunch { kernel: record.kernel, arguments, grid, options }
}

fn passed(value: ArgumentValue) -> RecordedArgument {
    match value {
        ArgumentValue::Int(value) => RecordedArgument::Integer(i128::from(value)),
        ArgumentValue::Bool(value) => RecordedArgument::Bool(value),
        ArgumentValue::Float(value) => RecordedArgument::Float(value),
        ArgumentValue::None => RecordedArgument::None,
        ArgumentValue::Pointer(dtype) => RecordedArgument::Pointer(Dtype::of_torch(&dtype).map(Dtype::signature)),
        _ => RecordedArgument::Other,
    }
}
