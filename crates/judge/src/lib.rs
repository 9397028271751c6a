//! The judge: it decides whether a candidate is correct, and whether it is faster than the original.

mod argument_variants;
mod autotune_alternatives;
mod baseline;
mod bench;
mod busy_time;
mod call_needs;
mod candidate_notes;
mod candidate_process;
mod case;
mod checks;
mod child_processes;
mod claim;
mod device_kernels;
mod devices;
mod direct_launch;
mod double_precision;
mod effort;
mod evaluator;
mod grade;
mod judge;
mod large_call;
mod large_tensors;
mod launch_variants;
mod limits;
mod locks;
mod machine_code_cache;
mod measure;
mod memory_checker;
mod model;
mod nonfinite;
mod nvidia_tools;
mod operation_counts;
mod operators;
mod original;
mod other_processes;
mod precise_original;
mod precision;
mod precompile;
mod prefetch;
mod process_reuse;
mod profile;
mod project_folder;
mod reference_results;
mod remote;
mod remote_target;
mod sanitizer;
mod semaphore;
mod size_variants;
pub mod statistics;
mod stop_reason;
mod summed_terms;
mod time_floor;
mod timed_block;
mod timing_sanity;
mod timing_summary;
mod tool_process;
mod trials;
mod undecided;
mod untested_configurations;
mod verdict;

pub use bench::Bench;
pub use case::Task;
pub use claim::{CREDIBLE, Claim, LEAST_SPEEDUP};
pub use devices::{Drivers, devices, drivers, is_predicted, is_stand_in};
pub use effort::Effort;
pub use evaluator::{Evaluator, can_judge};
pub use grade::{Grade, GradeReached, ModelWeights};
pub use limits::CandidateLimits;
pub use model::Gpu;
pub use other_processes::other_gpu_process;
pub use prefetch::SetOnDrop;
pub use profile::{Profile, Profiles, profiler};
pub use remote::{refuse as refuse_remote, serve as serve_remote};
pub use remote_target::RemoteJudges;
pub use sanitizer::sanitizer;
pub use timing_summary::TimingSummary;
pub use trials::title;
pub use undecided::UndecidedCause;
pub use verdict::{Check, Counted, Floor, JudgedOn, Measured, Outcome, Reason, Verdict};

/// The CUDA devices of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// The CUDA devices, by index.
    Found(Vec<Device>),
    /// There is no device; the text says why and what to do.
    Missing(String),
}

/// A CUDA device.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Device {
    /// The name that the driver reports, for example `NVIDIA H200`.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// The UUID: `GPU-` and 32 digits in five groups. Unlike the device's index it does not depend on the environment.
    pub uuid: String,
}

impl Devices {
    /// The name of the first device.
    ///
    /// # Errors
    /// Returns the reason why there is no device, with what to do about it.
    pub fn name(&self) -> Result<String, String> {
        match self {
            Self::Found(devices) => Ok(devices.first().map(|device| device.name.clone()).unwrap_or_default()),
            Self::Missing(reason) => Err(reason.clone()),
        }
    }

    /// The compute capability of the first device, which programs use by default. `None` without a device and for a
    /// simulated one.
    #[must_use]
    pub fn capability(&self) -> Option<(i32, i32)> {
        match self {
            Self::Found(devices) => {
                devices.first().filter(|device| !device.is_simulated()).map(|device| device.capability)
            }
            Self::Missing(_) => None,
        }
    }
}
