//! A timer that fires when nothing has been edited for a while.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A debouncing timer, on a thread of its own.
pub(crate) struct IdleTimer(Sender<Duration>);

impl IdleTimer {
    /// Starts a timer that calls `fire` until it returns false.
    ///
    /// # Errors
    /// Returns an error when no thread can be started.
    pub(crate) fn start(fire: impl Fn() -> bool + Send + 'static) -> std::io::Result<Self> {
        let (sender, changes) = channel::<Duration>();
        let wait = move || {
            while let Ok(delay) = changes.recv() {
                let mut until = Instant::now() + delay;
                loop {
                    match changes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                        Ok(delay) => until = Instant::now() + delay,
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
                if !fire() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("idle".to_owned()).spawn(wait)?;
        Ok(Self(sender))
    }

    /// Has the timer fire after `delay`, unless this is called again before.
    pub(crate) fn restart(&self, delay: Duration) {
        // Without its thread the timer does not fire any more.
        let _ = self.0.send(delay);
    }
}
