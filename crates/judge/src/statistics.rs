//! Statistics of interleaved timing pairs: the median ratio and its confidence interval.

/// The median ratio of paired times with a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median over the pairs of original time over candidate time.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The z-score of a two-sided 95 % interval.
pub const Z_95: f64 = 1.959_964;
/// The z-score of a two-sided 99.9 % interval, which an offer must pass, so that a kernel compared with itself wins in
/// fewer than 1 % of runs even when a few candidates are tried.
pub const Z_999: f64 = 3.290_527;

/// The median of `values`; 0 when there are none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    match count {
        0 => 0.0,
        _ if count % 2 == 1 => values[count / 2],
        _ => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// The median ratio with the interval of the median from order statistics (the binomial interval, which assumes nothing
/// about the distribution), for `z` standard deviations.
///
/// Returns `None` with fewer pairs than the interval needs.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)], z: f64) -> Option<Ratio> {
    let mut ratios: Vec<f64> = pairs.iter().map(|(original, candidate)| original / candidate).collect();
    ratios.sort_by(f64::total_cmp);
    let count = ratios.len() as f64;
    let below = (count / 2.0 - z * count.sqrt() / 2.0).floor() - 1.0;
    if below < 0.0 || ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    let below = below as usize;
    Some(Ratio { median: median(ratios.iter().copied()), low: ratios[below], high: ratios[ratios.len() - 1 - below] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    #[test]
    fn the_interval_covers_the_true_ratio_at_its_confidence_level() {
        let mut chance = Rng::new(7);
        let (runs, mut held, mut wins) = (2000, 0, 0_i32);
        for _ in 0..runs {
            // Skewed noise, as clock variations cause it, around a true ratio of 1.
            let mut time = || 1.0 + 0.05 * chance.uniform().powi(4);
            let pairs: Vec<(f64, f64)> = (0..100).map(|_| (time(), time())).collect();
            let narrow = ratio(&pairs, Z_95).unwrap();
            held += usize::from(narrow.low <= 1.0 && 1.0 <= narrow.high);
            wins += i32::from(ratio(&pairs, Z_999).unwrap().low > 1.0);
        }
        assert!(held as f64 >= 0.95 * f64::from(runs), "{held} of {runs}");
        assert!(f64::from(wins) < 0.01 * f64::from(runs), "{wins} of {runs}");
    }

    #[test]
    fn few_or_broken_pairs_give_no_interval() {
        assert_eq!(ratio(&[(1.0, 1.0); 3], Z_95), None);
        assert_eq!(ratio(&[(1.0, 0.0); 100], Z_95), None);
        let sure = ratio(&[(3.0, 2.0); 100], Z_95).unwrap();
        assert_eq!((sure.low, sure.median, sure.high), (1.5, 1.5, 1.5));
        assert_eq!(median([3.0, 1.0, 2.0, 4.0]), 2.5);
    }
}
