//! A plausibility check of the times that a candidate's process reports.

use protocol::runner::Timing;

/// The factor, and the milliseconds per reading, by which the clocks of device and host may differ.
const CLOCKS: f64 = 1.01;
const CLOCK: f64 = 0.05;

/// Whether the times of a request are possible: its calls run one after the other, and all of them between request and
/// reply. The check cannot find times that are too short.
pub(super) fn possible(timing: &Timing, milliseconds: &[f64], walls: &[f64], passed: f64) -> Result<(), String> {
    let calls = timing.calls.max(timing.inputs.len());
    if milliseconds.len() != calls || walls.len() != if timing.synced { calls } else { 0 } {
        return Err(format!("it reports the times of {} calls instead of {calls}", milliseconds.len()));
    }
    if milliseconds.iter().chain(walls).any(|time| !time.is_finite() || *time < 0.0) {
        return Err("a reported time is negative or not finite".to_owned());
    }
    let within = |sum: f64, most: f64| sum <= most * CLOCKS + CLOCK;
    for sum in [milliseconds.iter().sum::<f64>(), walls.iter().sum()] {
        if !within(sum, passed) {
            return Err(format!("its calls took {sum:.3} ms, it says; the judge waited {passed:.3} ms"));
        }
    }
    match milliseconds.iter().zip(walls).find(|(time, wall)| !within(**time, **wall)) {
        Some((time, wall)) => {
            Err(format!("a call took {time:.3} ms on the device and {wall:.3} ms with waiting for it"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::runner::Inputs;

    #[test]
    fn impossible_timings_are_rejected() {
        let timing = Timing { inputs: vec![Inputs::default()], calls: 2, ..Timing::default() };
        let synced = Timing { synced: true, ..timing.clone() };
        assert_eq!(possible(&timing, &[1.0, 2.0], &[], 3.1), Ok(()));
        assert_eq!(possible(&synced, &[1.0, 2.0], &[1.1, 2.1], 3.3), Ok(()));
        for (timing, milliseconds, walls, passed) in [
            (&timing, &[1.0][..], &[][..], 9.0),
            (&timing, &[1.0, f64::NAN], &[], 9.0),
            (&timing, &[1.0, -0.5], &[], 9.0),
            (&timing, &[1.0, 2.0], &[], 2.9),
            (&synced, &[1.0, 2.0], &[1.1], 9.0),
            (&synced, &[1.0, 2.0], &[1.1, 1.5], 9.0),
            (&synced, &[1.0, 2.0], &[1.1, 8.1], 9.0),
        ] {
            assert!(possible(timing, milliseconds, walls, passed).is_err(), "{milliseconds:?} {walls:?} {passed}");
        }
    }
}
