//! Recording a command: finding the functions to record, running the command, and storing its calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, fs, io};

use model::kernel::{HostFunction, Module};
use model::syntax::{Source, each_node, field};
use protocol::{EntryPoint, FailedLaunch, RecordConfig, Workload};
use runtime::python::{RecordError, record_command};
use store::{Recording, Retention, RetentionLimits, StoreError};

use super::spool::Spool;
use super::{state_folder, store, touch};

/// The result of a recording.
#[derive(Debug, Default)]
pub struct RecordingResult {
    /// The calls that were stored.
    pub workloads: Vec<Workload>,
    /// The calls that exceeded a limit and were not stored.
    pub left_out: Vec<SkippedCall>,
    /// The launches that raised an exception.
    pub failed: Vec<FailedLaunch>,
    /// The exit code of the command; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended the command, if any.
    pub signal: Option<i32>,
    /// The output of the command, if it was captured instead of shown.
    pub output: String,
}

impl RecordingResult {
    /// The last lines of what the command printed.
    #[must_use]
    pub fn tail(&self) -> String {
        last_lines(&self.output)
    }
}

/// A call that was not stored.
#[derive(Debug)]
pub struct SkippedCall {
    /// The call.
    pub workload: Workload,
    /// Which limit it exceeded.
    pub fate: Retention,
    /// The limits of the store.
    pub limits: RetentionLimits,
}

impl fmt::Display for SkippedCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: f64 = 1_048_576.0;
        let limit = self.limits.size as f64 / MIB;
        write!(out, "not kept: {}; ", describe(&self.workload))?;
        match self.fate {
            Retention::TooLarge(size) => write!(
                out,
                "it takes {:.1} MiB of the {limit} that are kept: raise `workloads.max-size`",
                size as f64 / MIB
            ),
            _ => write!(out, "{} shapes are kept: raise `workloads.max-shapes`", self.limits.shapes),
        }
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
    /// The calls cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A system operation failed.
    #[error("cannot record: {0}")]
    Io(#[from] io::Error),
    /// The recording was cancelled.
    #[error("stopped")]
    Cancelled,
}

/// A command to record, and how to store its calls.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The root of the workspace, whose functions are recorded.
    pub workspace: PathBuf,
    /// The working folder of the command.
    pub folder: PathBuf,
    /// The program and its arguments, one element each.
    pub command: Vec<OsString>,
    /// The project's interpreter, for commands that name none.
    pub python: PathBuf,
    /// The name of the device.
    pub device: String,
    /// Whether the command's output is captured for error messages instead of shown.
    pub quiet: bool,
    /// The limits of what is stored.
    pub limits: RetentionLimits,
    /// A file and its function that the user wants recorded, even if it only calls functions that launch kernels.
    pub entry: Option<(PathBuf, String)>,
}

/// Runs a command and records the calls of every function of the workspace that launches kernels. `going` is called
/// periodically and returns whether to continue. Unless the command is quiet, signals that would end this process are
/// passed on to the command.
///
/// # Errors
/// Returns [`RecordingError`] when the command cannot run. If the command fails, the calls until then are stored.
pub fn record(what: &RecordRequest, going: &dyn Fn() -> bool) -> Result<RecordingResult, RecordingError> {
    let workspace = &fs::canonicalize(&what.workspace)?;
    let (mut entries, has_launches) = entry_points(workspace);
    let mut named = None;
    if let Some((file, name)) = &what.entry {
        let wanted = functions(file).into_iter().filter(|point| point.qualname == *name);
        let wanted = wanted.filter(|point| !entries.iter().any(|it| it.file == point.file && it.line == point.line));
        entries.extend(wanted.collect::<Vec<_>>());
        named = entries.iter().position(|point| point.file == *file && point.qualname == *name);
    }
    if !has_launches && what.entry.is_none() {
        return Err(RecordingError::NoEntries(workspace.clone()));
    }
    let spool = Spool::new(&state_folder(workspace)?)?;
    let config = RecordConfig {
        entries,
        wanted: named,
        workspace: workspace.clone(),
        output: spool.folder.clone(),
        distinct: what.limits.shapes,
        device: what.device.clone(),
    };
    let config_file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(config_file.as_file(), &config).map_err(io::Error::from)?;
    let mut run = record_command(&what.command, &what.python, config_file.path())?;
    let log = tempfile::NamedTempFile::new()?;
    run.current_dir(&what.folder);
    if what.quiet {
        run.stdin(Stdio::null()).stdout(log.reopen()?).stderr(log.reopen()?);
        // It reads no input from the terminal, so it can have a process group of its own, which is ended as a whole.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut run, 0);
    }
    #[cfg(unix)]
    let passing = (!what.quiet).then(super::signals::SignalShield::new);
    let mut process = run.spawn()?;
    let status = loop {
        if let Some(status) = process.try_wait()? {
            break status;
        }
        #[cfg(unix)]
        passing.as_ref().map_or(Ok(()), |passing| passing.pass(&process))?;
        if !going() {
            end(&mut process, what.quiet);
            process.wait()?;
            return Err(RecordingError::Cancelled);
        }
        std::thread::park_timeout(Duration::from_millis(20));
    };
    let recording = Recording::of(&what.command, &what.folder);
    let failed = spool.failed();
    let (mut workloads, mut left_out) = (Vec::new(), Vec::new());
    for (workload, fate) in spool.import(&mut store(workspace)?, &recording, what.limits)? {
        match fate {
            Retention::Retained => workloads.push(workload),
            fate => left_out.push(SkippedCall { workload, fate, limits: what.limits }),
        }
    }
    if !workloads.is_empty() {
        touch(workspace)?;
    }
    let output = fs::read_to_string(log.path()).unwrap_or_default();
    Ok(RecordingResult { workloads, left_out, failed, status: status.code(), signal: signal_of(status), output })
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

/// Kills a process, and with `group` its whole process group.
fn end(process: &mut Child, group: bool) {
    #[cfg(unix)]
    if let (true, Ok(id)) = (group, i32::try_from(process.id())) {
        #[expect(unsafe_code, reason = "sends a signal to a group that this process has made and not waited for yet")]
        // SAFETY: a system call without memory.
        unsafe {
            libc::kill(-id, libc::SIGKILL);
        }
    }
    // It may have ended by itself.
    let _ = process.kill();
}

/// A line of text about a recorded call: `matmul in matmul.py: 1 call, launches matmul_kernel`.
#[must_use]
pub fn describe(workload: &Workload) -> String {
    let file = workload.file.file_name().unwrap_or_default().to_string_lossy();
    let calls = if workload.count == 1 { "1 call".to_owned() } else { format!("{} calls", workload.count) };
    let obstacle = workload.obstacle().map_or_else(String::new, |what| format!("; cannot be run again: {what}"));
    let gradients = if workload.gradients { " with gradients" } else { "" };
    let (entry, kernels) = (&workload.entry, workload.kernels().join(", "));
    format!("{entry} in {file}: {calls}{gradients}, launches {kernels}{obstacle}")
}

/// The functions of a workspace that contain launches of kernels or call autograd functions, and whether there is any
/// launch.
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

/// All functions of a file.
fn functions(path: &Path) -> Vec<EntryPoint> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    let source = Source::parse(text);
    let mut bodies = Vec::new();
    for root in source.roots() {
        each_node(root, &mut |node| {
            if node.kind() == "function_definition" {
                bodies.extend(field(node, "body").map(|body| body.start_byte()));
            }
        });
    }
    let hosts = bodies.into_iter().filter_map(|at| Module::function_around(&source, at));
    hosts.map(|host| point(path, host)).collect()
}

fn entries_of(path: &Path) -> (Vec<EntryPoint>, bool) {
    let Ok(text) = fs::read_to_string(path) else { return (Vec::new(), false) };
    // A kernel may be imported from another file, so the file need not contain the word `triton`.
    if !text.contains(']') && !text.contains(".apply(") {
        return (Vec::new(), false);
    }
    // Functions with calls of other subscripts (tables of functions) are included; calls without launches are not
    // stored.
    let source = Source::parse(text);
    let module = Module::build(&source);
    let (mut hosts, has_launches) = (module.hosts, !module.launches.is_empty());
    // A function that calls an autograd function makes a better workload than the autograd function itself.
    for (at, _) in source.text().match_indices(".apply(") {
        hosts.extend(Module::function_around(&source, at).filter(|host| hosts.iter().all(|it| it.line != host.line)));
    }
    (hosts.into_iter().map(|host| point(path, host)).collect(), has_launches)
}

fn point(path: &Path, host: HostFunction) -> EntryPoint {
    EntryPoint { file: path.to_owned(), qualname: host.qualname, line: host.line + 1 }
}
