//! What the judge asks of the processes in the user's interpreter: runners, which run one file each and are not
//! believed, and the comparer, which runs nothing of the user's.
//!
//! The forker is the warm parent of both. It hands each child the one end of a socket; the other stays with the judge,
//! which directs them all.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use super::inputs::{Coarse, Finite, Inputs, Layout, Values};
pub use super::probing::{Alone, Probe, Tail, Touched, Watched};
pub use super::results::{Buffer, Exported, Leaf, LeafValue};
pub use super::tuning::Tuned;
use super::{Drafts, Environment, LaunchRecord, Played, Workload};

/// What the judge asks of a forker. A socket travels with [`Self::Spawn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ForkerRequest {
    /// Fork a child that serves the socket sent along.
    Spawn {
        /// Chosen by the judge.
        id: u64,
        /// What the child is.
        role: Role,
    },
    /// End a child with everything that it started. Answered by [`ForkerReply::Ended`], as every end is.
    Kill {
        /// Which.
        id: u64,
    },
    /// Remove a folder once everything that was started has ended, also where the judge can no longer do that.
    Owns {
        /// Which.
        folder: PathBuf,
    },
}

/// What a forked child is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Role {
    /// Runs a file of the user's or a candidate, fenced in.
    Runner(Box<Fence>),
    /// Compares results. Only our own code runs in it.
    Comparer,
    /// A program that watches how a call uses the device's memory, and starts what makes the call.
    Watched(Box<Watched>),
}

/// What a runner may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fence {
    /// Folder that it may write to; its working folder and `TMPDIR`.
    pub scratch: PathBuf,
    /// Folder of compiled kernels that it may write to.
    pub kernels: PathBuf,
    /// Folders that it may read, besides the interpreter, its packages and the system's libraries.
    pub readable: Vec<PathBuf>,
    /// Bytes of memory on the host, beyond what the process has at its start; 0 for no limit.
    pub memory: u64,
    /// Bytes of memory on the device; 0 for no limit.
    pub device_memory: u64,
    /// Bytes that the results of a block of calls are likely to take; 0 where nobody knows.
    pub results: u64,
    /// Whether it may launch on several streams side by side. For one the driver needs fewer connections to the device,
    /// and a third of the time to start.
    pub streams: bool,
    /// Processes at once, and threads beyond those that torch and the driver start; 0 for no limit.
    pub processes: u64,
    /// Bytes that it may write into one file, and print.
    pub output: u64,
    /// Every answer of the runner carries this; what does not is not the runner's.
    pub token: u64,
    /// The device of a runner that compiles and launches nothing: it makes no connection to it.
    pub compiles: Option<Played>,
}

/// What a forker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ForkerReply {
    /// First frame: everything is imported.
    Ready {
        /// [`super::PROTOCOL`].
        protocol: u32,
        /// Where it runs.
        environment: Environment,
        /// Parts of the fence that this system does not have, in words.
        unfenced: Vec<String>,
    },
    /// It cannot work at all; it ends.
    Unfit {
        /// Why, and what to do.
        reason: String,
    },
    /// A child is gone, and everything that it had started.
    Ended {
        /// Which.
        id: u64,
        /// How.
        how: End,
        /// The end of what it printed.
        output: String,
    },
}

/// How a child came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By itself, with this exit status.
    Status(i32),
    /// By this signal, which was not ours.
    Signal(i32),
    /// [`ForkerRequest::Kill`] asked for it, or the judge has gone.
    Killed,
    /// It took more than [`Fence::memory`] and was killed.
    MemoryLimit,
    /// It had more processes or threads than [`Fence::processes`] and was killed.
    ProcessLimit,
    /// It printed more than [`Fence::output`] and was killed.
    OutputLimit,
    /// It never ran: the process or its fence could not be made.
    Unstarted(String),
}

impl std::fmt::Display for End {
    /// What follows "the process": `ended with status 0`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Killed => f.write_str("was killed"),
            Self::MemoryLimit => f.write_str("was killed: it took more memory than its limit"),
            Self::ProcessLimit => f.write_str("was killed: it started more processes or threads than its limit"),
            Self::OutputLimit => f.write_str("was killed: it printed more than its limit"),
            Self::Unstarted(why) => write!(f, "could not be started: {why}"),
        }
    }
}

/// What a runner is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunnerRequest {
    /// Load the file, in place of the one before if there was one. Answered by [`RunnerReply::Loaded`].
    Load {
        /// The file.
        file: PathBuf,
        /// The folder of the user's file, for its imports.
        folder: PathBuf,
        /// The call that is going to be made.
        workload: Box<Workload>,
        /// Whether it is a candidate: it may name its model `ModelNew`.
        is_candidate: bool,
        /// What a model's weights are made from.
        weights: Weights,
    },
    /// Compile for these inputs, without the device. Answered by [`RunnerReply::Compiled`].
    Compile {
        /// The inputs.
        inputs: Inputs,
        /// What autotuners have chosen: of theirs nothing else is compiled.
        chosen: Vec<Tuned>,
        /// Say what was compiled, for a model.
        drafts: bool,
    },
    /// Call the entry once. Answered by [`RunnerReply::Ran`].
    Run(Call),
    /// Call the entry, timed. Answered by [`RunnerReply::Measured`].
    Measure(Timing),
    /// Find out which parts of its arguments the entry needs. Answered by [`RunnerReply::Probed`].
    Probe(Probe),
    /// Measure how fast the device copies its memory. Answered by [`RunnerReply::Copied`].
    Copy,
    /// Give back all memory of the device that is not in use. Answered by [`RunnerReply::Released`].
    Release,
}

/// How a model of KernelBench comes by its weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// Its constructor draws from this.
    pub seed: u64,
    /// They are moved before each call, by the seed of its inputs.
    pub are_moved: bool,
}

/// One call of the entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// With what.
    pub inputs: Inputs,
    /// The tensors of the call before are used again, with new contents.
    pub reuse: Reuse,
    /// Allocations that torch leaves unwritten are filled with NaN or a sentinel first.
    pub poison: bool,
    /// Launches of Triton's do nothing.
    pub ghost: bool,
    /// Gradients of the inputs that want some are computed and are results as well.
    pub gradients: bool,
    /// The device operators of torch and the launches are noted.
    pub watch: bool,
    /// The kernels that the device runs are noted.
    pub list: bool,
    /// Give the results as well.
    pub export: bool,
    /// Give those of the call before instead, as they are now.
    pub previous: bool,
    /// Give the last part of each result alone.
    pub tail: Option<Tail>,
    /// What autotuners take for arguments for which they have measured nothing.
    pub chosen: Vec<Tuned>,
    /// They take it for all arguments.
    pub forced: bool,
    /// They keep to it in all calls to come.
    pub settled: bool,
}

/// Whether tensors of the call before are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// New ones, at other addresses.
    #[default]
    Nothing,
    /// The same, all of whose contents are new.
    All,
    /// The same; only the middle third of each has new contents.
    Middle,
    /// The same; only a few elements of each, somewhere, have new contents.
    Few,
}

/// Timed calls, back to back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// One call for each, in turn; all inputs exist before the first call.
    pub inputs: Vec<Inputs>,
    /// How often in all; at least once for each of the inputs.
    pub calls: usize,
    /// Flush the L2 cache before each call.
    pub cold: bool,
    /// Wait for the device after each call, and take the time of the clock as well.
    pub synced: bool,
    /// Gradients are computed in each call.
    pub gradients: bool,
    /// Give the results of the last call on each of the inputs.
    pub export: bool,
}

/// What a runner says, with the token of its fence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// [`Fence::token`]
    pub token: u64,
    /// What it says.
    pub reply: RunnerReply,
    /// Bytes of the device that its torch holds, for the log.
    pub held: u64,
}

/// What a runner says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunnerReply {
    /// The file is loaded and has the entry.
    Loaded {
        /// What the judge needs and the file has replaced or set, in words.
        tampered: Vec<String>,
        /// Whether it is a model whose weights are not those of the original.
        has_own_weights: bool,
        /// Whether it takes memory of the device for being loaded.
        takes_memory: bool,
        /// Seconds that it took, without those in which the process started.
        seconds: f64,
    },
    /// Everything that could be compiled without the device is.
    Compiled {
        /// What could not, in words.
        notes: Vec<String>,
        /// Whether a call with them measures variants of a kernel: of one for which nothing is chosen.
        tunes: bool,
        /// What tells its machine code, with what it is launched with, from any other; `None` where that cannot be
        /// told.
        code: Option<String>,
        /// What was compiled, if that was wanted.
        drafts: Drafts,
    },
    /// The entry returned.
    Ran(Box<Ran>),
    /// The timed calls are done.
    Measured {
        /// Milliseconds of each call by the device's events.
        milliseconds: Vec<f64>,
        /// Milliseconds of each call by the clock of the process, with [`Timing::synced`].
        walls: Vec<f64>,
        /// Whether the device came to the first call before all were queued: then their times may hold what the host
        /// took.
        outran: bool,
        /// Results, for each of the inputs, when they were asked for.
        results: Vec<Exported>,
        /// As in [`Ran`].
        tampered: Vec<String>,
    },
    /// What the call needs of its arguments: one for each storage that could be looked at. `None` when calls on equal
    /// inputs differ.
    Probed(Option<Vec<Touched>>),
    /// Bytes a second, read and written; `None` on a simulated device, or without the memory for it.
    Copied(Option<f64>),
    /// The memory is given back.
    Released,
    /// Something of the user's raised.
    Raised(Raised),
}

/// What came out of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The results.
    pub results: Exported,
    /// The launches inside.
    pub launches: Vec<LaunchRecord>,
    /// What their kernels are called on the device.
    pub symbols: Vec<String>,
    /// What autotuners chose, in a watched call.
    pub tuned: Vec<Tuned>,
    /// Operators of torch that were called, such as `aten::mm`, with the greatest number of elements of a tensor that
    /// one took or gave at once.
    pub operators: Vec<(String, u64)>,
    /// The names of the kernels that the device ran, if they were asked for and its driver tells.
    pub kernels: Option<Vec<String>>,
    /// Generators of random numbers that were drawn from without being named (`torch`, `torch.cuda`, `random`,
    /// `numpy.random`), and what marks the state that each was left in.
    pub drawn: Vec<(String, String)>,
    /// Threads that Python has now and had not before.
    pub threads: usize,
    /// Threads of Python that were started during the call, by the file or for it; torch and Triton start some for
    /// themselves.
    pub started: usize,
    /// Processes below this one.
    pub children: usize,
    /// Bytes on the device at most, as torch counts them.
    pub device_memory: u64,
    /// What lies beside the arguments in memory and was written to, in words.
    pub overrun: Option<String>,
    /// What the judge needs and was replaced or set since the file was loaded, in words.
    pub tampered: Vec<String>,
}

/// An exception of Python's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Raised {
    /// Its type and text, and the last frames.
    pub text: String,
    /// The innermost line of the loaded file, from 1.
    pub line: Option<usize>,
    /// Whether the device ran out of memory.
    pub is_memory: bool,
    /// Whether it came while the arguments were made: nothing was called.
    pub is_early: bool,
}

/// What the comparer is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ComparerRequest {
    /// Keep results of several calls, each under a number. Answered by [`ComparerReply::Done`].
    Keep {
        /// Whose they are: the number of a runner. Its buffer stays open.
        owner: u64,
        /// The numbers, with results and their buffer; what was kept under a number is gone.
        kept: Vec<(u32, Exported)>,
    },
    /// Close the buffers of runners that are gone. Answered by [`ComparerReply::Done`].
    Leave {
        /// Their numbers.
        owners: Vec<u64>,
    },
    /// Forget results.
    Drop {
        /// The numbers.
        slots: Vec<u32>,
    },
    /// Compare a candidate's results with the original's. Answered by [`ComparerReply::Differences`].
    Compare {
        /// The original's.
        original: u32,
        /// The candidate's.
        candidate: u32,
        /// A run of the original at a higher precision, if there is one.
        reference: Option<u32>,
        /// Runs of the original on inputs moved by their rounding error.
        jittered: Vec<u32>,
        /// Whether inputs hold NaN: then the candidate's results must be NaN where the original's are.
        holds_nan: bool,
        /// Whether results must be equal bit by bit (exact inputs).
        exact: bool,
        /// Results of the original elsewhere, from which how exact it is was learned: its run, its run at a higher
        /// precision, its runs on moved inputs. Used when there is neither a reference nor a jittered run.
        level: Option<(u32, Option<u32>, Vec<u32>)>,
    },
    /// What a run of the original is good for. Answered by [`ComparerReply::Standing`].
    Stand {
        /// The original's.
        original: u32,
        /// At a higher precision, if there is such a run.
        reference: Option<u32>,
        /// On moved inputs.
        jittered: Vec<u32>,
        /// On equal inputs that lie otherwise, densely or beside other memory, if there is such a run: its results must
        /// be the same.
        alike: Option<u32>,
    },
    /// What differs in a candidate's results other than by infinities and NaN that it makes of numbers which it
    /// multiplies by zero, as the original does elsewhere. Answered by [`ComparerReply::Differences`].
    Spilled {
        /// The original's, with infinities and NaN among its inputs.
        original: u32,
        /// The original's, with usual numbers in their places, and with great ones: in all tensors, and in some of them
        /// alone.
        finite: Vec<[u32; 2]>,
        /// The candidate's.
        candidate: u32,
        /// The candidate's, like those.
        candidate_finite: Vec<[u32; 2]>,
        /// As in [`Self::Compare`], of the original with infinities and NaN.
        reference: Option<u32>,
        /// As in [`Self::Compare`].
        jittered: Vec<u32>,
    },
    /// Which leaves are not the same bit by bit (NaN equals NaN), or are not of the same type, shape and layout.
    Changed {
        /// One.
        one: u32,
        /// The other.
        other: u32,
    },
    /// Which leaves still hold the value that unwritten memory was filled with.
    Unwritten {
        /// Where.
        slot: u32,
    },
}

/// What the comparer says, and what it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What it says.
    pub reply: ComparerReply,
    /// Bytes of the device that its torch held when results were last forgotten, for the log.
    pub held: u64,
}

/// What the comparer says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ComparerReply {
    /// Done.
    Done,
    /// What differs; empty when nothing does.
    Differences(Vec<Difference>),
    /// What a run of the original is good for.
    Standing {
        /// It agrees with the run at a higher precision, where there is one, and with those on moved inputs.
        is_credible: bool,
        /// It is equal to the run at a higher precision.
        is_exact: bool,
        /// That run has results that the original's type does not hold.
        is_finer: bool,
        /// All results are whole numbers that are not large.
        is_whole: bool,
    },
    /// It could not: its own device memory ran out, or the results cannot be read.
    Failed {
        /// Why.
        why: String,
        /// Whether memory ran out.
        is_memory: bool,
    },
}

/// A difference of two results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The leaf.
    pub path: String,
    /// What differs, in words with numbers.
    pub what: String,
    /// Whether values differ, not type, shape or layout.
    pub is_value: bool,
    /// How many elements.
    pub count: u64,
    /// Greatest error of an element over what is allowed for it.
    pub excess: Option<f64>,
}
