//! Token counts and their cost.

use std::fmt;
use std::ops::AddAssign;

use config::ModelPrices;

use super::ModelRequest;

/// The number of parts of a dollar: a price for a million tokens then has six decimal places.
const PARTS: f64 = 1e12;
/// The number of tokens that chat templates add to each message (`AROUND`) and to the whole (`AROUND_ALL`).
const AROUND: u64 = 32;
const AROUND_ALL: u64 = 256;

/// An amount of money in fixed point, counted exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u64);

impl Money {
    /// An amount from dollars, rounded to parts.
    #[must_use]
    pub fn dollars(dollars: f64) -> Self {
        // Negative amounts become 0 and very large ones the greatest amount.
        Self((dollars * PARTS).round() as u64)
    }

    /// The amount in parts of a dollar (10⁻¹²).
    #[must_use]
    pub fn parts(self) -> u64 {
        self.0
    }

    /// An amount from parts of a dollar (10⁻¹²).
    #[must_use]
    pub fn from_parts(parts: u64) -> Self {
        Self(parts)
    }

    /// The amount in dollars.
    #[must_use]
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / PARTS
    }

    /// The sum, saturating at the greatest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = self.plus(other);
    }
}

impl fmt::Display for Money {
    /// Formats the amount as in `$0.0123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.as_dollars();
        if dollars >= 1.0 { write!(f, "${dollars:.2}") } else { write!(f, "${dollars:.4}") }
    }
}

/// Token counts of one reply, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// The tokens sent, including cached ones.
    pub input: u64,
    /// The tokens sent that the provider had cached.
    pub cached: u64,
    /// The tokens of the reply, including the model's thinking.
    pub output: u64,
    /// Whether a count is an estimate, which is rather too high.
    pub estimated: bool,
}

impl TokenUsage {
    /// The number of all tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.estimated = self.estimated || other.estimated;
    }
}

/// Prices per token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prices {
    input: Money,
    output: Money,
    cached: Money,
}

impl Prices {
    pub(super) fn of(settings: &ModelPrices) -> Self {
        let each = |million: f64| Money::dollars(million / 1e6);
        Self {
            input: each(settings.input),
            output: each(settings.output),
            cached: each(settings.cached.unwrap_or(settings.input)),
        }
    }

    pub(super) fn cost(&self, usage: &TokenUsage) -> Money {
        let cached = usage.cached.min(usage.input);
        let input = self.input.times(usage.input - cached).plus(self.cached.times(cached));
        input.plus(self.output.times(usage.output))
    }

    /// The most that these tokens can cost. Cached tokens may cost more than others.
    pub(super) fn most(&self, usage: &TokenUsage) -> Money {
        self.input.max(self.cached).times(usage.input).plus(self.output.times(usage.output))
    }
}

/// An upper bound of the tokens of a request: each token has at least one byte.
pub(super) fn most_input(request: &ModelRequest) -> u64 {
    AROUND_ALL + request.messages.iter().fold(0, |sum, _| sum + AROUND) + bytes(request)
}

/// An estimate of the tokens of a request, for rate limits.
pub(super) fn likely_input(request: &ModelRequest) -> u64 {
    bytes(request) / 3 + AROUND
}

fn bytes(request: &ModelRequest) -> u64 {
    let texts = request.messages.iter().map(|message| message.text.len()).sum::<usize>();
    (request.system.len() + texts) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_exact() {
        let settings = ModelPrices { input: 0.15, output: 0.6, cached: Some(0.075) };
        let prices = Prices::of(&settings);
        let usage = TokenUsage { input: 1_000_001, cached: 400_000, output: 3, estimated: false };
        // 600,001 × 0.15, 400,000 × 0.075 and 3 × 0.6 millionths of a dollar.
        assert_eq!(prices.cost(&usage).parts(), 90_000_150_000 + 30_000_000_000 + 1_800_000);
        assert_eq!(prices.cost(&usage).to_string(), "$0.1200");
        assert_eq!(Prices::of(&ModelPrices { cached: None, ..settings }).cost(&usage).parts(), 150_001_950_000);
        // A count of cached tokens above the number sent is not trusted.
        assert_eq!(prices.cost(&TokenUsage { input: 1, cached: 9, output: 0, estimated: false }).parts(), 75_000);
    }

    #[test]
    fn amounts_do_not_overflow() {
        let prices = Prices::of(&ModelPrices { input: 1e5, output: 1e5, cached: None });
        let usage = TokenUsage { input: u64::MAX, cached: 0, output: u64::MAX, estimated: false };
        assert_eq!(prices.cost(&usage), Money::from_parts(u64::MAX));
        assert_eq!(Money::dollars(-1.0), Money::default());
    }
}
