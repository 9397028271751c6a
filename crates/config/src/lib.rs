//! Settings: `warpsmith.toml`, `[tool.warpsmith]` in `pyproject.toml`, and what an editor sends.
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

/// Everything that can be set. Every key is optional; unknown keys are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Rules to run: codes, prefixes such as `L`, names, or `all`. Empty means all.
    pub select: Vec<String>,
    /// Rules not to run: codes, prefixes or names.
    pub ignore: Vec<String>,
    /// Files and folders not to check, as patterns of `.gitignore`, relative to the settings file.
    pub exclude: Vec<String>,
    /// The Triton version to check against, such as `3.6.0`. Default: the one installed in the project's environment.
    #[schemars(example = &"3.6.0")]
    pub triton_version: Option<String>,
    /// The Python interpreter of the project. Default: the first that has Triton of what is
    /// chosen in the editor, `VIRTUAL_ENV`, `.venv` or `venv`, conda, the environments of uv, Poetry and PDM, and `PATH`.
    #[schemars(example = &".venv/bin/python")]
    pub python: Option<PathBuf>,
    /// What the editor shows between the text.
    pub inlay_hints: InlayHintSettings,
    /// What the editor shows above kernels.
    pub code_lens: CodeLensSettings,
    /// Whether and when Triton itself is asked about kernels.
    pub compiler: CompilerSettings,
    /// What is learned from kernels that Triton refuses.
    pub memory: MemorySettings,
    /// What is kept of recorded calls.
    pub workloads: WorkloadSettings,
    /// How kernels are optimized.
    pub optimize: OptimizeSettings,
    /// Where candidates are judged.
    pub evaluator: EvaluatorSettings,
    /// The language model to use, if any.
    pub model: ModelSettings,
}

/// What the editor shows between the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InlayHintSettings {
    /// Types of values, where they are assigned.
    pub types: bool,
    /// Values that the launches and configurations of the file give a kernel's constexpr parameters.
    pub values: bool,
}

impl Default for InlayHintSettings {
    fn default() -> Self {
        Self { types: true, values: true }
    }
}

/// What the editor shows above kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CodeLensSettings {
    /// Whether registers, spills, shared memory and occupancy are shown there, once a kernel was compiled for
    /// `compiler.target`, and what the compiler makes of it can be opened.
    pub enabled: bool,
}

impl Default for CodeLensSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Whether and when Triton itself is asked about kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CompilerSettings {
    /// Whether Triton's front end is asked in the background, in the project's Python, while a kernel is edited. Constants and
    /// decorators of the file run there; never in a workspace that is not trusted.
    pub enabled: bool,
    /// How long after the last keystroke, in milliseconds.
    pub delay: u64,
    /// How many processor cores the process that asks Triton may use, with all that it starts (on Linux); 0 means half of them.
    pub cores: usize,
    /// What kernels are compiled for: `cuda:` with a compute capability (`cuda:90` for 9.0), or `hip:` with an architecture
    /// (`hip:gfx942`). Default: the GPU of this machine; without one, resources are not told.
    #[schemars(example = &"cuda:90")]
    pub target: Option<String>,
    /// Whether a file may be imported as it is, with everything that it does at its top level, when a kernel needs more of it
    /// than can be cut out: constants that torch computes, decorators of your own. Such kernels are compiled when the file is
    /// saved.
    pub import_files: bool,
}

impl Default for CompilerSettings {
    fn default() -> Self {
        Self { enabled: true, delay: 300, cores: 0, target: None, import_files: false }
    }
}

/// What is kept of recorded calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSettings {
    /// Disk space for recorded calls, in MiB. The oldest recordings are removed first.
    #[schemars(range(min = 1))]
    pub max_size: u64,
    /// How many calls with different shapes are kept of a function.
    #[schemars(range(min = 1))]
    pub max_shapes: usize,
}

impl Default for WorkloadSettings {
    fn default() -> Self {
        Self { max_size: 256, max_shapes: 16 }
    }
}

/// How kernels are optimized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OptimizeSettings {
    /// How long a search may take, in seconds.
    #[schemars(range(min = 1))]
    pub budget: f64,
    /// How many candidates are judged at most; 0 means as many as there is time for.
    pub candidates: usize,
    /// After so many candidates in a row that are no faster than the best a search ends; 0 means never. Those with the machine code of another one do not count.
    pub patience: usize,
    /// Whether a search waits while another program of yours computes on the GPU. That time does not count.
    pub pause: bool,
    /// The share of the time in which a search may use the GPU, above 0; the rest is left to others. Measuring the best does not rest.
    #[schemars(range(min = 0.01, max = 1))]
    pub share: f64,
    /// How many candidates are compiled side by side; 0 means one per processor core, at most 16 for each GPU; with more than three on a machine 48 together, or 8 each.
    pub parallel: usize,
    /// Seed of the search; the same seed, measurements and lessons of earlier searches give the same search.
    pub seed: u64,
    /// Whether candidates that an earlier search saw refused are left out, as long as nothing in the workspace and of the device and
    /// its software has changed that their verdict depends on.
    pub remember: bool,
    /// Whether searches learn from each other which kinds of changes make kernels of a class faster (`warpsmith skills`), which
    /// decides what is tried first.
    pub learn: bool,
    /// Whether kernels may be built otherwise; else only their numbers are turned: tile sizes, launch options, configurations.
    pub rewrites: bool,
    /// How the tree of candidates grows.
    pub search: SearchSettings,
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
            rewrites: true,
            search: SearchSettings::default(),
        }
    }
}

/// Where candidates are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvaluatorSettings {
    /// The command that starts `warpsmith worker` on another machine, such as `["ssh", "gpubox", "warpsmith", "worker"]`; empty
    /// means the GPUs of this one.
    #[schemars(example = WORKER_COMMAND)]
    pub command: Vec<String>,
    /// A pool of GPUs: the address of a Ray cluster, such as `ray://gpubox:10001`, or `auto` for the cluster that this machine
    /// belongs to. The project's Python needs `ray`, in the cluster's version. Empty: no pool.
    #[schemars(example = &"ray://gpubox:10001")]
    pub pool: String,
    /// The GPU model of the pool to judge on, as Ray calls it, such as `H200`. Empty: the one that the pool has most of.
    #[schemars(example = &"H200")]
    pub gpu: String,
    /// Seconds within which what `command` starts, or the pool, must be ready. It imports torch; more where jobs wait in a queue (`srun`).
    #[schemars(range(min = 1))]
    pub start: f64,
    /// A GPU that is not here, such as `h200`: candidates are compiled for it and ranked by a model of it, instead of being run. Nothing
    /// of that is measured or checked, and everything says *predicted*. Empty: candidates are measured.
    #[schemars(example = &"h200")]
    pub predict: String,
    /// What a candidate may take before it is refused. With `command`, the settings of the folder count in which `warpsmith worker`
    /// is started there; with `pool`, these do.
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

/// What a candidate may take before it is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LimitSettings {
    /// Seconds to load its file; for originals as well.
    #[schemars(range(min = 1))]
    pub load: f64,
    /// Seconds to compile what can be compiled before the first call.
    #[schemars(range(min = 1))]
    pub compile: f64,
    /// Seconds for one call, with what is compiled or tuned in it; for originals as well.
    #[schemars(range(min = 1))]
    pub call: f64,
    /// Memory of the host beyond what torch and Triton take, in MiB; for originals as well.
    #[schemars(range(min = 64))]
    pub memory: u64,
    /// Memory of the device that torch may give it, in MiB; 0 means 60 % of what there is, or half more than the original
    /// takes.
    pub device_memory: u64,
    /// Processes, of which the compiler of launching stubs takes a few; for originals as well.
    #[schemars(range(min = 8))]
    pub processes: u64,
    /// What it may print, or write to one file, in MiB; for originals as well.
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

/// What is learned from kernels that Triton refuses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MemorySettings {
    /// Whether learned rules (family S) are used.
    pub enabled: bool,
    /// Whether kernels that Triton refuses or takes while you edit are kept on this machine, to learn from.
    pub learn: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, learn: true }
    }
}

#[cfg(test)]
mod tests;
