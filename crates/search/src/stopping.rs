//! The conditions under which a search ends, waits or looks for choices between candidates.

use std::time::Instant;

use judge::{LEAST_SPEEDUP, Measured, is_stand_in};

use super::run::SearchRun;
use super::speedup::floor_share;

/// Share of the budget after which no candidate is proposed; the rest is for confirming the best.
const SEARCH_SHARE: f64 = 0.7;
/// Share of the search's resources (time, candidates, patience) after which it looks for choices between
/// candidates.
const CHOICE_SHARE: f64 = 0.5;
/// Share of the same resources after which the reference results that an offer is checked against are prefetched.
const AHEAD_SHARE: f64 = 0.4;
/// Share of the time of the original or a candidate that its memory traffic needs at least, from which on the search
/// takes it to be as fast as it gets.
const AT_FLOOR: f64 = 0.95;
/// Share from which on the search ends at once. Below it, another tile or other options may still give some
/// percent, so the search goes on until it has judged `LOOKED_AT` candidates or has spent this share (`LOOK_SHARE`)
/// of its budget.
const AT_ONCE: f64 = 1.0;
const LOOKED_AT: usize = 48;
const LOOK_SHARE: f64 = 0.2;
/// Factor by which a candidate must be faster than the best to count as progress.
const BETTER: f64 = 1.005;

impl SearchRun<'_> {
    /// Whether something new may be proposed while `flying` candidates are being judged.
    pub(super) fn goes_on(&self, flying: usize) -> bool {
        let settings = &self.request.settings.optimize;
        let is_within = |count: usize, most: usize| most == 0 || count < most;
        !self.is_late
            && self.spent() < SEARCH_SHARE
            && !self.ends_at_floor(flying)
            && is_within(self.evaluated + flying, settings.candidates)
            && is_within(self.since_improvement, settings.patience)
            && !self.observer.cancelled()
    }

    /// Whether the memory's bandwidth rules out anything much faster, and the other options were tried.
    pub(super) fn ends_at_floor(&self, flying: usize) -> bool {
        self.at_floor.is_some_and(|share| is_looked_at(share, self.evaluated + flying, self.spent()))
    }

    /// Whether it is time to look for choices between candidates: there are some by now, and enough of the
    /// resources is left to find better ones.
    pub(super) fn chooses(&self) -> bool {
        self.progress() > CHOICE_SHARE
    }

    /// The greatest used share of the resources that may end the search: time, candidates, patience.
    fn progress(&self) -> f64 {
        let settings = &self.request.settings.optimize;
        let share = |count: usize, most: usize| if most == 0 { 0.0 } else { count as f64 / most as f64 };
        let counts = share(self.evaluated, settings.candidates).max(share(self.since_improvement, settings.patience));
        counts.max(self.spent() / SEARCH_SHARE)
    }

    /// Whether an offer is likely, so that it pays to prefetch the reference results that it will be checked
    /// against.
    pub(super) fn is_offer_likely(&self) -> bool {
        self.best.is_some_and(|best| best >= LEAST_SPEEDUP) && self.progress() > AHEAD_SHARE
    }

    /// Whether the search waits for a program of the user. Time in which nothing is judged because of that does not
    /// count against the budget, nor does the time until restarted processes have judged a candidate.
    pub(super) fn waits(&mut self, is_idle: bool) -> bool {
        let other =
            self.pause.other().map(|other| format!("waiting for `{other}`, which uses the GPU (`optimize.pause`)"));
        let recovers = self.recovers.is_some_and(|until| Instant::now() < until);
        self.started += self.pause.idle_time(recovers || is_idle && other.is_some());
        let waits = other.is_some();
        if let Some(message) = other.filter(|_| is_idle) {
            self.report_message(message);
        }
        waits
    }

    /// Whether the device is left to other programs for a while (`optimize.share`).
    pub(super) fn rests(&self) -> bool {
        let share = self.request.settings.optimize.share;
        share < 1.0 && self.bench.used().as_secs_f64() > share * self.began.elapsed().as_secs_f64()
    }

    /// Notes a correct candidate and its speedup. A candidate with the machine code of another one does not count
    /// as a try in vain, since it says nothing about what is left to find.
    pub(super) fn better(&mut self, speedup: f64, is_twin: bool) {
        let best = self.best.unwrap_or(1.0);
        self.since_improvement =
            if speedup > best * BETTER { 0 } else { self.since_improvement + usize::from(!is_twin) };
        if speedup > best {
            self.best = Some(speedup);
        }
    }

    /// Notes how close the original and a correct candidate are to the least time that the memory's bandwidth
    /// allows.
    pub(super) fn check_time_floor(&mut self, measured: &[Measured]) {
        let Some((before, after)) = floor_share(measured) else { return };
        self.floor_of_original = Some(before);
        let share = before.max(after);
        if share >= AT_FLOOR && !is_stand_in(&self.bench.environment().device) {
            self.at_floor = Some(share.max(self.at_floor.unwrap_or(0.0)));
        }
    }
}

/// Whether a search at this share of the floor ends after this number of candidates and this share of its budget.
fn is_looked_at(floor: f64, candidates: usize, spent: f64) -> bool {
    floor >= AT_ONCE || candidates >= LOOKED_AT || spent > LOOK_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_near_the_floor_is_confirmed_after_a_minimum_effort() {
        assert!(is_looked_at(1.02, 1, 0.0));
        assert!(!is_looked_at(0.96, LOOKED_AT - 1, LOOK_SHARE));
        assert!(is_looked_at(0.96, LOOKED_AT, 0.0) && is_looked_at(0.96, 1, LOOK_SHARE + 0.01));
    }
}
