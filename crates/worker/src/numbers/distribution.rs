//! Distributions of floats.

use std::sync::OnceLock;

use super::ElementType;

/// A distribution of floats.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// The share of zeros.
    pub zeros: f64,
    /// The share of minus infinity.
    pub infinite: f64,
    /// Whether the values are uniformly distributed between the least and the greatest.
    pub is_uniform: bool,
}

/// A [`Spread`] with a table of its quantiles at equal distances.
pub(super) struct Quantiles<'a> {
    spread: &'a Spread,
    low: f64,
    high: f64,
    infinite: usize,
    /// The index of the first quantile after the zeros.
    rest: usize,
    normal: &'static [f64],
}

pub(super) const QUANTILES: usize = 1 << 16;

impl Spread {
    pub(super) fn in_type(&self, element: ElementType) -> Quantiles<'_> {
        static NORMAL: OnceLock<Vec<f64>> = OnceLock::new();
        let normal = |at: usize| probit((at as f64 + 0.5) / QUANTILES as f64);
        let normal = NORMAL.get_or_init(|| (0..QUANTILES).map(normal).collect());
        let limit = if element.size == 8 { f64::MAX } else { f64::from(f32::MAX) };
        let of = |share: f64| (share.clamp(0.0, 1.0) * QUANTILES as f64).round() as usize;
        let infinite = of(self.infinite);
        let rest = (infinite + of(self.zeros)).min(QUANTILES);
        Quantiles { spread: self, low: self.low.max(-limit), high: self.high.min(limit), infinite, rest, normal }
    }
}

impl Quantiles<'_> {
    pub(super) fn quantile(&self, at: usize) -> f64 {
        if at < self.infinite {
            return f64::NEG_INFINITY;
        }
        if at < self.rest {
            return 0.0;
        }
        let at = (at - self.rest) * QUANTILES / (QUANTILES - self.rest);
        let Spread { mean, std, is_uniform, .. } = self.spread;
        let share = (at as f64 + 0.5) / QUANTILES as f64;
        let value = if *is_uniform { self.low + share * (self.high - self.low) } else { mean + std * self.normal[at] };
        value.max(self.low).min(self.high)
    }
}

/// The quantile function of the normal distribution, by Acklam's rational approximation (relative error below 1.2e-9).
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
