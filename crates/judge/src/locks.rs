//! The order of locks: a thread that holds the device must not wait for what others hold while they wait for it.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static HOLDS_DEVICE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread holds the device already. It must then not acquire it again, nor any lock that others may hold
/// while they wait for it.
pub(super) fn holds_device() -> bool {
    HOLDS_DEVICE.get()
}

/// Marks that this thread holds the device.
pub(super) struct Held;

impl Held {
    pub(super) fn new() -> Self {
        debug_assert!(!holds_device(), "a thread that uses the device asks for it again");
        HOLDS_DEVICE.set(true);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HOLDS_DEVICE.set(false);
    }
}

/// Locks a mutex even if a thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex that other threads may hold while they wait for the device.
pub(super) fn lock_first<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    debug_assert!(!holds_device(), "the device is asked for after what is known of the original");
    lock(mutex)
}
