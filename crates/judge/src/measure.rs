//! Interleaved timing of candidate and original, with new inputs for each call and comparison of the results.

use std::time::Instant;

use base::clock;
use protocol::is_simulated;
use protocol::runner::{EntryCall, ExportedResults, Inputs, RunnerReply, RunnerRequest, Timing};

use super::baseline::{Baseline, Ready, TrialBaseline};
use super::call_needs::Needs;
use super::case::Case;
use super::child_processes::RunnerProcess;
use super::claim::LEAST_SPEEDUP;
use super::locks::lock;
use super::statistics::{Z_95, Z_999, median, ratio};
use super::stop_reason::{Stop, unexpected_reply};
use super::time_floor;
use super::timed_block::{BLOCK, block};
use super::timing_sanity::possible;
use super::undecided::{Undecided, UndecidedCause};
use super::verdict::{Measured, Reason};

/// The number of pairs after which timing stops for a candidate that cannot become an offer, and for a ratio that is
/// known well enough.
const LOOK: usize = 5 * BLOCK;
/// The width of the 99.9 % interval at which the ratio is known well enough: half of the speedup that an offer must
/// have.
const SHARP: f64 = 1.01;
/// The number of back-to-back calls for the warm figure, and of calls that are each followed by a wait.
const WARM: usize = 20;
const SYNCED: usize = 5;
/// The number of blocks that run before the timed ones. The memory that they take from the driver is reused by the
/// timed blocks; taking it stops the device, for long where other processes start meanwhile.
const GROWING: usize = 5;
/// About the number of blocks whose inputs and results a process holds.
const HELD: usize = 5;
/// The most bytes of device memory that each process waiting to be timed may hold.
const BESIDE_OTHERS: u64 = 4 << 30;
/// How often a block is requested again when the device started before the block was queued.
const AGAIN: usize = 2;
/// How often the host's clock is compared with the device's events before they are reported to disagree.
const LOOKS: usize = 3;
/// The milliseconds, and below the proportion, by which a call may take longer by the clock than by the device's
/// events. A larger difference means work that the events do not cover.
const UNSEEN: f64 = 0.15;
const UNSEEN_SHARE: f64 = 1.3;
/// The factor by which the original's own time may move during a measurement.
const DRIFT: f64 = 1.05;

/// The share of the blocks, besides the first, whose results are compared.
const SHARE_CHECKED: f64 = 0.25;
/// The most bytes of device memory, roughly, that these results take until they are compared.
const CHECKED_BYTES: u64 = 8 << 30;

/// The results of one timed call, for both versions.
struct Checked {
    original: u32,
    candidate: u32,
    results: ExportedResults,
}

/// The reply to one timing request.
struct Timed {
    milliseconds: Vec<f64>,
    walls: Vec<f64>,
    outran: bool,
    results: Vec<ExportedResults>,
}

impl Case<'_> {
    /// Times both versions with exclusive use of the device: against the original's process, or against another process
    /// of the original.
    pub(super) fn time(&mut self, rival: Option<&mut RunnerProcess>) -> Result<Measured, Stop> {
        let TrialBaseline::Ready(level) = self.baseline.known(self.bench, 0)? else {
            return Err(Undecided::original("the original refuses the recorded call").into());
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
                        return Err(Undecided::process("the original's process is gone").into());
                    };
                    let measured = self.measure_steadily(&mut original, (&baseline, &needs), &level, &mut checked)?;
                    *running = Some(original);
                    measured
                }
            };
            if !is_small {
                // Other processes need the memory. A process that cannot release it cannot answer anything else either.
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

    /// Repeats the check of an untimed call after timing. A process that has changed meanwhile may have changed before
    /// it was timed.
    fn afterwards(&mut self, level: &Ready) -> Result<(), Stop> {
        let trial = self.baseline.trials[0].clone();
        let call = EntryCall { watch: true, ..self.baseline.call(trial.inputs.clone(), false) };
        let (ran, slot) = self.run(&call)?;
        self.compare(level, (slot, &ran.results), &trial, "a call after the timed ones")?;
        self.bench.drop_slots(vec![slot])?;
        self.fallback(&level.ran, &ran)
    }

    /// Measures, and measures once more if the original's own time moved.
    fn measure_steadily(
        &mut self,
        original: &mut RunnerProcess,
        known: (&Baseline, &Needs),
        level: &Ready,
        checked: &mut Vec<Checked>,
    ) -> Result<Measured, Stop> {
        let measured = self.measure(original, known, level, checked)?;
        if measured.drift > DRIFT { self.measure(original, known, level, checked) } else { Ok(measured) }
    }

    fn measure(
        &mut self,
        original: &mut RunnerProcess,
        (baseline, needs): (&Baseline, &Needs),
        level: &Ready,
        checked: &mut Vec<Checked>,
    ) -> Result<Measured, Stop> {
        let rate = self.copy_rate(original);
        let clocks = super::devices::clock(&self.bench.uuid);
        let mut pairs = Vec::new();
        self.warm_up(original, level)?;
        self.pairs(original, level, enough(self.effort.first_pairs), &mut pairs, checked)?;
        let mut measured = Measured {
            workload: self.title(),
            count: baseline.original.workload.count,
            environment: self.bench.environment().clone(),
            at: clock::now().as_secs(),
            ..Measured::default()
        };
        let is_near = is_contender(&pairs, self.effort.contender);
        if self.effort.full > 0 && is_near {
            let mut left = enough(self.effort.full);
            while left > 0 && !is_hopeless(&pairs) && !is_sharp(&pairs) {
                self.pairs(original, level, left.min(LOOK), &mut pairs, checked)?;
                left = left.saturating_sub(LOOK);
            }
            self.warm(original, &mut measured)?;
        }
        if is_near || !self.effort.is_brief() {
            self.by_the_clock(original, &mut measured)?;
        }
        measured.drift = drift(&pairs);
        measured.floor = time_floor::floor(needs, &level.ran.results, rate);
        measured.clocks = clocks.zip(super::devices::clock(&self.bench.uuid));
        measured.pairs = pairs;
        self.within_the_possible(&mut measured)?;
        Ok(measured)
    }

    fn inputs(&self, at: u64) -> Inputs {
        let seed = self.bench.seed.wrapping_mul(0x2545_f491).wrapping_add(at.wrapping_mul(0x9e37)) & 0x7fff_ffff;
        self.baseline.inputs(Inputs { seed, varied: true, ..Inputs::default() })
    }

    fn ask(&mut self, runner: Option<&mut RunnerProcess>, timing: &Timing) -> Result<Timed, Stop> {
        let limit = self.limit();
        let is_original = runner.is_some();
        let since = Instant::now();
        let reply = runner.unwrap_or(&mut self.place.runner).ask(&RunnerRequest::Measure(timing.clone()), limit);
        let passed = if is_simulated() { f64::INFINITY } else { since.elapsed().as_secs_f64() * 1000.0 };
        match reply {
            Ok(RunnerReply::Measured { milliseconds, walls, outran, results, tampered }) => {
                if let Err(what) = possible(timing, &milliseconds, &walls, passed) {
                    return Err(match is_original {
                        true => Undecided::original(format!("the original's times cannot be: {what}")).into(),
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
                let cause = UndecidedCause::of_original(raised.cause);
                Err(Undecided::new(cause, format!("the original fails when timed: {}", raised.text)).into())
            }
            Ok(other) => Err(unexpected_reply(other)),
            Err(gone) if is_original => {
                let how = super::child_processes::how(&gone);
                Err(Undecided::original(format!("the original fails when timed: {how}")).into())
            }
            Err(gone) => Err(gone.into()),
        }
    }

    /// The device's copy rate in bytes per second, measured once.
    fn copy_rate(&self, original: &mut RunnerProcess) -> Option<f64> {
        let mut known = lock(&self.bench.rate);
        *known.get_or_insert_with(|| match original.ask(&RunnerRequest::Copy, self.bench.limits.call) {
            Ok(RunnerReply::Copied(rate)) => rate,
            _ => None,
        })
    }

    /// Makes a process allocate the memory that it needs for the coming blocks.
    fn grow(&mut self, mut runner: Option<&mut RunnerProcess>, level: &Ready) -> Result<(), Stop> {
        let size = block(&level.ran.results);
        for _ in 0..if is_simulated() { 0 } else { GROWING } {
            let timing = self.block(size);
            self.ask(runner.as_deref_mut(), &timing)?;
        }
        Ok(())
    }

    fn warm_up(&mut self, original: &mut RunnerProcess, level: &Ready) -> Result<(), Stop> {
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

    /// A block of calls with a cold cache, on inputs that no call has used.
    fn block(&mut self, size: usize) -> Timing {
        self.timed += size as u64;
        let inputs = (0..size as u64).map(|at| self.inputs(1000 + self.timed - at)).collect();
        Timing { inputs, calls: size, cold: true, ..self.timing() }
    }

    fn timing(&self) -> Timing {
        Timing { gradients: self.baseline.original.workload.gradients, ..Timing::default() }
    }

    /// Adds about this many pairs; each version runs first in half of the blocks. The results of some blocks are kept.
    fn pairs(
        &mut self,
        original: &mut RunnerProcess,
        level: &Ready,
        count: usize,
        pairs: &mut Vec<(f64, f64)>,
        checked: &mut Vec<Checked>,
    ) -> Result<(), Stop> {
        let size = block(&level.ran.results).min(count.max(1));
        let each = 2 * level.ran.results.rough_bytes() * (self.effort.first_pairs + self.effort.full) as u64;
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

    /// Runs one block of each version on the same inputs.
    fn block_of_both(
        &mut self,
        original: &mut RunnerProcess,
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

    /// A random number between 0 and 1 that no candidate can predict.
    pub(super) fn chance(&mut self) -> f64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn warm(&mut self, original: &mut RunnerProcess, measured: &mut Measured) -> Result<(), Stop> {
        let timing = Timing { inputs: vec![self.inputs(2)], calls: alike(WARM), ..self.timing() };
        let one = median(self.ask(Some(original), &timing)?.milliseconds);
        let other = median(self.ask(None, &timing)?.milliseconds);
        measured.warm = Some((one, other));
        Ok(())
    }

    /// Compares the host's clock with the device's events, which do not cover work on another stream or in another
    /// thread.
    fn by_the_clock(&mut self, original: &mut RunnerProcess, measured: &mut Measured) -> Result<(), Stop> {
        let timing = Timing { inputs: vec![self.inputs(3)], calls: alike(SYNCED), synced: true, ..self.timing() };
        // Other programs use the processor now and then, so the smallest difference counts, that is, what every call
        // shows.
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
        // A bound that the original breaks is wrong.
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

/// Whether the ratio may be above `least`, by a certain bound: disturbances in the first pairs are no reason to give up
/// a candidate.
pub(super) fn is_contender(pairs: &[(f64, f64)], least: f64) -> bool {
    let median = || median(pairs.iter().map(|(one, other)| one / other));
    ratio(pairs, Z_95).map_or_else(median, |ratio| ratio.high) > least
}

/// Whether further pairs would not make the candidate an offer, since it is certainly less fast than an offer must be.
/// Stopping early for a win would produce more false wins than the interval states; stopping here never produces a win.
fn is_hopeless(pairs: &[(f64, f64)]) -> bool {
    ratio(pairs, Z_999).is_some_and(|ratio| ratio.high < LEAST_SPEEDUP)
}

/// The factor, at least 1, by which the original's time has changed from the first third of the pairs to the last.
fn drift(pairs: &[(f64, f64)]) -> f64 {
    let third = pairs.len() / 3;
    let of = |part: &[(f64, f64)]| median(part.iter().map(|pair| pair.0));
    let (first, last) = (of(&pairs[..third]), of(&pairs[pairs.len() - third..]));
    if third > 0 && first > 0.0 { (last / first).max(first / last) } else { 1.0 }
}

/// Whether further pairs would add little information. The width of the interval ends the timing, never the ratio, so
/// this favours no candidate.
fn is_sharp(pairs: &[(f64, f64)]) -> bool {
    ratio(pairs, Z_999).is_some_and(|ratio| ratio.high <= SHARP * ratio.low)
}

/// How many of these calls to make on equal inputs. On a simulated device all of them take equally long.
fn alike(calls: usize) -> usize {
    if is_simulated() { calls.min(2) } else { calls }
}

/// How many of these pairs are measured. A simulated device runs kernels in an interpreter, thousands of times slower, and
/// no offer is made from its times.
fn enough(pairs: usize) -> usize {
    if is_simulated() { pairs.min(LOOK) } else { pairs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    #[test]
    fn drift_is_detected_in_both_directions() {
        let pairs = |times: [f64; 6]| times.map(|time| (time, 1.0));
        assert_eq!(drift(&pairs([1.0, 1.0, 7.0, 9.0, 2.0, 2.0])), 2.0);
        assert_eq!(drift(&pairs([2.0, 2.0, 7.0, 9.0, 1.0, 1.0])), 2.0);
        assert_eq!(drift(&[]), 1.0);
    }

    #[test]
    fn a_few_disturbed_pairs_do_not_discard_a_candidate() {
        let pairs = |disturbed: usize, of: usize| -> Vec<(f64, f64)> {
            (0..of).map(|at| (1.0, if at < disturbed { 300.0 } else { 1.0 })).collect()
        };
        assert!(is_contender(&pairs(0, 12), 0.9) && is_contender(&pairs(8, 12), 0.9));
        assert!(!is_contender(&pairs(12, 12), 0.9) && !is_contender(&[(0.8, 1.0); 12], 0.9));
        // Too few for an interval.
        assert!(is_contender(&pairs(1, 4), 0.9) && !is_contender(&pairs(3, 4), 0.9));
    }

    #[test]
    fn stopping_at_a_sharp_ratio_causes_no_additional_false_wins() {
        let (mut chance, mut wins, mut pairs_taken) = (Rng::new(3), 0, 0);
        for run in 0..2000 {
            // Skewed noise of some percent, from very quiet to very loud.
            let loud = 0.005 * f64::from(run % 20);
            let mut time = || 1.0 + loud * chance.uniform().powi(4);
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
    fn timing_stops_early_only_for_hopeless_candidates() {
        let pairs = |count: usize, speedup: f64| -> Vec<(f64, f64)> {
            // Skewed noise of up to 2 %, as clock variations cause it.
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
