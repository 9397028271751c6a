//! The messages between the judge and the processes in the user's interpreter: runners, each of which runs one file and
//! is not trusted, and the comparer, which runs no code of the user.
//!
//! The forker is the warm parent process of both. It passes each child one end of a socket; the judge keeps the other
//! end and directs all of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use super::comparer::{Compared, ComparerFailure, ComparerReply, ComparerRequest, Difference};
pub use super::inputs::{Coarse, Finite, FloatContents, Inputs, Layout, Terms};
pub use super::probes::{ArgumentUse, IsolatedCall, MemoryProbe, Tail, WatchedProgram};
pub use super::results::{Buffer, ExportedResults, Leaf, LeafValue};
pub use super::tuning::{LaunchVariant, Tuned};
use super::{CompiledLaunches, LaunchRecord, RuntimeVersions, SimulatedGpu, Workload};

/// A request of the judge to a forker. A socket is sent with [`Self::Spawn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ForkerRequest {
    /// Fork a child that serves the socket that is sent with this request.
    Spawn {
        /// The child's id, chosen by the judge.
        id: u64,
        /// The role of the child.
        role: ChildRole,
    },
    /// End a child and all processes that it started. The reply is [`ForkerReply::Ended`], as for every end.
    Kill {
        /// The id of the child.
        id: u64,
    },
    /// Remove a folder after the forker and all its children have ended, even if the judge is gone by then.
    Owns {
        /// The folder to remove.
        folder: PathBuf,
    },
}

/// The role of a forked child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChildRole {
    /// Runs a file of the user or a candidate in a sandbox.
    Runner(Box<Fence>),
    /// Compares results. It runs only Warpsmith's own code.
    Comparer,
    /// A tool that observes how a call uses device memory, and starts the process that makes the call.
    Watched(Box<WatchedProgram>),
}

/// The sandbox and the limits of a runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fence {
    /// The folder that it may write to, which is its working folder and its `TMPDIR`.
    pub scratch: PathBuf,
    /// The cache folder of compiled kernels, which it may write to.
    pub kernels: PathBuf,
    /// The folders that it may read, besides the interpreter, its packages and the system's libraries.
    pub readable: Vec<PathBuf>,
    /// The limit of host memory in bytes, beyond what the process has at its start; 0 for no limit.
    pub memory: u64,
    /// The limit of device memory in bytes; 0 for no limit.
    pub device_memory: u64,
    /// The likely size of the results of a block of calls in bytes; 0 if unknown.
    pub results: u64,
    /// Whether it may launch on several streams concurrently. For a single stream the driver needs fewer connections to
    /// the device, and a third of the time to start.
    pub streams: bool,
    /// The limit of concurrent processes, and of threads beyond those that torch and the driver start; 0 for no limit.
    pub processes: u64,
    /// The limit in bytes of each file that it writes, and of its printed output.
    pub output: u64,
    /// A token that every reply of the runner carries; replies without it are not the runner's.
    pub token: u64,
    /// The GPU of a runner that only compiles and connects to no device.
    pub compiles: Option<SimulatedGpu>,
}

/// A reply of a forker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ForkerReply {
    /// The first frame: all imports are done.
    Ready {
        /// The worker's [`super::PROTOCOL`].
        protocol: u32,
        /// The software versions and the device.
        environment: RuntimeVersions,
        /// The parts of the sandbox that this system does not support, as text.
        unfenced: Vec<String>,
    },
    /// The forker cannot work and ends.
    Unfit {
        /// Why it cannot work, and what the user can do.
        reason: String,
    },
    /// A child and all processes that it started have ended.
    Ended {
        /// The id of the child.
        id: u64,
        /// How the child ended.
        how: ExitCause,
        /// The last part of its printed output.
        output: String,
    },
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitCause {
    /// It exited with this status.
    Status(i32),
    /// It was ended by this signal, which Warpsmith did not send.
    Signal(i32),
    /// It was killed because of [`ForkerRequest::Kill`], or because the judge is gone.
    Killed,
    /// It used more than [`Fence::memory`] and was killed.
    MemoryLimit,
    /// It had more processes or threads than [`Fence::processes`] and was killed.
    ProcessLimit,
    /// It printed more than [`Fence::output`] and was killed.
    OutputLimit,
    /// It never ran: its process or sandbox could not be created.
    Unstarted {
        /// Why, as text.
        why: String,
        /// Why, as far as the exception that ended the start tells.
        cause: ExceptionCause,
    },
}

impl std::fmt::Display for ExitCause {
    /// The predicate of a sentence about the process: `ended with status 0`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Killed => f.write_str("was killed"),
            Self::MemoryLimit => f.write_str("was killed: it took more memory than its limit"),
            Self::ProcessLimit => f.write_str("was killed: it started more processes or threads than its limit"),
            Self::OutputLimit => f.write_str("was killed: it printed more than its limit"),
            Self::Unstarted { why, .. } => write!(f, "could not be started: {why}"),
        }
    }
}

/// A request of the judge to a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunnerRequest {
    /// Load a file in the place of the one before, if any. The reply is [`RunnerReply::Loaded`].
    Load {
        /// The file to load.
        file: PathBuf,
        /// The folder of the user's file, for its imports.
        folder: PathBuf,
        /// The call that will be made.
        workload: Box<Workload>,
        /// Whether it is a candidate, which may name its model `ModelNew`.
        is_candidate: bool,
        /// How the weights of a model are initialized.
        weights: Weights,
    },
    /// Compile for these inputs without the device. The reply is [`RunnerReply::Compiled`].
    Compile {
        /// The inputs of the call to compile for.
        inputs: Inputs,
        /// The choices of autotuners; their other configurations are not compiled.
        chosen: Vec<Tuned>,
        /// Whether the reply has the compiled launches, for performance prediction.
        drafts: bool,
    },
    /// Call the entry once. The reply is [`RunnerReply::Ran`].
    Run(EntryCall),
    /// Call the entry and measure its time. The reply is [`RunnerReply::Measured`].
    Measure(Timing),
    /// Find out which parts of its arguments the entry reads. The reply is [`RunnerReply::Probed`].
    Probe(MemoryProbe),
    /// Measure the bandwidth of copies in device memory. The reply is [`RunnerReply::Copied`].
    Copy,
    /// Free all device memory that is not in use. The reply is [`RunnerReply::Released`].
    Release,
}

/// How the weights of a KernelBench model are initialized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// The seed of the random number generator for its constructor.
    pub seed: u64,
    /// Whether a candidate gets the weights of the original, and both are perturbed before each call, by the seed of its
    /// inputs. Otherwise both keep what their constructors make.
    pub are_moved: bool,
}

/// One call of the entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryCall {
    /// The inputs of the call.
    pub inputs: Inputs,
    /// How the tensors of the previous call are reused with new contents.
    pub reuse: Reuse,
    /// Fill allocations that torch leaves uninitialized with NaN or a sentinel.
    pub poison: bool,
    /// Skip the launches of Triton kernels.
    pub ghost: bool,
    /// Compute the gradients of the inputs that require them; they are results as well.
    pub gradients: bool,
    /// Record the device operators of torch and the launches.
    pub watch: bool,
    /// Record the kernels that the device runs.
    pub list: bool,
    /// Return the results.
    pub export: bool,
    /// Return the results of the previous call instead, with their current contents.
    pub previous: bool,
    /// Return only the last part of each result.
    pub tail: Option<Tail>,
    /// The configurations that autotuners use for arguments for which they have no measurements.
    pub chosen: Vec<Tuned>,
    /// Use [`Self::chosen`] for all arguments.
    pub forced: bool,
    /// Use [`Self::chosen`] in all later calls as well.
    pub settled: bool,
    /// Launch the kernels otherwise than the file does.
    pub variant: Option<LaunchVariant>,
}

/// How the tensors of the previous call are reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// New tensors at other addresses.
    #[default]
    Nothing,
    /// The same tensors with new contents.
    All,
    /// The same tensors; only the middle third of each has new contents.
    Middle,
    /// The same tensors; only a few elements of each have new contents.
    Few,
}

/// A request for timed calls, back to back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The inputs of the calls, in rotation; all of them exist before the first call.
    pub inputs: Vec<Inputs>,
    /// The total number of calls; every element of [`Self::inputs`] is used at least once.
    pub calls: usize,
    /// Flush the L2 cache before each call.
    pub cold: bool,
    /// Synchronize with the device after each call, and measure the wall time as well.
    pub synced: bool,
    /// Gradients are computed in each call.
    pub gradients: bool,
    /// Return the results of the last call on each of the inputs.
    pub export: bool,
}

/// A reply of a runner, with the token of its sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuthenticatedReply {
    /// The runner's [`Fence::token`].
    pub token: u64,
    /// The reply.
    pub reply: RunnerReply,
    /// The device memory that the runner's torch holds in bytes, for the log.
    pub held: u64,
}

/// A reply of a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RunnerReply {
    /// The file is loaded and has the entry.
    Loaded {
        /// What the judge relies on and the file has replaced or set, as text.
        tampered: Vec<String>,
        /// Whether it is a model whose weights are not those of the original.
        has_own_weights: bool,
        /// Whether loading it allocates device memory.
        takes_memory: bool,
        /// The time to load it in seconds, without the start of the process.
        seconds: f64,
    },
    /// Everything that compiles without the device is compiled.
    Compiled {
        /// Why the kernels could not be compiled, or only partly.
        failed: Option<PythonException>,
        /// Whether a call with these inputs autotunes a kernel for which no configuration is chosen.
        tunes: bool,
        /// An identifier of the machine code and its launch arguments; `None` if that cannot be determined.
        code: Option<String>,
        /// The compiled launches, if requested.
        drafts: CompiledLaunches,
    },
    /// The entry returned.
    Ran(Box<CallOutput>),
    /// The timed calls are done.
    Measured {
        /// The time of each call by the device's events, in milliseconds.
        milliseconds: Vec<f64>,
        /// The wall time of each call in milliseconds, with [`Timing::synced`].
        walls: Vec<f64>,
        /// Whether the device started the first call before all were queued; the times may then contain time of the
        /// host.
        outran: bool,
        /// The results for each of the inputs, if requested.
        results: Vec<ExportedResults>,
        /// As in [`CallOutput::tampered`].
        tampered: Vec<String>,
    },
    /// How the call uses each argument storage that could be examined. `None` if calls on equal inputs differ.
    Probed(Option<Vec<ArgumentUse>>),
    /// The bandwidth in bytes per second, reads plus writes; `None` on a simulated device or with too little memory.
    Copied(Option<f64>),
    /// The memory is freed.
    Released,
    /// Code of the user raised an exception.
    Raised(PythonException),
}

/// The outcome of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallOutput {
    /// The results, if requested.
    pub results: ExportedResults,
    /// The launches inside the call.
    pub launches: Vec<LaunchRecord>,
    /// The names of their kernels on the device.
    pub symbols: Vec<String>,
    /// The choices of autotuners, with [`EntryCall::watch`] or [`EntryCall::chosen`].
    pub tuned: Vec<Tuned>,
    /// The operators of torch that were called, such as `aten::mm`, with the greatest number of elements of a tensor
    /// that one of their calls took or returned.
    pub operators: Vec<(String, u64)>,
    /// The names of the kernels that the device ran, if requested and reported by the driver.
    pub kernels: Option<Vec<String>>,
    /// The global random number generators that were used (`torch`, `torch.cuda`, `random`, `numpy.random`), each with
    /// an identifier of its state after the call.
    pub drawn: Vec<(String, String)>,
    /// The number of Python threads that exist now and did not exist before.
    pub threads: usize,
    /// The number of Python threads that the file started during the call, or that were started for it; torch and
    /// Triton start some for themselves.
    pub started: usize,
    /// The number of descendant processes.
    pub children: usize,
    /// The peak of device memory in bytes, as torch counts it.
    pub device_memory: u64,
    /// A write to memory beside the arguments, as text.
    pub overrun: Option<String>,
    /// What the judge relies on and was replaced or set since the file was loaded, as text.
    pub tampered: Vec<String>,
}

/// A Python exception.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PythonException {
    /// Its type, its message and the last frames.
    pub text: String,
    /// The innermost line in the loaded file, from 1.
    pub line: Option<usize>,
    /// What caused it, as classified where it was caught.
    pub cause: ExceptionCause,
    /// Whether it was raised while the arguments were created, before the call.
    pub is_early: bool,
}

/// What caused a Python exception. The process that catches an exception knows its type and the state in which it was
/// raised; nobody reads its text later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExceptionCause {
    /// Code of the file, or of a library that it calls.
    #[default]
    Code,
    /// The loaded file has no entry of the workload's name.
    MissingEntry,
    /// Triton refuses to compile a kernel.
    Compile,
    /// A kernel needs more of a resource than a multiprocessor has; Triton refuses to load it.
    Resources,
    /// The device ran out of memory.
    DeviceMemory,
    /// The device or its driver reported an error; the process may not be able to use the device any more.
    Device,
    /// The file keeps a tensor without contents, with which its kernels were compiled ahead, and used it in a call.
    FakeTensor,
}
