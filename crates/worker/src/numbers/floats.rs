//! The comparison of float results up to the original's rounding error: the rule of `floats.py`, with the same
//! constants. `tests/worker/test_torch_free.py` compares the two.

use std::ops::Range;
use std::panic::resume_unwind;

use super::{ElementBytes, MOST_THREADS};

/// The factor by which a candidate's error may exceed the original's. `floats.py` explains this and the following
/// constants.
pub const FACTOR: f64 = 8.0;
const FEW: f64 = 4.0;
const FALLBACK: f64 = 4.0;
const NOISE: f64 = 4.0;
const FLOOR: f64 = 512.0;
const BLIND_FLOOR: f64 = 1024.0;
const LOWEST_ROW: f64 = 1e-3;
const CREDIBLE: f64 = 1.0 / 32.0;
const CREDIBLE_NOISE: f64 = 100.0;
/// The rounding error of the arithmetic.
pub const ARITHMETIC: f64 = 1.0 / (1 << 23) as f64;
const CHUNK: usize = 1 << 21;
const SAMPLE: usize = 1 << 16;
/// The number of elements that are processed together, in whole rows.
const PART: usize = 1 << 14;

/// The arithmetic of a kernel on given arguments.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic {
    /// Its rounding error, relative to a result.
    pub rounding: f64,
    /// The share of the movement of results under moved inputs that this error would cause.
    pub share: f64,
    /// The most terms that a sum may have. Devices may flush each one that is no normal number to zero.
    pub terms: f64,
}

/// A float result in all runs.
#[derive(Debug)]
pub struct Floats<'a> {
    original: ElementBytes<'a>,
    reference: Option<ElementBytes<'a>>,
    jittered: Vec<ElementBytes<'a>>,
    arithmetic: f64,
    share: f64,
    holds_nan: bool,
    eps: f64,
    quantum: f64,
    ulps: f64,
    last_rounding: f64,
    /// Elements per row; `None` where there are no rows.
    width: Option<usize>,
    scales: Scales,
}

/// Properties of a whole result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scales {
    floor: f64,
    usual: Option<f64>,
    believed: bool,
    row_floor: f64,
    allowed: f64,
}

/// Some whole rows of all runs except the candidate's.
struct Part {
    start: usize,
    o: Vec<f64>,
    r: Option<Vec<f64>>,
    noise: Option<Vec<f64>>,
    unstable: Vec<bool>,
    row: Vec<f64>,
}

/// The wrong elements of a candidate.
#[derive(Clone, Copy, Debug)]
pub struct FloatMismatch {
    /// The number of wrong elements.
    pub count: usize,
    /// The number of elements that are finite on one side only.
    pub strange: usize,
    /// The index of the worst element.
    pub at: usize,
    /// Its value.
    pub got: f64,
    /// Its expected value.
    pub expected: f64,
    /// Its error.
    pub error: f64,
    /// The error that is allowed.
    pub bound: f64,
}

fn size_of(value: f64) -> f64 {
    if value.is_finite() { value.abs() } else { 0.0 }
}

impl FloatMismatch {
    /// The error relative to the allowed error.
    #[must_use]
    pub fn excess(&self) -> f64 {
        let excess = self.error / self.bound;
        if excess.is_nan() { f64::INFINITY } else { excess }
    }
}

impl<'a> Floats<'a> {
    /// The error model of a result, with the runs that show the original's error.
    pub fn new(
        original: ElementBytes<'a>,
        shape: &[i64],
        reference: Option<ElementBytes<'a>>,
        jittered: Vec<ElementBytes<'a>>,
        Arithmetic { rounding: arithmetic, share, terms }: Arithmetic,
        (holds_nan, level): (bool, Option<f64>),
        known: Option<Scales>,
    ) -> Self {
        let element = original.element;
        let is_wide = element.size >= 4 || element.name == "bfloat16";
        let is_finer = reference.is_none_or(|run| run.element.size > element.size);
        let width = shape.last().map_or(1, |&last| usize::try_from(last).unwrap_or(1));
        let by_row = shape.len() > 1 && width > 1 && width <= CHUNK;
        let mut this = Self {
            original,
            reference,
            jittered,
            arithmetic,
            share,
            holds_nan,
            eps: element.eps(),
            quantum: if is_wide { element.tiny() * terms } else { element.tiny() * element.eps() },
            ulps: [1.0, 2.0, 4.0, 4.0][element.size.ilog2() as usize],
            last_rounding: if is_finer { 0.5 } else { 1.0 },
            width: by_row.then_some(width),
            scales: Scales::default(),
        };
        match known {
            Some(known) => this.scales = known,
            None => this.measure(level),
        }
        this
    }

    /// The scales, which are kept for the next candidate.
    pub fn scales(&self) -> Scales {
        self.scales
    }

    /// Whether the original agrees with its run at a higher precision.
    pub fn is_believed(&self) -> bool {
        self.scales.believed
    }

    fn place(&self, size: f64) -> f64 {
        size * self.eps + self.quantum
    }

    fn part(&self, start: usize, count: usize) -> Part {
        let o = self.original.values(start, count);
        let r = self.reference.map(|run| run.values(start, count));
        let mut unstable = vec![false; count];
        let mut noise = (!self.jittered.is_empty()).then(|| vec![0.0_f64; count]);
        for run in &self.jittered {
            let noise = noise.get_or_insert_default();
            for at in 0..count {
                let moved = run.value(start + at);
                unstable[at] |= moved.is_finite() != o[at].is_finite();
                let apart = (moved - o[at]).abs();
                noise[at] = noise[at].max(if apart.is_finite() { apart } else { 0.0 });
            }
        }
        if let Some(noise) = &mut noise {
            // The last rounding is no evidence about the error before it.
            noise.iter_mut().zip(&o).for_each(|(noise, &o)| *noise = (*noise - self.place(size_of(o))).max(0.0));
        }
        let row = self.row_scales(&o);
        Part { start, o, r, noise, unstable, row }
    }

    /// The scale of each row, or of the whole result where there are no rows.
    fn row_scales(&self, o: &[f64]) -> Vec<f64> {
        let Some(width) = self.width else { return vec![self.scales.floor] };
        let scale = |row: &[f64]| {
            let count = row.iter().filter(|value| value.is_finite()).count().max(1);
            let squares: f64 = row.iter().map(|&value| size_of(value).powi(2)).sum();
            (squares / count as f64).sqrt().max(self.scales.floor)
        };
        o.chunks(width).map(scale).collect()
    }

    fn row_scale(&self, part: &Part, at: usize) -> f64 {
        self.width.map_or(self.scales.floor, |width| part.row[at / width])
    }

    fn element_scale(&self, part: &Part, at: usize) -> f64 {
        let row = self.row_scale(part, at);
        match (&part.noise, self.scales.usual) {
            (Some(noise), Some(usual)) => (noise[at] * (self.share / usual)).max(row),
            _ => row,
        }
    }

    /// The results of `work` for each range, in order, computed in several threads where there are many elements.
    fn over<T: Send>(&self, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let ranges: Vec<Range<usize>> = self.ranges().collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let share = ranges.len().div_ceil(threads).max(1);
        let run = |part: &[Range<usize>]| part.iter().cloned().map(&work).collect::<Vec<T>>();
        if ranges.len() <= share {
            return run(&ranges);
        }
        std::thread::scope(|scope| {
            let all: Vec<_> = ranges.chunks(share).map(|part| scope.spawn(|| run(part))).collect();
            all.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.width.unwrap_or(1);
        let step = (PART / rows).max(1) * rows;
        let count = self.original.count();
        (0..count).step_by(step).map(move |start| start..count.min(start + step))
    }

    fn measure(&mut self, level: Option<f64>) {
        let sums = self.over(|range| {
            let part = self.part(range.start, range.len());
            let squares: f64 = part.o.iter().map(|&o| size_of(o).powi(2)).sum();
            let count = part.o.iter().filter(|o| o.is_finite()).count();
            [squares, count as f64, part.noise.iter().flatten().map(|noise| noise.powi(2)).sum()]
        });
        let sum = |which: usize| sums.iter().map(|sums| sums[which]).sum::<f64>();
        let (squares, counts, noises) = (sum(0), sum(1).max(1.0), sum(2));
        let lowest = if self.width.is_some() { LOWEST_ROW } else { 1.0 };
        let noise = (noises / counts).sqrt() * self.share;
        self.scales.floor = ((squares / counts).sqrt() * lowest).max(1e-300).max(noise);
        self.scales.usual = self.usual_noise();
        let greatest = self.over(|range| self.greatest(&self.part(range.start, range.len())));
        let (mut worst, mut moved, mut believed, mut is_finer) = (0.0_f64, 0.0_f64, self.reference.is_some(), false);
        for part in greatest {
            (worst, moved) = (worst.max(part.0), moved.max(part.1));
            (believed, is_finer) = (believed && part.2, is_finer || part.3);
        }
        believed &= worst <= (moved * self.share * CREDIBLE_NOISE).max(CREDIBLE);
        self.scales.believed = believed;
        self.scales.row_floor = if believed && is_finer { FLOOR } else { BLIND_FLOOR } * self.arithmetic;
        let likely = worst.max(moved * self.share) * FACTOR;
        let few = 1.0 + FEW / self.original.count() as f64;
        self.scales.allowed = if believed { likely } else { moved * FALLBACK } * few;
        if let (Some(level), None, true) = (level, &self.reference, self.jittered.is_empty()) {
            self.scales.allowed = self.scales.allowed.max(level);
        }
    }

    /// The original's greatest error and the greatest movement of its elements, relative to their scales; whether the
    /// run at a higher precision is credible; and whether that run has numbers that the type lacks.
    fn greatest(&self, part: &Part) -> (f64, f64, bool, bool) {
        let element = self.original.element;
        let (mut worst, mut moved, mut believed, mut is_finer) = (0.0_f64, 0.0_f64, true, false);
        for (at, &o) in part.o.iter().enumerate() {
            let scale = self.element_scale(part, at);
            if let Some(noise) = &part.noise {
                moved = moved.max(noise[at] / scale);
            }
            if let Some(r) = &part.r {
                let error = ((o - r[at]).abs() - self.place(size_of(o)) * self.last_rounding).max(0.0);
                worst = worst.max(if o.is_finite() { error } else { 0.0 } / scale);
                believed &= !o.is_finite() || r[at].is_finite();
                is_finer |= r[at] != element.decode(element.encode(r[at]));
            }
        }
        (worst, moved, believed, is_finer)
    }

    /// By how much of its row's scale an element of usual conditioning moves.
    fn usual_noise(&self) -> Option<f64> {
        if self.jittered.is_empty() {
            return None;
        }
        let step = self.original.count().div_ceil(SAMPLE);
        let width = self.width.unwrap_or(1);
        let mut sample: Vec<f64> = Vec::new();
        for row in (0..self.original.count() / width).step_by(step.max(1)) {
            let part = self.part(row * width, width);
            let noise = part.noise.iter().flatten().enumerate();
            sample.extend(noise.map(|(at, noise)| noise * self.share / self.row_scale(&part, at)));
        }
        let middle = sample.len().saturating_sub(1) / 2;
        let (_, median, _) = sample.select_nth_unstable_by(middle, f64::total_cmp);
        Some(median.max(self.arithmetic))
    }

    /// The expected value of an element, and the error that it may have.
    fn bounded(&self, part: &Part, at: usize) -> (f64, f64) {
        let expected = match &part.r {
            Some(r) if self.scales.believed && r[at].is_finite() => r[at],
            _ => part.o[at],
        };
        let mut bound = self.place(expected.abs()) * self.ulps
            + self.element_scale(part, at) * self.scales.allowed
            + self.row_scale(part, at) * self.scales.row_floor;
        if let Some(noise) = &part.noise {
            bound += noise[at] * (NOISE * self.share);
        }
        (expected, bound)
    }

    fn is_fine(&self, part: &Part, at: usize, got: f64, (expected, bound): (f64, f64)) -> bool {
        let o = part.o[at];
        let greatest = self.original.element.greatest();
        let same_side = got == f64::INFINITY && expected > 0.0 || got == f64::NEG_INFINITY && expected < 0.0;
        ((got - expected).abs() <= bound && expected.is_finite())
            // The greatest numbers of the type may be rounded to infinity.
            || (same_side && expected.abs() + bound >= greatest)
            || got == o
            || (o.is_nan() && (got.is_nan() || !self.holds_nan))
            || part.unstable[at]
    }

    /// The candidate's elements that differ by more than rounding.
    pub fn wrong(&self, candidate: ElementBytes<'_>) -> Option<FloatMismatch> {
        let parts = self.over(|range| {
            // Bitwise equal elements are right.
            let is_same = self.original.part(range.clone()) == candidate.part(range.clone());
            if is_same { None } else { self.wrong_in(&self.part(range.start, range.len()), candidate) }
        });
        parts.into_iter().flatten().reduce(|one, other| {
            let worse = if other.excess() > one.excess() { other } else { one };
            FloatMismatch { count: one.count + other.count, strange: one.strange + other.strange, ..worse }
        })
    }

    fn wrong_in(&self, part: &Part, candidate: ElementBytes<'_>) -> Option<FloatMismatch> {
        let mut found: Option<FloatMismatch> = None;
        for (at, o) in part.o.iter().enumerate() {
            let got = candidate.value(part.start + at);
            let (expected, bound) = self.bounded(part, at);
            if self.is_fine(part, at, got, (expected, bound)) {
                continue;
            }
            let strange = usize::from(!(got.is_finite() && o.is_finite()));
            let error = (got - expected).abs();
            let one = FloatMismatch { count: 1, strange, at: part.start + at, got, expected, error, bound };
            found = Some(match found {
                None => one,
                Some(worst) => {
                    let worse = if one.excess() > worst.excess() { one } else { worst };
                    FloatMismatch { count: worst.count + 1, strange: worst.strange + strange, ..worse }
                }
            });
        }
        found
    }

    /// The greatest error that an element may have, relative to its row, for results on other inputs.
    pub fn level(&self) -> f64 {
        let greatest = self.over(|range| {
            let part = self.part(range.start, range.len());
            let of = |at: usize| {
                let (_, bound) = self.bounded(&part, at);
                (bound - self.place(size_of(part.o[at])) * self.ulps) / self.row_scale(&part, at)
            };
            (0..part.o.len()).filter(|&at| part.o[at].is_finite()).map(of).fold(0.0, f64::max)
        });
        greatest.into_iter().fold(0.0, f64::max)
    }
}
