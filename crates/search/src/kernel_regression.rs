//! A kernel regression that estimates the speedup of a candidate from similar candidates that were judged, so that
//! promising changes are judged first.
//!
//! Candidates are similar when their numbers are, on a logarithmic scale. The estimate is the mean of the judged
//! candidates weighted by similarity, plus a bonus that grows where few judged candidates are near (an upper
//! confidence bound).

use std::collections::{BTreeMap, HashMap};

/// The numbers of a candidate by name, as logarithms to base 2.
pub(super) type FeaturePoint = BTreeMap<String, f64>;

/// Bandwidth of the regression, in powers of two.
const BANDWIDTH: f64 = 0.9;
/// Weight of the uncertainty bonus, in logarithms of speedup.
const EXPLORATION: f64 = 0.5;
/// Weight of the prior, which expects the mean speedup of all judged candidates.
const PRIOR: f64 = 0.1;
/// Squared distance for a number that only one of two candidates has: as much as a difference of two powers of two.
const MISSING: f64 = 4.0;

/// A point whose names are replaced by numbers, sorted by them, because each proposal is compared with all judged
/// candidates.
type Dense = Vec<(usize, f64)>;

/// The judged candidates with the logarithms of their speedups.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelRegression {
    names: HashMap<String, usize>,
    judged: Vec<(Dense, f64)>,
    /// Candidates under judgement. They lower the uncertainty bonus near them, because similar candidates would add
    /// little information.
    pending: Vec<Dense>,
}

/// The similarity of two candidates: a Gaussian of their squared distance, 1 where all numbers agree.
fn likeness(distance: f64) -> f64 {
    (-distance / (2.0 * BANDWIDTH * BANDWIDTH)).exp()
}

/// The squared distance of two points.
fn distance(one: &[(usize, f64)], other: &[(usize, f64)]) -> f64 {
    let (mut at, mut there, mut both, mut sum) = (0, 0, 0, 0.0);
    while let (Some((name, value)), Some((other_name, other_value))) = (one.get(at), other.get(there)) {
        if name == other_name {
            (both, sum) = (both + 1, sum + (value - other_value).powi(2));
        }
        at += usize::from(name <= other_name);
        there += usize::from(name >= other_name);
    }
    sum + MISSING * (one.len() + other.len() - 2 * both) as f64
}

impl KernelRegression {
    /// Adds a candidate under judgement.
    pub(super) fn begin(&mut self, point: &FeaturePoint) {
        let dense = self.named(point);
        self.pending.push(dense);
    }

    /// Records that a candidate was judged; `worth` is the logarithm of its speedup, `None` when it could not be
    /// judged.
    pub(super) fn finish(&mut self, point: &FeaturePoint, worth: Option<f64>) {
        let dense = self.named(point);
        if let Some(at) = self.pending.iter().position(|other| *other == dense) {
            self.pending.swap_remove(at);
        }
        self.judged.extend(worth.map(|worth| (dense, worth)));
    }

    /// The upper confidence bound of a candidate's speedup, as a logarithm.
    pub(super) fn ucb(&self, point: &FeaturePoint) -> f64 {
        // A name that no other candidate has adds the same distance to all of them.
        let dense = self.known(point);
        let apart = MISSING * (point.len() - dense.len()) as f64;
        let likeness_to = |other: &Dense| likeness(apart + distance(&dense, other));
        let mean = self.judged.iter().map(|(_, worth)| worth).sum::<f64>() / self.judged.len().max(1) as f64;
        let (mut weights, mut sum) = (PRIOR, PRIOR * mean);
        for (other, worth) in &self.judged {
            let weight = likeness_to(other);
            (weights, sum) = (weights + weight, sum + weight * worth);
        }
        let known: f64 = weights + self.pending.iter().map(likeness_to).sum::<f64>();
        sum / weights + EXPLORATION / (1.0 + known).sqrt()
    }

    fn named(&mut self, point: &FeaturePoint) -> Dense {
        for name in point.keys() {
            if !self.names.contains_key(name) {
                self.names.insert(name.clone(), self.names.len());
            }
        }
        self.known(point)
    }

    /// The numbers of a point whose names are known, sorted by the numbers of the names.
    fn known(&self, point: &FeaturePoint) -> Dense {
        let known = point.iter().filter_map(|(name, value)| Some((*self.names.get(name)?, *value)));
        let mut dense: Dense = known.collect();
        dense.sort_unstable_by_key(|(name, _)| *name);
        dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(numbers: &[(&str, i32)]) -> FeaturePoint {
        numbers.iter().map(|(name, value)| ((*name).to_owned(), f64::from(*value).log2())).collect()
    }

    #[test]
    fn estimates_are_higher_near_fast_candidates_than_near_slow_ones() {
        let mut surrogate = KernelRegression::default();
        surrogate.finish(&point(&[("B", 64), ("w", 4)]), Some(0.0));
        surrogate.finish(&point(&[("B", 128), ("w", 4)]), Some(0.7));
        surrogate.finish(&point(&[("B", 64), ("w", 16)]), Some(-1.0));
        let hope = |b, w| surrogate.ucb(&point(&[("B", b), ("w", w)]));
        assert!(hope(256, 4) > hope(32, 4) && hope(128, 8) > hope(64, 8) && hope(64, 8) > hope(64, 32));
        // A candidate with other names is not similar to these.
        let other = surrogate.ucb(&point(&[("ROWS", 4), ("w", 4)]));
        assert!(
            (other - KernelRegression { pending: Vec::new(), ..surrogate.clone() }.ucb(&FeaturePoint::new())).abs()
                < 0.1
        );
    }

    #[test]
    fn a_pending_candidate_lowers_the_estimate_of_its_neighbours() {
        let mut surrogate = KernelRegression::default();
        let (here, there) = (point(&[("B", 64)]), point(&[("B", 1024)]));
        let before = surrogate.ucb(&here);
        surrogate.begin(&here);
        assert!(surrogate.ucb(&here) < before && (surrogate.ucb(&there) - before).abs() < 0.01);
        surrogate.finish(&here, None);
        assert!((surrogate.ucb(&here) - before).abs() < 1e-12, "nothing came of it");
    }
}
