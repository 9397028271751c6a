//! A call with more elements than 32 bits can count.

use protocol::runner::EntryCall;

/// A call that is large enough.
pub(super) struct Large {
    pub(super) name: String,
    pub(super) call: EntryCall,
    /// The slot of the last part of the original's results.
    pub(super) original: u32,
}
