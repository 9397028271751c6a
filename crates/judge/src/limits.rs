//! The limits on a candidate's time, memory and processes.

use std::time::Duration;

/// The share of the device's memory that a candidate may use, where no setting says otherwise and the original needs
/// less.
pub(super) const SHARE: f64 = 0.6;

/// The limits on a candidate; it is refused when it exceeds one.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateLimits {
    /// The time to load the file.
    pub load: Duration,
    /// The time to compile all kernels ahead.
    pub compile: Duration,
    /// The time of one call, including what it has to compile.
    pub call: Duration,
    /// Host memory in bytes.
    pub memory: u64,
    /// Device memory in bytes; 0 for a share of the device's memory.
    pub device_memory: u64,
    /// The number of processes and threads.
    pub processes: u64,
    /// Bytes that may be written to one file, or printed.
    pub output: u64,
}

impl Default for CandidateLimits {
    fn default() -> Self {
        Self::from(&config::LimitSettings::default())
    }
}

impl From<&config::LimitSettings> for CandidateLimits {
    fn from(settings: &config::LimitSettings) -> Self {
        // The settings are in MiB.
        let bytes = |size: u64| size.saturating_mul(1 << 20);
        Self {
            load: config::time(settings.load),
            compile: config::time(settings.compile),
            call: config::time(settings.call),
            memory: bytes(settings.memory),
            device_memory: bytes(settings.device_memory),
            processes: settings.processes,
            output: bytes(settings.output),
        }
    }
}
