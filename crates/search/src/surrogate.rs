//! What a candidate may be worth, by those like it that were judged: of many turns the promising ones are judged first.
//!
//! Candidates are alike when their numbers are, counted in halves and doubles. The estimate is the mean of all that were judged, weighted
//! by likeness; the fewer are near, the less is known, which counts in favour of a candidate (an upper confidence bound).

use std::collections::{BTreeMap, HashMap};

/// The numbers of a candidate, by their names, as logarithms to base 2.
pub(super) type Point = BTreeMap<String, f64>;

/// Halves and doubles within which candidates are alike.
const REACH: f64 = 0.9;
/// How much of what is not known is hoped for, in logarithms of speedup.
const HOPE: f64 = 0.5;
/// The weight of the expectation that a candidate nothing is known of is as fast as the mean.
const PRIOR: f64 = 0.1;
/// What a number counts that only one of two has: a difference of two doubles, squared.
const MISSING: f64 = 4.0;

/// A point with numbers for names, in their order: each turn is compared with all that was judged.
type Dense = Vec<(usize, f64)>;

/// What was judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Surrogate {
    names: HashMap<String, usize>,
    judged: Vec<(Dense, f64)>,
    /// Those of which nothing is known yet: who is like them need not be judged to know more.
    pending: Vec<Dense>,
}

/// How alike two candidates are: 1 where all of their numbers are the same.
fn likeness(distance: f64) -> f64 {
    (-distance / (2.0 * REACH * REACH)).exp()
}

/// How different they are, squared.
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

impl Surrogate {
    /// A candidate is being judged.
    pub(super) fn begin(&mut self, point: &Point) {
        let dense = self.named(point);
        self.pending.push(dense);
    }

    /// A candidate was judged; `worth` is the logarithm of its speedup, `None` where nothing came of it.
    pub(super) fn finish(&mut self, point: &Point, worth: Option<f64>) {
        let dense = self.named(point);
        if let Some(at) = self.pending.iter().position(|other| *other == dense) {
            self.pending.swap_remove(at);
        }
        self.judged.extend(worth.map(|worth| (dense, worth)));
    }

    /// What may be hoped of a candidate.
    pub(super) fn hope(&self, point: &Point) -> f64 {
        // What has a name that no other one has is as far from all of them.
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
        sum / weights + HOPE / (1.0 + known).sqrt()
    }

    fn named(&mut self, point: &Point) -> Dense {
        for name in point.keys() {
            if !self.names.contains_key(name) {
                self.names.insert(name.clone(), self.names.len());
            }
        }
        self.known(point)
    }

    /// The numbers of a point whose names are known, in the order in which they came to be.
    fn known(&self, point: &Point) -> Dense {
        let known = point.iter().filter_map(|(name, value)| Some((*self.names.get(name)?, *value)));
        let mut dense: Dense = known.collect();
        dense.sort_unstable_by_key(|(name, _)| *name);
        dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(numbers: &[(&str, i32)]) -> Point {
        numbers.iter().map(|(name, value)| ((*name).to_owned(), f64::from(*value).log2())).collect()
    }

    #[test]
    fn what_is_like_the_good_ones_is_hoped_for_and_what_is_like_the_bad_ones_is_not() {
        let mut surrogate = Surrogate::default();
        surrogate.finish(&point(&[("B", 64), ("w", 4)]), Some(0.0));
        surrogate.finish(&point(&[("B", 128), ("w", 4)]), Some(0.7));
        surrogate.finish(&point(&[("B", 64), ("w", 16)]), Some(-1.0));
        let hope = |b, w| surrogate.hope(&point(&[("B", b), ("w", w)]));
        assert!(hope(256, 4) > hope(32, 4) && hope(128, 8) > hope(64, 8) && hope(64, 8) > hope(64, 32));
        // What has other numbers is not like these.
        let other = surrogate.hope(&point(&[("ROWS", 4), ("w", 4)]));
        assert!((other - Surrogate { pending: Vec::new(), ..surrogate.clone() }.hope(&Point::new())).abs() < 0.1);
    }

    #[test]
    fn who_is_being_judged_keeps_others_away_until_it_is_known() {
        let mut surrogate = Surrogate::default();
        let (here, there) = (point(&[("B", 64)]), point(&[("B", 1024)]));
        let before = surrogate.hope(&here);
        surrogate.begin(&here);
        assert!(surrogate.hope(&here) < before && (surrogate.hope(&there) - before).abs() < 0.01);
        surrogate.finish(&here, None);
        assert!((surrogate.hope(&here) - before).abs() < 1e-12, "nothing came of it");
    }
}
