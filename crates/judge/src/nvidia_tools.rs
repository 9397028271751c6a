//! NVIDIA's command line tools: finding them, and running a process under one of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::runner::{ChildRole, Fence, IsolatedCall, WatchedProgram};
use runtime::python::{Child, ChildExit, module_call};

use super::baseline::{Baseline, Undecided};
use super::bench::{Bench, project};
use super::stop_reason::STOPPED;

const GLANCE: Duration = Duration::from_millis(50);
/// The files in the folder of a process under a tool: the call that it makes, and the tool's report.
const CALL: &str = "call.json";
const REPORT: &str = "report";

/// A path as a word of a command.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The path of a tool, if it is installed: on the search path, beside CUDA, or among the packages of `python`.
pub(super) fn installed(name: &str, python: Option<&Path>) -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        places.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    let inside = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    let is_cuda = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda"));
    places.extend(inside(Path::new("/usr/local")).into_iter().filter(is_cuda));
    if let Some(prefix) = python.and_then(|python| python.parent()?.parent()) {
        for library in inside(&prefix.join("lib")) {
            places.extend(inside(&library.join("site-packages/nvidia")));
        }
    }
    let named = |place: PathBuf| [place.join(name), place.join("bin").join(name), place.join(name).join(name)];
    places.into_iter().flat_map(named).find(|path| path.is_file())
}

/// The command that runs a tool around a call.
pub(super) struct ToolCommand {
    /// The program with its options, without the report file.
    pub(super) command: Vec<String>,
    /// Additional environment variables.
    pub(super) variables: Vec<(String, String)>,
}

/// A Python process under a tool, started or starting, that waits for its call.
pub(super) struct ToolProcess {
    child: Child,
    folder: PathBuf,
}

impl ToolProcess {
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.wait(Duration::ZERO), Ok(None))
    }

    /// Makes the job's call in this process. Returns how the process ended, and the tool's report, if there is one;
    /// `None` where it exceeds the time limit.
    pub(super) fn call(
        mut self,
        job: &IsolatedCall,
        limit: Duration,
        is_unwanted: &dyn Fn() -> bool,
    ) -> Result<Option<(ChildExit, Option<String>)>, Undecided> {
        describe(&self.folder, job)?;
        let Some(ended) = self.watch(limit, is_unwanted)? else { return Ok(None) };
        let report = std::fs::read_to_string(self.folder.join(REPORT)).ok();
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(Some((ended, report)))
    }

    /// How the process ends; `None` where it exceeds the time limit. The process acquires the device itself, since it
    /// spends most of its time starting Python.
    fn watch(&mut self, limit: Duration, is_unwanted: &dyn Fn() -> bool) -> Result<Option<ChildExit>, Undecided> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(ended) = self.child.wait(GLANCE)? {
                return Ok(Some(ended));
            }
            if is_unwanted() {
                return Err(Undecided(STOPPED.to_owned()));
            }
            if Instant::now() > deadline {
                self.child.kill();
                return Ok(None);
            }
        }
    }
}

/// Writes the call into the process's folder, atomically.
fn describe(folder: &Path, job: &IsolatedCall) -> Result<(), Undecided> {
    let part = folder.join("part");
    std::fs::write(&part, serde_json::to_vec(job)?)?;
    Ok(std::fs::rename(part, folder.join(CALL))?)
}

impl Bench {
    /// Starts Python under a tool, which takes seconds. The call may be given later.
    pub(super) fn start_under(&self, name: &str, tooled: ToolCommand) -> Result<ToolProcess, Undecided> {
        let folder = self.private(name)?;
        let ToolCommand { mut command, variables } = tooled;
        command.extend(["--log-file".to_owned(), text(&folder.join(REPORT))]);
        let call = module_call(&format!("checked({:?})", text(&folder.join(CALL))))?;
        command.extend([text(&self.python), "-c".to_owned(), call]);
        let fence = Fence { memory: self.limits.memory, output: self.limits.output, ..Fence::default() };
        let child = self.forker.spawn(ChildRole::Watched(Box::new(WatchedProgram { fence, command, variables })))?;
        Ok(ToolProcess { child, folder })
    }
}

impl Baseline {
    /// The original's recorded call as a job for a process under a tool.
    pub(super) fn isolated_call(&self, bench: &Bench, name: &str) -> Result<IsolatedCall, Undecided> {
        let (file, folder) = self.original.place();
        let job = IsolatedCall {
            fence: bench.fence(name, true, vec![project(folder), file.to_owned()])?,
            file: file.to_owned(),
            folder: folder.to_owned(),
            workload: self.original.workload.clone(),
            inputs: self.trials[0].inputs.clone(),
            is_candidate: false,
            unfenced: false,
            device: bench.lock_file(),
            chosen: Vec::new(),
        };
        Ok(job.unasked())
    }
}
