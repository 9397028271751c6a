//! What kinds of turns are worth: how often each was taken, and what came of it.

use std::collections::BTreeMap;

use super::memory::Expected;

/// How much the gain that kinds of turns have brought decides which is taken: the smaller, the more.
const TEMPERATURE: f64 = 0.15;
/// What is added to a kind's mean gain as long as it was never tried; less, the oftener it was.
const CURIOSITY: f64 = 0.3;
/// The same for turns that bring little, all together: of 526 in 21 searches on an H200 the best brought 9 %, and the second best 2 %.
const CURIOSITY_FOR_FINE: f64 = 0.2;
/// What a turn of the same branch has brought counts so many times more.
const NEARNESS: f64 = 4.0;

/// What kinds of turns have brought in this search: how often each was taken, and the sum of the logarithms of how many times as fast
/// it made what it began with.
#[derive(Default)]
pub(super) struct Gains(BTreeMap<String, (u32, f64)>);

impl Gains {
    pub(super) fn add(&mut self, kind: &str, gain: f64) {
        let (count, sum) = self.0.entry(kind.to_owned()).or_default();
        (*count, *sum) = (*count + 1, *sum + gain);
    }

    /// How likely a kind is to be taken, beside others, where `here` is what kinds have brought nearby, and `expected` what is known of earlier
    /// searches. What brings little if anything (`is_fine`) is tried for its own sake less often.
    pub(super) fn weight(&self, kind: &str, is_fine: bool, here: &Self, expected: Option<Expected>) -> f64 {
        let of = |gains: &Self| gains.0.get(kind).copied().unwrap_or_default();
        let ((count, sum), (near, sum_near)) = (of(self), of(here));
        let known = expected.unwrap_or(Expected { weight: 0.0, gain: 0.0 });
        // One of no gain stands for what is not known.
        let count = f64::from(count) + NEARNESS * f64::from(near) + known.weight + 1.0;
        let sum = sum + NEARNESS * sum_near + known.weight * known.gain;
        let curiosity = if is_fine { CURIOSITY_FOR_FINE } else { CURIOSITY };
        ((sum / count + curiosity / count.sqrt()) / TEMPERATURE).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_first_until_this_search_knows_better() {
        let (mut gains, nothing) = (Gains::default(), Gains::default());
        let known = |gain| Some(Expected { weight: 4.0, gain });
        let weight = |gains: &Gains, kind, expected| gains.weight(kind, false, &nothing, expected);
        assert!(weight(&gains, "a", known(0.5)) > weight(&gains, "b", None));
        assert!(weight(&gains, "a", known(-0.5)) < weight(&gains, "b", None));
        assert!(gains.weight("c", true, &nothing, None) < weight(&gains, "c", None));
        for _ in 0..12 {
            gains.add("a", -0.5);
            gains.add("b", 0.3);
        }
        assert!(weight(&gains, "a", known(0.5)) < weight(&gains, "b", known(-0.1)));
    }
}
