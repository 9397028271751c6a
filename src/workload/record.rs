//! Recording: which functions to watch, and running the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use super::{prune, read, state_folder};
use crate::kernel::Module;
use crate::protocol::{EntryPoint, RecordConfig, Workload};
use crate::python::{RecordError, record_command};
use crate::syntax::Source;

/// Distinct calls kept per entry.
const DISTINCT: usize = 16;

/// What a recording found.
#[derive(Debug)]
pub struct Recorded {
    /// The calls.
    pub workloads: Vec<Workload>,
    /// How the command ended: its exit code, absent when a signal ended it.
    pub status: Option<i32>,
    /// The end of what it printed, when it was not shown.
    pub output: String,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The command is no Python program, or the worker is missing.
    #[error(transparent)]
    Command(#[from] RecordError),
    /// No function of the workspace launches a kernel.
    #[error("no function under {0} launches a Triton kernel (`kernel[grid](…)`)")]
    NoEntries(PathBuf),
    /// The system refused something.
    #[error("cannot record: {0}")]
    Io(#[from] io::Error),
    /// It was stopped.
    #[error("stopped")]
    Cancelled,
}

/// Runs `command` in `folder` and records the calls of every function under `workspace` that launches kernels.
///
/// With `quiet`, the command's output is kept for the error message instead of being shown. `going` is asked now and
/// then whether to go on.
///
/// # Errors
/// [`RecordingError`] when the command cannot run. A command that fails keeps what was recorded until then.
pub fn record(
    workspace: &Path,
    folder: &Path,
    command: &[OsString],
    python: &Path,
    device: &str,
    quiet: bool,
    going: &dyn Fn() -> bool,
) -> Result<Recorded, RecordingError> {
    let workspace = &fs::canonicalize(workspace)?;
    let entries = entry_points(workspace);
    if entries.is_empty() {
        return Err(RecordingError::NoEntries(workspace.clone()));
    }
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let output = state_folder(workspace)?.join("workloads").join(format!("{millis:014}"));
    fs::create_dir_all(&output)?;
    let config = RecordConfig { entries, output: output.clone(), distinct: DISTINCT, device: device.to_owned() };
    let config_file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(config_file.as_file(), &config).map_err(io::Error::from)?;
    let mut run = record_command(command, python, config_file.path())?;
    let log = tempfile::NamedTempFile::new()?;
    run.current_dir(folder);
    if quiet {
        run.stdin(Stdio::null()).stdout(log.reopen()?).stderr(log.reopen()?);
    }
    let mut process = run.spawn()?;
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break status;
        }
        if !going() {
            process.kill()?;
            process.wait()?;
            return Err(RecordingError::Cancelled);
        }
        std::thread::park_timeout(Duration::from_millis(20));
    };
    let workloads = read(&output);
    if workloads.is_empty() {
        fs::remove_dir_all(&output)?;
    }
    prune(workspace);
    Ok(Recorded { workloads, status: status.code(), output: fs::read_to_string(log.path()).unwrap_or_default() })
}

/// The functions of a workspace that hold launches of kernels.
fn entry_points(workspace: &Path) -> Vec<EntryPoint> {
    let python = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
    let files = ignore::WalkBuilder::new(workspace).build().flatten().map(ignore::DirEntry::into_path);
    files.filter(|path| python(path)).flat_map(|path| entries_of(&path)).collect()
}

fn entries_of(path: &Path) -> Vec<EntryPoint> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    // A kernel may come from another file, so the word `triton` is no condition.
    if !text.contains(']') {
        return Vec::new();
    }
    // Calls of other subscripts (tables of functions) are watched too; what launches nothing is not kept.
    let hosts = Module::build(&Source::parse(text)).hosts.into_iter();
    hosts.map(|host| EntryPoint { file: path.to_owned(), qualname: host.qualname, line: host.line + 1 }).collect()
}
