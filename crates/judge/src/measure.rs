//! Timing a candidate against the original: in turn, on new inputs each time, with every result compared.

use std::time::Instant;

use base::clock;
use protocol::is_simulated;
use protocol::runner::{Call, Exported, Inputs, RunnerReply, RunnerRequest, Timing};

use super::baseline::{Baseline, Known, Ready};
use super::bench::lock;
use super::claim::LEAST_SPEEDUP;
use super::floor::{self, Needs};
use super::judge::Case;
use super::possible::possible;
use super::process::Runner;
use super::statistics::{Z_95, Z_999, median, ratio};
use super::stop::{Stop, strange};
use super::verdict::{Measured, Reason};

/// So many calls of each version come one after the other, each on inputs of its own, before it is the other's turn.
const BLOCK: usize = 4;
/// A block's inputs and results take at most so many bytes of the device.
const BLOCK_BYTES: u64 = 8 << 30;
/// After so many pairs what cannot become an offer is left, and what is known well enough.
const LOOK: usize = 5 * BLOCK;
/// The ratio is known well enough when an interval of 99.9 % is this narrow: half of what an offer must be faster by.
const SHARP: f64 = 1.01;
/// Back-to-back calls for the warm figure, and calls with a wait after each.
const WARM: usize = 20;
const SYNCED: usize = 5;
/// So many blocks before the timed ones: the memory that is taken from the driver for the first ones is used again by the
/// others. Taking it stops the device, for long where others start beside.
const GROWING: usize = 5;
/// A process holds the inputs and results of about so many blocks.
const HELD: usize = 5;
/// Processes that wait to be timed may each hold so many bytes of the device.
const BESIDE_OTHERS: u64 = 4 << 30;
/// A block for which the device did not wait until it was queued is asked for again so many times.
const AGAIN: usize = 2;
/// Clock and events are held against each other so many times before they are said to disagree.
const LOOKS: usize = 3;
/// A call by the clock may take so many milliseconds longer than by the device's events, and this much in proportion:
/// more means work that the events do not see.
const UNSEEN: f64 = 0.15;
const UNSEEN_SHARE: f64 = 1.3;
/// The original's own time may move by this factor while it is measured.
const DRIFT: f64 = 1.05;

/// Of so many blocks, besides the first, the results are compared.
const SHARE_CHECKED: f64 = 0.25;
/// Until then they take about so many bytes of the device at most.
const CHECKED_BYTES: u64 = 8 << 30;

/// Results of a timed call of both versions.
struct Checked {
    original: u32,
    candidate: u32,
    results: Exported,
}

/// What one timed request gave.
struct Timed {
    milliseconds: Vec<f64>,
    walls: Vec<f64>,
    outran: bool,
    results: Vec<Exported>,
}

impl Case<'_> {
    /// Times both versions, with the device to themselves: against the original's process, or another one of it.
    pub(super) fn time(&mut self, rival: Option<&mut Runner>) -> Result<Measured, Stop> {
        let Known::Ready(level) = self.baseline.known(self.bench, 0)? else {
            return Err(Stop::Undecided("the original refuses the recorded call".to_owned()));
        };
        let baseline = self.baseline.clone();
        let needs = baseline.needs(self.bench)?;
        let mut checked = Vec::new();
        let is_small = level.ran.results.rough_bytes() * (BLOCK * HELD) as u64 <= BESIDE_OTHERS;
        if is_small {
            let _shared = self.shared();
            self.grow(None, &level)?;
        }
        let measured = {
            let _exclusive = self.bench.exclusive()?;
            if !is_small {
                self.grow(None, &level)?;
            }
            let measured = match rival {
                Some(rival) => self.measure_steadily(rival, (&baseline, &needs), &level, &mut checked)?,
                None => {
                    let mut running = baseline.original.process(self.bench)?;
                    let Some(mut original) = running.take() else {
                        return Err(Stop::Undecided("the original's process is gone".to_owned()));
                    };
                    let measured = self.measure_steadily(&mut original, (&baseline, &needs), &level, &mut checked)?;
                    *running = Some(original);
                    measured
                }
            };
            if !is_small {
                // Others need the memory. Who cannot give it back cannot be asked for anything else either.
                let _ = self.place.runner.ask(&RunnerRequest::Release, self.bench.limits.call);
            }
            measured
        };
        let _shared = self.shared();
        for Checked { original, candidate, results } in &checked {
            self.compare_by_level((*original, *candidate), results, &level, (Reason::Output, "a timed call"))?;
            self.bench.drop_slots(vec![*original, *candidate])?;
        }
        self.afterwards(&level)?;
        let what = format!("the results of {} timed calls, chosen at random, agree with the original's", checked.len());
        self.passed("timed calls", what);
        Ok(measured)
    }

    /// Once more as before it was timed: what it has become meanwhile, it may have been when it was timed.
    fn afterwards(&mut self, level: &Ready) -> Result<(), Stop> {
        let trial = self.baseline.trials[0].clone();
        let call = Call { watch: true, ..self.baseline.call(trial.inputs.clone(), false) };
        let (ran, slot) = self.run(&call)?;
        self.compare(level, (slot, &ran.results), &trial, "a call after the timed ones")?;
        self.bench.drop_slots(vec![slot])?;
        self.fallback(&level.ran, &ran)
    }

    /// Once more where the clock moved.
    fn measure_steadily(
        &mut self,
        original: &mut Runner,
        known: (&Baseline, &Needs),
        level: &Ready,
        checked: &mut Vec<Checked>,
    ) -> Result<Measured, Stop> {
        let measured = self.measure(original, known, level, checked)?;
        if measured.drift > DRIFT { self.measure(original, known, level, checked) } else { Ok(measured) }
    }

    fn measure(
        &mut self,
        original: &mut Runner,
        (baseline, needs): (&Baseline, &Needs),
        level: &Ready,
        checked: &mut Vec<Checked>,
    ) -> Result<Measured, Stop> {
        let rate = self.copy_rate(original);
        let clocks = super::devices::clock(&self.bench.uuid);
        let mut pairs = Vec::new();
        self.warm_up(original, level)?;
        self.pairs(original, level, self.effort.rough, &mut pairs, checked)?;
        let mut measured = Measured {
            workload: self.title(),
            count: baseline.original.workload.count,
            environment: self.bench.environment().clone(),
            at: clock::now().as_secs(),
            ..Measured::default()
        };
        let is_near = is_contender(&pairs, self.effort.contender);
        if self.effort.full > 0 && is_near {
            let mut left = self.effort.full;
            while left > 0 && !is_hopeless(&pairs) && !is_sharp(&pairs) {
                self.pairs(original, level, left.min(LOOK), &mut pairs, checked)?;
                left = left.saturating_sub(LOOK);
            }
            self.warm(original, &mut measured)?;
        }
        if is_near || !self.effort.is_brief() {
            self.by_the_clock(original, &mut measured)?;
        }
        let third = pairs.len() / 3;
        let of = |part: &[(f64, f64)]| median(part.iter().map(|pair| pair.0));
        let (first, last) = (of(&pairs[..third]), of(&pairs[pairs.len() - third..]));
        measured.drift = if third > 0 && first > 0.0 { (last / first).max(first / last) } else { 1.0 };
        measured.floor = floor::floor(needs, &level.ran.results, rate);
        measured.clocks = clocks.zip(super::devices::clock(&self.bench.uuid));
        measured.pairs = pairs;
        self.within_the_possible(&mut measured)?;
        Ok(measured)
    }

    fn inputs(&self, at: u64) -> Inputs {
        let seed = self.bench.seed.wrapping_mul(0x2545_f491).wrapping_add(at.wrapping_mul(0x9e37)) & 0x7fff_ffff;
        self.baseline.inputs(Inputs { seed, varied: true, ..Inputs::default() })
    }

    fn ask(&mut self, runner: Option<&mut Runner>, timing: &Timing) -> Result<Timed, Stop> {
        let limit = self.limit();
        let is_original = runner.is_some();
        let since = Instant::now();
        let reply = runner.unwrap_or(&mut self.place.runner).ask(&RunnerRequest::Measure(timing.clone()), limit);
        let passed = if is_simulated() { f64::INFINITY } else { since.elapsed().as_secs_f64() * 1000.0 };
        match reply {
            Ok(RunnerReply::Measured { milliseconds, walls, outran, results, tampered }) => {
                if let Err(what) = possible(timing, &milliseconds, &walls, passed) {
                    return Err(match is_original {
                        true => Stop::Undecided(format!("the original's times cannot be: {what}")),
                        false => Stop::Refused(Reason::Pipe, what, None),
                    });
                }
                if is_original {
                    self.usual.extend(tampered);
                } else {
                    self.tampering(&tampered, &self.usual)?;
                }
                Ok(Timed { milliseconds, walls, outran, results })
            }
            Ok(RunnerReply::Raised(raised)) if is_original => {
                Err(Stop::Undecided(format!("the original fails when timed: {}", raised.text)))
            }
            Ok(other) => Err(strange(other)),
            Err(gone) if is_original => {
                Err(Stop::Undecided(format!("the original fails when timed: {}", super::original::how(&gone))))
            }
            Err(gone) => Err(gone.into()),
        }
    }

    /// Bytes a second at which the device copies its memory, measured once.
    fn copy_rate(&self, original: &mut Runner) -> Option<f64> {
        let mut known = lock(&self.bench.rate);
        *known.get_or_insert_with(|| match original.ask(&RunnerRequest::Copy, self.bench.limits.call) {
            Ok(RunnerReply::Copied(rate)) => rate,
            _ => None,
        })
    }

    /// Has a process take the memory that it needs for the blocks to come.
    fn grow(&mut self, mut runner: Option<&mut Runner>, level: &Ready) -> Result<(), Stop> {
        let size = block(&level.ran.results);
        for _ in 0..if is_simulated() { 0 } else { GROWING } {
            let timing = self.block(size);
            self.ask(runner.as_deref_mut(), &timing)?;
        }
        Ok(())
    }

    fn warm_up(&mut self, original: &mut Runner, level: &Ready) -> Result<(), Stop> {
        let baseline = self.baseline.clone();
        let mut grown = lock(&baseline.original.grown);
        if *grown != Some(original.number) {
            self.grow(Some(original), level)?;
            *grown = Some(original.number);
        }
        let timing = Timing { inputs: vec![self.inputs(1)], calls: 3, ..self.timing() };
        self.ask(Some(original), &timing)?;
        self.ask(None, &timing)?;
        Ok(())
    }

    /// A block of calls with a cold cache, on inputs that no call has had.
    fn block(&mut self, size: usize) -> Timing {
        self.timed += size as u64;
        let inputs = (0..size as u64).map(|at| self.inputs(1000 + self.timed - at)).collect();
        Timing { inputs, calls: size, cold: true, ..self.timing() }
    }

    fn timing(&self) -> Timing {
        Timing { gradients: self.baseline.original.workload.gradients, ..Timing::default() }
    }

    /// Adds about so many pairs, each version first in half of the blocks. Of some blocks the results are kept.
    fn pairs(
        &mut self,
        original: &mut Runner,
        level: &Ready,
        count: usize,
        pairs: &mut Vec<(f64, f64)>,
        checked: &mut Vec<Checked>,
    ) -> Result<(), Stop> {
        let size = block(&level.ran.results).min(count.max(1));
        let each = 2 * level.ran.results.rough_bytes() * (self.effort.rough + self.effort.full) as u64;
        let share = SHARE_CHECKED.min(CHECKED_BYTES as f64 / each.max(1) as f64);
        for at in 0..count.div_ceil(size) {
            let is_original_first = (pairs.len() / size).is_multiple_of(2);
            let mut again = if self.is_host_bound { 0 } else { AGAIN };
            let (one, other) = loop {
                let export = at == 0 || self.chance() < share;
                let (one, other) = self.block_of_both(original, size, (export, is_original_first), checked)?;
                if !(one.outran || other.outran) || again == 0 {
                    break (one, other);
                }
                again -= 1;
            };
            if (one.outran || other.outran) && !self.is_host_bound {
                self.is_host_bound = true;
                let what = "the device waits for the host between launches: the times hold what launching takes";
                self.notes.push(what.to_owned());
            }
            pairs.extend(one.milliseconds.into_iter().zip(other.milliseconds));
        }
        Ok(())
    }

    /// One block of each version, on the same inputs.
    fn block_of_both(
        &mut self,
        original: &mut Runner,
        size: usize,
        (export, is_original_first): (bool, bool),
        checked: &mut Vec<Checked>,
    ) -> Result<(Timed, Timed), Stop> {
        let timing = Timing { export, ..self.block(size) };
        let mut asked = |case: &mut Self, is_original: bool| -> Result<_, Stop> {
            let timed = case.ask(is_original.then_some(&mut *original), &timing)?;
            let owner = if is_original { original.number } else { case.place.runner.number };
            let slots = case.keep_all(owner, &timed.results)?;
            Ok((timed, slots))
        };
        let first = asked(self, is_original_first)?;
        let second = asked(self, !is_original_first)?;
        let ((one, mine), (mut other, theirs)) = if is_original_first { (first, second) } else { (second, first) };
        if export && other.results.len() != size {
            return Err(Stop::Refused(Reason::Pipe, "it answers for fewer calls than were asked".to_owned(), None));
        }
        for ((original, candidate), results) in mine.into_iter().zip(theirs).zip(std::mem::take(&mut other.results)) {
            checked.push(Checked { original, candidate, results });
        }
        Ok((one, other))
    }

    /// A number between 0 and 1 that no candidate can foresee.
    pub(super) fn chance(&mut self) -> f64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn warm(&mut self, original: &mut Runner, measured: &mut Measured) -> Result<(), Stop> {
        let timing = Timing { inputs: vec![self.inputs(2)], calls: alike(WARM), ..self.timing() };
        let one = median(self.ask(Some(original), &timing)?.milliseconds);
        let other = median(self.ask(None, &timing)?.milliseconds);
        measured.warm = Some((one, other));
        Ok(())
    }

    /// The clock must see what the events see: work on another stream, or left to a thread, is not in the events.
    fn by_the_clock(&mut self, original: &mut Runner, measured: &mut Measured) -> Result<(), Stop> {
        let timing = Timing { inputs: vec![self.inputs(3)], calls: alike(SYNCED), synced: true, ..self.timing() };
        // Others take the processor now and then: the least counts, and what is seen each time.
        let unseen = |timed: &Timed| {
            let calls = timed.walls.iter().zip(&timed.milliseconds);
            calls.map(|(wall, event)| wall - UNSEEN_SHARE * event).fold(f64::INFINITY, f64::min)
        };
        let mut what = String::new();
        for _ in 0..LOOKS {
            let one = self.ask(Some(original), &timing)?;
            let other = self.ask(None, &timing)?;
            let (mine, theirs) = (unseen(&other), unseen(&one));
            if mine <= theirs.max(0.0) + UNSEEN {
                measured.wall = Some((median(one.walls), median(other.walls)));
                self.passed("clock and events agree", "no work happens outside the measured stream");
                return Ok(());
            }
            what = format!(
                "by the clock a call takes {:.3} ms, by the device's events on its stream {:.3} ms",
                median(other.walls),
                median(other.milliseconds)
            );
        }
        Err(Stop::Refused(Reason::SideStream, what, None))
    }

    fn within_the_possible(&mut self, measured: &mut Measured) -> Result<(), Stop> {
        let (original, time) = measured.times();
        // A bound that the original breaks is none.
        measured.floor.hard = measured.floor.hard.filter(|&floor| floor <= original);
        let Some(floor) = measured.floor.hard else { return Ok(()) };
        if time < floor {
            let what = format!(
                "{time:.4} ms a call by the events on its stream; what it must read and write takes the device {floor:.4} ms, so \
                 that is done on another stream, outside of the call, or not at all"
            );
            return Err(Stop::Refused(Reason::TooFast, what, None));
        }
        self.passed("not faster than the device", format!("{time:.4} ms; the least possible is {floor:.4} ms"));
        Ok(())
    }
}

/// Whether the ratio may be above `least`, by what is certain of it: what disturbs some of the first pairs is no reason to leave a
/// candidate.
pub(super) fn is_contender(pairs: &[(f64, f64)], least: f64) -> bool {
    let median = || median(pairs.iter().map(|(one, other)| one / other));
    ratio(pairs, Z_95).map_or_else(median, |ratio| ratio.high) > least
}

/// Whether further pairs would not make it an offer: it is certainly less faster than that takes. To stop for a win instead would
/// win by chance more often than is said; to stop here never wins.
fn is_hopeless(pairs: &[(f64, f64)]) -> bool {
    ratio(pairs, Z_999).is_some_and(|ratio| ratio.high < LEAST_SPEEDUP)
}

/// Whether further pairs would tell little more. It is the spread that ends the timing, never the ratio: nothing wins by it.
fn is_sharp(pairs: &[(f64, f64)]) -> bool {
    ratio(pairs, Z_999).is_some_and(|ratio| ratio.high <= SHARP * ratio.low)
}

/// How many calls of so many to make on equal inputs: they take equally long on a simulated device.
fn alike(calls: usize) -> usize {
    if is_simulated() { calls.min(2) } else { calls }
}

/// How many calls a block has.
fn block(results: &Exported) -> usize {
    // Inputs are kept for a few requests, and results are copied twice.
    let each = results.rough_bytes() * 6;
    usize::try_from(BLOCK_BYTES / each.max(1)).unwrap_or(BLOCK).clamp(1, BLOCK)
}

/// Bytes that the results of a block take.
pub(super) fn block_bytes(results: &Exported) -> u64 {
    results.rough_bytes() * block(results) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Chance;

    #[test]
    fn a_candidate_is_not_left_for_some_disturbed_pairs() {
        let pairs = |disturbed: usize, of: usize| -> Vec<(f64, f64)> {
            (0..of).map(|at| (1.0, if at < disturbed { 300.0 } else { 1.0 })).collect()
        };
        assert!(is_contender(&pairs(0, 12), 0.9) && is_contender(&pairs(8, 12), 0.9));
        assert!(!is_contender(&pairs(12, 12), 0.9) && !is_contender(&[(0.8, 1.0); 12], 0.9));
        // Too few for an interval.
        assert!(is_contender(&pairs(1, 4), 0.9) && !is_contender(&pairs(3, 4), 0.9));
    }

    #[test]
    fn what_is_known_well_enough_is_not_timed_on_and_wins_no_oftener() {
        let (mut chance, mut wins, mut pairs_taken) = (Chance::new(3), 0, 0);
        for run in 0..2000 {
            // Skewed noise of some percent, from very quiet to very loud.
            let loud = 0.005 * f64::from(run % 20);
            let mut time = || 1.0 + loud * chance.share().powi(4);
            let mut pairs: Vec<(f64, f64)> = (0..12).map(|_| (time(), time())).collect();
            while pairs.len() < 80 && !is_sharp(&pairs) {
                pairs.extend((0..LOOK).map(|_| (time(), time())).collect::<Vec<_>>());
            }
            pairs_taken += pairs.len();
            wins += i32::from(ratio(&pairs, Z_999).is_some_and(|ratio| ratio.low > 1.0));
        }
        assert!(wins < 4, "{wins} of 2000");
        assert!(pairs_taken < 2000 * 80 && pairs_taken > 2000 * 32, "{pairs_taken}");
    }

    #[test]
    fn only_what_cannot_be_an_offer_is_left_early() {
        let pairs = |count: usize, speedup: f64| -> Vec<(f64, f64)> {
            // Skewed noise of up to 2 %, as clocks have it.
            let noise = |at: usize| 1.0 + 0.02 * (at as f64 * 0.618_034).fract().powi(4);
            (0..count).map(|at| (speedup * noise(at), noise(2 * at + 1))).collect()
        };
        assert!(is_hopeless(&pairs(29, 1.0)) && is_hopeless(&pairs(29, 0.9)));
        assert!(!is_hopeless(&pairs(12, 1.0)), "too few to say so");
        for at in 0..=50 {
            assert!(!is_hopeless(&pairs(29 + at, LEAST_SPEEDUP)) && !is_hopeless(&pairs(29 + at, 1.5)));
        }
    }
}
