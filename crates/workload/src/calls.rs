//! The choice of calls that exercise a file: recorded calls, calls from comments, the inputs of a `KernelBench` file,
//! or the calls that one recorded run of the file makes.

use std::fs;
use std::path::Path;

use protocol::Workload;
use store::Limits;

use super::reach::reaches;
use super::record::{RecordingError, ToRecord, record};
use super::{existing, kernel_bench, workloads_of_comments};

/// What the user can do if there is no call.
const ADVICE: &str = "record a call with `warpsmith record -- COMMAND`, or describe one in a comment: \
                      `# warpsmith: workload entry=f x=f16[4096,4096]`, or `entry=kernel[grid]` for a kernel by itself";

/// A query for calls of a file.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// The root of the workspace, which contains `.warpsmith/`.
    pub workspace: &'a Path,
    /// The file that defines the functions.
    pub file: &'a Path,
    /// Its text, if that may differ from the file on disk.
    pub text: Option<&'a str>,
    /// The functions whose calls are sought.
    pub of: Of<'a>,
}

/// The functions of a file whose calls are sought.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// All functions of the file.
    File,
    /// This function.
    Entry(&'a str),
    /// The functions that launch this kernel.
    Kernel(&'a str),
}

impl Of<'_> {
    /// What a program without such a call has called, as text.
    fn missing(self) -> String {
        match self {
            Of::File => "no function that launches a kernel".to_owned(),
            Of::Entry(name) => format!("no such function as `{name}` that launches a kernel"),
            Of::Kernel(name) => format!("no function that launches `{name}`"),
        }
    }
}

/// Why there is no usable call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is no call.
    NotRecorded,
    /// There is a call, but it cannot be replayed for this reason.
    Obstacle(String),
}

/// How a file is run to record its calls.
pub struct Running<'a> {
    /// The user's interpreter.
    pub python: &'a Path,
    /// The limits of what is stored.
    pub limits: Limits,
    /// Returns the name of this machine's device, or why there is none. It is called before anything is run.
    pub device: &'a dyn Fn() -> Result<String, String>,
    /// Returns whether the user's file may be run. The argument is a question for the user.
    pub may_run: &'a dyn Fn(&str) -> bool,
    /// Returns whether to continue. It is called periodically.
    pub going: &'a dyn Fn() -> bool,
}

/// Why there is no call, and what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum NoCall {
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

impl Sought<'_> {
    /// The recorded calls, the most frequent first; calls without tensor arguments or visible results come last.
    /// Without recorded calls, those of comments; without these, the file's own inputs if it is a `KernelBench` file.
    ///
    /// # Errors
    /// Returns [`Unusable`] when there is no usable call.
    pub fn find(&self) -> Result<Vec<Workload>, Unusable> {
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
            Of::File => true,
            Of::Entry(entry) => workload.entry == entry,
            Of::Kernel(kernel) => reaches(&text, &workload.entry, kernel),
        };
        let mut said = workloads_of_comments(file, &text).map_err(Unusable::Obstacle)?;
        said.retain(is_sought);
        said.sort_by_key(|workload| std::cmp::Reverse(workload.count));
        if said.is_empty() {
            let is_class = matches!(self.of, Of::Entry("Model"));
            said.extend(kernel_bench::workload(file, &text).filter(|workload| is_class || is_sought(workload)));
        }
        if said.is_empty() { found } else { usable(said) }
    }

    /// The calls of [`Self::find`]. If there are none, the file is run once under the recorder, if that is allowed.
    ///
    /// # Errors
    /// Returns [`NoCall`] when there is still no usable call.
    pub fn find_or_record(&self, running: &Running<'_>) -> Result<Vec<Workload>, NoCall> {
        match self.find() {
            Ok(found) => return Ok(found),
            Err(Unusable::Obstacle(what)) => return Err(NoCall::Obstacle(what)),
            Err(Unusable::NotRecorded) => {}
        }
        let device = (running.device)().map_err(NoCall::NoDevice)?;
        let shown = format!("python {}", self.file.file_name().unwrap_or_default().to_string_lossy());
        let of = match self.of {
            Of::File => "it".to_owned(),
            Of::Entry(name) | Of::Kernel(name) => format!("`{name}`"),
        };
        if !(running.may_run)(&format!("No call of {of} is recorded yet. Run `{shown}` once to record one?")) {
            return Err(if (running.going)() { NoCall::Declined } else { NoCall::Cancelled });
        }
        let file = fs::canonicalize(self.file).unwrap_or_else(|_| self.file.to_owned());
        let entry = if let Of::Entry(name) = self.of { Some((file.clone(), name.to_owned())) } else { None };
        let to_record = ToRecord {
            workspace: self.workspace.to_owned(),
            folder: file.parent().unwrap_or(Path::new(".")).to_owned(),
            command: vec![running.python.as_os_str().to_owned(), file.into_os_string()],
            python: running.python.to_owned(),
            device,
            quiet: true,
            limits: running.limits,
            entry,
        };
        let recorded = record(&to_record, running.going).map_err(|error| match error {
            RecordingError::Cancelled => NoCall::Cancelled,
            other => NoCall::Recording(other),
        })?;
        self.find().map_err(|why| match why {
            Unusable::Obstacle(what) => NoCall::Obstacle(what),
            Unusable::NotRecorded if !recorded.left_out.is_empty() => {
                NoCall::Obstacle(recorded.left_out.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            }
            Unusable::NotRecorded if recorded.status == Some(0) => NoCall::NotMade(shown, self.of.missing()),
            Unusable::NotRecorded => NoCall::Failed(shown, recorded.tail()),
        })
    }

    /// The recorded calls, newest first.
    fn recorded(&self) -> Result<Vec<Workload>, Unusable> {
        let Some(store) = existing(self.workspace) else { return Err(Unusable::NotRecorded) };
        let file = fs::canonicalize(self.file).unwrap_or_else(|_| self.file.to_owned());
        let entry = if let Of::Entry(entry) = self.of { Some(entry) } else { None };
        let rows = store.workloads(Some(&file), entry).map_err(|error| Unusable::Obstacle(error.to_string()))?;
        let launches = |workload: &Workload| match self.of {
            Of::Kernel(kernel) => workload.launches.iter().any(|launch| launch.kernel == kernel),
            Of::File | Of::Entry(_) => true,
        };
        Ok(rows.into_iter().map(|row| row.workload).filter(launches).collect())
    }
}

/// The calls that can be replayed; an error if there are none.
fn usable(workloads: Vec<Workload>) -> Result<Vec<Workload>, Unusable> {
    let mut first = None;
    let mut usable = Vec::new();
    for workload in workloads {
        match workload.obstacle() {
            None => usable.push(workload),
            Some(what) => _ = first.get_or_insert(format!("`{}` cannot be run again: {what}", workload.entry)),
        }
    }
    if usable.is_empty() { Err(first.map_or(Unusable::NotRecorded, Unusable::Obstacle)) } else { Ok(usable) }
}
