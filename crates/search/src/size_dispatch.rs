//! Choices by size: a candidate that runs one version of the code on small calls and another version on large ones.

use transform::StepSize;
use transform::by_size::{self, Size};
use transform::candidate::{Candidate, Change};

use super::call_measurements::CallMeasurements;
use super::propose::{CHOICE, PendingCandidate, SearchState};
use super::speedup::SLOWER;
use super::tree::CandidateId;

/// Factor by which a choice must be faster than the best candidate that is slower on no call. A smaller gain is
/// within the noise of rough timings of many candidates, and is not worth a second version of the code.
const WORTH: f64 = 1.03;
/// Pairs that reach this share of the best pair's rough speedup count as equally good, and the simplest of them is
/// taken.
const AS_GOOD: f64 = 0.99;
/// Number of the fastest candidates that are considered on each side of a threshold.
const FASTEST: usize = 3;
/// Greatest number of pairs for which writing a choice is attempted.
const WRITTEN: usize = 12;
/// Two candidates, one of which is faster on calls up to a threshold of a size and the other above it.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    small: CandidateId,
    large: CandidateId,
    /// The index of the size among the known sizes.
    size: usize,
    /// The threshold: the greatest size that counts as small.
    at: i64,
    /// The speedup over all calls together.
    speedup: f64,
}

/// All pairs that are worth it compared with the candidates and the existing choices, the fastest first; among
/// equals, the one whose size comes first. `counts` holds how often each call was seen, `sizes` the value of each
/// size in each call.
fn pairs(
    candidates: &[(CandidateId, CallMeasurements)],
    choices: &[(CandidateId, CallMeasurements)],
    counts: &[f64],
    sizes: &[&[i64]],
) -> Vec<Pair> {
    let weights = weights(candidates, counts);
    let all: Vec<usize> = (0..counts.len()).collect();
    let known = [candidates, choices].map(|some| fastest(some, &weights, &all));
    let Some(single) = known.iter().flatten().map(|(_, time)| *time).min_by(f64::total_cmp) else { return Vec::new() };
    let mut found = Vec::new();
    for (size, values) in sizes.iter().enumerate() {
        for (at, is_small) in thresholds(values) {
            let (below, above): (Vec<usize>, Vec<usize>) = all.iter().copied().partition(|&call| is_small[call]);
            let (below, above) = (fastest(candidates, &weights, &below), fastest(candidates, &weights, &above));
            for &(small, time_small) in &below {
                for &(large, time_large) in &above {
                    let time = time_small + time_large;
                    if small != large && single >= WORTH * time {
                        let speedup = weights.iter().sum::<f64>() / time;
                        found.push(Pair { small, large, size, at, speedup });
                    }
                }
            }
        }
    }
    found.sort_by(|one, other| other.speedup.total_cmp(&one.speedup));
    found
}

/// The weight of each call: the time of the original, multiplied by how often the call was seen.
fn weights(candidates: &[(CandidateId, CallMeasurements)], counts: &[f64]) -> Vec<f64> {
    let mean = |call: usize| {
        let known: Vec<f64> = candidates.iter().map(|(_, calls)| calls[call].0).filter(|time| *time > 0.0).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    counts.iter().enumerate().map(|(call, count)| count * mean(call)).collect()
}

/// The fastest candidates on the calls `on` that are slower on none of them, with their weighted time for all of
/// these.
fn fastest(candidates: &[(CandidateId, CallMeasurements)], weights: &[f64], on: &[usize]) -> Vec<(CandidateId, f64)> {
    let fits = candidates.iter().filter(|(_, calls)| on.iter().all(|&call| calls[call].1 >= SLOWER));
    let mut timed: Vec<(CandidateId, f64)> =
        fits.map(|(id, calls)| (*id, on.iter().map(|&call| weights[call] / calls[call].1).sum())).collect();
    timed.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    timed.truncate(FASTEST);
    timed
}

/// All ways to divide calls by a size: the threshold, and for each call whether it counts as small.
fn thresholds(values: &[i64]) -> Vec<(i64, Vec<bool>)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let between = sorted.windows(2).map(|pair| {
        let at = between(pair[0], pair[1]);
        (at, values.iter().map(|&value| value <= at).collect())
    });
    between.collect()
}

/// A number from `low` up to but not including `high`: the power of two that is nearest to the geometric mean, or
/// the mean itself if there is no such power.
fn between(low: i64, high: i64) -> i64 {
    let [least, most] = [low, high].map(|size| size.max(1) as f64);
    let off = |bits: u32| (2.0 * f64::from(bits) - least.log2() - most.log2()).abs();
    let powers = (0..62_u32).filter(|bits| (low..high).contains(&(1 << bits)));
    let nearest = powers.min_by(|one, other| off(*one).total_cmp(&off(*other)));
    nearest.map_or_else(|| ((least * most).sqrt() as i64).clamp(low, high - 1), |bits| 1 << bits)
}

impl SearchState<'_> {
    /// A choice between two candidates that is worth it and was not tried. It is cheap to ask often, because it
    /// searches only after new measurements.
    pub(super) fn propose_choice(&mut self) -> Option<PendingCandidate> {
        let calls = self.field().calls;
        if calls.len() < 2 || self.calls.len() == self.looked_at {
            return None;
        }
        self.looked_at = self.calls.len();
        let first = self.candidate(Self::FIRST);
        let sizes = by_size::sizes(first, self.field().kernels, calls);
        let values: Vec<&[i64]> = sizes.iter().map(|size| size.values.as_slice()).collect();
        let counts: Vec<f64> = calls.iter().map(|call| call.count.max(1) as f64).collect();
        // A choice is something that others are compared with, and never part of another choice.
        let is_choice = |id: CandidateId| self.candidate(id).changes.iter().any(Change::is_choice);
        let measured = self.calls.iter().filter(|(_, of)| of.len() == calls.len());
        let (choices, mut candidates): (Vec<_>, Vec<_>) =
            measured.map(|(id, of)| (*id, of.clone())).partition(|(id, _)| is_choice(*id));
        candidates.insert(0, (Self::FIRST, vec![(0.0, 1.0); calls.len()]));
        let pairs = pairs(&candidates, &choices, &counts, &values);
        let (base, made) = self.written(&pairs, &sizes).filter(|(_, made)| !self.is_tried(made))?;
        Some(self.put((base, StepSize::Large), base, CHOICE.to_owned(), made))
    }

    /// The first pair that can be written, with its base. Among pairs that are equally good, one whose versions
    /// differ only in numbers comes before one with two kernels. If it was tried already, pairs that promise less
    /// are not considered.
    fn written(&self, pairs: &[Pair], sizes: &[Size]) -> Option<(CandidateId, Candidate)> {
        let best = pairs.first()?.speedup;
        let as_good = || pairs.iter().take_while(|pair| pair.speedup >= best * AS_GOOD).take(WRITTEN);
        let simple = as_good().flat_map(|pair| [(pair, Form::Configurations), (pair, Form::Numbers)]);
        let mut ways = simple.chain(pairs.iter().take(WRITTEN).map(|pair| (pair, Form::Versions)));
        ways.find_map(|(pair, form)| self.write(pair, &sizes[pair.size], form))
    }

    fn write(&self, pair: &Pair, size: &Size, form: Form) -> Option<(CandidateId, Candidate)> {
        let [small, large] = [pair.small, pair.large].map(|id| self.candidate(id));
        let (field, first) = (self.field(), self.candidate(Self::FIRST));
        let is_faster =
            |id: CandidateId, than: CandidateId| self.tree.node(id).speedup() >= self.tree.node(than).speedup();
        let base = if is_faster(pair.small, pair.large) { pair.small } else { pair.large };
        let two = by_size::Two { small, large, size, at: pair.at, keeps_small: base == pair.small };
        let text = match form {
            Form::Configurations => two.in_configurations(first)?,
            Form::Numbers => two.in_numbers(field.original, field.kernels, &field.calls[0])?,
            Form::Versions => two.in_versions()?,
        };
        let [small, large] = [small, large].map(|one| one.changes.clone());
        let change = match form {
            // The autotuner has a threshold of its own.
            Form::Configurations => Change::Structure(format!("configurations for small and large {}", size.text)),
            _ => Change::Choice { by: size.text.clone(), at: pair.at, small, large },
        };
        Some((base, Candidate::changed(&text, vec![change])))
    }
}

/// The form in which a choice is written: autotuner configurations, numbers, or two versions of the kernel.
#[derive(Clone, Copy)]
enum Form {
    Configurations,
    Numbers,
    Versions,
}

#[cfg(test)]
mod tests;
