//! Judging kernels that are launched by themselves, without a function around them.

use std::path::Path;

use protocol::{Workload, WorkloadSource};
use workload::launch_of_candidate;

use super::case::{Case, Task};
use super::stop_reason::Stop;
use super::verdict::Reason;

/// The workload of the candidate. For a launch that a comment describes it has numbers of its own.
pub(super) fn of_candidate(workload: &Workload, task: &Task) -> Workload {
    if workload.source != WorkloadSource::Launch {
        return workload.clone();
    }
    let read = |file: &Path| std::fs::read_to_string(file).unwrap_or_default();
    launch_of_candidate(workload, &read(&task.original), &read(&task.candidate))
}

impl Case<'_> {
    /// The workload of the candidate.
    pub(super) fn workload(&self, task: &Task) -> Workload {
        of_candidate(&self.baseline.original.workload, task)
    }

    /// Adapts a refusal: a launch by itself returns nothing, so that its arguments are its results.
    pub(super) fn of_launch(&self, stop: Stop) -> Stop {
        match stop {
            Stop::Refused(Reason::Mutation, evidence, line)
                if self.baseline.original.workload.source == WorkloadSource::Launch =>
            {
                Stop::Refused(Reason::Output, evidence, line)
            }
            other => other,
        }
    }
}
