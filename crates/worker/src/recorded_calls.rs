//! Recorded calls and their files. Each is written at once, so that a killed program keeps what was recorded until
//! then.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use protocol::Workload;

/// The key of a call: its entry and a hash of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    pub(super) entry: usize,
    pub(super) shapes: u64,
}

/// What a call is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordPurpose {
    /// For itself; its launches need no workloads of their own.
    All,
    /// For itself alone.
    Itself,
    /// For the case that the call around it does not end, or cannot be made again.
    Case,
}

/// A call and its file.
pub(super) struct RecordedCall {
    pub(super) path: PathBuf,
    pub(super) workload: Workload,
}

/// A call without and with gradients.
pub(super) struct TrackedCall {
    pub(super) plain: RecordedCall,
    pub(super) gradient: Option<(u64, RecordedCall)>,
    /// Calls whose gradients came after the calls were counted without.
    pub(super) late: HashSet<u64>,
    pub(super) what: RecordPurpose,
    pub(super) shapes: u64,
    /// The number of the call; the first ones are kept.
    pub(super) number: usize,
}

impl TrackedCall {
    pub(super) fn new(plain: RecordedCall, what: RecordPurpose, shapes: u64, number: usize) -> Self {
        Self { plain, gradient: None, late: HashSet::new(), what, shapes, number }
    }

    pub(super) fn count(&self) -> u64 {
        self.plain.workload.count + self.gradient.as_ref().map_or(0, |(_, kept)| kept.workload.count)
    }

    pub(super) fn remove(&self) {
        self.plain.remove();
        if let Some((_, gradient)) = &self.gradient {
            gradient.remove();
        }
    }
}

impl RecordedCall {
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Nothing is written for a call that was counted as another one.
    pub(super) fn save(&self) {
        let write = || -> std::io::Result<()> {
            if self.workload.count == 0 {
                return fs::remove_file(&self.path);
            }
            let partial = self.path.with_extension("partial");
            fs::write(&partial, serde_json::to_vec(&self.workload)?)?;
            fs::rename(partial, &self.path)
        };
        // A full disk must not disturb the user's program.
        let _ = write();
    }
}
