//! Straggler handling: a candidate that takes much longer than the rest frees its place, and the end of the search
//! does not wait for it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::tree::CandidateId;

/// Number of finished candidates from which on the usual time is known.
const KNOWN: usize = 8;
/// A candidate is a straggler after this multiple of the median time.
const TIMES: u32 = 4;
/// A candidate is never a straggler before this time.
const LEAST: Duration = Duration::from_secs(5);
/// At most one in this number of places is given to another candidate, as in `pool/placement.py`.
const BESIDE: usize = 4;

/// The start times of candidates under way, and how long finished ones took.
#[derive(Default)]
pub(super) struct StragglerDetector {
    begun: HashMap<CandidateId, Instant>,
    took: Vec<Duration>,
}

impl StragglerDetector {
    pub(super) fn start(&mut self, id: CandidateId) {
        self.begun.insert(id, Instant::now());
    }

    /// Notes that a candidate has ended; the time of a recalled one does not count, because it was cut short.
    pub(super) fn finish(&mut self, id: CandidateId, is_recalled: bool) {
        let took = self.begun.remove(&id).filter(|_| !is_recalled);
        self.took.extend(took.map(|since| since.elapsed()));
    }

    /// Whether all candidates under way are stragglers. Most of them are compiling, some for minutes.
    pub(super) fn has_only_stragglers(&mut self) -> bool {
        !self.begun.is_empty() && self.late() == self.begun.len()
    }

    /// Number of stragglers under way. Each occupies a core with its compiler and little else.
    fn late(&mut self) -> usize {
        if self.took.len() < KNOWN {
            return 0;
        }
        let middle = self.took.len() / 2;
        let (_, usual, _) = self.took.select_nth_unstable(middle);
        let limit = (*usual * TIMES).max(LEAST);
        self.begun.values().filter(|since| since.elapsed() > limit).count()
    }

    /// How many candidates may be under way when `parallel` places are set: additional candidates take the places
    /// of stragglers, as far as there are cores.
    pub(super) fn places(&mut self, parallel: usize) -> usize {
        parallel + self.late().min(parallel / BESIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(under_way: &[f64], took: &[f64]) -> StragglerDetector {
        let ago = |seconds: &f64| Instant::now().checked_sub(Duration::from_secs_f64(*seconds)).unwrap();
        let begun = under_way.iter().enumerate().map(|(at, seconds)| (at, ago(seconds))).collect();
        StragglerDetector { begun, took: took.iter().copied().map(Duration::from_secs_f64).collect() }
    }

    #[test]
    fn a_candidate_that_takes_much_longer_is_a_straggler() {
        let usual = [3.0, 2.0, 2.5, 2.0, 20.0, 2.0, 2.0, 3.0, 2.0];
        assert!(pace(&[8.5, 30.0], &usual).has_only_stragglers());
        assert!(!pace(&[7.5, 30.0], &usual).has_only_stragglers(), "one is not late yet");
        assert!(!pace(&[], &usual).has_only_stragglers());
        assert!(!pace(&[60.0], &usual[..7]).has_only_stragglers(), "nobody knows what is usual");
    }

    #[test]
    fn stragglers_take_at_least_some_seconds() {
        assert!(!pace(&[4.5], &[0.1; 20]).has_only_stragglers());
        assert!(pace(&[5.5], &[0.1; 20]).has_only_stragglers());
    }

    /// In a pool of four GPUs, stragglers held one place in nine.
    #[test]
    fn some_places_of_stragglers_are_given_to_others() {
        let mut none = pace(&[7.0, 1.0, 30.0], &[2.0; 9]);
        assert_eq!((none.late(), none.places(16), none.places(3)), (1, 17, 3));
        let mut many = pace(&[30.0; 9], &[2.0; 9]);
        assert_eq!((many.late(), many.places(16), many.places(1)), (9, 20, 1));
        assert_eq!(pace(&[30.0; 9], &[2.0; 3]).places(16), 16, "nobody knows what is usual");
    }

    #[test]
    fn ended_candidates_are_not_counted_as_running() {
        let mut pace = pace(&[60.0, 1.0], &[2.0; 9]);
        pace.finish(1, false);
        assert!(pace.has_only_stragglers());
        pace.start(7);
        assert!(!pace.has_only_stragglers());
    }
}
