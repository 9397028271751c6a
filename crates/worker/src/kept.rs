//! Calls that are kept, and the files in which they are written down at once: a program that is killed keeps what was
//! recorded until then.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use protocol::Workload;

/// Which call: the entry and a mark of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) entry: usize,
    pub(super) shapes: u64,
}

/// What a call is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Itself; what it launches needs no workload of its own.
    All,
    /// Itself alone.
    Itself,
    /// The case that the call around it does not end, or is none that can be run again.
    Case,
}

/// A call and its file.
pub(super) struct Kept {
    pub(super) path: PathBuf,
    pub(super) workload: Workload,
}

/// A call without and with gradients.
pub(super) struct Seen {
    pub(super) plain: Kept,
    pub(super) gradient: Option<(u64, Kept)>,
    /// Calls whose gradients came after they were counted without.
    pub(super) late: HashSet<u64>,
    pub(super) what: For,
    pub(super) shapes: u64,
    /// Which one it is: the first ones stay.
    pub(super) number: usize,
}

impl Seen {
    pub(super) fn new(plain: Kept, what: For, shapes: u64, number: usize) -> Self {
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

impl Kept {
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// A call that turned out to be another one is no file.
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
