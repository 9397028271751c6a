//! A seeded pseudorandom number generator.

/// A pseudorandom number generator (`SplitMix64`): equal seeds give equal sequences. It is not for cryptography.
#[derive(Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform random number in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// A random index into `weights`, drawn with probability proportional to its weight. `weights` must not be empty,
    /// and no weight may be negative.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        // Weights are capped so that their sum stays finite.
        let bounded = |weight: &f64| weight.min(1e300);
        let mut left = self.uniform() * weights.iter().map(bounded).sum::<f64>();
        for (at, weight) in weights.iter().enumerate() {
            left -= bounded(weight);
            if left < 0.0 {
                return at;
            }
        }
        weights.len().saturating_sub(1)
    }

    /// A random integer in `0..count`.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }
}
