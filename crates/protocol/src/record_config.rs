//! The configuration of the recorder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The configuration of the recorder for one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordConfig {
    /// The functions to record, which contain launches.
    pub entries: Vec<EntryPoint>,
    /// The index of the entry that the user named; its calls are kept even without tensors.
    #[serde(default)]
    pub wanted: Option<usize>,
    /// The root of the workspace. Launches of its kernels outside all entries are recorded by themselves.
    pub workspace: PathBuf,
    /// The folder for the recorded workloads, one JSON file each.
    pub output: PathBuf,
    /// The greatest number of distinct calls per entry.
    pub distinct: usize,
    /// The name of the device on which the command will run.
    pub device: String,
}

/// A function to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPoint {
    /// The function's file, absolute.
    pub file: PathBuf,
    /// The function's `qualname`.
    pub qualname: String,
    /// The line of its `def`, from 1.
    pub line: usize,
}
