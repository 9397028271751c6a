//! A process under one of NVIDIA's tools.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::runner::IsolatedCall;
use runtime::python::{Child, ChildExit};

use super::undecided::Undecided;

const GLANCE: Duration = Duration::from_millis(50);

/// The files in the folder of a process under a tool: the call that it makes, and the tool's report.
pub(super) const CALL: &str = "call.json";

pub(super) const REPORT: &str = "report";

/// A Python process under a tool, started or starting, that waits for its call.
pub(super) struct ToolProcess {
    pub(super) child: Child,
    pub(super) folder: PathBuf,
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
                return Err(Undecided::cancelled());
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
