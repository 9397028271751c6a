//! The pause of a search while other programs of the user use the GPU, so that neither slows the other down.

use std::time::{Duration, Instant};

use judge::other_gpu_process;

/// Period of the check for other programs.
const LOOK: Duration = Duration::from_secs(1);

/// The program that the search waits for, and the time that it has waited.
#[derive(Default)]
pub(super) struct IdleWait {
    is_wanted: bool,
    looked: Option<Instant>,
    other: Option<String>,
    /// Start of the present wait in which nothing is judged.
    idle: Option<Instant>,
}

impl IdleWait {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// The name of the other program that uses the GPU, if there is one.
    pub(super) fn other(&mut self) -> Option<&str> {
        if self.is_wanted && self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.other = other_gpu_process();
        }
        self.other.as_deref()
    }

    /// The time since the last call during which nothing was judged; it does not count against the budget.
    pub(super) fn idle_time(&mut self, is_idle: bool) -> Duration {
        let since = self.idle.take().filter(|_| is_idle).map(|at| at.elapsed());
        self.idle = is_idle.then(Instant::now);
        since.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_once_and_working_time_does_not() {
        let mut pause = IdleWait::new(false);
        assert_eq!(pause.other(), None);
        assert_eq!(pause.idle_time(true), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(20));
        assert!(pause.idle_time(true) >= Duration::from_millis(20));
        assert!(pause.idle_time(false) < Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(pause.idle_time(true), Duration::ZERO, "before that it was at work");
    }
}
