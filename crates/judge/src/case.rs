//! A judgement of one candidate, while it runs.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use protocol::Workload;
use protocol::runner::Tuned;

use super::baseline::Baseline;
use super::bench::Bench;
use super::candidate_process::CandidateProcess;
use super::effort::Effort;
use super::grade::GradeReached;
use super::stop_reason::Stop;
use super::undecided::Undecided;
use super::verdict::{Check, Measured};

/// One candidate to judge, with the calls and the effort.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file before the change.
    pub original: PathBuf,
    /// The file with the candidate's change.
    pub candidate: PathBuf,
    /// The folder of the user's file, in which its imports are resolved.
    pub folder: PathBuf,
    /// The calls on which the candidate is judged, the most frequent first.
    pub workloads: Vec<Workload>,
    /// How thoroughly to judge.
    pub effort: Effort,
    /// Measurements of other judges for candidates of the same calls, found by their machine code.
    pub known: Vec<Measured>,
    /// Cancels the judgement when it is set: the judgement ends undecided before its next stage.
    pub unwanted: Arc<AtomicBool>,
}

impl Task {
    pub(super) fn is_unwanted(&self) -> bool {
        self.unwanted.load(Ordering::Relaxed)
    }

    pub(super) fn still(&self) -> Result<(), Stop> {
        if self.is_unwanted() { Err(Undecided::cancelled().into()) } else { Ok(()) }
    }
}

/// Seconds of a judgement in which the judge itself waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Seconds spent waiting for a place on the device.
    pub(super) waiting: f64,
    /// Seconds spent waiting for the candidate.
    pub(super) running: f64,
    /// Seconds spent waiting for the comparer.
    pub(super) comparing: f64,
}

/// A judgement of one candidate, while it runs.
pub(super) struct Case<'a> {
    pub(super) bench: &'a Bench,
    pub(super) baseline: Arc<Baseline>,
    pub(super) place: CandidateProcess,
    pub(super) effort: Effort,
    /// The time limit of a call that is no slower than others.
    pub(super) patience: Duration,
    /// The longest known time of the original's calls.
    pub(super) took: Duration,
    /// The state of the random number generator that chooses which timed calls are compared.
    pub(super) dice: u64,
    /// The number of timed calls so far; each call has inputs of its own.
    pub(super) timed: u64,
    /// Whether launching takes at least as long as the device needs, for the candidate or for the original.
    pub(super) is_host_bound: bool,
    /// Whether the candidate has autotuners that measure in the recorded call.
    pub(super) tunes: bool,
    /// A key of the candidate's machine code for the recorded call, where it is known.
    pub(super) code: Option<String>,
    /// The configurations that its autotuners chose in the recorded call.
    pub(super) chosen: Vec<Tuned>,
    /// The functions that the original, too, replaces while it is timed.
    pub(super) usual: Vec<String>,
    pub(super) checks: Vec<Check>,
    pub(super) notes: Vec<String>,
    /// How far the candidate is right, once that is known.
    pub(super) grade: Option<GradeReached>,
    pub(super) stages: Vec<(String, f64)>,
    pub(super) spent: RefCell<Spent>,
    pub(super) measured: Vec<Measured>,
}
