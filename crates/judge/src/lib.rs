//! The judge: it decides whether a candidate is correct, and whether it is faster than the original.

mod ahead;
mod baseline;
mod bench;
mod beyond;
mod checks;
mod choices;
mod claim;
mod configurations;
mod count;
mod devices;
mod effort;
mod figures;
mod floor;
mod judge;
mod kernels;
mod launched;
mod lift;
mod limits;
mod measure;
mod meter;
mod model;
mod notes;
mod numbers;
mod operators;
mod original;
mod others;
mod places;
mod pool;
mod possible;
mod precision;
mod process;
mod profile;
mod remote;
mod rivals;
mod sanitizer;
mod scout;
mod series;
mod spilled;
mod standing;
pub mod statistics;
mod stop;
mod tools;
mod trials;
mod twins;
mod verdict;
mod way;

pub use bench::Bench;
pub use claim::{CREDIBLE, Claim, LEAST_SPEEDUP};
pub use devices::{Drivers, devices, drivers, is_predicted, is_stand_in};
pub use effort::Effort;
pub use figures::Figures;
pub use judge::Task;
pub use limits::Limits;
pub use model::Gpu;
pub use others::other_at_work;
pub use pool::{Evaluator, can_judge};
pub use profile::{Profile, Profiles, profiler};
pub use remote::{refuse as refuse_remote, serve as serve_remote};
pub use sanitizer::sanitizer;
pub use scout::SetAtEnd;
pub use trials::title;
pub use verdict::{Check, Counted, Floor, JudgedOn, Measured, Outcome, Reason, Verdict};
pub use way::Elsewhere;

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
