//! The pause of a search while other programs of the user use the GPU, so that neither slows the other down.

use std::time::{Duration, Instant};

use judge::other_at_work;

/// Period of the check for other programs.
const LOOK: Duration = Duration::from_secs(1);

/// The program that the search waits for, and the time that it has waited.
#[derive(Default)]
pub(super) struct Pause {
    is_wanted: bool,
    looked: Option<Instant>,
    other: Option<String>,
    /// Start of the present wait in which nothing is judged.
    idle: Option<Instant>,
}

impl Pause {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// The name of the other program that uses the GPU, if there is one.
    pub(super) fn other(&mut self) -> Option<&str> {
        if self.is_wanted && self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            self.other = other_at_work();
        }
        self.other.as_deref()
    }

    /// The time since the last call during which nothing was judged; it does not count against the budget.
    pub(super) fn lost(&mut self, is_idle: bool) -> Duration {
        let since = self.idle.take().filter(|_| is_idle).map(|at| at.elapsed());
        self.idle = is_idle.then(Instant::now);
        since.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_counted_once_and_work_is_not() {
        let mut pause = Pause::new(false);
        assert_eq!(pause.other(), None);
        assert_eq!(pause.lost(true), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(20));
        assert!(pause.lost(true) >= Duration::from_millis(20));
        assert!(pause.lost(false) < Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(pause.lost(true), Duration::ZERO, "before that it was at work");
    }
}
