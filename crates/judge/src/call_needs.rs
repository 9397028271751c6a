//! The bytes that a call needs, measured on the original.

use protocol::runner::ArgumentUse;

/// The probability with which the certain share of an argument may be overestimated.
const WRONG: f64 = 1e-6;

/// The bytes that every correct candidate reads and writes, measured on the original.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// Bytes of arguments that the results depend on: the estimate, and the part that is certain.
    pub(super) read: f64,
    pub(super) certainly_read: f64,
    /// Bytes of arguments that the call changes.
    pub(super) changed: f64,
}

impl Needs {
    pub(super) fn of(touched: &[ArgumentUse]) -> Self {
        let sum = |of: &dyn Fn(&ArgumentUse) -> f64| touched.iter().filter(|one| one.tried > 0).map(of).sum();
        let bytes = |one: &ArgumentUse| one.bytes as f64;
        Self {
            read: sum(&|one| bytes(one) * f64::from(one.needed) / f64::from(one.tried)),
            certainly_read: sum(&|one| bytes(one) * least_share(one.needed, one.tried)),
            changed: touched.iter().map(|one| one.written as f64).sum(),
        }
    }
}

/// The lower bound of the share that is needed, when `needed` of `tried` randomly chosen parts were needed.
fn least_share(needed: u32, tried: u32) -> f64 {
    if needed == 0 {
        return 0.0;
    }
    // The probability that this many parts, or more, are needed.
    let likely = |share: f64| -> f64 {
        let mut one = (1.0 - share).powi(tried.cast_signed());
        let mut below = 0.0;
        for count in 0..needed {
            below += one;
            one *= f64::from(tried - count) / f64::from(count + 1) * share / (1.0 - share);
        }
        1.0 - below
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if likely(middle) < WRONG { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_share_is_a_confidence_bound() {
        // All of 64: a share of 0.806 would give that once in a million times.
        assert!((least_share(64, 64) - WRONG.powf(1.0 / 64.0)).abs() < 1e-6);
        assert!((0.1..0.3).contains(&least_share(32, 64)));
        assert!(least_share(1, 64) < 1e-6 && least_share(0, 64) == 0.0);
        assert!((least_share(1, 1) - WRONG).abs() < 1e-9);
        let shares: Vec<f64> = (0..=64).map(|needed| least_share(needed, 64)).collect();
        assert!(shares.is_sorted());
    }
}
