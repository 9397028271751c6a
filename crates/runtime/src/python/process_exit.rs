//! Waiting for a child process that was asked to end.

use std::process::Child;
use std::time::{Duration, Instant};

const GLANCE: Duration = Duration::from_millis(5);

/// Waits for the end of a process, and kills it if that takes longer than `limit`. Blocks.
pub fn end_within(mut process: Child, limit: Duration) {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if !matches!(process.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(GLANCE);
    }
    let _ = process.kill();
    let _ = process.wait();
}
