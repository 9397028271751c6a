//! The choice of calls that exercise a file: recorded calls, calls from comments, the inputs of a `KernelBench` file,
//! or the calls that one recorded run of the file makes.

use std::fs;
use std::path::Path;

use protocol::Workload;
use store::RetentionLimits;

use super::reachability::reaches;
use super::record::{RecordRequest, RecordingError, record};
use super::{existing, kernel_bench, workloads_of_comments};

/// What the user can do if there is no call.
const ADVICE: &str = "record a call with `warpsmith record -- COMMAND`, or describe one in a comment: \
                      `# warpsmith: workload entry=f x=f16[4096,4096]`, or `entry=kernel[grid]` for a kernel by itself";

/// A query for calls of a file.
#[derive(Clone, Copy, Debug)]
pub struct CallQuery<'a> {
    /// The root of the workspace, which contains `.warpsmith/`.
    pub workspace: &'a Path,
    /// The file that defines the functions.
    pub file: &'a Path,
    /// Its text, if that may differ from the file on disk.
    pub text: Option<&'a str>,
    /// The functions whose calls are sought.
    pub of: CallSubject<'a>,
}

/// The functions of a file whose calls are sought.
#[derive(Clone, Copy, Debug)]
pub enum CallSubject<'a> {
    /// All functions of the file.
    File,
    /// This function.
    Entry(&'a str),
    /// The functions that launch this kernel.
    Kernel(&'a str),
}

impl CallSubject<'_> {
    /// What a program without such a call has called, as text.
    fn missing(self) -> String {
        match self {
            CallSubject::File => "no function that launches a kernel".to_owned(),
            CallSubject::Entry(name) => format!("no such function as `{name}` that launches a kernel"),
            CallSubject::Kernel(name) => format!("no function that launches `{name}`"),
        }
    }
}

/// Why there is no usable call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnusableCall {
    /// There is no call.
    NotRecorded,
    /// There is a call, but it cannot be replayed for this reason.
    Obstacle(String),
}

/// How a file is run to record its calls.
pub struct CallRecorder<'a> {
    /// The user's interpreter.
    pub python: &'a Path,
    /// The limits of what is stored.
    pub limits: RetentionLimits,
    /// Returns the name of this machine's device, or why there is none. It is called before anything is run.
    pub device: &'a dyn Fn() -> Result<String, String>,
    /// Returns whether the user's file may be run. The argument is a question for the user.
    pub may_run: &'a dyn Fn(&str) -> bool,
    /// Returns whether to continue. It is called periodically.
    pub go_on: &'a dyn Fn() -> bool,
}

/// Why there is no call, and what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum NoCallReason {
    /// There is a call that cannot be replayed.
    #[error("{0}; {ADVICE}")]
    Obstacle(String),
    /// There is no call, and no device to record one on.
    #[error("no call of it is recorded, and there is no GPU here to record one on ({0}); {ADVICE}")]
    NoDevice(String),
    /// There is no call, and the user's file may not be run.
    #[error("nothing was run: no call of it is recorded yet; {ADVICE}")]
    Declined,
    /// The file ran and made no such call: the command, and what it has called instead.
    #[error("`{0}` ran and called {1}; {ADVICE}")]
    NotMade(String, String),
    /// The file failed: the command and the end of its output.
    #[error("`{0}` failed:\n{1}")]
    Failed(String, String),
    /// The recording was cancelled.
    #[error("stopped")]
    Cancelled,
    /// The command cannot be recorded.
    #[error(transparent)]
    Recording(RecordingError),
}

impl CallQuery<'_> {
    /// The recorded calls, the most frequent first; calls without tensor arguments or visible results come last.
    /// Without recorded calls, those of comments; without these, the file's own inputs if it is a `KernelBench` file.
    ///
    /// # Errors
    /// Returns [`UnusableCall`] when there is no usable call.
    pub fn find(&self) -> Result<Vec<Workload>, UnusableCall> {
        let mut found = self.recorded().and_then(usable);
        if let Ok(recorded) = &mut found {
            let is_poor = |workload: &Workload| workload.traceless || workload.specs().is_empty();
            recorded.sort_by_key(|workload| (is_poor(workload), std::cmp::Reverse(workload.count)));
            return found;
        }
        let file = &fs::canonicalize(self.file).unwrap_or_else(|_| self.file.to_owned());
        let text = self.text.map_or_else(|| fs::read_to_string(file), |text| Ok(text.to_owned()));
        let Ok(text) = text else { return found };
        let is_sought = |workload: &Workload| match self.of {
            CallSubject::File => true,
            CallSubject::Entry(entry) => workload.entry == entry,
            CallSubject::Kernel(kernel) => reaches(&text, &workload.entry, kernel),
        };
        let mut said = workloads_of_comments(file, &text).map_err(UnusableCall::Obstacle)?;
        said.retain(is_sought);
        said.sort_by_key(|workload| std::cmp::Reverse(workload.count));
        if said.is_empty() {
            let is_class = matches!(self.of, CallSubject::Entry("Model"));
            said.extend(kernel_bench::workload(file, &text).filter(|workload| is_class || is_sought(workload)));
        }
        if said.is_empty() { found } else { usable(said) }
    }

    /// The calls of [`Self::find`]. If there are none, the file is run once under the recorder, if that is allowed.
    ///
    /// # Errors
    /// Returns [`NoCallReason`] when there is still no usable call.
    pub fn find_or_record(&self, running: &CallRecorder<'_>) -> Result<Vec<Workload>, NoCallReason> {
        match self.find() {
            Ok(found) => return Ok(found),
            Err(UnusableCall::Obstacle(what)) => return Err(NoCallReason::Obstacle(what)),
            Err(UnusableCall::NotRecorded) => {}
        }
        let device = (running.device)().map_err(NoCallReason::NoDevice)?;
        let shown = format!("python {}", self.file.file_name().unwrap_or_default().to_string_lossy());
        let of = match self.of {
            CallSubject::File => "it".to_owned(),
            CallSubject::Entry(name) | CallSubject::Kernel(name) => format!("`{name}`"),
        };
        if !(running.may_run)(&format!("No call of {of} is recorded yet. Run `{shown}` once to record one?")) {
            return Err(if (running.go_on)() { NoCallReason::Declined } else { NoCallReason::Cancelled });
        }
        let file = fs::canonicalize(self.file).unwrap_or_else(|_| self.file.to_owned());
        let entry = if let CallSubject::Entry(name) = self.of { Some((file.clone(), name.to_owned())) } else { None };
        let to_record = RecordRequest {
            workspace: self.workspace.to_owned(),
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            command: vec![running.python.as_os_str().to_owned(), file.into_os_string()],
            python: running.python.to_owned(),
            device,
            quiet: true,
            limits: running.limits,
            entry,
        };
        let recorded = record(&to_record, running.go_on).map_err(|error| match error {
            RecordingError::Cancelled => NoCallReason::Cancelled,
            other => NoCallReason::Recording(other),
        })?;
        self.find().map_err(|why| match why {
            UnusableCall::Obstacle(what) => NoCallReason::Obstacle(what),
            UnusableCall::NotRecorded if !recorded.left_out.is_empty() => {
                NoCallReason::Obstacle(recorded.left_out.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            }
            UnusableCall::NotRecorded if recorded.status == Some(0) => NoCallReason::NotMade(shown, self.of.missing()),
            UnusableCall::NotRecorded => NoCallReason::Failed(shown, recorded.tail()),
        })
    }

    /// The recorded calls, newest first.
    fn recorded(&self) -> Result<Vec<Workload>, UnusableCall> {
        let Some(store) = existing(self.workspace) else { return Err(UnusableCall::NotRecorded) };
        let file = fs::canonicalize(self.file).unwrap_or_else(|_| self.file.to_owned());
        let entry = if let CallSubject::Entry(entry) = self.of { Some(entry) } else { None };
        let rows = store.workloads(Some(&file), entry).map_err(|error| UnusableCall::Obstacle(error.to_string()))?;
        let launches = |workload: &Workload| match self.of {
            CallSubject::Kernel(kernel) => workload.launches.iter().any(|launch| launch.kernel == kernel),
            CallSubject::File | CallSubject::Entry(_) => true,
        };
        Ok(rows.into_iter().map(|row| row.workload).filter(launches).collect())
    }
}

/// The calls that can be replayed; an error if there are none.
fn usable(workloads: Vec<Workload>) -> Result<Vec<Workload>, UnusableCall> {
    let mut first = None;
    let mut usable = Vec::new();
    for workload in workloads {
        match workload.obstacle() {
            None => usable.push(workload),
            Some(what) => _ = first.get_or_insert(format!("`{}` cannot be run again: {what}", workload.entry)),
        }
    }
    if usable.is_empty() { Err(first.map_or(UnusableCall::NotRecorded, UnusableCall::Obstacle)) } else { Ok(usable) }
}
