//! Blocks of timed calls.

use protocol::runner::ExportedResults;

/// The number of calls in a block: original and candidate take turns in blocks, and each call has inputs of its own.
pub(super) const BLOCK: usize = 4;
/// The most bytes of device memory that a block's inputs and results take.
pub(super) const BLOCK_BYTES: u64 = 8 << 30;

/// Bytes that the results of a block take.
pub(super) fn block_bytes(results: &ExportedResults) -> u64 {
    results.rough_bytes() * block(results) as u64
}

/// The number of calls in a block.
pub(super) fn block(results: &ExportedResults) -> usize {
    // The process keeps the inputs of a few requests, and results are copied twice.
    let each = results.rough_bytes() * 6;
    usize::try_from(BLOCK_BYTES / each.max(1)).unwrap_or(BLOCK).clamp(1, BLOCK)
}
