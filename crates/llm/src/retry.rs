//! Retries: which failures are retried, and after which pause.

use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use base::rng::Rng;

use super::{GLANCE, ModelError, ReplyObserver};

/// The pause before the first retry; each further pause is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest waiting time that a provider may ask for; a longer one ends the retries.
pub(super) const LONGEST_ASKED: Duration = Duration::from_secs(90);

/// Whether a request that got this HTTP status may succeed when it is retried.
pub(super) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// The pauses between attempts: exponential backoff, shortened at random by up to half, so that clients do not return
/// at the same time.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    chance: Rng,
}

impl Backoff {
    pub(super) fn new(seed: u64, scale: f64) -> Self {
        Self { next: FIRST.mul_f64(scale), chance: Rng::new(seed) }
    }

    /// The next pause, at least as long as the provider asks for.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let pause = self.next.mul_f64(1.0 - self.chance.uniform() / 2.0);
        self.next = (self.next * 2).min(LONGEST);
        // Jitter is added to the time that the provider asks for, too.
        asked.map_or(pause, |asked| asked + pause.min(asked / 10))
    }
}

/// Waits for a pause; fails when the caller cancels.
pub(super) fn wait(pause: Duration, watcher: &dyn ReplyObserver) -> Result<(), ModelError> {
    let end = Instant::now() + pause;
    loop {
        if watcher.cancelled() {
            return Err(ModelError::Cancelled);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(GLANCE));
    }
}

/// The waiting time that a provider asks for: in seconds, as a date, or in milliseconds (an extra header of OpenAI and
/// Azure).
pub(super) fn asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(exact) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(exact / 1000.0).ok();
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    // A date in the past means now.
    Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), reqwest::header::HeaderValue::from_static(value))])
    }

    #[test]
    fn retry_after_headers_are_parsed() {
        let now = httpdate::parse_http_date("Thu, 26 Nov 2026 10:00:00 GMT").unwrap();
        let seconds = |name, value| asked(&headers(name, value), now).map(|asked| asked.as_secs_f64());
        assert_eq!(seconds("retry-after", "7"), Some(7.0));
        assert_eq!(seconds("retry-after", " 0.5"), Some(0.5));
        assert_eq!(seconds("retry-after", "Thu, 26 Nov 2026 10:00:20 GMT"), Some(20.0));
        assert_eq!(seconds("retry-after", "Thu, 26 Nov 2026 09:00:20 GMT"), Some(0.0));
        assert_eq!(seconds("retry-after-ms", "1500"), Some(1.5));
        for nonsense in ["soon", "-1", "1e300", "NaN", ""] {
            assert_eq!(seconds("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn pauses_grow_and_differ() {
        let (mut one, mut other) = (Backoff::new(1, 1.0), Backoff::new(2, 1.0));
        let pauses: Vec<_> = (0..10).map(|_| one.next(None)).collect();
        for (at, pause) in pauses.iter().enumerate() {
            let most = (FIRST * 2_u32.pow(at as u32)).min(LONGEST);
            assert!(*pause <= most && *pause >= most / 2, "{pauses:?}");
        }
        assert_ne!(pauses[0], other.next(None));
        let asked = other.next(Some(Duration::from_secs(10)));
        assert!(asked >= Duration::from_secs(10) && asked <= Duration::from_secs(11), "{asked:?}");
    }
}
