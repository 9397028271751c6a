//! What tensors hold, made on the host: `contents.py` and `inputs.py` without torch.

use super::element::Element;
use crate::protocol::sizes::Placed;

/// Numbers that look like chance; equal seeds give equal ones.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below 1.
    fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// Of whole numbers below `count`.
    fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }
}

/// A tensor in the bytes of its storage; elements that several places share are there once.
pub(super) struct Area<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) element: Element,
    shape: Vec<usize>,
    stride: Vec<usize>,
    offset: usize,
}

impl<'a> Area<'a> {
    pub(super) fn new(bytes: &'a mut [u8], element: Element, placed: &Placed) -> Self {
        let whole = |numbers: &[i64]| numbers.iter().map(|&it| usize::try_from(it).unwrap_or(0)).collect::<Vec<_>>();
        let (mut shape, stride) = (whole(&placed.shape), whole(&placed.stride));
        shape.iter_mut().zip(&stride).filter(|(_, stride)| **stride == 0).for_each(|(size, _)| *size = (*size).min(1));
        Self { bytes, element, shape, stride, offset: usize::try_from(placed.offset).unwrap_or(0) }
    }

    pub(super) fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The byte of an element, by its number in the order of the shape.
    fn at(&self, mut number: usize) -> usize {
        let mut at = self.offset;
        for (size, stride) in self.shape.iter().zip(&self.stride).rev() {
            at += number % size * stride;
            number /= size;
        }
        at * self.element.size
    }

    /// The bytes of all elements in order, a row at a time: where it begins, and how far one is from the next.
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

    /// Puts `bits(row, old)` in place of the bits of each element.
    fn each(&mut self, mut bits: impl FnMut(usize, u64) -> u64) {
        let width = self.width();
        for (row, (start, step)) in self.rows().enumerate() {
            for at in (0..width).map(|column| start + column * step) {
                let old = self.element.read(self.bytes, at);
                self.element.write(self.bytes, at, bits(row, old));
            }
        }
    }

    fn change(&mut self, mut value: impl FnMut(usize, f64) -> f64) {
        let element = self.element;
        self.each(|row, old| element.encode(value(row, element.decode(old))));
    }

    /// These, in the order of the elements.
    pub(super) fn values(&mut self, values: impl Iterator<Item = f64>) {
        let mut values = values;
        self.change(|_, _| values.next().unwrap_or(0.0));
    }

    /// As [`Self::values`], of integers that a float may not hold.
    pub(super) fn integers(&mut self, mut next: impl FnMut() -> i64) {
        let element = self.element;
        let mask = u64::MAX >> (64 - 8 * element.size as u32);
        self.each(
            |_, _| if element.is_float() { element.encode(next() as f64) } else { next().cast_unsigned() & mask },
        );
    }

    /// These bits, in the order of the elements.
    pub(super) fn bits(&mut self, mut next: impl FnMut() -> u64) {
        self.each(|_, _| next());
    }

    /// Floats of a distribution.
    pub(super) fn normal(&mut self, spread: &Spread, chance: &mut Chance) {
        let element = self.element;
        let quantiles = spread.quantiles(element);
        if element.size <= 2 {
            // Of so few bits nothing lies between two quantiles.
            let table: Vec<u64> = quantiles.iter().map(|&value| element.encode(value)).collect();
            let (mut bits, mut left) = (0, 0);
            self.each(|_, _| {
                if left == 0 {
                    (bits, left) = (chance.bits(), 4);
                }
                (bits, left) = (bits.rotate_right(16), left - 1);
                table[(bits & 0xffff) as usize]
            });
            return;
        }
        self.change(|_, _| {
            let bits = chance.bits();
            let at = (bits & 0xffff) as usize;
            let (one, next) = (quantiles[at], quantiles[(at + 1).min(0xffff)]);
            let part = (bits >> 16) as f64 * 2.0_f64.powi(-48);
            // At the edges of zeros and infinities there is nothing between.
            if one == 0.0 || next == 0.0 || !one.is_finite() { one } else { one + (next - one) * part }
        });
    }

    /// Integers between two bounds, of which this share is zero at least.
    pub(super) fn range(&mut self, low: i64, high: i64, zeros: f64, chance: &mut Chance) {
        let span = high.wrapping_sub(low).cast_unsigned().saturating_add(1);
        let usual = if low <= 0 && high >= 0 { 1.0 / span as f64 } else { 0.0 };
        let is_flag = (low, high) == (0, 1) && zeros > 0.0;
        let is_sparse = is_flag || zeros > 2.0 * usual;
        self.integers(|| match is_sparse && chance.share() < zeros {
            true => 0,
            false if is_flag => 1,
            false => low.wrapping_add(chance.below(span).cast_signed()),
        });
    }

    /// Other contents than the recorded ones, which lie between `low` and `high`; on their side of zero.
    pub(super) fn apply(&mut self, values: &str, (low, high): (f64, f64), chance: &mut Chance) -> Result<(), String> {
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
                self.change(|_, old| (old * factor).clamp(-target, target));
            }
            "tiny" => {
                let recorded = amplitude.max(tiny);
                let factor = 1e-4_f64.max(16.0 * tiny).min(0.1);
                let least = if low > 0.0 { element.decode(1) } else { f64::NEG_INFINITY };
                self.change(|_, old| {
                    let small = if chance.share() < 0.125 { old / recorded * tiny } else { old * factor };
                    small.max(least)
                });
            }
            "constant" => {
                let value = 0.75 * high + 0.25 * low;
                let value = if value != 0.0 || low >= 0.0 { value } else { high };
                self.change(|_, _| value);
            }
            "sorted" => self.sort(),
            "skewed" => {
                let top = (greatest / 8.0).max(amplitude);
                let pulled = |old: f64| (old * 1000.0).clamp(-top, top);
                self.change(|_, old| if chance.share() < 1.0 / 64.0 { pulled(old) } else { old });
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
                self.change(|at, old| if is_whole(at) || chance.share() < 1.0 / 64.0 { least } else { old });
                self.set(one, least);
            }
            "nan" => {
                let few = if self.shape.is_empty() { 1.0 } else { 2.0 / self.width().max(16) as f64 };
                let chosen = if self.shape.len() > 1 { 0.125 } else { 1.0 };
                let (mut last, mut is_spoilt) = (None, false);
                self.change(|row, old| {
                    if last != Some(row) {
                        (last, is_spoilt) = (Some(row), chance.share() < chosen);
                    }
                    if is_spoilt && chance.share() < few { f64::NAN } else { old }
                });
                self.set(one, f64::NAN);
            }
            "integers" => {
                let lowest = if low < 0.0 { -4 } else { i64::from(low > 0.0) };
                self.change(|_, _| (lowest + chance.below((5 - lowest).cast_unsigned()).cast_signed()) as f64);
            }
            "zeros" => self.change(|_, _| low.max(0.0)),
            other => return Err(format!("no contents are called {other}")),
        }
        Ok(())
    }

    fn sort(&mut self) {
        let (element, width) = (self.element, self.width());
        for (start, step) in self.rows() {
            let bytes = (0..width).map(|column| start + column * step);
            let mut row: Vec<f64> = bytes.clone().map(|at| element.decode(element.read(self.bytes, at))).collect();
            row.sort_by(f64::total_cmp);
            bytes.zip(row).for_each(|(at, value)| element.write(self.bytes, at, element.encode(value)));
        }
    }
}

/// How floats are spread.
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) std: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) zeros: f64,
    pub(super) infinite: f64,
    pub(super) is_uniform: bool,
}

impl Spread {
    /// What is at each of 2¹⁶ equal shares.
    fn quantiles(&self, element: Element) -> Vec<f64> {
        const COUNT: usize = 1 << 16;
        let limit = if element.size == 8 { f64::MAX } else { f64::from(f32::MAX) };
        let (low, high) = (self.low.max(-limit), self.high.min(limit));
        let of = |share: f64| (share.clamp(0.0, 1.0) * COUNT as f64).round() as usize;
        let (infinite, zeros) = (of(self.infinite), of(self.zeros));
        let rest = COUNT.saturating_sub(infinite + zeros).max(1);
        let usual = |at: usize| {
            let share = (at as f64 + 0.5) / rest as f64;
            let value = if self.is_uniform { low + share * (high - low) } else { self.mean + self.std * probit(share) };
            value.max(low).min(high)
        };
        let mut all = vec![f64::NEG_INFINITY; infinite.min(COUNT)];
        all.resize((infinite + zeros).min(COUNT), 0.0);
        (0..COUNT - all.len()).for_each(|at| all.push(usual(at)));
        all
    }
}

/// The quantile of the normal distribution, with the rational approximation by Acklam (relative error below 1.2e-9).
fn probit(share: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    let polynomial = |parts: &[f64], x: f64| parts.iter().fold(0.0, |sum, part| sum * x + part);
    let tail = |share: f64| {
        let x = (-2.0 * share.ln()).sqrt();
        polynomial(&C, x) / polynomial(&D, x)
    };
    if share < 0.02425 {
        return tail(share);
    }
    if share > 1.0 - 0.02425 {
        return -tail(1.0 - share);
    }
    let x = share - 0.5;
    polynomial(&A, x * x) * x / polynomial(&B, x * x)
}

/// Moves each float a unit in the last place up or down, or not. Zeros, the least number and what is not finite stay.
pub(super) fn jitter(bytes: &mut [u8], element: Element, seed: u64) {
    let mut chance = Chance::new(seed ^ 0x6a69_7474_6572);
    let (mask, last) = (element.sign_bit() - 1, element.first_infinite() - 1);
    for at in (0..bytes.len() / element.size).map(|at| at * element.size) {
        let bits = element.read(bytes, at);
        let step = chance.below(3).wrapping_sub(1);
        if (2..last).contains(&(bits & mask)) {
            element.write(bytes, at, bits.wrapping_add(step));
        }
    }
}
