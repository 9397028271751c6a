//! What a candidate may take before it is refused.

use std::time::Duration;

/// What a candidate may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Time to load the file.
    pub load: Duration,
    /// Time to compile everything ahead.
    pub compile: Duration,
    /// Time of one call, with what it has to compile.
    pub call: Duration,
    /// Bytes on the host.
    pub memory: u64,
    /// Bytes on the device; 0 for a share of what there is.
    pub device_memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Bytes written to one file, or printed.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&config::LimitSettings::default())
    }
}

impl From<&config::LimitSettings> for Limits {
    fn from(settings: &config::LimitSettings) -> Self {
        // Settings are in MiB.
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
