//! What the judge says of a candidate, with its evidence.

use serde::{Deserialize, Serialize};

use protocol::Environment;

use super::statistics::median;

/// A judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is said.
    pub outcome: Outcome,
    /// Each check that was made, in order; the last one of a refusal is the one that failed.
    pub checks: Vec<Check>,
    /// The timing of each workload, as far as it came to that.
    pub measured: Vec<Measured>,
    /// What the user should know of the candidate, though it is no reason to refuse it.
    pub notes: Vec<String>,
    /// Seconds that each part took.
    pub stages: Vec<(String, f64)>,
    /// Where it was judged, of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
}

/// The GPU of a pool that a candidate was judged on, from beginning to end, with the original beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedOn {
    /// Its name.
    pub gpu: String,
    /// The machine that it is in, by name and address.
    pub node: String,
    /// Which of that machine's it is, as Ray counts them; empty where it does not say.
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

/// What is said of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every check passed.
    Accepted,
    /// It compiles for a GPU that is not here, and a model says what it would take: it was neither run nor checked.
    Predicted,
    /// It is out.
    Refused {
        /// The kind of failure.
        reason: Reason,
        /// What was seen.
        evidence: String,
        /// The line of the candidate that it is about, from 1.
        line: Option<usize>,
    },
    /// Nothing can be said: the original fails, the device is gone.
    Undecided {
        /// Why, and what to do.
        why: String,
    },
}

impl Outcome {
    /// Whether it is a refusal for something that lies in the text: judged again by the same calls, on the same device with the
    /// same versions, it is refused again.
    #[must_use]
    pub fn lasts(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => reason.lies_in_the_text() || self.has_not_run(),
            Self::Accepted | Self::Predicted | Self::Undecided { .. } => false,
        }
    }

    /// Whether a kernel was refused by Triton before it ran, so that its process is as it was.
    pub(super) fn has_not_run(&self) -> bool {
        match self {
            // More than a multiprocessor has: Triton says so when it loads the kernel.
            Self::Refused { reason: Reason::Run, evidence, .. } => evidence.contains("OutOfResources: out of resource"),
            Self::Refused { reason, .. } => *reason == Reason::Compile,
            Self::Accepted | Self::Predicted | Self::Undecided { .. } => false,
        }
    }

    /// Whether the device's memory ran out, for the candidate or for the judge: what other candidates hold may be to blame.
    #[must_use]
    pub fn lacks_memory(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => *reason == Reason::DeviceMemory,
            Self::Undecided { why } => ["out of memory", "device's memory"].iter().any(|words| why.contains(words)),
            Self::Accepted | Self::Predicted => false,
        }
    }

    /// The same, but undecided where it lacks memory and so many bytes were free, fewer than a candidate may have.
    pub(super) fn if_there_was(self, free: u64, may_have: u64) -> Self {
        if !matches!(self, Self::Refused { .. }) || !self.lacks_memory() || free >= may_have {
            return self;
        }
        let gib = free as f64 / f64::from(1 << 30);
        Self::Undecided {
            why: format!("it lacks memory, and other programs leave {gib:.1} GiB of the device's memory"),
        }
    }
}

/// Why a candidate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The file could not be loaded or the entry is missing.
    Load,
    /// Triton does not compile a kernel.
    Compile,
    /// Launching or running raised.
    Run,
    /// A result differs from the original's.
    Output,
    /// A result differs in type, shape, layout or aliasing.
    Form,
    /// A gradient differs.
    Gradient,
    /// Elements of a result were never written.
    Unwritten,
    /// An argument was changed that the original leaves alone, or left alone that it changes.
    Mutation,
    /// Memory beside the arguments was written.
    Overrun,
    /// A result is one of an earlier call: the same tensors with new contents gave a wrong one.
    Stale,
    /// A result differs from run to run by more than rounding.
    Race,
    /// A result differs for other sizes than the recorded ones.
    Sizes,
    /// A result differs for tensors that lie otherwise in memory.
    Layout,
    /// A result differs for values far from the recorded ones.
    Values,
    /// No kernel of Triton's does the work.
    NoKernel,
    /// Work is done by operators of torch that the original does not use.
    Fallback,
    /// What the judge relies on was replaced, or a setting of the whole process was changed.
    Tampering,
    /// Threads are left running.
    Threads,
    /// Processes are left running.
    Processes,
    /// It took too long.
    Time,
    /// It took too much memory of the host.
    Memory,
    /// It took too much memory of the device.
    DeviceMemory,
    /// It wrote or printed too much.
    Writing,
    /// The process ended, or was ended by a signal.
    Died,
    /// Something that is no answer came through the judge's pipe.
    Pipe,
    /// Work is done on another stream than the measured one, or after the call has returned.
    SideStream,
    /// It is faster than the device can be.
    TooFast,
    /// It was not run: its text does what no kernel needs.
    Screen,
}

impl Reason {
    /// The name in reports: `too-fast`.
    #[must_use]
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Whether nothing but the text can be to blame: neither what else runs on the machine, nor limits, packages or luck.
    #[must_use]
    pub fn lies_in_the_text(self) -> bool {
        match self {
            Self::Compile
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
            // A file that is missing, an exception that other programs on the device cause, …
            Self::Load | Self::Run | Self::Race | Self::Threads | Self::Processes => false,
            Self::Time | Self::Memory | Self::DeviceMemory | Self::Writing | Self::Died | Self::Pipe => false,
            Self::SideStream | Self::TooFast => false,
            // It is looked at each time, which takes no time.
            Self::Screen => false,
        }
    }
}

/// A check that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// What was seen.
    pub evidence: String,
}

/// A timing of one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The call: `softmax(float32[4096,1000])`.
    pub workload: String,
    /// How often it was seen when it was recorded.
    pub count: u64,
    /// Milliseconds of original and candidate by the device's events, cold L2, interleaved.
    pub pairs: Vec<(f64, f64)>,
    /// The same with what is in the L2 from the call before, median of back-to-back calls.
    pub warm: Option<(f64, f64)>,
    /// Milliseconds of a call by the clock, waiting for the device each time, median.
    pub wall: Option<(f64, f64)>,
    /// What bounds the time of a call from below.
    #[serde(default)]
    pub floor: Floor,
    /// Whether the times are those of a candidate with the same machine code, launched with the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub twin: bool,
    /// What tells the candidate's machine code and the call, for others who judge such candidates: they need not measure a twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Where it was measured, if that is another GPU of a pool than the one that knows it as a twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_on: Option<JudgedOn>,
    /// What original and candidate do, where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<(Counted, Counted)>,
    /// By which factor the original's own time moved while it was measured.
    pub drift: f64,
    /// Where it ran.
    pub environment: Environment,
    /// The device's clock in MHz before and after, where it is told.
    pub clocks: Option<(u32, u32)>,
    /// Seconds since 1970.
    pub at: u64,
}

/// What bounds the time of a call from below: what has to cross the line to the device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Bytes of the arguments on which the results depend, as far as that is known.
    pub read: f64,
    /// Bytes of results, of which every element is written.
    pub written: f64,
    /// Milliseconds for both at the rate at which the device copies its memory, measured now.
    pub measured: Option<f64>,
    /// Milliseconds at the rate of the data sheet for what certainly is not in the L2: no call is faster.
    pub hard: Option<f64>,
}

/// What a call does, counted in its compiled kernels, and what its device can do by its maker's data sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Bytes that cross the line to the device's memory, as far as a model of its caches can tell.
    pub bytes: f64,
    /// Operations on floats; a multiplication and an addition of a product are two.
    pub operations: f64,
    /// Operations a second of the units that do most of them.
    pub peak: f64,
    /// Bytes a second of the memory.
    pub bandwidth: f64,
}

impl Measured {
    /// Milliseconds of original and candidate of all calls together, each counted once.
    #[must_use]
    pub fn sum_of_times(all: &[Self]) -> (f64, f64) {
        all.iter().map(Self::times).fold((0.0, 0.0), |sum, times| (sum.0 + times.0, sum.1 + times.1))
    }

    /// Median milliseconds of original and candidate with a cold L2.
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

    /// Nothing can be said.
    #[must_use]
    pub fn undecided(why: impl Into<String>) -> Self {
        let outcome = Outcome::Undecided { why: why.into() };
        let (checks, measured, notes, stages) = Default::default();
        Self { outcome, checks, measured, notes, stages, judged_on: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_when_the_text_is_to_blame() {
        let refused = |reason, evidence: &str| Outcome::Refused { reason, evidence: evidence.to_owned(), line: None };
        assert!(refused(Reason::Compile, "").lasts() && refused(Reason::Sizes, "").lasts());
        let resources = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 300000";
        assert!(refused(Reason::Run, resources).lasts() && refused(Reason::Run, resources).has_not_run());
        assert!(refused(Reason::Compile, "").has_not_run() && !refused(Reason::Sizes, "").has_not_run());
        for reason in [Reason::Run, Reason::Load, Reason::Time, Reason::Died, Reason::DeviceMemory, Reason::Race] {
            assert!(!refused(reason, "RuntimeError: CUDA error").lasts(), "{reason:?}");
        }
        assert!(!Outcome::Accepted.lasts() && !Outcome::Undecided { why: "stopped".to_owned() }.lasts());
    }

    #[test]
    fn where_others_hold_the_memory_a_candidate_is_not_to_blame() {
        let refused = |reason| Outcome::Refused { reason, evidence: "out of memory".to_owned(), line: None };
        let lacks = refused(Reason::DeviceMemory);
        assert_eq!(lacks.clone().if_there_was(84 << 30, 84 << 30), lacks);
        let Outcome::Undecided { why } = lacks.if_there_was(3 << 29, 84 << 30) else { panic!("it was blamed") };
        assert_eq!(why, "it lacks memory, and other programs leave 1.5 GiB of the device's memory");
        for other in [refused(Reason::Memory), refused(Reason::Run), Outcome::Accepted] {
            assert_eq!(other.clone().if_there_was(0, 84 << 30), other);
        }
    }
}
