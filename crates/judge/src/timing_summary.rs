//! The figures of a timing, as text for readers and as data for programs.

use serde::Serialize;

use base::clock;

use super::claim::Claim;
use super::verdict::Measured;

/// A timing with the figures that are derived from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimingSummary<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    /// The number of pairs.
    n: usize,
    /// Median milliseconds of original and candidate with a cold L2 cache.
    median: (f64, f64),
    /// Median ratio of original time to candidate time.
    speedup: Option<f64>,
    /// The 95 % confidence interval of the speedup.
    interval: Option<[f64; 2]>,
    /// The floor as a share of the time of original and candidate: at 1 the call is as fast as the device copies its
    /// memory.
    pub floor_share: Option<(f64, f64)>,
}

impl<'a> TimingSummary<'a> {
    /// The figures of a timing.
    #[must_use]
    pub fn of(measured: &'a Measured) -> Self {
        let claim = Claim::of(measured);
        let median = measured.times();
        Self {
            measured,
            n: measured.pairs.len(),
            median,
            speedup: claim.as_ref().map(|claim| claim.ratio.median),
            interval: claim.as_ref().map(|claim| [claim.ratio.low, claim.ratio.high]),
            floor_share: measured.floor.measured.map(|floor| (floor / median.0, floor / median.1)),
        }
    }

    /// The timing as two lines of text.
    #[must_use]
    pub fn lines(&self) -> [String; 2] {
        let Self { measured, n, median, .. } = self;
        let mut times = format!("{}: {:.4} → {:.4} ms cold", measured.workload, median.0, median.1);
        for (name, of) in [("warm", measured.warm), ("by the clock", measured.wall)] {
            if let Some((original, candidate)) = of {
                times += &format!(", {original:.4} → {candidate:.4} ms {name}");
            }
        }
        if let (Some(speedup), Some([low, high])) = (self.speedup, self.interval) {
            times += &format!(", {speedup:.2}× (95 % {low:.2}–{high:.2})");
        }
        times += &format!(", {n} pairs");
        if let Some((_, share)) = self.floor_share {
            let [read, written] = [measured.floor.read, measured.floor.written].map(|bytes| bytes / 1e6);
            times += &format!(
                "; reading {read:.1} MB and writing {written:.1} MB takes at least {:.0} % of that",
                100.0 * share
            );
        }
        let on = &measured.environment;
        let mut conditions = on.device.clone();
        for (name, version) in
            [("CUDA", &on.driver), ("Triton", &on.triton), ("torch", &on.torch), ("Python", &on.python)]
        {
            if !version.is_empty() {
                conditions += &format!(", {name} {version}");
            }
        }
        if let Some((before, after)) = measured.clocks {
            conditions += &format!(", {before} → {after} MHz");
        }
        let drift = 100.0 * (measured.drift - 1.0);
        [times, format!("{conditions}, {}, the original moved by {drift:.1} %", date(measured.at))]
    }
}

/// A date as in `2026-11-22 06:30 UTC`, from seconds since 1970.
fn date(seconds: u64) -> String {
    format!("{} {:02}:{:02} UTC", clock::day(seconds), seconds / 3600 % 24, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Floor;
    use super::*;
    use protocol::RuntimeVersions;

    #[test]
    fn summaries_have_calendar_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_767_225_599, "2025-12-31 23:59 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn the_summary_lists_all_measurement_conditions() {
        let environment = RuntimeVersions {
            python: "3.12.3".to_owned(),
            torch: "2.11.0".to_owned(),
            triton: "3.6.0".to_owned(),
            device: "NVIDIA H200".to_owned(),
            driver: "13.0".to_owned(),
        };
        let measured = Measured {
            workload: "f(float32[8])".to_owned(),
            pairs: vec![(0.4, 0.2); 80],
            warm: Some((0.3, 0.1)),
            wall: Some((0.5, 0.25)),
            floor: Floor { read: 2e6, written: 1e6, measured: Some(0.1), hard: None },
            drift: 1.01,
            environment,
            clocks: Some((1980, 1965)),
            ..Measured::default()
        };
        let figures = TimingSummary::of(&measured);
        assert_eq!(
            figures.lines(),
            [
                "f(float32[8]): 0.4000 → 0.2000 ms cold, 0.3000 → 0.1000 ms warm, 0.5000 → 0.2500 ms by the clock, 2.00× (95 % \
             2.00–2.00), 80 pairs; reading 2.0 MB and writing 1.0 MB takes at least 50 % of that",
                "NVIDIA H200, CUDA 13.0, Triton 3.6.0, torch 2.11.0, Python 3.12.3, 1980 → 1965 MHz, 1970-01-01 00:00 UTC, the \
             original moved by 1.0 %",
            ]
        );
        let json = serde_json::to_value(&figures).unwrap();
        assert_eq!(
            (&json["n"], &json["floor_share"][1], &json["environment"]["driver"]),
            (&80.into(), &0.5.into(), &"13.0".into())
        );
    }
}
