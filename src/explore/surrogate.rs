//! What a candidate may be worth, by those like it that were judged: of many turns the promising ones are judged first.
//!
//! Candidates are alike when their numbers are, counted in halves and doubles. The estimate is the mean of all that were judged, weighted
//! by likeness; the fewer are near, the less is known, which counts in favour of a candidate (an upper confidence bound).

use std::collections::BTreeMap;

/// The numbers of a candidate, by their names, as logarithms to base 2.
pub(super) type Point = BTreeMap<String, f64>;

/// Halves and doubles within which candidates are alike.
const REACH: f64 = 0.9;
/// How much of what is not known is hoped for, in logarithms of speedup.
const HOPE: f64 = 0.5;
/// The weight of the expectation that a candidate nothing is known of is as fast as the mean.
const PRIOR: f64 = 0.1;

/// What was judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Surrogate {
    judged: Vec<(Point, f64)>,
    /// Those of which nothing is known yet: who is like them need not be judged to know more.
    pending: Vec<Point>,
}

/// How alike two candidates are: 1 where all of their numbers are the same.
fn likeness(one: &Point, other: &Point) -> f64 {
    (-distance(one, other) / (2.0 * REACH * REACH)).exp()
}

/// How different they are, squared; a number that only one of them has is a difference of two doubles.
fn distance(one: &Point, other: &Point) -> f64 {
    let missing = |from: &Point, to: &Point| from.keys().filter(|name| !to.contains_key(*name)).count() as f64 * 4.0;
    let both = one.iter().filter_map(|(name, value)| Some((value - other.get(name)?).powi(2)));
    both.sum::<f64>() + missing(one, other) + missing(other, one)
}

impl Surrogate {
    /// A candidate is being judged.
    pub(super) fn begin(&mut self, point: Point) {
        self.pending.push(point);
    }

    /// A candidate was judged; `worth` is the logarithm of its speedup, `None` where nothing came of it.
    pub(super) fn finish(&mut self, point: Point, worth: Option<f64>) {
        if let Some(at) = self.pending.iter().position(|other| *other == point) {
            self.pending.swap_remove(at);
        }
        self.judged.extend(worth.map(|worth| (point, worth)));
    }

    /// What may be hoped of a candidate.
    pub(super) fn hope(&self, point: &Point) -> f64 {
        let mean = self.judged.iter().map(|(_, worth)| worth).sum::<f64>() / self.judged.len().max(1) as f64;
        let (mut weights, mut sum) = (PRIOR, PRIOR * mean);
        for (other, worth) in &self.judged {
            let weight = likeness(point, other);
            (weights, sum) = (weights + weight, sum + weight * worth);
        }
        let known: f64 = weights + self.pending.iter().map(|other| likeness(point, other)).sum::<f64>();
        sum / weights + HOPE / (1.0 + known).sqrt()
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
        surrogate.finish(point(&[("B", 64), ("w", 4)]), Some(0.0));
        surrogate.finish(point(&[("B", 128), ("w", 4)]), Some(0.7));
        surrogate.finish(point(&[("B", 64), ("w", 16)]), Some(-1.0));
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
        surrogate.begin(here.clone());
        assert!(surrogate.hope(&here) < before && (surrogate.hope(&there) - before).abs() < 0.01);
        surrogate.finish(here.clone(), None);
        assert!((surrogate.hope(&here) - before).abs() < 1e-12, "nothing came of it");
    }
}
