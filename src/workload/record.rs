//! Recording: which functions to watch, and running the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fs, io};

use super::spool::Spool;
use super::{state_folder, store, touch};
use crate::kernel::{Host, Module};
use crate::protocol::{EntryPoint, RecordConfig, Workload};
use crate::python::{RecordError, record_command};
use crate::store::{Limits, Recording, StoreError};
use crate::syntax::Source;

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

impl Recorded {
    /// The last lines of what the command printed.
    #[must_use]
    pub fn tail(&self) -> String {
        last_lines(&self.output)
    }
}

/// The last lines of what a program printed.
#[must_use]
pub fn last_lines(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
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
    /// It cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
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
#[expect(clippy::too_many_arguments, reason = "each is another fact about the run")]
pub fn record(
    workspace: &Path,
    folder: &Path,
    command: &[OsString],
    python: &Path,
    device: &str,
    quiet: bool,
    limits: Limits,
    going: &dyn Fn() -> bool,
) -> Result<Recorded, RecordingError> {
    let workspace = &fs::canonicalize(workspace)?;
    let (entries, has_launches) = entry_points(workspace);
    if !has_launches {
        return Err(RecordingError::NoEntries(workspace.clone()));
    }
    let spool = Spool::new(&state_folder(workspace)?)?;
    let config = RecordConfig {
        entries,
        workspace: workspace.clone(),
        output: spool.folder.clone(),
        distinct: limits.shapes,
        device: device.to_owned(),
    };
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
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let workloads = spool.import(&mut store(workspace)?, &Recording::now(&words.join(" ")), limits)?;
    if !workloads.is_empty() {
        touch(workspace)?;
    }
    Ok(Recorded { workloads, status: status.code(), output: fs::read_to_string(log.path()).unwrap_or_default() })
}

/// The functions of a workspace that hold launches of kernels or call autograd functions, and whether there is any launch.
fn entry_points(workspace: &Path) -> (Vec<EntryPoint>, bool) {
    let python = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
    let files = ignore::WalkBuilder::new(workspace).build().flatten().map(ignore::DirEntry::into_path);
    let (mut entries, mut has_launches) = (Vec::new(), false);
    for path in files.filter(|path| python(path)) {
        let (found, launches) = entries_of(&path);
        entries.extend(found);
        has_launches |= launches;
    }
    (entries, has_launches)
}

fn entries_of(path: &Path) -> (Vec<EntryPoint>, bool) {
    let Ok(text) = fs::read_to_string(path) else { return (Vec::new(), false) };
    // A kernel may come from another file, so the word `triton` is no condition.
    if !text.contains(']') && !text.contains(".apply(") {
        return (Vec::new(), false);
    }
    // Calls of other subscripts (tables of functions) are watched too; what launches nothing is not kept.
    let source = Source::parse(text);
    let module = Module::build(&source);
    let (mut hosts, has_launches) = (module.hosts, !module.launches.is_empty());
    // A function that calls an autograd function is more of a call to look at than the autograd function itself.
    for (at, _) in source.text().match_indices(".apply(") {
        hosts.extend(Module::function_around(&source, at).filter(|host| hosts.iter().all(|it| it.line != host.line)));
    }
    let point = |host: Host| EntryPoint { file: path.to_owned(), qualname: host.qualname, line: host.line + 1 };
    (hosts.into_iter().map(point).collect(), has_launches)
}
