//! The verdict on a candidate: its outcome, the checks that were made, and the timings.

use serde::{Deserialize, Serialize};

use protocol::RuntimeVersions;

use super::grade::{GradeReached, ModelWeights};
use super::statistics::median;
use super::undecided::{Retry, Undecided, UndecidedCause};

/// The result of judging one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the candidate was accepted or refused, or why neither was possible.
    pub outcome: Outcome,
    /// Every check that was made, in order; for a refusal, the last one is the check that failed.
    pub checks: Vec<Check>,
    /// The timing of each workload that was reached.
    pub measured: Vec<Measured>,
    /// What the user should know about the candidate, although it is no reason to refuse the candidate.
    pub notes: Vec<String>,
    /// How far the candidate is right, where that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<GradeReached>,
    /// Where the weights came from, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<ModelWeights>,
    /// The stages of the judgement with their duration in seconds.
    pub stages: Vec<(String, f64)>,
    /// The GPU of a pool that judged the candidate; `None` outside of pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
}

/// The GPU of a pool that judged a candidate, from beginning to end, with the original beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedOn {
    /// The name of the GPU.
    pub gpu: String,
    /// The machine that contains the GPU, by name and address.
    pub node: String,
    /// The index of the GPU in that machine, as Ray counts; empty where Ray does not report it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub number: String,
}

impl JudgedOn {
    /// `GPU 2 of gpubox (10.0.0.5)`
    #[must_use]
    pub fn place(&self) -> String {
        let Self { node, number, .. } = self;
        if number.is_empty() { node.clone() } else { format!("GPU {number} of {node}") }
    }
}

/// The outcome of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every check passed.
    Accepted,
    /// The candidate compiles for a GPU that this machine does not have, and a model predicted its time. It was neither
    /// run nor checked.
    Predicted,
    /// The candidate failed a check.
    Refused {
        /// The kind of failure.
        reason: Reason,
        /// What the check observed.
        evidence: String,
        /// The line of the candidate that the refusal concerns, counted from 1.
        line: Option<usize>,
    },
    /// The judge cannot decide, for example because the original fails or the device is gone.
    Undecided {
        /// What kind of reason it is, on which retries depend.
        cause: UndecidedCause,
        /// Why it cannot decide, and what the user can do.
        why: String,
    },
}

impl Outcome {
    /// Whether the refusal is caused by the candidate's text alone: the same calls on the same device with the same
    /// versions would refuse it again.
    #[must_use]
    pub fn is_cacheable(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => reason.is_caused_by_source(),
            Self::Accepted | Self::Predicted | Self::Undecided { .. } => false,
        }
    }

    /// Whether Triton refused the kernel before it ran, so that the process is in the state that it had before.
    pub(super) fn has_not_run(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => matches!(reason, Reason::Compile | Reason::Resources),
            Self::Accepted | Self::Predicted | Self::Undecided { .. } => false,
        }
    }

    /// Whether the device ran out of memory, for the candidate or for the judge. Memory that other candidates hold may
    /// be the cause.
    #[must_use]
    pub fn lacks_memory(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => *reason == Reason::DeviceMemory,
            Self::Undecided { cause, .. } => cause.retry() == Retry::Alone,
            Self::Accepted | Self::Predicted => false,
        }
    }

    /// The same outcome, but refused where the candidate keeps tensors without contents of its own: the judge has made
    /// none for it.
    pub(super) fn without_fake_tensors(self) -> Self {
        match self {
            Self::Undecided { cause: UndecidedCause::FakeTensors, why } => {
                Self::Refused { reason: Reason::Run, evidence: why, line: None }
            }
            other => other,
        }
    }

    /// The same outcome, but undecided where the candidate lacked memory and fewer bytes were free (`free`) than a
    /// candidate may use (`may_have`).
    pub(super) fn if_there_was(self, free: u64, may_have: u64) -> Self {
        if !matches!(self, Self::Refused { .. }) || !self.lacks_memory() || free >= may_have {
            return self;
        }
        let gib = free as f64 / f64::from(1 << 30);
        let why = format!("it lacks memory, and other programs leave {gib:.1} GiB of the device's memory");
        Self::Undecided { cause: UndecidedCause::DeviceMemory, why }
    }
}

/// The kind of failure for which a candidate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The file could not be loaded, or the entry is missing.
    Load,
    /// Triton fails to compile a kernel.
    Compile,
    /// A kernel needs more of a resource than a multiprocessor has: Triton refuses to load it.
    Resources,
    /// Launching or running a kernel raised an exception.
    Run,
    /// A result differs from the original's.
    Output,
    /// A result differs in type, shape, layout or aliasing.
    Form,
    /// A gradient differs.
    Gradient,
    /// Elements of a result were never written.
    Unwritten,
    /// An argument was changed that the original leaves unchanged, or left unchanged although the original changes it.
    Mutation,
    /// Memory next to the arguments was written.
    Overrun,
    /// A result was reused from an earlier call: the same tensors with new contents gave a wrong result.
    Stale,
    /// A result differs from run to run by more than rounding.
    Race,
    /// A result differs for sizes other than the recorded ones.
    Sizes,
    /// A result differs for tensors with another memory layout.
    Layout,
    /// A result differs for values far from the recorded ones.
    Values,
    /// No Triton kernel does the work.
    NoKernel,
    /// Operators of torch that the original does not use do the work.
    Fallback,
    /// Something that the judge relies on was replaced, or a process-wide setting was changed.
    Tampering,
    /// Threads are left running.
    Threads,
    /// Processes are left running.
    Processes,
    /// The candidate exceeded a time limit.
    Time,
    /// The candidate exceeded the limit of host memory.
    Memory,
    /// The candidate exceeded the limit of device memory.
    DeviceMemory,
    /// The candidate wrote or printed more than the limit.
    Writing,
    /// The process exited, or a signal ended it.
    Died,
    /// The judge's pipe received data that is no valid reply.
    Pipe,
    /// Work was done on another stream than the measured one, or after the call had returned.
    SideStream,
    /// The candidate is faster than the device can be.
    TooFast,
    /// The candidate was not run: its text contains something that no kernel needs.
    Screen,
}

impl Reason {
    /// The name in reports: `too-fast`.
    #[must_use]
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Whether only the text can be the cause, as opposed to other programs on the machine, limits, packages or chance.
    #[must_use]
    pub(crate) fn is_caused_by_source(self) -> bool {
        match self {
            Self::Compile
            | Self::Resources
            | Self::Output
            | Self::Form
            | Self::Gradient
            | Self::Unwritten
            | Self::Mutation
            | Self::Overrun
            | Self::Stale
            | Self::Sizes
            | Self::Layout
            | Self::Values
            | Self::NoKernel
            | Self::Fallback
            | Self::Tampering => true,
            // The cause may lie elsewhere: a missing file, an exception caused by other programs on the device, and so
            // on.
            Self::Load | Self::Run | Self::Race | Self::Threads | Self::Processes => false,
            Self::Time | Self::Memory | Self::DeviceMemory | Self::Writing | Self::Died | Self::Pipe => false,
            Self::SideStream | Self::TooFast => false,
            // The text is screened each time, which costs almost nothing.
            Self::Screen => false,
        }
    }
}

/// A check that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What the check covers.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// What the check observed.
    pub evidence: String,
}

/// The timing of one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The call: `softmax(float32[4096,1000])`.
    pub workload: String,
    /// How often the call occurred in the recording.
    pub count: u64,
    /// Milliseconds of original and candidate by the device's events, with a cold L2 cache, interleaved.
    pub pairs: Vec<(f64, f64)>,
    /// Median milliseconds of original and candidate in back-to-back calls, with the L2 contents that the previous call
    /// left.
    pub warm: Option<(f64, f64)>,
    /// Median milliseconds of original and candidate by the host's clock, with a wait for the device after each call.
    pub wall: Option<(f64, f64)>,
    /// The lower bounds of the call's time.
    #[serde(default)]
    pub floor: Floor,
    /// Whether the times were measured on another candidate with the same machine code and the same launches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "twin")]
    pub same_code: bool,
    /// A key of the candidate's machine code and the call, with which other judges recognize twins instead of measuring
    /// them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The GPU that measured, where it is another GPU of the pool than the one that used the timing for a twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
    /// The work of original and candidate, where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<(Counted, Counted)>,
    /// Whether a second judgement, in a fresh process and on other inputs, found at least this speedup.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "repeated")]
    pub is_repeated: bool,
    /// The factor by which the original's own time moved during the measurement.
    pub drift: f64,
    /// The versions and the device of the measurement.
    pub environment: RuntimeVersions,
    /// The device's clock in MHz before and after, where the driver reports it.
    pub clocks: Option<(u32, u32)>,
    /// The time of the measurement, in seconds since 1970.
    pub at: u64,
}

/// Lower bounds of a call's time, from the bytes that have to move between the device and its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Bytes of the arguments that the results depend on, as far as that is known.
    pub read: f64,
    /// Bytes of the results, every element of which is written.
    pub written: f64,
    /// Milliseconds that both take at the copy rate that was measured on this device.
    pub measured: Option<f64>,
    /// Milliseconds at the data sheet's rate for the bytes that certainly are not in the L2 cache: no call is faster.
    pub hard: Option<f64>,
}

/// The work of a call, counted in its compiled kernels, and the peak rates of its device by the maker's data sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Bytes that move between the device and its memory, as estimated by a model of its caches.
    pub bytes: f64,
    /// Floating-point operations; a fused multiply-add counts as two.
    pub operations: f64,
    /// Peak operations per second of the units that do most of the operations.
    pub peak: f64,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
}

impl Measured {
    /// Milliseconds of original and candidate, summed over all calls; each call counts once.
    #[must_use]
    pub fn sum_of_times(all: &[Self]) -> (f64, f64) {
        all.iter().map(Self::times).fold((0.0, 0.0), |sum, times| (sum.0 + times.0, sum.1 + times.1))
    }

    /// Median milliseconds of original and candidate with a cold L2 cache.
    #[must_use]
    pub fn times(&self) -> (f64, f64) {
        let of = |time: fn(&(f64, f64)) -> f64| median(self.pairs.iter().map(time));
        (of(|pair| pair.0), of(|pair| pair.1))
    }
}

impl Verdict {
    /// Whether every check passed.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.outcome == Outcome::Accepted
    }

    /// An undecided verdict with this reason, without checks or timings.
    #[must_use]
    pub fn undecided(cause: UndecidedCause, why: impl Into<String>) -> Self {
        let outcome = Outcome::Undecided { cause, why: why.into() };
        let (checks, measured, notes, grade, weights, stages, judged_on) = Default::default();
        Self { outcome, checks, measured, notes, grade, weights, stages, judged_on }
    }
}

impl From<Undecided> for Verdict {
    fn from(Undecided { cause, why }: Undecided) -> Self {
        Self::undecided(cause, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_cacheable_only_if_the_candidates_text_causes_it() {
        let refused = |reason| Outcome::Refused { reason, evidence: "anything".to_owned(), line: None };
        assert!(refused(Reason::Compile).is_cacheable() && refused(Reason::Sizes).is_cacheable());
        assert!(refused(Reason::Resources).is_cacheable() && refused(Reason::Resources).has_not_run());
        assert!(refused(Reason::Compile).has_not_run() && !refused(Reason::Sizes).has_not_run());
        for reason in [Reason::Run, Reason::Load, Reason::Time, Reason::Died, Reason::DeviceMemory, Reason::Race] {
            assert!(!refused(reason).is_cacheable(), "{reason:?}");
        }
        let undecided = Outcome::Undecided { cause: UndecidedCause::Cancelled, why: "stopped".to_owned() };
        assert!(!Outcome::Accepted.is_cacheable() && !undecided.is_cacheable());
    }

    #[test]
    fn out_of_memory_is_undecided_if_other_programs_hold_the_memory() {
        let refused = |reason| Outcome::Refused { reason, evidence: "out of memory".to_owned(), line: None };
        let lacks = refused(Reason::DeviceMemory);
        assert_eq!(lacks.clone().if_there_was(84 << 30, 84 << 30), lacks);
        let Outcome::Undecided { why, .. } = lacks.if_there_was(3 << 29, 84 << 30) else { panic!("it was blamed") };
        assert_eq!(why, "it lacks memory, and other programs leave 1.5 GiB of the device's memory");
        for other in [refused(Reason::Memory), refused(Reason::Run), Outcome::Accepted] {
            assert_eq!(other.clone().if_there_was(0, 84 << 30), other);
        }
    }
}
