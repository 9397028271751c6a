//! The claim that timings support: how much faster a candidate is, with which confidence, and whether it may be
//! offered.

use super::statistics::{Ratio, Z_95, Z_999, ratio};
use super::verdict::Measured;

/// The lowest speedup that is offered: a smaller one is not worth a review.
pub const LEAST_SPEEDUP: f64 = 1.02;
/// The highest speedup that is believed after one judgement. A higher one mostly means that work is left out, so it is
/// offered only where the least time of the call is known and a second judgement, in a fresh process and on other inputs,
/// agrees.
pub const CREDIBLE: f64 = 10.0;
/// The lowest ratio of original time to candidate time by the host's clock that an offer may have.
const LEAST_WALL: f64 = 0.95;
/// The highest drift of the original's own time during a measurement. A candidate that was measured during a higher one
/// is not offered.
const MOST_DRIFT: f64 = 1.05;

/// The speedup that timings support.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Median ratio of original time to candidate time, with its 95 % interval.
    pub ratio: Ratio,
    /// Median milliseconds of the original and of the candidate.
    pub times: (f64, f64),
    /// Why the candidate may not be offered; `None` if it may.
    pub objection: Option<String>,
}

impl Claim {
    /// The claim that the timing of one workload supports; `None` with too few pairs.
    #[must_use]
    pub fn of(measured: &Measured) -> Option<Self> {
        let (shown, strict) = (ratio(&measured.pairs, Z_95)?, ratio(&measured.pairs, Z_999));
        let times = measured.times();
        let wall = measured.wall.map_or(1.0, |(original, candidate)| original / candidate);
        let objection = if measured.drift > MOST_DRIFT {
            Some(format!("the original's own time moved by {:.1} % meanwhile", 100.0 * (measured.drift - 1.0)))
        } else if strict.is_none_or(|strict| strict.low <= 1.0) {
            Some("it is not certainly faster".to_owned())
        } else if shown.median < LEAST_SPEEDUP {
            Some(format!("it is less than {LEAST_SPEEDUP}× faster"))
        } else if let (true, Some(doubt)) = (shown.median > CREDIBLE, measured.doubt()) {
            Some(format!("a speedup above {CREDIBLE}× {doubt}"))
        } else if wall < LEAST_WALL {
            Some("by the clock, with the launches, a call is slower".to_owned())
        } else {
            None
        };
        Some(Self { ratio: shown, times, objection })
    }

    /// The claim that the timings of all workloads support together, each weighted by how often its call was recorded.
    /// It is an offer when one of them is and no workload is certainly slower.
    #[must_use]
    pub fn of_all(measured: &[Measured]) -> Option<Self> {
        let claims: Vec<Self> = measured.iter().map(Self::of).collect::<Option<_>>()?;
        let [first, rest @ ..] = claims.as_slice() else { return None };
        if rest.is_empty() {
            return Some(first.clone());
        }
        let weighted = |of: &dyn Fn(&Self) -> f64| -> f64 {
            claims.iter().zip(measured).map(|(claim, measured)| measured.count.max(1) as f64 * of(claim)).sum()
        };
        let before = weighted(&|claim| claim.times.0);
        let after = |ratio: &dyn Fn(&Ratio) -> f64| before / weighted(&|claim| claim.times.0 / ratio(&claim.ratio));
        let ratio = Ratio { median: after(&|it| it.median), low: after(&|it| it.low), high: after(&|it| it.high) };
        let incredible = claims.iter().find(|claim| claim.ratio.median > CREDIBLE && claim.objection.is_some());
        let slower = claims.iter().zip(measured).find(|(claim, _)| claim.ratio.high < 1.0);
        let objection = match slower {
            Some((claim, measured)) => Some(format!("{} is slower ({:.2}×)", measured.workload, claim.ratio.median)),
            None if incredible.is_some() => incredible.and_then(|claim| claim.objection.clone()),
            None if ratio.median < LEAST_SPEEDUP => Some(format!("together it is less than {LEAST_SPEEDUP}× faster")),
            None if claims.iter().any(|claim| claim.objection.is_none()) => None,
            None => first.objection.clone(),
        };
        Some(Self { ratio, times: (before, weighted(&|claim| claim.times.1)), objection })
    }
}

impl Measured {
    /// Why a very great speedup is not believed.
    fn doubt(&self) -> Option<&'static str> {
        if self.floor.hard.is_none() {
            return Some(
                "is believed only where the least time of the call is known: check whether the candidate skips work",
            );
        }
        (!self.is_repeated).then_some("is believed only after a second judgement, and there was none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Floor;

    fn measured(original: f64, candidate: f64) -> Measured {
        let pairs = (0..100).map(|at| (original + 0.0001 * f64::from(at % 7), candidate)).collect();
        Measured { pairs, drift: 1.0, count: 1, ..Measured::default() }
    }

    #[test]
    fn only_certain_and_credible_speedups_are_offered() {
        let objection = |measured: &Measured| Claim::of(measured).unwrap().objection;
        assert_eq!(objection(&measured(2.0, 1.0)), None);
        assert!(objection(&measured(1.0, 1.0)).is_some());
        let great = measured(100.0, 1.0);
        assert!(objection(&great).unwrap().contains("least time"));
        let known = Measured { floor: Floor { hard: Some(0.5), ..Floor::default() }, ..great };
        assert!(objection(&known).unwrap().contains("second judgement"));
        assert_eq!(objection(&Measured { is_repeated: true, ..known }), None);
        assert!(objection(&Measured { drift: 1.2, ..measured(2.0, 1.0) }).unwrap().contains("moved"));
        assert!(objection(&Measured { wall: Some((1.0, 1.2)), ..measured(2.0, 1.0) }).unwrap().contains("clock"));
        assert_eq!(Claim::of(&Measured { pairs: vec![(1.0, 1.0)], ..Measured::default() }), None);
    }

    #[test]
    fn a_loss_is_not_hidden_in_an_average() {
        let both = [measured(4.0, 1.0), measured(1.0, 1.5)];
        let claim = Claim::of_all(&both).unwrap();
        assert!((claim.ratio.median - 2.0).abs() < 0.01, "{claim:?}");
        assert!(claim.objection.unwrap().contains("slower"));
        assert_eq!(Claim::of_all(&[measured(4.0, 1.0), measured(1.0, 1.0)]).unwrap().objection, None);
    }
}
