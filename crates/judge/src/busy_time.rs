//! A meter of the time for which a device is in use.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::locks::lock;

/// The total time in which at least one user holds a device.
#[derive(Default)]
pub(super) struct BusyTime(Mutex<State>);

#[derive(Default)]
struct State {
    users: usize,
    since: Option<Instant>,
    total: Duration,
}

/// A guard: the device is in use until it is dropped.
pub(super) struct BusyGuard<'a>(&'a BusyTime);

impl BusyTime {
    pub(super) fn begin(&self) -> BusyGuard<'_> {
        let mut state = lock(&self.0);
        state.users += 1;
        state.since.get_or_insert_with(Instant::now);
        BusyGuard(self)
    }

    /// The total time so far.
    pub(super) fn total(&self) -> Duration {
        let state = lock(&self.0);
        state.total + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.users -= 1;
        if state.users == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_uses_of_a_device_count_once() {
        let meter = BusyTime::default();
        assert_eq!(meter.total(), Duration::ZERO);
        let (one, other) = (meter.begin(), meter.begin());
        std::thread::sleep(Duration::from_millis(20));
        drop(one);
        let so_far = meter.total();
        assert!(so_far >= Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(5));
        assert!(meter.total() > so_far, "the other one still uses it");
        drop(other);
        let all = meter.total();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(meter.total(), all);
    }
}
