//! The process of a candidate.

use protocol::runner::Fence;

use super::child_processes::RunnerProcess;
use super::semaphore::SemaphorePermit;

/// The process of a candidate.
pub(super) struct CandidateProcess {
    pub(super) runner: RunnerProcess,
    pub(super) fence: Fence,
    /// How many candidates the process has judged before.
    pub(super) judged: usize,
    /// Whether loading its file allocated device memory.
    pub(super) takes_memory: bool,
    /// Held while the process starts and loads its first file.
    pub(super) starting: Option<SemaphorePermit>,
}

impl CandidateProcess {
    pub(super) fn end(self) {
        drop(self.runner);
        // Files that are still being written there are removed with the whole scratch folder in the end.
        let _ = std::fs::remove_dir_all(self.fence.scratch);
    }
}
