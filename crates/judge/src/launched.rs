//! What is different for kernels that are launched by themselves.

use std::path::Path;

use protocol::{Source, Workload};
use workload::launch_of_candidate;

use super::judge::{Case, Task};
use super::stop::Stop;
use super::verdict::Reason;

/// What a candidate is called with: of a launch by comment it has numbers of its own.
pub(super) fn of_candidate(workload: &Workload, task: &Task) -> Workload {
    if workload.source != Source::Launch {
        return workload.clone();
    }
    let read = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    launch_of_candidate(workload, &read(&task.original), &read(&task.candidate))
}

impl Case<'_> {
    /// What the candidate is called with.
    pub(super) fn workload(&self, task: &Task) -> Workload {
        of_candidate(&self.baseline.original.workload, task)
    }

    /// A launch by itself returns nothing: its arguments are its results.
    pub(super) fn of_launch(&self, stop: Stop) -> Stop {
        match stop {
            Stop::Refused(Reason::Mutation, evidence, line)
                if self.baseline.original.workload.source == Source::Launch =>
            {
                Stop::Refused(Reason::Output, evidence, line)
            }
            other => other,
        }
    }
}
