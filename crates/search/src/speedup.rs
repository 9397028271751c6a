//! The speedup of a candidate, as far as the measurements support a claim.

use serde::{Deserialize, Serialize};

use judge::statistics::median;
use judge::{
    CREDIBLE, Claim, Counted, Grade, GradeReached, JudgedOn, Measured, TimingSummary, is_predicted, is_stand_in,
};
use protocol::RuntimeVersions;

/// A candidate whose speedup on one call is below this counts as slower, whatever it gains on others.
pub(super) const SLOWER: f64 = 0.98;
/// Least predicted speedup of interest, because the model is not accurate enough for less.
const LEAST_PREDICTED: f64 = 1.05;
/// Share of the memory's bandwidth from which on it bounds a kernel.
const MEMORY_BOUND: f64 = 0.5;

/// Whether a candidate was not measured because another one has its machine code.
pub(super) fn has_same_code(measured: &[Measured]) -> bool {
    !measured.is_empty() && measured.iter().all(|one| one.same_code)
}

/// A speedup with its interval and the conditions it was measured under.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// Median ratio, original time over candidate time, with a cold L2 cache.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the ratio.
    pub low: f64,
    /// Upper end of the 95 % interval of the ratio.
    pub high: f64,
    /// Median time of the original, in milliseconds; for several calls the mean, weighted by how often each was
    /// seen.
    pub before_ms: f64,
    /// Median time of the candidate, in milliseconds.
    pub after_ms: f64,
    /// Number of interleaved pairs.
    pub pairs: usize,
    /// Whether the value is a prediction of a model: nothing was measured or checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub predicted: bool,
    /// Whether the device is simulated for a test, so that the value means nothing.
    pub simulated: bool,
    /// On which values the faster version is right.
    #[serde(default)]
    pub grade: Grade,
    /// The name of the device.
    pub device: String,
    /// The conditions under which the value holds: device, driver, versions and shapes.
    pub conditions: String,
    /// The shares of the memory's bandwidth that original and candidate use, where it bounds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<(f64, f64)>,
    /// The speedup of each call.
    pub calls: Vec<CallSpeedup>,
}

/// The speedup of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSpeedup {
    /// The call: `softmax(float32[4096,1000])`.
    pub call: String,
    /// How often the call was seen in the recording.
    pub count: u64,
    /// Median ratio, original time over candidate time.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub interval: [f64; 2],
    /// Median time of the original, in milliseconds.
    pub before_ms: f64,
    /// Median time of the candidate, in milliseconds.
    pub after_ms: f64,
    /// The least time that the memory's bandwidth allows, as a share of the times of original and candidate.
    pub floor_share: Option<(f64, f64)>,
    /// Operations and bytes of original and candidate, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<(Counted, Counted)>,
}

impl Speedup {
    /// The speedup that may be claimed from a measurement, or the reason why it is no offer.
    pub(super) fn credible(measured: &[Measured], environment: &RuntimeVersions) -> Result<Self, String> {
        if let Some(gpu) = is_predicted(&environment.device) {
            return Self::predicted(measured, gpu, environment);
        }
        let too_few = || "it was not timed often enough".to_owned();
        let Claim { ratio, times, objection } = Claim::of_all(measured).ok_or_else(too_few)?;
        if let Some(objection) = objection {
            return Err(objection);
        }
        let calls: Vec<CallSpeedup> =
            measured.iter().map(CallSpeedup::of).collect::<Option<_>>().ok_or_else(too_few)?;
        let counted = if measured.len() == 1 { 1.0 } else { measured.iter().map(count).sum::<f64>() };
        let bandwidth = match calls.as_slice() {
            [CallSpeedup { floor_share: Some(share), .. }] if share.1 >= MEMORY_BOUND => Some(*share),
            _ => None,
        };
        Ok(Self {
            ratio: ratio.median,
            low: ratio.low,
            high: ratio.high,
            before_ms: times.0 / counted,
            after_ms: times.1 / counted,
            pairs: measured.iter().map(|one| one.pairs.len()).sum(),
            predicted: false,
            simulated: is_stand_in(&environment.device),
            grade: Grade::Strict,
            device: environment.device.clone(),
            conditions: conditions(measured, environment),
            bandwidth,
            calls,
        })
    }

    /// The speedup that a model predicts for a GPU, or the reason why it is of no interest.
    fn predicted(measured: &[Measured], gpu: &str, environment: &RuntimeVersions) -> Result<Self, String> {
        let ratio = rough(measured);
        if ratio < LEAST_PREDICTED {
            return Err(format!("the predicted difference from the original is too small ({ratio:.2}×)"));
        }
        let (before_ms, after_ms) = Measured::sum_of_times(measured);
        let call = |one: &Measured| {
            let (before_ms, after_ms) = one.times();
            let ratio = before_ms / after_ms;
            let (call, count) = (one.workload.clone(), one.count);
            let (interval, counted) = ([ratio, ratio], one.counted);
            CallSpeedup { call, count, ratio, interval, before_ms, after_ms, floor_share: None, counted }
        };
        let device = gpu.to_owned();
        Ok(Self {
            ratio,
            low: ratio,
            high: ratio,
            before_ms,
            after_ms,
            predicted: true,
            device,
            conditions: conditions(measured, environment),
            calls: measured.iter().map(call).collect(),
            ..Self::default()
        })
    }

    /// Adds the machine of a pool to the conditions.
    pub(super) fn judged_on(mut self, judged_on: Option<&JudgedOn>) -> Self {
        if let Some(judged_on) = judged_on {
            self.conditions += &format!("; judged on {}", judged_on.place());
        }
        self
    }

    /// Notes on which values the faster version is right.
    pub(super) fn right_on(mut self, reached: Option<&GradeReached>) -> Self {
        self.grade = reached.and_then(|reached| reached.grade).unwrap_or_default();
        self
    }

    /// `1.83× faster: 225 → 123 µs, 95 % 1.79–1.86, NVIDIA H200, 78 → 96 % of memory bandwidth`
    #[must_use]
    pub fn label(&self) -> String {
        let Self { ratio, low, high, before_ms, after_ms, .. } = self;
        if self.predicted {
            let times = times(*before_ms, *after_ms);
            return format!(
                "predicted {ratio:.2}× faster: {times} by a model of the {}, neither run nor checked",
                self.device
            );
        }
        let right = match self.grade {
            Grade::Strict => "",
            Grade::Finite => " but for NaN, infinities and denormals",
            Grade::Recorded => " for values like the recorded ones only",
        };
        let mut label = format!("{ratio:.2}× faster{right}: {}, 95 % {low:.2}–{high:.2}", times(*before_ms, *after_ms));
        if self.simulated {
            label += ", simulated";
        } else if !self.device.is_empty() {
            label += &format!(", {}", self.device);
        }
        if let Some((before, after)) = self.bandwidth {
            label += &format!(", {:.0} → {:.0} % of memory bandwidth", 100.0 * before, 100.0 * after);
        }
        if let (true, None, [CallSpeedup { floor_share: Some((before, after)), .. }]) =
            (*ratio > CREDIBLE, self.bandwidth, &*self.calls)
        {
            let times = |share: f64| 1.0 / share.max(f64::EPSILON);
            label += &format!(", {:.0} → {:.1} times as long as moving its data takes", times(*before), times(*after));
        }
        label
    }
}

impl CallSpeedup {
    fn of(measured: &Measured) -> Option<Self> {
        let claim = Claim::of(measured)?;
        Some(Self {
            call: measured.workload.clone(),
            count: measured.count,
            ratio: claim.ratio.median,
            interval: [claim.ratio.low, claim.ratio.high],
            before_ms: claim.times.0,
            after_ms: claim.times.1,
            floor_share: TimingSummary::of(measured).floor_share,
            counted: measured.counted,
        })
    }
}

/// The rough speedup: over all calls together, each weighted by how often it was seen; but if one call is slower,
/// no more than that call's.
pub(super) fn rough(measured: &[Measured]) -> f64 {
    if let [only] = measured {
        return ratio(only);
    }
    let time = |of: fn((f64, f64)) -> f64| -> f64 { measured.iter().map(|one| count(one) * of(one.times())).sum() };
    let together = time(|times| times.0) / time(|times| times.1);
    let worst = measured.iter().map(ratio).fold(f64::INFINITY, f64::min);
    if worst < SLOWER { together.min(worst) } else { together }
}

fn ratio(measured: &Measured) -> f64 {
    median(measured.pairs.iter().map(|(original, candidate)| original / candidate))
}

/// For each call the milliseconds of the original, and the speedup.
pub(super) fn on_calls(measured: &[Measured]) -> Vec<(f64, f64)> {
    measured.iter().map(|one| (one.times().0, ratio(one))).collect()
}

/// The least time that the memory's bandwidth allows for all calls together, as a share of the times of original
/// and candidate.
pub(super) fn floor_share(measured: &[Measured]) -> Option<(f64, f64)> {
    let (mut floor, mut before, mut after) = (0.0, 0.0, 0.0);
    for one in measured {
        floor += count(one) * one.floor.measured?;
        let times = one.times();
        (before, after) = (before + count(one) * times.0, after + count(one) * times.1);
    }
    (after > 0.0 && before > 0.0).then(|| (floor / before, floor / after))
}

fn count(measured: &Measured) -> f64 {
    measured.count.max(1) as f64
}

/// Two times with three digits of the smaller: `225 → 123 µs`.
fn times(before: f64, after: f64) -> String {
    let (unit, factor) = if before.min(after) < 1.0 { ("µs", 1000.0) } else { ("ms", 1.0) };
    let (before, after) = (before * factor, after * factor);
    let digits = match after.min(before) {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{before:.digits$} → {after:.digits$} {unit}")
}

fn conditions(measured: &[Measured], environment: &RuntimeVersions) -> String {
    let torch = match environment.torch.as_str() {
        "" => "no torch".to_owned(),
        version => format!("torch {version}"),
    };
    let calls = match measured {
        [first, rest @ ..] if !rest.is_empty() => format!("{} and {} other calls", first.workload, rest.len()),
        _ => measured.first().map(|first| first.workload.clone()).unwrap_or_default(),
    };
    let how = if is_predicted(&environment.device).is_some() { "nothing was run" } else { "cold L2, interleaved" };
    format!("{}, Triton {}, {torch}; {calls}; {how}", environment.device, environment.triton)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::RuntimeVersions;

    fn measured(original: f64, candidate: f64, count: u64) -> Measured {
        let pairs = (0..100).map(|at| (original * (1.0 + 0.001 * f64::from(at % 7)), candidate)).collect();
        Measured { pairs, drift: 1.0, count, workload: format!("f(float32[{count}])"), ..Measured::default() }
    }

    #[test]
    fn the_label_of_an_offer_has_speedup_and_conditions() {
        let device = RuntimeVersions { device: "NVIDIA H200".to_owned(), ..RuntimeVersions::default() };
        let mut one = measured(0.225, 0.123, 3);
        one.floor.measured = Some(0.118);
        let speedup = Speedup::credible(&[one], &device).unwrap();
        let label = "1.83× faster: 226 → 123 µs, 95 % 1.83–1.84, NVIDIA H200, 52 → 96 % of memory bandwidth";
        assert_eq!(speedup.label(), label);
        assert_eq!((speedup.pairs, speedup.calls.len()), (100, 1));
        assert_eq!(times(22.5, 1.234), "22.50 → 1.23 ms");
    }

    #[test]
    fn a_candidate_that_is_slower_on_one_call_is_not_offered() {
        let device = RuntimeVersions::default();
        let both = [measured(2.0, 1.0, 9), measured(1.0, 1.1, 1)];
        let why = Speedup::credible(&both, &device).unwrap_err();
        assert_eq!(why, "f(float32[1]) is slower (0.91×)");
        assert!(rough(&both) < 1.0, "{}", rough(&both));
        let both = [measured(2.0, 1.0, 9), measured(1.0, 1.0, 1)];
        let speedup = Speedup::credible(&both, &device).unwrap();
        assert!((speedup.before_ms - 1.9).abs() < 0.02 && (speedup.after_ms - 1.0).abs() < 0.02, "{speedup:?}");
        assert!((rough(&both) - 1.9).abs() < 0.02);
        assert!(speedup.conditions.contains("f(float32[9]) and 1 other calls"), "{}", speedup.conditions);
    }

    #[test]
    fn the_floor_of_several_calls_counts_them_together() {
        let with = |floor: Option<f64>| {
            let mut one = measured(2.0, 1.0, 1);
            one.floor.measured = floor;
            one
        };
        let (before, after) = floor_share(&[with(Some(0.9)), with(Some(1.0))]).unwrap();
        assert!((before - 0.475).abs() < 0.01 && (after - 0.95).abs() < 0.01);
        assert_eq!(floor_share(&[with(Some(0.9)), with(None)]), None);
    }
}
