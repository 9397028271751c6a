//! A choice by size: what is best on some of the calls, and something else that is best on the others.

use transform::Step;
use transform::by_size::{self, Size};
use transform::candidate::{Candidate, Change};

use super::propose::{Proposal, Search};
use super::speedup::SLOWER;
use super::tree::Id;

/// A choice must be this much faster than the best that is slower nowhere: less is within what rough timings of many
/// candidates differ by, and is not worth another version of the code.
const WORTH: f64 = 1.03;
/// Pairs that are nearly as good as the best are, by rough timings: the simplest of them is taken.
const AS_GOOD: f64 = 0.99;
/// So many of the fastest are looked at on each side of a threshold.
const FASTEST: usize = 3;
/// So many pairs are written down at most, to find one that can be.
const WRITTEN: usize = 12;
/// The kind of turn that makes a choice.
pub(super) const CHOICE: &str = "choice by size";

/// How a candidate did on each call that is measured in the search: milliseconds of the original, and how many times as fast it was.
pub(super) type Calls = Vec<(f64, f64)>;

/// Two candidates, one of which is faster on calls up to a size and the other above.
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    small: Id,
    large: Id,
    /// The size, by its place among those that are known.
    size: usize,
    /// The greatest size that counts as small.
    at: i64,
    /// How many times as fast all calls are together.
    speedup: f64,
}

/// All pairs of candidates that are worth it beside these and the choices that there are, the fastest first; of equals those with the size
/// that is known first. `counts` says how often each call was seen, `sizes` what each size is in each call.
fn pairs(candidates: &[(Id, Calls)], choices: &[(Id, Calls)], counts: &[f64], sizes: &[&[i64]]) -> Vec<Pair> {
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

/// What each call counts: how long the original takes for it, as often as it was seen.
fn weights(candidates: &[(Id, Calls)], counts: &[f64]) -> Vec<f64> {
    let mean = |call: usize| {
        let known: Vec<f64> = candidates.iter().map(|(_, calls)| calls[call].0).filter(|time| *time > 0.0).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    };
    counts.iter().enumerate().map(|(call, count)| count * mean(call)).collect()
}

/// The fastest candidates on some calls that are slower on none of them, with their time for all of these.
fn fastest(candidates: &[(Id, Calls)], weights: &[f64], on: &[usize]) -> Vec<(Id, f64)> {
    let fits = candidates.iter().filter(|(_, calls)| on.iter().all(|&call| calls[call].1 >= SLOWER));
    let mut timed: Vec<(Id, f64)> =
        fits.map(|(id, calls)| (*id, on.iter().map(|&call| weights[call] / calls[call].1).sum())).collect();
    timed.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    timed.truncate(FASTEST);
    timed
}

/// All ways to divide calls by a size: the greatest that counts as small, and which calls have one that does.
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

/// A number from `low` on and below `high`: the geometric middle, or the power of two that is nearest to it if there is one.
fn between(low: i64, high: i64) -> i64 {
    let [least, most] = [low, high].map(|size| size.max(1) as f64);
    let off = |bits: u32| (2.0 * f64::from(bits) - least.log2() - most.log2()).abs();
    let powers = (0..62_u32).filter(|bits| (low..high).contains(&(1 << bits)));
    let nearest = powers.min_by(|one, other| off(*one).total_cmp(&off(*other)));
    nearest.map_or_else(|| ((least * most).sqrt() as i64).clamp(low, high - 1), |bits| 1 << bits)
}

impl Search<'_> {
    /// A choice between two candidates that is worth it and was not tried. Asked often: it looks only where something new was measured.
    pub(super) fn choose(&mut self) -> Option<Proposal> {
        let calls = self.field().calls;
        if calls.len() < 2 || self.calls.len() == self.looked_at {
            return None;
        }
        self.looked_at = self.calls.len();
        let first = self.candidate(Self::FIRST);
        let sizes = by_size::sizes(first, self.field().kernels, calls);
        let values: Vec<&[i64]> = sizes.iter().map(|size| size.values.as_slice()).collect();
        let counts: Vec<f64> = calls.iter().map(|call| call.count.max(1) as f64).collect();
        // A choice is what others are held against, and no part of another one.
        let is_choice = |id: Id| self.candidate(id).changes.iter().any(Change::is_choice);
        let measured = self.calls.iter().filter(|(_, of)| of.len() == calls.len());
        let (choices, mut candidates): (Vec<_>, Vec<_>) =
            measured.map(|(id, of)| (*id, of.clone())).partition(|(id, _)| is_choice(*id));
        candidates.insert(0, (Self::FIRST, vec![(0.0, 1.0); calls.len()]));
        let pairs = pairs(&candidates, &choices, &counts, &values);
        let (base, made) = self.written(&pairs, &sizes).filter(|(_, made)| !self.is_tried(made))?;
        Some(self.put((base, Step::Large), base, CHOICE.to_owned(), made))
    }

    /// The first of the pairs that can be written down, with what it is made of; one whose versions differ in numbers alone before
    /// one of two kernels, if it is as good. Where that was tried, those that promise less are not.
    fn written(&self, pairs: &[Pair], sizes: &[Size]) -> Option<(Id, Candidate)> {
        let best = pairs.first()?.speedup;
        let as_good = || pairs.iter().take_while(|pair| pair.speedup >= best * AS_GOOD).take(WRITTEN);
        let simple = as_good().flat_map(|pair| [(pair, Form::Configurations), (pair, Form::Numbers)]);
        let mut ways = simple.chain(pairs.iter().take(WRITTEN).map(|pair| (pair, Form::Versions)));
        ways.find_map(|(pair, form)| self.write(pair, &sizes[pair.size], form))
    }

    fn write(&self, pair: &Pair, size: &Size, form: Form) -> Option<(Id, Candidate)> {
        let [small, large] = [pair.small, pair.large].map(|id| self.candidate(id));
        let (field, first) = (self.field(), self.candidate(Self::FIRST));
        let is_faster = |id: Id, than: Id| self.tree.node(id).speedup() >= self.tree.node(than).speedup();
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

/// How a choice can be written.
#[derive(Clone, Copy)]
enum Form {
    Configurations,
    Numbers,
    Versions,
}

#[cfg(test)]
mod tests;
