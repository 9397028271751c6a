//! Recorded launches, as rules take them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{read, recordings};
use crate::analysis::types::dtype::Number;
use crate::kernel::{Passed, RecordedLaunch};
use crate::protocol::{LaunchRecord, Value, Workload};

/// The recordings that there are, as far as it takes to see whether there are new ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(Vec<PathBuf>);

impl Seen {
    /// Those of the workspace around `file`: the nearest folder with recordings.
    #[must_use]
    pub fn around(file: &Path) -> Self {
        let folders = file.ancestors().skip(1).find(|folder| folder.join(".warpsmith/workloads").is_dir());
        Self(folders.map_or_else(Vec::new, recordings))
    }
}

/// The launches inside recorded calls of functions of `file`, each once: those of the newest recording that has any.
#[must_use]
pub fn of_file(seen: &Seen, file: &Path) -> Arc<[RecordedLaunch]> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    for recording in &seen.0 {
        let mut found: Vec<RecordedLaunch> = Vec::new();
        for Workload { launches, .. } in read(recording).into_iter().filter(|workload| workload.file == file) {
            let new = launches.into_iter().map(launch).filter(|launch| !launch.arguments.is_empty());
            for launch in new {
                if !found.contains(&launch) {
                    found.push(launch);
                }
            }
        }
        if !found.is_empty() {
            return found.into();
        }
    }
    Arc::default()
}

fn launch(record: LaunchRecord) -> RecordedLaunch {
    let arguments: Vec<_> = record.arguments.into_iter().map(|(name, value)| (name, passed(value))).collect();
    let option = |(name, value): (String, Value)| match value {
        Value::Int(value) if arguments.iter().all(|(param, _)| *param != name) => Some((name, value)),
        _ => None,
    };
    let options = record.keywords.into_iter().filter_map(option).collect();
    let grid = record.grid.into_iter().map(i128::from).collect();
    RecordedLaunch { kernel: record.kernel, arguments, grid, options }
}

fn passed(value: Value) -> Passed {
    match value {
        Value::Int(value) => Passed::Integer(i128::from(value)),
        Value::Bool(value) => Passed::Bool(value),
        Value::Float(value) => Passed::Float(value),
        Value::None => Passed::None,
        Value::Pointer(dtype) => Passed::Pointer(Number::of_torch(&dtype).map(Number::signature)),
        _ => Passed::Other,
    }
}
