//! The settings: `warpsmith.toml`, `[tool.warpsmith]` in `pyproject.toml`, and the settings of the editor.
//!
//! The types below are the only definition. Checks, messages, `config/schema.json` and `config/default.toml` all come
//! from the schema derived from them.

mod exclude;
mod load;
mod merge;
mod model;
mod reference;
mod search;
mod suggest;
mod validate;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use exclude::Excludes;
pub use load::{LoadedSettings, SettingsError, absolute, load};
pub use merge::merge;
pub use model::{ModelBudget, ModelLimits, ModelPrices, ModelSettings, ModelTimeouts, Provider, Sent};
pub use reference::{default_toml, schema};
pub use search::SearchSettings;
pub use suggest::nearest;
pub use validate::Check;

/// The example of `evaluator.command` in the schema.
const WORKER_COMMAND: &[&str] = &["ssh", "gpubox", "warpsmith", "worker"];

/// All settings. Every key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The rules to run: codes, prefixes such as `L`, names, or `all`. Empty means all rules.
    pub select: Vec<String>,
    /// The rules not to run: codes, prefixes or names.
    pub ignore: Vec<String>,
    /// The files and folders not to check, as `.gitignore` patterns relative to the settings file.
    pub exclude: Vec<String>,
    /// The Triton version to check against, such as `3.6.0`. Default: the one installed in the project's environment.
    #[schemars(example = &"3.6.0")]
    pub triton_version: Option<String>,
    /// The Python interpreter of the project. Default: the first one with Triton among the interpreter chosen in the
    /// editor, `VIRTUAL_ENV`, `.venv` or `venv`, conda, the environments of uv, Poetry and PDM, and `PATH`.
    #[schemars(example = &".venv/bin/python")]
    pub python: Option<PathBuf>,
    /// The hints that the editor shows within the text.
    pub inlay_hints: InlayHintSettings,
    /// The information that the editor shows above kernels.
    pub code_lens: CodeLensSettings,
    /// The compilation of kernels with Triton in the background.
    pub compiler: CompilerSettings,
    /// The rules learned from kernels that Triton rejects.
    pub memory: MemorySettings,
    /// The storage of recorded calls.
    pub workloads: WorkloadSettings,
    /// The optimization of kernels.
    pub optimize: OptimizeSettings,
    /// The place where candidates are judged.
    pub evaluator: EvaluatorSettings,
    /// The language model to use, if any.
    pub model: ModelSettings,
}

/// The hints that the editor shows within the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InlayHintSettings {
    /// Whether the types of values are shown where the values are assigned.
    pub types: bool,
    /// Whether the values are shown that the launches and configurations of the file give to the constexpr parameters
    /// of a kernel.
    pub values: bool,
}

impl Default for InlayHintSettings {
    fn default() -> Self {
        Self { types: true, values: true }
    }
}

/// The information that the editor shows above kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CodeLensSettings {
    /// Whether registers, spills, shared memory and occupancy are shown once a kernel has been compiled for
    /// `compiler.target`, with links that open the output of the compiler.
    pub enabled: bool,
}

impl Default for CodeLensSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// The compilation of kernels with Triton in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CompilerSettings {
    /// Whether Triton's front end compiles a kernel in the background, in the project's Python, while the kernel is
    /// edited. This runs constants and decorators of the file; it never happens in a workspace that is not trusted.
    pub enabled: bool,
    /// The time between the last keystroke and the compilation, in milliseconds.
    pub delay: u64,
    /// The maximum number of processor cores for the compiler process and its child processes (on Linux); 0 means half
    /// of the cores of the machine.
    pub cores: usize,
    /// The device that kernels are compiled for: `cuda:` with a compute capability (`cuda:90` for 9.0), or `hip:` with
    /// an architecture (`hip:gfx942`). Default: the GPU of this machine; without a GPU, resources are not shown.
    #[schemars(example = &"cuda:90")]
    pub target: Option<String>,
    /// Whether a whole file may be imported, which runs all its top-level code, when a kernel needs parts of the file
    /// that cannot be extracted, such as constants that torch computes or decorators of your own. Such kernels are
    /// compiled when the file is saved.
    pub import_files: bool,
}

impl Default for CompilerSettings {
    fn default() -> Self {
        Self { enabled: true, delay: 300, cores: 0, target: None, import_files: false }
    }
}

/// The storage of recorded calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSettings {
    /// The maximum disk space for recorded calls, in MiB. The oldest recordings are removed first.
    #[schemars(range(min = 1))]
    pub max_size: u64,
    /// The maximum number of calls with different shapes that are kept for each function.
    #[schemars(range(min = 1))]
    pub max_shapes: usize,
}

impl Default for WorkloadSettings {
    fn default() -> Self {
        Self { max_size: 256, max_shapes: 16 }
    }
}

/// The optimization of kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptimizeSettings {
    /// The maximum duration of a search, in seconds.
    #[schemars(range(min = 1))]
    pub budget: f64,
    /// The maximum number of candidates that a search judges; 0 means that only the time is limited.
    pub candidates: usize,
    /// The number of consecutive candidates without an improvement after which a search ends; 0 means never. Candidates
    /// with the same machine code as another candidate do not count.
    pub patience: usize,
    /// Whether a search waits while another program of yours uses the GPU. The waiting time does not count.
    pub pause: bool,
    /// The maximum share of the time in which a search uses the GPU, above 0 and up to 1; other programs get the rest.
    /// The final measurements of the best candidates are not interrupted.
    #[schemars(range(min = 0.01, max = 1))]
    pub share: f64,
    /// The number of candidates that are compiled in parallel; 0 means one for each processor core, but at most 16 for
    /// each GPU, and on a machine with more than three GPUs at most 48 in all or 8 for each GPU, whichever is more.
    pub parallel: usize,
    /// The random seed of the search; the same seed, measurements and lessons of earlier searches give the same search.
    pub seed: u64,
    /// Whether candidates that were refused in an earlier search are skipped, as long as everything that their verdict
    /// depends on (in the workspace, the device and its software) is unchanged.
    pub remember: bool,
    /// Whether searches learn from earlier ones which kinds of changes make kernels of a class faster
    /// (`warpsmith skills`). The lessons decide which changes are tried first.
    pub learn: bool,
    /// How far a faster version must be right before it is offered: `strict` (on all values), `finite` (on all but NaN,
    /// infinities and denormals) or `recorded` (on values like those of the recorded calls). An offer of a lower grade
    /// than `strict` says so.
    #[schemars(with = "String", extend("enum" = ["strict", "finite", "recorded"]))]
    pub grade: Grade,
    /// Whether kernels may be restructured; otherwise only their numbers are changed: tile sizes, launch options and
    /// configurations.
    pub rewrites: bool,
    /// The parameters of the search tree.
    pub search: SearchSettings,
}

/// On which values a faster version must agree with the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// On values like the recorded ones, in other sizes and layouts as well.
    Recorded,
    /// On all values but NaN, infinities and denormal numbers.
    Finite,
    /// On all values.
    #[default]
    Strict,
}

impl std::fmt::Display for Grade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Recorded => "recorded",
            Self::Finite => "finite",
            Self::Strict => "strict",
        })
    }
}

impl Default for OptimizeSettings {
    fn default() -> Self {
        Self {
            budget: 60.0,
            candidates: 0,
            patience: 200,
            pause: true,
            share: 1.0,
            parallel: 0,
            seed: 0,
            remember: true,
            learn: true,
            grade: Grade::Strict,
            rewrites: true,
            search: SearchSettings::default(),
        }
    }
}

/// The place where candidates are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvaluatorSettings {
    /// The command that starts `warpsmith worker` on another machine, such as
    /// `["ssh", "gpubox", "warpsmith", "worker"]`. Empty means the GPUs of this machine.
    #[schemars(example = WORKER_COMMAND)]
    pub command: Vec<String>,
    /// The address of a pool of GPUs: a Ray cluster, such as `ray://gpubox:10001`, or `auto` for the cluster that this
    /// machine belongs to. The project's Python needs `ray` in the version of the cluster. Empty means no pool.
    #[schemars(example = &"ray://gpubox:10001")]
    pub pool: String,
    /// The GPU model of the pool to judge on, with Ray's name, such as `H200`. Empty means the most frequent model in
    /// the pool.
    #[schemars(example = &"H200")]
    pub gpu: String,
    /// The maximum time until the worker that `command` starts, or the pool, is ready, in seconds. The worker imports
    /// torch. Jobs that wait in a queue (`srun`) need more time.
    #[schemars(range(min = 1))]
    pub start: f64,
    /// The name of a GPU that this machine does not have, such as `h200`. Candidates are compiled for it and ranked by
    /// a performance model, but not run: nothing is measured or checked, and all results are marked *predicted*. Empty
    /// means that candidates are measured.
    #[schemars(example = &"h200")]
    pub predict: String,
    /// The limits beyond which a candidate is refused. With `command`, the settings of the folder in which
    /// `warpsmith worker` is started apply; with `pool`, these settings apply.
    pub limits: LimitSettings,
}

impl Default for EvaluatorSettings {
    fn default() -> Self {
        let (command, pool, gpu, predict, limits) = Default::default();
        Self { command, pool, gpu, start: 120.0, predict, limits }
    }
}

impl EvaluatorSettings {
    /// Whether candidates run on the GPUs of this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.command.is_empty() && self.pool.is_empty() && self.predict.is_empty()
    }
}

/// The limits beyond which a candidate is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitSettings {
    /// The maximum time to load the file of a candidate, in seconds; also for originals.
    #[schemars(range(min = 1))]
    pub load: f64,
    /// The maximum time to compile all kernels that can be compiled before the first call, in seconds.
    #[schemars(range(min = 1))]
    pub compile: f64,
    /// The maximum time for one call, including compilation and tuning during the call, in seconds; also for originals.
    #[schemars(range(min = 1))]
    pub call: f64,
    /// The maximum host memory in addition to the memory of torch and Triton, in MiB; also for originals.
    #[schemars(range(min = 64))]
    pub memory: u64,
    /// The maximum device memory that torch may allocate, in MiB; 0 means 60 % of the device's memory, or 1.5 times the
    /// memory of the original if that is more.
    pub device_memory: u64,
    /// The maximum number of processes; the compiler of launch stubs needs a few of them. Also for originals.
    #[schemars(range(min = 8))]
    pub processes: u64,
    /// The maximum size of the printed output, and of each written file, in MiB; also for originals.
    #[schemars(range(min = 1))]
    pub output: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { load: 30.0, compile: 60.0, call: 30.0, memory: 16 * 1024, device_memory: 0, processes: 64, output: 1024 }
    }
}

/// A setting in seconds as a duration, at most a day: longer ones overflow deadlines.
#[must_use]
pub fn time(seconds: f64) -> Duration {
    const DAY: Duration = Duration::from_secs(86_400);
    Duration::try_from_secs_f64(seconds).map_or(DAY, |time| time.min(DAY))
}

/// The rules learned from kernels that Triton rejects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MemorySettings {
    /// Whether learned rules (family S) are used.
    pub enabled: bool,
    /// Whether kernels that Triton rejects or accepts while you edit are stored on this machine, so that rules can be
    /// learned from them.
    pub learn: bool,
    /// The time without an edit, in seconds, after which the server learns rules from the stored kernels, with one process
    /// on one core; 0 means that only `warpsmith memory learn` does.
    pub learn_after: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, learn: true, learn_after: 120 }
    }
}

#[cfg(test)]
mod tests;
