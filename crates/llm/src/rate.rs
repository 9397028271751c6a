//! Rate limits: the number of concurrent requests, and of requests and tokens per minute.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use config::ModelLimits;

use super::{GLANCE, ModelError, ReplyObserver};

/// The sliding window in which requests and tokens are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// A rate limiter that lets requests pass within the limits.
#[derive(Debug)]
pub(super) struct RateLimiter {
    parallel: usize,
    requests: u64,
    tokens: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    flying: usize,
    /// The requests of the last window, with their times and tokens.
    gone: VecDeque<Gone>,
    next: u64,
    /// The time until which the provider asked clients to wait.
    closed_until: Option<Instant>,
}

#[derive(Debug)]
struct Gone {
    number: u64,
    at: Instant,
    tokens: u64,
}

impl RateLimiter {
    pub(super) fn new(limits: &ModelLimits) -> Self {
        Self {
            parallel: limits.parallel.max(1),
            requests: limits.requests_per_minute,
            tokens: limits.tokens_per_minute,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request of about `tokens` tokens may pass.
    pub(super) fn pass(&self, tokens: u64, watcher: &dyn ReplyObserver) -> Result<RatePermit<'_>, ModelError> {
        let mut state = self.state();
        loop {
            if watcher.cancelled() {
                return Err(ModelError::Cancelled);
            }
            let wait = match self.try_pass(&mut state, Instant::now(), tokens) {
                Ok(number) => return Ok(RatePermit { gate: self, number }),
                Err(wait) => wait,
            };
            state = self.changed.wait_timeout(state, wait.min(GLANCE)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets a request pass and returns its number, or the least time that it has to wait.
    fn try_pass(&self, state: &mut State, now: Instant, tokens: u64) -> Result<u64, Duration> {
        if let Some(wait) = self.wait(state, now, tokens) {
            return Err(wait);
        }
        let number = state.next;
        state.next += 1;
        state.flying += 1;
        state.gone.push_back(Gone { number, at: now, tokens });
        Ok(number)
    }

    /// The least time that a request has to wait; `None` when it may pass.
    fn wait(&self, state: &mut State, now: Instant, tokens: u64) -> Option<Duration> {
        while state.gone.front().is_some_and(|gone| now.duration_since(gone.at) >= WINDOW) {
            state.gone.pop_front();
        }
        let closed = state.closed_until.and_then(|until| until.checked_duration_since(now));
        if let Some(left) = closed.filter(|left| !left.is_zero()) {
            return Some(left);
        }
        if state.flying >= self.parallel {
            return Some(GLANCE);
        }
        let first = state.gone.front()?;
        let spent = state.gone.iter().fold(tokens, |sum, gone| sum.saturating_add(gone.tokens));
        // A request larger than the limit passes when it is alone; otherwise it would wait forever.
        let is_full = (self.requests != 0 && state.gone.len() as u64 >= self.requests)
            || (self.tokens != 0 && spent > self.tokens);
        is_full.then(|| (first.at + WINDOW).saturating_duration_since(now))
    }

    /// Lets no request pass for a time, because the provider asked for that.
    pub(super) fn close_for(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state();
        state.closed_until = Some(state.closed_until.map_or(until, |old| old.max(until)));
    }
}

/// A request that has passed and is in progress.
#[derive(Debug)]
pub(super) struct RatePermit<'a> {
    gate: &'a RateLimiter,
    number: u64,
}

impl RatePermit<'_> {
    /// Replaces the estimate by the actual number of tokens.
    pub(super) fn took(&self, tokens: u64) {
        let mut state = self.gate.state();
        if let Some(gone) = state.gone.iter_mut().find(|gone| gone.number == self.number) {
            gone.tokens = tokens;
        }
    }
}

impl Drop for RatePermit<'_> {
    fn drop(&mut self) {
        self.gate.state().flying -= 1;
        self.gate.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn gate(parallel: usize, requests: u64, tokens: u64) -> RateLimiter {
        RateLimiter::new(&ModelLimits { parallel, requests_per_minute: requests, tokens_per_minute: tokens })
    }

    /// Tries requests, given as seconds after the first and tokens: `None` for one that passes, else its wait in seconds.
    fn tried(gate: &RateLimiter, requests: &[(u64, u64)]) -> Vec<Option<u64>> {
        let start = Instant::now();
        let one = |&(second, tokens): &(u64, u64)| {
            let now = start + Duration::from_secs(second);
            gate.try_pass(&mut gate.state(), now, tokens).err().map(|wait| wait.as_secs())
        };
        requests.iter().map(one).collect()
    }

    #[test]
    fn requests_per_minute_are_limited() {
        let requests = [(0, 1), (10, 1), (20, 1), (59, 1), (60, 1), (61, 1), (70, 1)];
        assert_eq!(tried(&gate(9, 2, 0), &requests), [None, None, Some(40), Some(1), None, Some(9), None]);
    }

    #[test]
    fn tokens_per_minute_are_limited() {
        // The last but one is larger than the limit: it goes when it is alone.
        let requests = [(0, 90), (1, 20), (2, 10), (60, 91), (62, 91), (100, 1000), (122, 1000), (123, 1)];
        let expected = [None, Some(59), None, Some(2), None, Some(22), None, Some(59)];
        assert_eq!(tried(&gate(9, 0, 100), &requests), expected);
    }

    #[test]
    fn the_token_limit_counts_actual_usage() {
        let gate = gate(9, 0, 100);
        gate.pass(90, &()).unwrap().took(10);
        assert_eq!(tried(&gate, &[(0, 90)]), [None]);
        assert!(tried(&gate, &[(0, 1)])[0].is_some());
    }

    #[test]
    fn concurrent_requests_are_limited() {
        let gate = gate(2, 0, 0);
        let (flying, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _pass = gate.pass(1, &()).unwrap();
                    most.fetch_max(flying.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    flying.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
    }

    #[test]
    fn no_request_passes_while_the_provider_asks_to_wait() {
        let gate = gate(9, 0, 0);
        gate.close_for(Duration::from_secs(40));
        gate.close_for(Duration::from_millis(1));
        assert!(matches!(tried(&gate, &[(0, 1), (30, 1), (41, 1)])[..], [Some(30..), Some(..=10), None]));
    }

    #[test]
    fn a_waiting_request_passes_after_the_wait() {
        let gate = gate(9, 0, 0);
        let start = Instant::now();
        gate.close_for(Duration::from_millis(100));
        drop(gate.pass(1, &()).unwrap());
        assert!(start.elapsed() >= Duration::from_millis(100));
    }
}
