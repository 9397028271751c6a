//! Contents of tensors, generated on the host: `contents.py` and `inputs.py` without torch.

use base::rng::Rng;
use protocol::sizes::StorageLayout;

use super::distribution::{QUANTILES, Spread};
use super::{ElementType, MOST_THREADS};

/// The number of elements that are filled together.
const BLOCK: usize = 1 << 18;

/// A tensor in the bytes of its storage. Elements that share memory are contained once.
#[derive(Debug)]
pub struct Area<'a> {
    bytes: &'a mut [u8],
    /// The type of the elements.
    pub element: ElementType,
    shape: Vec<usize>,
    stride: Vec<usize>,
    offset: usize,
}

impl<'a> Area<'a> {
    /// The elements with this placement in the bytes.
    pub fn new(bytes: &'a mut [u8], element: ElementType, placed: &StorageLayout) -> Self {
        let whole = |numbers: &[i64]| numbers.iter().map(|&it| usize::try_from(it).unwrap_or(0)).collect::<Vec<_>>();
        let (mut shape, stride) = (whole(&placed.shape), whole(&placed.stride));
        shape.iter_mut().zip(&stride).filter(|(_, stride)| **stride == 0).for_each(|(size, _)| *size = (*size).min(1));
        Self { bytes, element, shape, stride, offset: usize::try_from(placed.offset).unwrap_or(0) }
    }

    /// The number of elements.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The byte offset of an element, by its row-major index.
    fn at(&self, mut number: usize) -> usize {
        let mut at = self.offset;
        for (size, stride) in self.shape.iter().zip(&self.stride).rev() {
            at += number % size * stride;
            number /= size;
        }
        at * self.element.size
    }

    /// The rows in order: the byte offset of each, and the distance between its elements in bytes.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let width = self.width().max(1);
        let step = self.stride.last().copied().unwrap_or(1) * self.element.size;
        let starts: Vec<usize> = (0..self.count() / width).map(|row| self.at(row * width)).collect();
        starts.into_iter().map(move |start| (start, step))
    }

    fn set(&mut self, number: usize, value: f64) {
        let at = self.at(number);
        self.element.write(self.bytes, at, self.element.encode(value));
    }

    /// Replaces the bits of each element by `bits(old)`, in order.
    fn in_order(&mut self, mut bits: impl FnMut(u64) -> u64) {
        let width = self.width();
        for (start, step) in self.rows() {
            for at in (0..width).map(|column| start + column * step) {
                let old = self.element.read(self.bytes, at);
                self.element.write(self.bytes, at, bits(old));
            }
        }
    }

    /// Replaces the bits of each element by `bits(chance, row, old)`, in several threads where there are many elements.
    /// Each block has a random number generator of its own, so the result does not depend on the threads.
    fn each(&mut self, chance: &mut Rng, bits: impl Fn(&mut Rng, usize, u64) -> u64 + Sync) {
        let (element, width, seed) = (self.element, self.width(), chance.bits());
        let size = element.size;
        if !self.is_dense() || self.count() == 0 {
            let mut at = 0;
            let mut chance = Rng::new(seed);
            self.in_order(|old| {
                at += 1;
                bits(&mut chance, (at - 1) / width, old)
            });
            return;
        }
        let first = self.offset * size;
        let count = self.count();
        let mut blocks: Vec<_> = self.bytes[first..first + count * size].chunks_mut(BLOCK * size).enumerate().collect();
        let fill = |blocks: &mut [(usize, &mut [u8])]| {
            for (number, block) in blocks {
                let mut chance = Rng::new(seed ^ (*number as u64).wrapping_mul(0xd134_2543_de82_ef95));
                for (at, part) in block.chunks_exact_mut(size).enumerate() {
                    let old = element.read(part, 0);
                    element.write(part, 0, bits(&mut chance, (*number * BLOCK + at) / width, old));
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let share = blocks.len().div_ceil(threads).max(1);
        if blocks.len() == 1 {
            return fill(&mut blocks);
        }
        std::thread::scope(|scope| {
            for part in blocks.chunks_mut(share) {
                scope.spawn(|| fill(part));
            }
        });
    }

    /// Whether the elements are contiguous.
    fn is_dense(&self) -> bool {
        let mut usual = 1;
        self.shape.iter().zip(&self.stride).rev().all(|(&size, &stride)| {
            let fits = size <= 1 || stride == usual;
            usual *= size.max(1);
            fits
        })
    }

    fn change(&mut self, chance: &mut Rng, value: impl Fn(&mut Rng, usize, f64) -> f64 + Sync) {
        let element = self.element;
        self.each(chance, |chance, row, old| element.encode(value(chance, row, element.decode(old))));
    }

    /// Writes these values, in the order of the elements.
    pub fn values(&mut self, mut values: impl Iterator<Item = f64>) {
        let element = self.element;
        self.in_order(|_| element.encode(values.next().unwrap_or(0.0)));
    }

    /// As [`Self::values`], for integers that a float may not represent.
    pub fn integers(&mut self, mut next: impl FnMut() -> i64) {
        let element = self.element;
        self.in_order(|_| element.of_integer(next()));
    }

    /// Writes these bits, in the order of the elements.
    pub fn bits(&mut self, mut next: impl FnMut() -> u64) {
        self.in_order(|_| next());
    }

    /// Fills with floats of a distribution.
    pub fn normal(&mut self, spread: &Spread, chance: &mut Rng) {
        let element = self.element;
        let spread = spread.in_type(element);
        if element.size <= 2 && self.count() > QUANTILES {
            // In types with few bits there are no values between two quantiles.
            let table: Vec<u64> = (0..QUANTILES).map(|at| element.encode(spread.quantile(at))).collect();
            return self.each(chance, |chance, _, _| table[(chance.bits() & 0xffff) as usize]);
        }
        self.change(chance, |chance, _, _| {
            let bits = chance.bits();
            let at = (bits & 0xffff) as usize;
            let (one, next) = (spread.quantile(at), spread.quantile((at + 1).min(QUANTILES - 1)));
            let part = (bits >> 16) as f64 * 2.0_f64.powi(-48);
            // At the edges of zeros and infinities there is nothing to interpolate.
            if one == 0.0 || next == 0.0 || !one.is_finite() { one } else { one + (next - one) * part }
        });
    }

    /// Fills with integers between two bounds, of which at least this share is zero.
    pub fn range(&mut self, low: i64, high: i64, zeros: f64, chance: &mut Rng) {
        let span = high.wrapping_sub(low).cast_unsigned().saturating_add(1);
        let usual = if low <= 0 && high >= 0 { 1.0 / span as f64 } else { 0.0 };
        let is_flag = (low, high) == (0, 1) && zeros > 0.0;
        let is_sparse = is_flag || zeros > 2.0 * usual;
        let element = self.element;
        self.each(chance, |chance, _, _| {
            element.of_integer(match is_sparse && chance.uniform() < zeros {
                true => 0,
                false if is_flag => 1,
                false => low.wrapping_add(chance.below(span).cast_signed()),
            })
        });
    }

    /// Fills with other contents than the recorded ones, which lie between `low` and `high`, on the same side of zero.
    ///
    /// # Errors
    /// Returns an error when no contents have the name `values`.
    pub fn apply(&mut self, values: &str, (low, high): (f64, f64), chance: &mut Rng) -> Result<(), String> {
        if self.count() == 0 {
            return Ok(());
        }
        let element = self.element;
        let (greatest, tiny) = (element.greatest(), element.tiny());
        let amplitude = low.abs().max(high.abs());
        let one = chance.below(self.count() as u64) as usize;
        match values {
            "recorded" => {}
            "large" => {
                let target = (100.0 * amplitude.max(1.0)).min(greatest / 8.0);
                let factor = if amplitude > 0.0 { target / amplitude } else { 1.0 };
                self.change(chance, |_, _, old| (old * factor).clamp(-target, target));
            }
            "below" | "negative" if low >= 0.0 => {}
            "far" | "below" => {
                let top = greatest / 8.0;
                let is_up = values == "far" && high > 0.0;
                let shift = (30.0 * amplitude).min(top) * if is_up { 1.0 } else { -1.0 };
                self.change(chance, |_, _, old| (old + shift).clamp(-top, top));
            }
            "negative" => self.change(chance, |_, _, old| -old.abs()),
            "subnormal" => {
                let recorded = amplitude.max(tiny);
                let least = if low > 0.0 { element.decode(1) } else { f64::NEG_INFINITY };
                self.change(chance, |_, _, old| (old / recorded * tiny).max(least));
            }
            "tiny" => {
                let recorded = amplitude.max(tiny);
                let factor = 1e-4_f64.max(16.0 * tiny).min(0.1);
                let least = if low > 0.0 { element.decode(1) } else { f64::NEG_INFINITY };
                self.change(chance, |chance, _, old| {
                    let small = if chance.uniform() < 0.125 { old / recorded * tiny } else { old * factor };
                    small.max(least)
                });
            }
            "constant" => {
                let value = 0.75 * high + 0.25 * low;
                let value = if value != 0.0 || low >= 0.0 { value } else { high };
                self.change(chance, |_, _, _| value);
            }
            "constant-rows" if self.shape.len() > 1 => self.each_row(|row| {
                let first = row.first().copied().unwrap_or_default();
                row.fill(first);
            }),
            "constant-rows" => return self.apply("constant", (low, high), chance),
            "sorted" => self.each_row(|row| row.sort_by(f64::total_cmp)),
            "outlier" if self.shape.is_empty() => {}
            "outlier" => {
                let top = (greatest / 8.0).max(amplitude);
                let width = self.width() as u64;
                self.each_row(|row| {
                    let at = chance.below(width) as usize;
                    row[at] = (row[at] * 1000.0).clamp(-top, top);
                });
            }
            "skewed" => {
                let top = (greatest / 8.0).max(amplitude);
                let pulled = |old: f64| (old * 1000.0).clamp(-top, top);
                self.change(chance, |chance, _, old| if chance.uniform() < 1.0 / 64.0 { pulled(old) } else { old });
                let at = self.at(one);
                let old = element.decode(element.read(self.bytes, at));
                self.set(one, pulled(old));
            }
            "infinite" if low >= 0.0 => {}
            "infinite" => {
                let rows = (self.count() / self.width()) as u64;
                let row = if self.shape.len() < 2 { None } else { Some(chance.below(rows) as usize) };
                let is_whole = |at: usize| row.is_some_and(|row| at == row || at == 0);
                let least = element.least();
                self.change(
                    chance,
                    |chance, at, old| if is_whole(at) || chance.uniform() < 1.0 / 64.0 { least } else { old },
                );
                self.set(one, least);
            }
            "nan" => {
                let few = if self.shape.is_empty() { 1.0 } else { 2.0 / self.width().max(16) as f64 };
                let chosen = if self.shape.len() > 1 { 0.125 } else { 1.0 };
                let rows = chance.bits();
                self.change(chance, |chance, row, old| {
                    let is_spoilt = Rng::new(rows ^ row as u64).uniform() < chosen;
                    if chance.uniform() < few && is_spoilt { f64::NAN } else { old }
                });
                self.set(one, f64::NAN);
            }
            "integers" => {
                let lowest = if low < 0.0 { -4 } else { i64::from(low > 0.0) };
                self.change(chance, |chance, _, _| {
                    (lowest + chance.below((5 - lowest).cast_unsigned()).cast_signed()) as f64
                });
            }
            "zeros" => self.change(chance, |_, _, _| low.max(0.0)),
            other => return Err(format!("no contents are called {other}")),
        }
        Ok(())
    }

    /// Moves each float by one unit in the last place up, down, or not at all. Zeros, the least number and non-finite
    /// values stay.
    pub fn jitter(&mut self, seed: u64) {
        let (mask, last) = (self.element.sign_bit() - 1, self.element.first_infinite() - 1);
        self.each(&mut Rng::new(seed ^ 0x6a69_7474_6572), |chance, _, bits| {
            let step = chance.below(3).wrapping_sub(1);
            if (2..last).contains(&(bits & mask)) { bits.wrapping_add(step) } else { bits }
        });
    }

    /// Reduces each 32-bit float to 10 bits of mantissa: to the nearest such number, or towards zero.
    pub fn coarsen(&mut self, rounds: bool) {
        const CUT: u64 = 13;
        let element = self.element;
        if element.name != "float32" {
            return;
        }
        let half = if rounds { 1 << (CUT - 1) } else { 0 };
        self.each(&mut Rng::new(0), |_, _, bits| {
            let made = (bits + half) >> CUT << CUT;
            if element.decode(bits).is_finite() && element.decode(made).is_finite() { made } else { bits }
        });
    }

    /// Replaces the contents of each row by what `change` makes of them.
    fn each_row(&mut self, mut change: impl FnMut(&mut [f64])) {
        let (element, width) = (self.element, self.width());
        for (start, step) in self.rows() {
            let bytes = (0..width).map(|column| start + column * step);
            let mut row: Vec<f64> = bytes.clone().map(|at| element.decode(element.read(self.bytes, at))).collect();
            change(&mut row);
            bytes.zip(row).for_each(|(at, value)| element.write(self.bytes, at, element.encode(value)));
        }
    }
}

#[cfg(test)]
mod tests;
