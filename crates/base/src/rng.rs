//! Numbers that look like chance.

/// Numbers that look like chance (splitmix64); equal seeds give equal ones.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// One of the indices of `weights`, as likely as its weight says; there is one, and none is below 0.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        // The sum is a number, too.
        let bounded = |weight: &f64| weight.min(1e300);
        let mut left = self.share() * weights.iter().map(bounded).sum::<f64>();
        for (at, weight) in weights.iter().enumerate() {
            left -= bounded(weight);
            if left < 0.0 {
                return at;
            }
        }
        weights.len().saturating_sub(1)
    }

    /// Of whole numbers below `count`.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }
}
