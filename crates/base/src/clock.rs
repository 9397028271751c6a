//! The Unix time, and the calendar date of a Unix time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since the Unix epoch; zero where the system clock is set before it.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since the Unix epoch.
pub fn now_milliseconds() -> i64 {
    i64::try_from(now().as_millis()).unwrap_or(i64::MAX)
}

/// The UTC date of a Unix time in seconds, in ISO 8601: `2026-11-22`.
pub fn day(seconds: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut days) = (1970, seconds / 86_400);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_times_are_converted_to_calendar_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_219_200, "2026-11-21"),
        ] {
            assert_eq!(day(seconds), expected);
        }
    }
}
