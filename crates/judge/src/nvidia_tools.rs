//! NVIDIA's command line tools: finding them, and running a process under one of them.

use std::path::{Path, PathBuf};

use protocol::runner::{ChildRole, Fence, IsolatedCall, WatchedProgram};
use runtime::python::module_call;

use super::baseline::Baseline;
use super::bench::Bench;
use super::project_folder::project;
use super::tool_process::{CALL, REPORT, ToolProcess};
use super::undecided::Undecided;

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
