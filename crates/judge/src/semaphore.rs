//! A counting semaphore whose waiters can also accept a substitute for a place.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::locks::lock;

/// A counting semaphore.
pub(super) struct CountingSemaphore(Arc<Free>);

struct Free {
    count: Mutex<usize>,
    changed: Condvar,
}

/// A guard: one place is taken until it is dropped.
pub(super) struct SemaphorePermit(Arc<Free>);

/// The outcome of a wait.
pub(super) enum AcquireResult<T> {
    Place(SemaphorePermit),
    Instead(T),
    InVain,
}

impl CountingSemaphore {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Free { count: Mutex::new(count), changed: Condvar::new() }))
    }

    /// Waits for a place.
    pub(super) fn take(&self) -> SemaphorePermit {
        let mut free = lock(&self.0.count);
        loop {
            if let Some(taken) = self.claim(&mut free) {
                return taken;
            }
            free = self.0.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn claim(&self, free: &mut usize) -> Option<SemaphorePermit> {
        *free = free.checked_sub(1)?;
        Some(SemaphorePermit(Arc::clone(&self.0)))
    }

    /// Waits for at most `patience` for a place, or for a substitute. `instead` is called for the substitute at first
    /// and after each [`Self::wake`].
    pub(super) fn take_or<T>(&self, patience: Duration, mut instead: impl FnMut() -> Option<T>) -> AcquireResult<T> {
        let since = Instant::now();
        let mut free = lock(&self.0.count);
        loop {
            if let Some(instead) = instead() {
                return AcquireResult::Instead(instead);
            }
            if let Some(taken) = self.claim(&mut free) {
                return AcquireResult::Place(taken);
            }
            let Some(left) = patience.checked_sub(since.elapsed()) else { return AcquireResult::InVain };
            free = self.0.changed.wait_timeout(free, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Makes the waiting threads ask again for a substitute.
    pub(super) fn wake(&self) {
        // A thread that is about to wait holds the lock until it waits, so it cannot miss the notification.
        drop(lock(&self.0.count));
        self.0.changed.notify_all();
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        *lock(&self.0.count) += 1;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_semaphore_limits_concurrent_holders() {
        let (places, inside, most) = (CountingSemaphore::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _taken = places.take();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((most.into_inner(), *lock(&places.0.count)), (2, 2));
    }

    #[test]
    fn a_waiting_thread_may_take_a_substitute() {
        let (places, spare) = (CountingSemaphore::new(1), Mutex::new(None));
        let taken = places.take_or(Duration::ZERO, || lock(&spare).take());
        assert!(matches!(taken, AcquireResult::Place(_)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| places.take_or(Duration::from_secs(60), || lock(&spare).take()));
            *lock(&spare) = Some(7);
            places.wake();
            assert!(matches!(waits.join().unwrap(), AcquireResult::Instead(7)));
        });
        assert!(matches!(places.take_or(Duration::from_millis(5), || lock(&spare).take()), AcquireResult::InVain));
    }
}
