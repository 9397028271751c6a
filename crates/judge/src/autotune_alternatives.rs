//! Timing against the original with other configurations of its own autotuners. Where several configurations are about
//! equally fast, the tuner's choice among them is chance, and a candidate that only beats an unlucky choice is not
//! faster than the original.

use protocol::runner::{EntryCall, RunnerReply, RunnerRequest, Tuned};

use super::case::Case;
use super::child_processes::{RunnerProcess, how};
use super::claim::{Claim, LEAST_SPEEDUP};
use super::locks::lock;
use super::stop_reason::Stop;
use super::undecided::Undecided;
use super::verdict::Measured;

/// The most other configurations that are timed.
const MOST: usize = 3;

impl Case<'_> {
    /// Times a candidate that looks faster by `measured` against the original with the configurations that its
    /// autotuners nearly chose, and with those of the candidate. The lowest claim counts; a candidate that was no offer
    /// does not become one.
    pub(super) fn rivals(&mut self, mut measured: Measured) -> Result<Measured, Stop> {
        let baseline = self.baseline.clone();
        let chosen = lock(&baseline.original.chosen).clone();
        let mut timed = 0;
        for rival in &rivals(&chosen, &self.chosen) {
            let Some(mut runner) = self.settled(rival)? else { continue };
            // Checks that were made before are not reported again.
            let told = self.checks.len();
            let other = self.time(Some(&mut runner))?;
            self.checks.truncate(told);
            timed += 1;
            if claims_less(&other, &measured) {
                let what = format!(
                    "timed against the original with {}, a faster configuration that the original's own autotuner may choose",
                    names(rival)
                );
                self.notes.push(what);
                measured = other;
            }
            if !self.has_rivals(&measured) {
                break;
            }
        }
        if timed > 0 {
            let what = format!("timed against {timed} other choices that the original's autotuners may make, too");
            self.passed("other choices", what);
        }
        Ok(measured)
    }

    /// Whether `measured` is to be compared with other configurations: it could be offered, or a thorough judgement
    /// would report it as faster.
    pub(super) fn has_rivals(&self, measured: &Measured) -> bool {
        is_offer(measured) || self.effort.thorough && looks_faster(measured)
    }

    /// A process of the original with these configurations; `None` if it does not accept them.
    fn settled(&mut self, rival: &[Tuned]) -> Result<Option<RunnerProcess>, Stop> {
        let baseline = self.baseline.clone();
        let mut runner = baseline.original.start(self.bench)?;
        let call = baseline.call(baseline.trials[0].inputs.clone(), false);
        let call = EntryCall { chosen: rival.to_vec(), forced: true, settled: true, export: false, ..call };
        let _shared = self.shared();
        match runner.ask(&RunnerRequest::Run(call), self.bench.limits.call) {
            Ok(RunnerReply::Ran(_)) => Ok(Some(runner)),
            Ok(RunnerReply::Raised(raised)) => {
                tracing::debug!(why = raised.text, "the original does not accept a configuration");
                Ok(None)
            }
            Ok(_) => Err(Undecided::process("the original's process answers another question").into()),
            Err(gone) => {
                Err(Undecided::original(format!("the original fails with {}: {}", names(rival), how(&gone))).into())
            }
        }
    }
}

/// Whether the timing allows an offer, if need be after a second judgement.
pub(super) fn is_offer(measured: &Measured) -> bool {
    let repeated = Measured { is_repeated: true, ..measured.clone() };
    Claim::of(&repeated).is_some_and(|claim| claim.objection.is_none())
}

fn looks_faster(measured: &Measured) -> bool {
    Claim::of(measured).is_some_and(|claim| claim.ratio.median >= LEAST_SPEEDUP)
}

fn claims_less(other: &Measured, measured: &Measured) -> bool {
    let of =
        |measured: &Measured| Claim::of(measured).map_or((0.0, 0.0), |claim| (claim.ratio.low, claim.ratio.median));
    let (other_low, other_median) = of(other);
    let (low, median) = of(measured);
    if is_offer(measured) { other_low < low } else { !is_offer(other) && other_median < median }
}

fn names(rival: &[Tuned]) -> String {
    let names: Vec<String> = rival.iter().map(|one| format!("{} with {}", one.kernel, one.config)).collect();
    names.join("; ")
}

/// Other configurations for the original: the candidate's, where they are possible for the original, then those that
/// its tuner nearly chose.
fn rivals(own: &[Tuned], candidates: &[Tuned]) -> Vec<Vec<Tuned>> {
    let with = |config: &dyn Fn(&Tuned) -> Option<String>| -> Vec<Tuned> {
        let chosen = own.iter().map(|one| Tuned { config: config(one).unwrap_or(one.config.clone()), ..one.clone() });
        chosen.collect()
    };
    let theirs = |one: &Tuned| {
        let mut same =
            candidates.iter().filter(|other| other.kernel == one.kernel && one.others.contains(&other.config));
        same.next().map(|other| other.config.clone())
    };
    let mut all = vec![with(&theirs)];
    all.extend((0..MOST).map(|at| with(&|one: &Tuned| one.near.get(at).cloned())));
    let mut found: Vec<Vec<Tuned>> = Vec::new();
    for rival in all {
        if rival != own && !found.contains(&rival) {
            found.push(rival);
        }
    }
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned(kernel: &str, config: &str, others: &[&str], near: &[&str]) -> Tuned {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        Tuned { kernel: kernel.to_owned(), config: config.to_owned(), others: owned(others), near: owned(near) }
    }

    #[test]
    fn rivals_are_the_candidates_choice_and_near_choices_of_the_original() {
        let own = [tuned("k", "8", &["4", "16", "2"], &["4"]), tuned("m", "1", &["2"], &[])];
        let of =
            |candidates: &[Tuned]| -> Vec<String> { rivals(&own, candidates).iter().map(|one| names(one)).collect() };
        assert_eq!(of(&[tuned("k", "16", &[], &[])]), ["k with 16; m with 1", "k with 4; m with 1"]);
        assert_eq!(of(&[tuned("k", "4", &[], &[])]), ["k with 4; m with 1"], "once");
        // The original's own choice, one that it does not have, and another kernel.
        assert_eq!(
            of(&[tuned("k", "8", &[], &[]), tuned("m", "64", &[], &[]), tuned("n", "2", &[], &[])]),
            ["k with 4; m with 1"]
        );
        assert!(rivals(&[], &[tuned("k", "8", &[], &[])]).is_empty());
        assert!(rivals(&own[1..], &[]).is_empty());
    }
}
